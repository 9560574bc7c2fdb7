// Masks of 200 random regular expressions, grammars and schemas in random states, against trying
// every token's bytes: no bit may differ, either way. KVASIR_MASK_STATES sets the states of each
// (50), KVASIR_MASK_SEED the languages.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "constraints/compiled_constraint.h"
#include "constraints/constraint_compiler.h"
#include "constraints/test_vocabulary.h"
#include "constraints/token_trie.h"

namespace kvasir::constraints {
namespace {

using base::TokenId;
using base::TokenMask;
using tokenizer::TokenType;
using tokenizer::Vocabulary;

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Characters, bytes, and tokens that hold several or parts of what a language is made of.
Vocabulary OracleVocabulary() {
  ExtraTokens extra = {{"<s2>", TokenType::kControl}, {"a", TokenType::kUserDefined}};
  for (const char* piece :
       {"ab",  "abc",   "01", "12",  "00",   "春风",    "风。",         "\":",  "\": ", "{\"",
        "\"}", "\",\"", "[[", "]]",  "}}",   ", ",      "true",         "null", "fal",  "se",
        "e1",  ".5",    "-1", "\\u", "\\\"", "{\"a\":", "aaaaaaaaaaaa", "\n ",  "tr"}) {
    extra.emplace_back(piece, TokenType::kNormal);
  }
  return TestVocabulary("abcdxyz0123456789\"{}[]:,.-+\\truefalsn 春风。\n", extra);
}

// Writes random languages of one kind. Some are refused: they stand for nothing.
class LanguageWriter {
 public:
  explicit LanguageWriter(std::uint64_t seed) : random_(seed) {}

  std::string Regex(int depth) {
    if (depth == 0) {
      return Pick(
          {"a", "b", "x", "0", "春", ".", "[a-c]", "[^\"x]", "\\d", "ab", "风。", "\\p{Han}"});
    }
    switch (random_() % 4) {
      case 0:
        return Regex(depth - 1) + Regex(depth - 1);
      case 1:
        return "(" + Regex(depth - 1) + "|" + Regex(depth - 1) + ")";
      default:
        return "(" + Regex(depth - 1) + ")" + Pick({"*", "+", "?", "{2}", "{1,3}", "{2,}", ""});
    }
  }

  std::string Grammar() {
    std::string text;
    for (int rule = 0; rule < kRules; ++rule) {
      const std::string name = rule == 0 ? "root" : "r" + std::to_string(rule);
      text += name + " ::= " + Body(rule, 2) + " | " + Body(rule, 1) + "\n";
    }
    return text;
  }

  std::string Schema(int depth) {
    switch (random_() % (depth == 0 ? 5 : 10)) {
      case 0:
        return R"({"type":"string","minLength":)" + Number(2) + R"(,"maxLength":)" +
               std::to_string(2 + random_() % 3) + "}";
      case 1:
        return R"({"type":"integer","minimum":-)" + Number(120) + R"(,"maximum":)" + Number(120) +
               "}";
      case 2:
        return Pick({R"({"enum":["a","ab",1,null]})", R"({"const":{"a":[true]}})",
                     R"({"type":"boolean"})", R"({"type":"null"})", R"({"type":"number"})"});
      case 3:
        return R"({"type":"string","pattern":")" + Pick({"^a+b$", "x", "^[abc]{2,3}$"}) + "\"}";
      case 4:
        return R"({"type":["integer","boolean"],"exclusiveMaximum":)" + Number(50) + "}";
      case 5:
        return R"({"type":"array","items":)" + Schema(depth - 1) + R"(,"maxItems":)" + Number(4) +
               "}";
      case 6:
        return R"({"type":"array","prefixItems":[)" + Schema(depth - 1) + R"(],"minItems":1})";
      case 7:
        return R"({"anyOf":[)" + Schema(depth - 1) + "," + Schema(depth - 1) + "]}";
      default:
        return R"({"type":"object","properties":{"a":)" + Schema(depth - 1) + R"(,"ab":)" +
               Schema(depth - 1) + R"(},"additionalProperties":)" + Pick({"false", "true"}) +
               R"(,"required":[)" + Pick({"", R"("a")", R"("a","ab")"}) + "]}";
    }
  }

 private:
  static constexpr int kRules = 4;

  std::string Pick(std::initializer_list<const char*> from) {
    return from.begin()[random_() % from.size()];
  }
  std::string Number(std::uint64_t below) { return std::to_string(random_() % below); }

  // Calls later rules anywhere, itself and earlier ones only once something has been read.
  std::string Body(int rule, int depth) {
    const std::string read = Pick({"\"a\"", "\"ab\"", "[xyz0-3]", "\"春\"", "\"{\"", "[^\\\"a]"});
    if (depth == 0) return read;
    switch (random_() % 5) {
      case 0:
        return read + " r" + std::to_string(1 + random_() % (kRules - 1)) + "?";
      case 1:
        return rule + 1 < kRules ? "r" + std::to_string(rule + 1) + " " + read : read;
      case 2:
        return "(" + Body(rule, depth - 1) + ")" + Pick({"*", "+", "?", "{1,2}"});
      case 3:
        return read + " root? " + Pick({"\"b\"", "\"}\""});
      default:
        return Body(rule, depth - 1) + " " + Body(rule, depth - 1);
    }
  }

