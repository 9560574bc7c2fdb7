#include "constraints/compiled_constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "constraints/choices.h"
#include "constraints/gbnf.h"
#include "constraints/regex.h"
#include "constraints/test_vocabulary.h"
#include "constraints/token_trie.h"

namespace kvasir::constraints {
namespace {

using base::TokenId;
using base::TokenMask;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tokenizer::TokenType;
using tokenizer::Vocabulary;

// Byte tokens, characters, and tokens of several and of parts of characters.
Vocabulary MixedVocabulary() {
  return TestVocabulary("abcxyz01\"{}:,春风。", {{"ab", TokenType::kNormal},
                                                 {"abc", TokenType::kNormal},
                                                 {"a", TokenType::kUserDefined},
                                                 {"春风", TokenType::kNormal},
                                                 {"\":", TokenType::kNormal},
                                                 {"}}", TokenType::kNormal},
                                                 {std::string(40, 'a'), TokenType::kNormal},
                                                 {"<a>", TokenType::kControl}});
}

std::shared_ptr<CompiledConstraint> Compile(const Vocabulary& vocabulary, Grammar grammar) {
  return std::make_shared<CompiledConstraint>(std::move(grammar),
                                              std::make_shared<TokenTrie>(vocabulary));
}

std::unique_ptr<Matcher> Make(const Vocabulary& vocabulary, const std::string& regex) {
  return std::make_unique<GrammarMatcher>(Compile(vocabulary, CompileRegex(regex).value()));
}

// Past the limit there is an error and no mask, not a wrong one.
TEST(GrammarMatcher, TellsThatTheLimitWasMet) {
  const Vocabulary vocabulary = MixedVocabulary();
  auto constraint =
      std::make_shared<CompiledConstraint>(CompileRegex("((aa|aaa|b),?){1,1000}").value(),
                                           std::make_shared<TokenTrie>(vocabulary), 1u << 20);
  GrammarMatcher matcher(constraint);
  TokenMask mask(vocabulary.size());
  std::size_t accepted = 0;
  for (; accepted < 3000 && matcher.Status(); ++accepted) {
    matcher.Mask(mask);
    if (!matcher.Status()) break;
    ASSERT_GT(mask.Count(), 0u);
    ASSERT_TRUE(matcher.Accept(*vocabulary.FindPiece("a")));
  }
  EXPECT_LT(accepted, 3000u);
  EXPECT_THAT(matcher.Status().error().message, testing::HasSubstr("1 MiB, the limit"));
  matcher.Rollback(accepted);
  matcher.Mask(mask);
  EXPECT_EQ(mask.Count(), 0u);
}

TEST(TokenTrie, HoldsEveryTokenWithBytesOnce) {
  const Vocabulary vocabulary = MixedVocabulary();
  const TokenTrie trie(vocabulary);
  std::vector<int> seen(vocabulary.size(), 0);
  std::vector<std::string> path(trie.max_depth() + 1);
  const TokenTrie::Tree& tree = trie.all();
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    const TokenTrie::Node& node = tree.nodes[i];
    ASSERT_GT(node.end, i);
    ASSERT_LE(node.end, tree.size());
    path[node.depth] = path[node.depth - 1] + static_cast<char>(node.byte);
    for (const TokenId id : tree.TokensAt(i)) {
      EXPECT_EQ(vocabulary.Bytes(id), path[node.depth]);
      ++seen[id];
    }
    for (const TokenId id : tree.TokensFrom(i)) {
      EXPECT_TRUE(vocabulary.Bytes(id).starts_with(path[node.depth]));
    }
  }
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    EXPECT_EQ(seen[id], vocabulary.Bytes(id).empty() ? 0 : 1) << id;
    EXPECT_EQ(trie.Bytes(id).size(), vocabulary.Bytes(id).size());
  }
  EXPECT_EQ(trie.max_depth(), 40u);
  // Each token is among the plain ones or in the other tree.
  const std::size_t longest = trie.plain_characters();
  EXPECT_EQ(longest, 40u);
  EXPECT_EQ(trie.plain(0).Count(), 0u);
  EXPECT_LT(trie.plain(39).Count(), trie.plain(40).Count());
  EXPECT_EQ(trie.plain(longest).Count() + trie.others().tokens.size(), tree.tokens.size());
  for (const TokenId id : trie.others().tokens) EXPECT_FALSE(trie.plain(longest).Test(id));
}

