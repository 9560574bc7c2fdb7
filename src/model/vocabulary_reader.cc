#include "model/vocabulary_reader.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/printable.h"
#include "tokenizer/pre_tokenizer.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;
using tokenizer::PreTokenizer;
using tokenizer::TokenType;
using tokenizer::VocabularyKind;
using tokenizer::VocabularySpec;

struct SpecialKey {
  const char* key;
  std::optional<tokenizer::TokenId> VocabularySpec::*id;
};
constexpr SpecialKey kSpecials[] = {{"tokenizer.ggml.bos_token_id", &VocabularySpec::bos},
                                    {"tokenizer.ggml.eos_token_id", &VocabularySpec::eos},
                                    {"tokenizer.ggml.eot_token_id", &VocabularySpec::eot},
                                    {"tokenizer.ggml.unknown_token_id", &VocabularySpec::unk},
                                    {"tokenizer.ggml.padding_token_id", &VocabularySpec::pad}};

base::Result<std::optional<tokenizer::TokenId>> ReadId(const formats::GgufMetadata& metadata,
                                                       std::string_view key) {
  KV_TRY(const auto value, metadata.OptionalUint(key));
  if (!value) return std::optional<tokenizer::TokenId>();
  if (*value > std::numeric_limits<tokenizer::TokenId>::max()) {
    return MakeError(ErrorCode::kBadData, "{} is {}, which no vocabulary holds", key, *value);
  }
  return std::optional(static_cast<tokenizer::TokenId>(*value));
}

constexpr const char* kUntrained = "kvasir.tokenizer.untrained";

base::Result<void> ReadUntrained(const formats::GgufMetadata& metadata, VocabularySpec& spec) {
  KV_TRY(const auto ids, metadata.OptionalIntArray(kUntrained));
  if (!ids) return base::Success();
  for (std::int64_t id : *ids) {
    if (id < 0 || id > std::numeric_limits<tokenizer::TokenId>::max()) {
      return MakeError(ErrorCode::kBadData, "{} holds {}, which is no token id", kUntrained, id);
    }
    spec.untrained.push_back(static_cast<tokenizer::TokenId>(id));
  }
  return base::Success();
}

base::Result<bool> ReadFlag(const formats::GgufMetadata& metadata, std::string_view key,
                            bool otherwise) {
  KV_TRY(const auto value, metadata.OptionalBool(key));
  return value.value_or(otherwise);
}

base::Result<VocabularyKind> ReadKind(const formats::GgufMetadata& metadata) {
  KV_TRY(const auto kind, metadata.GetString("tokenizer.ggml.model"));
  if (kind == "llama") return VocabularyKind::kSentencePiece;
  if (kind == "gpt2") return VocabularyKind::kByteLevel;
  return MakeError(ErrorCode::kBadData, "tokenizer.ggml.model is {}; supported are llama and gpt2",
                   formats::Quoted(kind));
}

base::Result<void> ReadTypes(const formats::GgufMetadata& metadata, VocabularySpec& spec) {
  KV_TRY(const auto types, metadata.OptionalIntArray("tokenizer.ggml.token_type"));
  if (!types) {
    spec.types.assign(spec.pieces.size(), TokenType::kNormal);
    return base::Success();
  }
  for (std::int64_t type : *types) {
    if (type < std::numeric_limits<std::int32_t>::min() ||
        type > std::numeric_limits<std::int32_t>::max()) {
      return MakeError(ErrorCode::kBadData,
                       "tokenizer.ggml.token_type holds {}; allowed are 1 to 6", type);
    }
    spec.types.push_back(static_cast<TokenType>(type));
  }
  return base::Success();
}

