#include "model/vocabulary_reader.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "formats/printable.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;

base::Result<std::optional<tokenizer::TokenId>> ReadId(const formats::GgufFile& file,
                                                       std::string_view key) {
  KV_TRY(const auto value, file.metadata().OptionalUint(key));
  if (!value) return std::optional<tokenizer::TokenId>();
  if (*value > std::numeric_limits<tokenizer::TokenId>::max()) {
    return MakeError(ErrorCode::kBadData, "{} is {}, which no vocabulary holds", key, *value);
  }
  return std::optional(static_cast<tokenizer::TokenId>(*value));
}

base::Result<bool> ReadFlag(const formats::GgufFile& file, std::string_view key, bool otherwise) {
  KV_TRY(const auto value, file.metadata().OptionalBool(key));
  return value.value_or(otherwise);
}

}  // namespace

base::Result<tokenizer::VocabularySpec> ReadVocabulary(const formats::GgufFile& file) {
  const formats::GgufMetadata& metadata = file.metadata();
  KV_TRY(const auto kind, metadata.GetString("tokenizer.ggml.model"));
  if (kind != "llama") {
    return MakeError(ErrorCode::kBadData, "tokenizer.ggml.model is {}; supported is 'llama'",
                     formats::Quoted(kind));
  }
  tokenizer::VocabularySpec spec;
  KV_TRY(const auto pieces, metadata.GetStringArray("tokenizer.ggml.tokens"));
  spec.pieces.assign(pieces.begin(), pieces.end());
  KV_TRY(auto scores, metadata.OptionalFloatArray("tokenizer.ggml.scores"));
  spec.scores = scores ? std::move(*scores) : std::vector<float>(pieces.size(), 0.0f);
  KV_TRY(const auto types, metadata.OptionalIntArray("tokenizer.ggml.token_type"));
  if (types) {
    for (std::int64_t type : *types) {
      if (type < std::numeric_limits<std::int32_t>::min() ||
          type > std::numeric_limits<std::int32_t>::max()) {
        return MakeError(ErrorCode::kBadData,
                         "tokenizer.ggml.token_type holds {}; allowed are 1 to 6", type);
      }
      spec.types.push_back(static_cast<tokenizer::TokenType>(type));
    }
  } else {
    spec.types.assign(pieces.size(), tokenizer::TokenType::kNormal);
  }
  KV_TRY(spec.bos, ReadId(file, "tokenizer.ggml.bos_token_id"));
  KV_TRY(spec.eos, ReadId(file, "tokenizer.ggml.eos_token_id"));
  KV_TRY(spec.unk, ReadId(file, "tokenizer.ggml.unknown_token_id"));
  KV_TRY(spec.pad, ReadId(file, "tokenizer.ggml.padding_token_id"));
  KV_TRY(spec.add_bos, ReadFlag(file, "tokenizer.ggml.add_bos_token", false));
  KV_TRY(spec.add_eos, ReadFlag(file, "tokenizer.ggml.add_eos_token", false));
  KV_TRY(spec.add_space_prefix, ReadFlag(file, "tokenizer.ggml.add_space_prefix", false));
  return spec;
}

void WriteVocabulary(const tokenizer::VocabularySpec& spec, formats::GgufWriter& writer) {
  writer.Set("tokenizer.ggml.model", "llama");
  writer.Set("tokenizer.ggml.tokens", std::span<const std::string>(spec.pieces));
  writer.Set("tokenizer.ggml.scores", std::span<const float>(spec.scores));
  std::vector<std::int32_t> types;
  for (tokenizer::TokenType type : spec.types) types.push_back(static_cast<std::int32_t>(type));
  writer.Set("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
  const auto set_id = [&](const char* key, const std::optional<tokenizer::TokenId>& id) {
    if (id) writer.Set(key, *id);
  };
  set_id("tokenizer.ggml.bos_token_id", spec.bos);
  set_id("tokenizer.ggml.eos_token_id", spec.eos);
  set_id("tokenizer.ggml.unknown_token_id", spec.unk);
  set_id("tokenizer.ggml.padding_token_id", spec.pad);
  writer.Set("tokenizer.ggml.add_bos_token", spec.add_bos);
  writer.Set("tokenizer.ggml.add_eos_token", spec.add_eos);
  writer.Set("tokenizer.ggml.add_space_prefix", spec.add_space_prefix);
}

}  // namespace kvasir::model