// Case C115: long tokens and duplicates count; tokens without bytes never do.
TEST(CompiledConstraint, MaskOfOddTokens) {
  const Vocabulary vocabulary = MixedVocabulary();
  const auto matcher = Make(vocabulary, "[a<>]*");
  TokenMask mask(vocabulary.size());
  matcher->Mask(mask);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string bytes(vocabulary.Bytes(id));
    const bool wanted = !bytes.empty() && bytes.find_first_not_of("a<>") == std::string::npos;
    EXPECT_EQ(mask.Test(id), wanted) << id << " " << vocabulary.piece(id);
  }
  EXPECT_EQ(mask.Count(), 6u);  // a as byte, normal and user-defined, 40 a, < and > as bytes
}

// The oracle: a token may come next exactly if a matcher that reads its bytes from the beginning,
// without anything kept from before, does not die; and then its Accept agrees.
void CheckMasks(const Vocabulary& vocabulary, const std::function<Grammar()>& compile, int states,
                std::uint64_t seed) {
  std::mt19937_64 random(seed);
  GrammarMatcher matcher(Compile(vocabulary, compile()));
  std::string text;
  for (int i = 0; i < states; ++i) {
    TokenMask mask(vocabulary.size());
    matcher.Mask(mask);
    std::vector<TokenId> allowed;
    Recognizer oracle(compile());
    const StateId state = oracle.Step(oracle.start(), text);
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const std::string_view bytes = vocabulary.Bytes(id);
      const bool wanted = !bytes.empty() && oracle.Step(state, bytes) != kDeadState;
      ASSERT_EQ(mask.Test(id), wanted) << "after '" << text << "' token " << bytes;
      if (wanted) allowed.push_back(id);
      auto copy = matcher.Clone();
      ASSERT_EQ(copy->Accept(id), wanted);
    }
    ASSERT_EQ(matcher.MayEnd(), oracle.MayEnd(state));
    ASSERT_TRUE(!allowed.empty() || matcher.MayEnd());
    ASSERT_EQ(matcher.IsComplete(), matcher.MayEnd() && allowed.empty());
    if (allowed.empty()) {
      text.clear();
      matcher.Rollback(matcher.accepted_tokens());
      continue;
    }
    const TokenId next = allowed[random() % allowed.size()];
    ASSERT_TRUE(matcher.Accept(next));
    text += vocabulary.Bytes(next);
  }
}

TEST(CompiledConstraint, MasksEqualBruteForce) {
  const Vocabulary vocabulary = MixedVocabulary();
  const std::uint64_t seed = 99;
  SCOPED_TRACE(seed);
  for (const char* regex : {"(ab|a)*c", "x[^\"\\\\]*\"?", "[ -~]*春", "[^\"]{3,5}", ".*",
                            "春?风+。", "\\{\"[a-c]*\":[01]{1,3}\\}", "a{39,41}", "(春风|春){2}"}) {
    SCOPED_TRACE(regex);
    CheckMasks(
        vocabulary, [&] { return CompileRegex(regex).value(); }, 12, seed);
  }
  for (const char* grammar :
       {"root ::= \"{\" (pair (\",\" pair)*)? \"}\"\npair ::= \"\\\"\" [abc]* "
        "\"\\\":\" (root | [01]+)",
        "root ::= \"a\" root \"b\" | \"\""}) {
    SCOPED_TRACE(grammar);
    CheckMasks(
        vocabulary, [&] { return CompileGbnf(grammar).value(); }, 20, seed);
  }
}

