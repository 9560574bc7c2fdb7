// Vocabularies and texts from any bytes: MakeTokenizer ends in an Error or in a tokenizer that
// gives valid text back byte for byte, and never a control, unknown or unused token.
//
// The input is fields with 0xFF between them: a byte that says the kind, then pieces or merges,
// then the text.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_test_vocabularies.h"
#include "tokenizer/unicode.h"

namespace {

using namespace kvasir::tokenizer;  // NOLINT(google-build-using-namespace)

std::vector<std::string_view> Fields(std::string_view input) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = input.find('\xFF');
    fields.push_back(input.substr(0, end));
    if (end == input.npos) return fields;
    input.remove_prefix(end + 1);
  }
}

VocabularySpec SentencePieceFrom(const std::vector<std::string_view>& pieces, bool led) {
  VocabularySpec spec = SentencePieceSpec({});
  for (const std::string_view piece : pieces) {
    const auto type = piece.starts_with('<') ? TokenType::kUserDefined : TokenType::kNormal;
    AddToken(spec, std::string(piece), type, static_cast<float>(piece.size() % 5));
  }
  spec.add_space_prefix = led;
  return spec;
}

// Each field is a merge, cut in its middle, kept if its halves are tokens already.
VocabularySpec ByteLevelFrom(const std::vector<std::string_view>& merges, PreTokenizer pre) {
  std::set<std::string> known;
  for (int byte = 0; byte < 256; ++byte) known.insert(std::string(1, static_cast<char>(byte)));
  std::vector<std::pair<std::string, std::string>> kept;
  for (const std::string_view merge : merges) {
    const std::string left(merge.substr(0, (merge.size() + 1) / 2));
    const std::string right(merge.substr((merge.size() + 1) / 2));
    if (!known.contains(left) || !known.contains(right)) continue;
    if (known.insert(left + right).second) kept.emplace_back(left, right);
  }
  return ByteLevelSpec(pre, kept);
}

VocabularySpec SpecFrom(std::uint8_t kind, const std::vector<std::string_view>& fields) {
  switch (kind % 6) {
    case 0:
    case 1:
      return SentencePieceFrom(fields, kind % 6 == 1);
    case 2:
      return ByteLevelFrom(fields, PreTokenizer::kGpt2);
    case 3:
      return ByteLevelFrom(fields, PreTokenizer::kLlama3);
    case 4:
      return ByteLevelFrom(fields, PreTokenizer::kQwen2);
    default: {  // Merges as they come, right or wrong.
      VocabularySpec spec = ByteLevelSpec(PreTokenizer::kGpt2, {{"a", "b"}});
      for (const std::string_view merge : fields) spec.merges.emplace_back(merge);
      return spec;
    }
  }
}

void CheckText(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.Encode(text);
  KV_CHECK(ids.has_value() == !kvasir::base::FirstInvalidUtf8(text));
  if (!ids) return;
  for (const TokenId id : ids.value()) {
    const TokenType type = tokenizer.vocabulary().type(id);
    KV_CHECK(type == TokenType::kNormal || type == TokenType::kUserDefined ||
             type == TokenType::kByte);
  }
  const auto decoded = Decode(tokenizer.vocabulary(), ids.value());
  const VocabularySpec& spec = tokenizer.vocabulary().spec();
  const bool composes = spec.kind == VocabularyKind::kByteLevel && spec.pre == PreTokenizer::kQwen2;
  KV_CHECK(decoded.value() == (composes ? ToNfc(text) : text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  auto fields = Fields({reinterpret_cast<const char*>(data) + 1, size - 1});
  const std::string_view text = fields.back();
  fields.pop_back();
  auto vocabulary = Vocabulary::Make(SpecFrom(data[0], fields));
  if (!vocabulary) return 0;
  const auto tokenizer = MakeTokenizer(std::move(vocabulary).value());
  if (tokenizer) CheckText(*tokenizer.value(), text);
  return 0;
}