// Files of gpt2 models that are older than the key tokenizer.ggml.pre lack it.
base::Result<PreTokenizer> ReadPreTokenizer(const formats::GgufMetadata& metadata) {
  constexpr const char* kKey = "tokenizer.ggml.pre";
  constexpr const char* kSupported = "supported are gpt-2, llama-bpe and qwen2";
  KV_TRY(const auto name, metadata.OptionalString(kKey));
  if (!name) {
    KV_TRY(const auto architecture, metadata.OptionalString("general.architecture"));
    if (architecture == "gpt2") return PreTokenizer::kGpt2;
    return MakeError(ErrorCode::kBadData, "{} is missing, which says how text is cut; {}", kKey,
                     kSupported);
  }
  const auto known = tokenizer::FindPreTokenizer(*name);
  if (known) return *known;
  return MakeError(ErrorCode::kBadData, "{} is {}; {}", kKey, formats::Quoted(*name), kSupported);
}

base::Result<void> ReadByteLevel(const formats::GgufMetadata& metadata, VocabularySpec& spec) {
  KV_TRY(spec.pre, ReadPreTokenizer(metadata));
  KV_TRY(const auto merges, metadata.GetStringArray("tokenizer.ggml.merges"));
  spec.merges.assign(merges.begin(), merges.end());
  return base::Success();
}

}  // namespace

base::Result<VocabularySpec> ReadVocabulary(const formats::GgufFile& file) {
  const formats::GgufMetadata& metadata = file.metadata();
  VocabularySpec spec;
  KV_TRY(spec.kind, ReadKind(metadata));
  KV_TRY(const auto pieces, metadata.GetStringArray("tokenizer.ggml.tokens"));
  spec.pieces.assign(pieces.begin(), pieces.end());
  KV_TRY(auto scores, metadata.OptionalFloatArray("tokenizer.ggml.scores"));
  spec.scores = scores ? std::move(*scores) : std::vector<float>(pieces.size(), 0.0f);
  KV_TRY(ReadTypes(metadata, spec));
  KV_TRY(ReadUntrained(metadata, spec));
  for (const SpecialKey& special : kSpecials) {
    KV_TRY(spec.*special.id, ReadId(metadata, special.key));
  }
  const bool bytes = spec.kind == VocabularyKind::kByteLevel;
  if (bytes) {
    KV_TRY(ReadByteLevel(metadata, spec));
  }
  // What a file leaves open is what llama.cpp takes it for; those of characters are our own.
  const bool led = !bytes && !tokenizer::IsCharacterLevel(spec);
  const bool starts = spec.bos && (bytes ? spec.pre == PreTokenizer::kLlama3 : led);
  KV_TRY(spec.add_bos, ReadFlag(metadata, "tokenizer.ggml.add_bos_token", starts));
  KV_TRY(spec.add_eos, ReadFlag(metadata, "tokenizer.ggml.add_eos_token", false));
  KV_TRY(const bool prefix, ReadFlag(metadata, "tokenizer.ggml.add_space_prefix", led));
  spec.add_space_prefix = prefix && !bytes;
  return spec;
}

void WriteVocabulary(const VocabularySpec& spec, formats::GgufWriter& writer) {
  const bool bytes = spec.kind == VocabularyKind::kByteLevel;
  writer.Set("tokenizer.ggml.model", bytes ? "gpt2" : "llama");
  writer.Set("tokenizer.ggml.tokens", std::span<const std::string>(spec.pieces));
  writer.Set("tokenizer.ggml.scores", std::span<const float>(spec.scores));
  std::vector<std::int32_t> types;
  for (TokenType type : spec.types) types.push_back(static_cast<std::int32_t>(type));
  writer.Set("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
  if (bytes) {
    writer.Set("tokenizer.ggml.pre", tokenizer::PreTokenizerName(spec.pre));
    writer.Set("tokenizer.ggml.merges", std::span<const std::string>(spec.merges));
  }
  for (const SpecialKey& special : kSpecials) {
    if (const auto& id = spec.*special.id) writer.Set(special.key, *id);
  }
  writer.Set("tokenizer.ggml.add_bos_token", spec.add_bos);
  writer.Set("tokenizer.ggml.add_eos_token", spec.add_eos);
  writer.Set("tokenizer.ggml.add_space_prefix", spec.add_space_prefix);
  if (!spec.untrained.empty()) {
    writer.Set(kUntrained, std::span<const std::uint32_t>(spec.untrained));
  }
}

}  // namespace kvasir::model