  std::mt19937_64 random_;
};

class MaskOracle : public testing::Test {
 protected:
  // Walks at random from mask to mask; each is compared with a recognizer that reads the text anew.
  void Check(const ConstraintSpec& spec, std::uint64_t seed) {
    SCOPED_TRACE(testing::Message() << spec.texts.front() << " seed " << seed);
    std::mt19937_64 random(seed);
    GrammarMatcher matcher(
        std::make_shared<CompiledConstraint>(CompileGrammar(spec).value(), trie_));
    std::string text;
    TokenMask mask(vocabulary_.size());
    for (std::uint64_t i = 0; i < states_; ++i) {
      matcher.Mask(mask);
      Recognizer oracle(CompileGrammar(spec).value());
      const StateId state = oracle.Step(oracle.start(), text);
      std::vector<TokenId> allowed;
      for (TokenId id = 0; id < vocabulary_.size(); ++id) {
        const std::string_view bytes = vocabulary_.Bytes(id);
        const bool wanted = !bytes.empty() && oracle.Step(state, bytes) != kDeadState;
        ASSERT_EQ(mask.Test(id), wanted) << "after '" << text << "' token '" << bytes << "'";
        if (wanted) allowed.push_back(id);
      }
      ++compared_;
      ASSERT_EQ(matcher.MayEnd(), oracle.MayEnd(state)) << "after '" << text << "'";
      if (allowed.empty()) {
        matcher.Rollback(matcher.accepted_tokens());
        text.clear();
        continue;
      }
      const TokenId next = allowed[random() % allowed.size()];
      ASSERT_TRUE(matcher.Accept(next));
      text += vocabulary_.Bytes(next);
    }
  }

  // Until `count` languages that are not refused have been looked at.
  template <typename Write>
  void CheckMany(ConstraintKind kind, int count, Write write) {
    std::uint64_t seed = FromEnvironment("KVASIR_MASK_SEED", 4242);
    for (int done = 0; done < count && !HasFatalFailure(); ++seed) {
      LanguageWriter writer(seed);
      const ConstraintSpec spec = {.kind = kind, .texts = {write(writer)}};
      if (!CompileGrammar(spec)) continue;
      Check(spec, seed);
      ++done;
    }
    EXPECT_EQ(compared_, static_cast<std::uint64_t>(count) * states_);
  }

  const Vocabulary vocabulary_ = OracleVocabulary();
  const std::shared_ptr<TokenTrie> trie_ = std::make_shared<TokenTrie>(vocabulary_);
  const std::uint64_t states_ = FromEnvironment("KVASIR_MASK_STATES", 50);
  std::uint64_t compared_ = 0;
};

TEST_F(MaskOracle, OfRegularExpressions) {
  CheckMany(ConstraintKind::kRegex, 70, [](LanguageWriter& writer) { return writer.Regex(4); });
}

TEST_F(MaskOracle, OfGrammars) {
  CheckMany(ConstraintKind::kGrammar, 60, [](LanguageWriter& writer) { return writer.Grammar(); });
}

TEST_F(MaskOracle, OfSchemas) {
  CheckMany(ConstraintKind::kJsonSchema, 70,
            [](LanguageWriter& writer) { return writer.Schema(2); });
}

// Where masks take a short cut: runs of characters whichever they are, of a bounded length or not,
// with something else to come behind them; names and what waits behind names; nested values.
TEST_F(MaskOracle, OfRunsAndNames) {
  const std::string plain = R"([^"\\\x00-\x1F\x7F-\x9F])";
  std::uint64_t seed = 900;
  for (const std::string& grammar :
       {"root ::= (w \"-\"?)* \"\\\"\"\nw ::= " + plain + "{1,3}\n",
        "root ::= \"\\\"\" w \"\\\"\"\nw ::= " + plain + "{2,5}\n",
        "root ::= w \"\\\"\" w\nw ::= " + plain + "+ | \"\\\\\" w\n",
        "root ::= \"[\" root* \"]\" | w\nw ::= " + plain + "{0,14} [x-z]\n"}) {
    Check({.kind = ConstraintKind::kGrammar, .texts = {grammar}}, ++seed);
  }
  for (const char* schema :
       {R"({"type":"array","items":{"type":"string","maxLength":3}})",
        R"({"type":"string","minLength":2,"maxLength":14})",
        R"({"type":"array","items":{"type":"object","minProperties":1,"maxProperties":2}})",
        R"({"type":"object","properties":{"a":{},"ab":{"type":"integer"},"abc":{"const":"ab"}},
            "required":["ab"],"additionalProperties":{"type":"boolean"}})",
        R"({"type":"object","properties":{"a":{"$ref":"#"},"ab":{"$ref":"#"},"b":{"type":"null"}},
            "additionalProperties":false,"maxProperties":2})",
        R"({"type":"object","patternProperties":{"^a":{"type":"integer","minimum":0}},
            "propertyNames":{"maxLength":4},"oneOf":[{"required":["a"]},{"required":["b"]}]})"}) {
    for (const bool compact : {false, true}) {
      ConstraintSpec spec = {.kind = ConstraintKind::kJsonSchema, .texts = {schema}};
      spec.json.compact = compact;
      Check(spec, ++seed);
    }
  }
}

}  // namespace
}  // namespace kvasir::constraints
