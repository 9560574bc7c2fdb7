// Masks against the oracle: after a text that the input chooses, a token is in the mask exactly if
// a recognizer that has kept nothing reads the text and the token's bytes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "constraints/compiled_constraint.h"
#include "constraints/gbnf.h"
#include "constraints/json_schema.h"
#include "constraints/regex.h"
#include "constraints/test_vocabulary.h"

namespace {

using namespace kvasir::constraints;

kvasir::base::Result<Grammar> Compile(std::string_view text, unsigned kind) {
  if (kind % 3 == 0) return CompileRegex(text);
  if (kind % 3 == 1) return CompileGbnf(text);
  return CompileJsonSchema(text, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto vocabulary =
      TestVocabulary("ab01{}[]\":,. 春风", {{"ab", kvasir::tokenizer::TokenType::kNormal},
                                            {"\":", kvasir::tokenizer::TokenType::kNormal},
                                            {"{\"", kvasir::tokenizer::TokenType::kNormal},
                                            {"true", kvasir::tokenizer::TokenType::kNormal},
                                            {"春风", kvasir::tokenizer::TokenType::kNormal}});
  static const auto trie = std::make_shared<const TokenTrie>(vocabulary);
  if (size < 2) return 0;
  const unsigned kind = data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto compiled = Compile(text, kind);
  if (!compiled) return 0;
  GrammarMatcher matcher(std::make_shared<CompiledConstraint>(std::move(compiled).value(), trie));
  Recognizer oracle(Compile(text, kind).value());
  StateId state = oracle.start();
  kvasir::base::TokenMask mask(vocabulary.size());
  for (std::size_t i = 0; i < 6; ++i) {
    matcher.Mask(mask);
    KV_CHECK(matcher.MayEnd() == oracle.MayEnd(state));
    std::uint32_t chosen = 0;
    std::size_t left = mask.Count() == 0 ? 0 : data[i % size] % mask.Count() + 1;
    for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
      const std::string_view bytes = vocabulary.Bytes(id);
      KV_CHECK(mask.Test(id) == (!bytes.empty() && oracle.Step(state, bytes) != kDeadState));
      if (mask.Test(id) && left > 0 && --left == 0) chosen = id;
    }
    if (mask.Count() == 0) break;
    KV_CHECK(matcher.Accept(chosen));
    state = oracle.Step(state, vocabulary.Bytes(chosen));
  }
  return 0;
}
