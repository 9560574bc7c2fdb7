#include "constraints/term.h"

#include <gtest/gtest.h>

#include "constraints/grammar.h"
#include "constraints/language_test_util.h"
#include "constraints/recognizer.h"
#include "constraints/regex_escapes.h"
#include "constraints/regex_piece.h"
#include "constraints/text_cursor.h"

namespace kvasir::constraints {
namespace {

TEST(TermPool, EqualTermsAreOne) {
  TermPool pool;
  const TermId a = pool.Text("a"), b = pool.Text("b");
  EXPECT_EQ(pool.Text("a"), a);
  EXPECT_EQ(pool.Concat(a, b), pool.Text("ab"));
  EXPECT_EQ(pool.Concat(a, kEmptyTerm), a);
  EXPECT_EQ(pool.Concat(kNothingTerm, a), kNothingTerm);
  EXPECT_EQ(pool.Alternate(a, kNothingTerm), a);
  EXPECT_EQ(pool.Alternate(a, a), a);
  EXPECT_EQ(pool.Chars(CodePointSet()), kNothingTerm);
}

TEST(TermPool, RepeatsJoinWhereThatIsExact) {
  TermPool pool;
  const TermId a = pool.Text("a");
  const auto repeat = [&](std::uint64_t x, std::uint64_t y, std::uint64_t min, std::uint64_t max) {
    return pool.Repeat(pool.Repeat(a, x, y), min, max);
  };
  EXPECT_EQ(repeat(3, 3, 3, 3), pool.Repeat(a, 9, 9));
  EXPECT_EQ(repeat(0, kNoMaximum, 0, kNoMaximum), pool.Repeat(a, 0, kNoMaximum));
  EXPECT_EQ(repeat(1, kNoMaximum, 0, 1), pool.Repeat(a, 0, kNoMaximum));
  EXPECT_EQ(repeat(2, 3, 2, 3), pool.Repeat(a, 4, 9));
  EXPECT_EQ(repeat(2, 3, 1, 2), pool.Repeat(a, 2, 6));
  EXPECT_NE(repeat(2, 2, 1, 2), pool.Repeat(a, 2, 4));   // Not 3 times.
  EXPECT_NE(repeat(2, 3, 0, 1), pool.Repeat(a, 0, 3));   // Not once.
  EXPECT_NE(repeat(4, 5, 1, 2), pool.Repeat(a, 4, 10));  // Not 6 or 7 times.
  EXPECT_EQ(repeat(3, 5, 1, 2), pool.Repeat(a, 3, 10));
  EXPECT_EQ(pool.Repeat(a, 0, 0), kEmptyTerm);
  EXPECT_EQ(pool.Repeat(a, 1, 1), a);
  EXPECT_EQ(pool.Repeat(kNothingTerm, 0, 5), kEmptyTerm);
  EXPECT_EQ(pool.Repeat(kNothingTerm, 1, 5), kNothingTerm);
}

TEST(TermPool, CoversWhatHasNoMoreTexts) {
  TermPool pool;
  const TermId a = pool.Text("a"), b = pool.Text("b");
  const auto seq = [&](std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    return pool.Concat(pool.Repeat(a, x, y), pool.Repeat(b, 0, z));
  };
  EXPECT_TRUE(pool.Covers(seq(0, 9, 3), seq(0, 9, 3)));
  EXPECT_TRUE(pool.Covers(seq(0, 9, 3), seq(2, 4, 3)));
  EXPECT_TRUE(pool.Covers(seq(0, 9, 3), pool.Repeat(b, 0, 2)));
  EXPECT_TRUE(pool.Covers(seq(0, 9, 3), kEmptyTerm));
  EXPECT_TRUE(pool.Covers(seq(1, 9, 3), pool.Concat(a, pool.Repeat(b, 1, 3))));
  EXPECT_TRUE(pool.Covers(seq(1, 2, kNoMaximum), seq(1, 2, 5)));
  EXPECT_FALSE(pool.Covers(seq(0, 4, 3), seq(0, 9, 3)));
  EXPECT_FALSE(pool.Covers(seq(0, 9, 3), seq(0, 4, 4)));
  EXPECT_FALSE(pool.Covers(seq(1, 9, 3), seq(0, 9, 3)));
  EXPECT_FALSE(pool.Covers(seq(1, 9, 3), pool.Repeat(b, 0, 3)));
  EXPECT_FALSE(pool.Covers(seq(2, 9, 3), pool.Concat(a, pool.Repeat(b, 0, 3))));
  EXPECT_FALSE(pool.Covers(kEmptyTerm, a));
  EXPECT_FALSE(pool.Covers(a, kEmptyTerm));
  EXPECT_FALSE(pool.Covers(pool.Repeat(a, 0, 5), b));
}

TEST(TermPool, WithoutEmpty) {
  TermPool pool;
  const TermId a = pool.Text("a");
  const TermId maybe = pool.Alternate(a, kEmptyTerm);
  EXPECT_TRUE(pool.term(maybe).nullable);
  EXPECT_EQ(pool.WithoutEmpty(maybe), a);
  EXPECT_EQ(pool.WithoutEmpty(kEmptyTerm), kNothingTerm);
  EXPECT_EQ(pool.WithoutEmpty(a), a);
  for (const bool whole : {true, false}) {
    Grammar one;
    const TermId x = one.pool->Alternate(one.pool->Text("a"), kEmptyTerm);
    const TermId xb = one.pool->Concat(x, one.pool->Repeat(one.pool->Text("b"), 0, 2));
    one.start = whole ? xb : one.pool->WithoutEmpty(xb);
    Recognizer recognizer(std::move(one));
    for (const char* text : {"a", "b", "ab", "abb", "bb"}) EXPECT_TRUE(Accepts(recognizer, text));
    EXPECT_EQ(Accepts(recognizer, ""), whole);
    EXPECT_FALSE(Accepts(recognizer, "aa"));
  }
}

class Countdown final : public LazyTerms {
 public:
  TermId Expand(TermPool& pool, std::uint32_t state) override {
    const TermId x = pool.Text("x");
    return state == 0 ? x : pool.Concat(x, pool.Lazy(0, state - 1));
  }
};

TEST(TermPool, LazyTermsAreWrittenOutOnDemand) {
  Grammar grammar;
  const std::uint32_t source = grammar.pool->AddSource(std::make_shared<Countdown>());
  grammar.start = grammar.pool->Lazy(source, 1000000);
  Recognizer recognizer(std::move(grammar));
  const StateId state = recognizer.Step(recognizer.start(), std::string(10, 'x'));
  EXPECT_NE(state, kDeadState);
  EXPECT_FALSE(recognizer.MayEnd(state));
  EXPECT_LT(recognizer.state_count(), 20u);
}

TEST(Grammar, RulesLoseTheEmptyText) {
  Grammar grammar;
  TermPool& pool = *grammar.pool;
  // r ::= "a" r | "" and start ::= r{3} r*
  grammar.rules = {pool.Alternate(pool.Concat(pool.Text("a"), pool.Call(0)), kEmptyTerm)};
  grammar.start =
      pool.Concat(pool.Repeat(pool.Call(0), 3, 3), pool.Repeat(pool.Call(0), 0, kNoMaximum));
  auto finished = FinishGrammar(std::move(grammar), [](RuleId) { return "r"; });
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_FALSE(finished.value().pool->term(finished.value().rules[0]).nullable);
  Recognizer recognizer(std::move(finished).value());
  for (const char* text : {"", "a", "aaaaaa"}) EXPECT_TRUE(Accepts(recognizer, text)) << text;
  EXPECT_FALSE(Accepts(recognizer, "b"));
}

TEST(TextCursor, NumbersAndPlaces) {
  TextCursor cursor("test", "12x007ffg");
  EXPECT_EQ(cursor.TakeNumber(100).value(), 12u);
  EXPECT_EQ(cursor.TakeNumber(100).error().message, "test, at byte 2: a number is needed here");
  EXPECT_TRUE(cursor.Skip("x"));
  EXPECT_EQ(cursor.TakeHex(4).value(), 0x007fu);
  EXPECT_FALSE(cursor.TakeHex(2));
  EXPECT_TRUE(CheckConstraintText("test", "春"));
  EXPECT_FALSE(CheckConstraintText("test", "a\xff"));
  TextCursor big("test", "101");
  EXPECT_EQ(big.TakeNumber(100).error().message,
            "test, at byte 0: the number 101 is above 100, the limit");
}

TEST(RegexEscape, StopsBehindTheEscape) {
  TextCursor cursor("test", "\\u{4e2d}x");
  EXPECT_EQ(ParseRegexEscape(cursor, RegexDialect::kPlain, false).value(),
            CodePointSet::Of(0x4E2D));
  EXPECT_EQ(cursor.rest(), "x");
  TextCursor blank("test", "\\s");
  EXPECT_TRUE(ParseRegexEscape(blank, RegexDialect::kEcma, false).value().Contains(0xA0));
}

TEST(RegexPiece, AnchorsHoldWhereTheTextBeginsAndEnds) {
  TermPool pool;
  const RegexPiece a = RegexPiece::Plain(pool.Text("a"));
  EXPECT_EQ(RegexPiece::Concat(pool, {RegexPiece::Start(), a, RegexPiece::End()}).Whole(pool),
            pool.Text("a"));
  EXPECT_EQ(RegexPiece::Concat(pool, {a, RegexPiece::Start()}).Whole(pool), kNothingTerm);
  EXPECT_EQ(RegexPiece::Repeat(pool, RegexPiece::Start(), 0, 0).Whole(pool), kEmptyTerm);
}

}  // namespace
}  // namespace kvasir::constraints