TEST(CompiledConstraint, RollbackRestoresEveryState) {
  const Vocabulary vocabulary = MixedVocabulary();
  auto grammar = CompileGbnf("root ::= \"{\" root? \"}\" | [abc]+ \"x\"");
  GrammarMatcher matcher(Compile(vocabulary, std::move(grammar).value()));
  std::mt19937_64 random(3);
  std::vector<TokenMask> masks;
  std::vector<TokenId> tokens;
  TokenMask mask(vocabulary.size());
  for (int i = 0; i < 300; ++i) {
    matcher.Mask(mask);
    if (masks.size() == tokens.size()) masks.push_back(mask);
    ASSERT_EQ(mask, masks[tokens.size()]);
    std::vector<TokenId> allowed;
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      if (mask.Test(id)) allowed.push_back(id);
    }
    if (allowed.empty() || random() % 3 == 0) {
      const std::size_t back = random() % (tokens.size() + 1);
      matcher.Rollback(back);
      tokens.resize(tokens.size() - back);
      masks.resize(tokens.size() + 1, mask);
    } else {
      tokens.push_back(allowed[random() % allowed.size()]);
      ASSERT_TRUE(matcher.Accept(tokens.back()));
    }
    ASSERT_EQ(matcher.accepted_tokens(), tokens.size());
  }
}

TEST(CompiledConstraint, RefusedTokensChangeNothing) {
  const Vocabulary vocabulary = MixedVocabulary();
  const auto matcher = Make(vocabulary, "ab");
  EXPECT_FALSE(matcher->Accept(static_cast<TokenId>(vocabulary.size())));
  EXPECT_FALSE(matcher->Accept(*vocabulary.FindPiece("b")));
  EXPECT_FALSE(matcher->Accept(*vocabulary.FindPiece("abc")));
  EXPECT_EQ(matcher->accepted_tokens(), 0u);
  EXPECT_TRUE(matcher->Accept(*vocabulary.FindPiece("ab")));
  EXPECT_TRUE(matcher->IsComplete());
}

TEST(CompiledConstraint, ForcedTokens) {
  // No byte tokens, so that a character has one spelling.
  const Vocabulary vocabulary = BareVocabulary({{"a", TokenType::kNormal},
                                                {"b", TokenType::kNormal},
                                                {"c", TokenType::kNormal},
                                                {"d", TokenType::kNormal}});
  const auto matcher = Make(vocabulary, "ab[cd]ab*");
  EXPECT_THAT(matcher->ForcedTokens(), ElementsAre(0u, 1u));
  for (const TokenId id : {0u, 1u}) EXPECT_TRUE(matcher->Accept(id));
  EXPECT_THAT(matcher->ForcedTokens(), IsEmpty());
  EXPECT_TRUE(matcher->Accept(2));
  EXPECT_THAT(matcher->ForcedTokens(), ElementsAre(0u));
  EXPECT_TRUE(matcher->Accept(0));
  EXPECT_THAT(matcher->ForcedTokens(), IsEmpty());  // It may end here.
  EXPECT_TRUE(matcher->MayEnd());
  EXPECT_FALSE(matcher->IsComplete());
}

TEST(Choices, AreExactlyTheTexts) {
  const std::vector<std::string> texts = {"ab", "abc", "a", "春风", "春"};
  const Vocabulary vocabulary = MixedVocabulary();
  const auto constraint = Compile(vocabulary, CompileChoices(texts).value());
  for (const std::string text : {"", "a", "ab", "abc", "abcd", "b", "春", "春风", "风"}) {
    StateId state = constraint->start();
    for (const char c : text) state = constraint->Step(state, static_cast<std::uint8_t>(c));
    const bool wanted = std::find(texts.begin(), texts.end(), text) != texts.end();
    EXPECT_EQ(constraint->MayEnd(state), wanted) << text;
  }
  EXPECT_FALSE(CompileChoices({}));
  const std::vector<std::string> bad = {"a\xff"};
  EXPECT_THAT(CompileChoices(bad).error().message, ::testing::HasSubstr("0xff"));
  const std::vector<std::string> empty = {""};
  GrammarMatcher matcher(Compile(vocabulary, CompileChoices(empty).value()));
  EXPECT_TRUE(matcher.IsComplete());
}

}  // namespace
}  // namespace kvasir::constraints
