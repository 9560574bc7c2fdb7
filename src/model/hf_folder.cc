#include "model/hf_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "formats/json_document.h"
#include "formats/safetensors_set.h"
#include "formats/tokenizer_json.h"
#include "model/hf_config.h"
#include "model/hf_tensors.h"
#include "model/hf_vocabulary.h"
#include "model/in_file.h"
#include "model/model_file.h"
#include "model/model_metadata.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::model {
namespace {

using base::Result;
using tokenizer::TokenId;
using tokenizer::VocabularySpec;

// What tokenizer_config.json and chat_template.jinja say.
struct TokenizerNotes {
  std::string eos_token;
  std::string chat_template;
};

Result<TokenizerNotes> ReadNotes(base::Env& env, const std::filesystem::path& folder) {
  TokenizerNotes notes;
  const std::string config = (folder / "tokenizer_config.json").string();
  if (env.Exists(config)) {
    KV_TRY(const auto file, formats::JsonDocument::Open(env, config));
    auto eos = file.root().Find("eos_token");
    if (eos && eos->is_object()) eos = eos->Find("content");
    if (eos) notes.eos_token = eos->AsString().value_or("");
    const auto chat = file.root().Find("chat_template");
    if (chat) notes.chat_template = chat->AsString().value_or("");
  }
  const std::string chat = (folder / "chat_template.jinja").string();
  if (env.Exists(chat)) {
    KV_TRY(const auto text, env.Map(chat));
    notes.chat_template = text->text();
  }
  return notes;
}

std::optional<TokenId> FindPiece(const VocabularySpec& spec, std::string_view piece) {
  const auto found = std::find(spec.pieces.begin(), spec.pieces.end(), piece);
  if (piece.empty() || found == spec.pieces.end()) return std::nullopt;
  return static_cast<TokenId>(found - spec.pieces.begin());
}

// That a tokenizer can be made of it, so that what convert writes can be loaded.
Result<void> CheckWhole(const std::string& path, const VocabularySpec& spec) {
  auto vocabulary = tokenizer::Vocabulary::Make(spec);
  if (!vocabulary) return InFile(path, vocabulary.error());
  const auto made = tokenizer::MakeTokenizer(std::move(vocabulary.value()));
  if (!made) return InFile(path, made.error());
  return base::Success();
}

Result<VocabularySpec> ReadVocabulary(base::Env& env, const std::filesystem::path& folder,
                                      const HfConfig& config, const TokenizerNotes& notes) {
  const std::string path = (folder / "tokenizer.json").string();
  KV_TRY(const auto file, formats::ReadTokenizerJson(env, path));
  KV_TRY(auto spec, VocabularyOfJson(file, config.vocab()));
  if (!spec.bos) spec.bos = config.bos;
  spec.pad = config.pad;
  spec.untrained = config.untrained;
  const auto noted = FindPiece(spec, notes.eos_token);
  std::vector<TokenId> ends = config.ends;
  if (ends.empty() && noted) ends.push_back(*noted);
  if (spec.eos && !ends.empty() && spec.eos != ends.front()) {
    return base::MakeError(base::ErrorCode::kBadData,
                           "{}: its template ends texts with token {}; eos_token_id of config.json "
                           "is {}",
                           path, *spec.eos, ends.front());
  }
  if (!spec.eos && !ends.empty()) spec.eos = ends.front();
  if (noted && noted != spec.eos) {
    spec.eot = noted;
  } else if (ends.size() > 1) {
    spec.eot = ends.back();
  }
  KV_TRY(CheckWhole(path, spec));
  return spec;
}

// The type in which most of the numbers of matrices are.
tensor::DType MostlyType(const formats::SafetensorsSet& set) {
  std::array<std::size_t, 3> bytes = {};
  for (const auto& file : set.files()) {
    for (const auto& tensor : file.tensors()) {
      if (tensor.dtype && tensor.shape.rank() >= 2) {
        bytes[static_cast<std::size_t>(*tensor.dtype)] += tensor.data.size();
      }
    }
  }
  return static_cast<tensor::DType>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

std::string NameOf(const std::filesystem::path& folder) {
  const auto name = std::filesystem::absolute(folder).lexically_normal();
  return (name.has_filename() ? name : name.parent_path()).filename().string();
}

bool IsFolderFile(const std::string& path) {
  return path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json");
}

}  // namespace

bool IsHfFolder(base::Env& env, const std::string& path) {
  return env.Exists((std::filesystem::path(path) / "config.json").string()) || IsFolderFile(path);
}

Result<std::vector<std::byte>> GgufOfHfFolder(base::Env& env, const std::string& path) {
  std::filesystem::path folder = path;
  if (IsFolderFile(path) && !env.Exists((folder / "config.json").string())) {
    folder = folder.has_parent_path() ? folder.parent_path() : std::filesystem::path(".");
  }
  KV_TRY(const auto json, formats::JsonDocument::Open(env, (folder / "config.json").string()));
  KV_TRY(const auto config, ReadHfConfig(json));
  KV_TRY(const auto set, formats::SafetensorsSet::Open(env, path));
  KV_TRY(CheckHfTensors(set, config.model));  // First: a vocabulary takes memory by their rows.
  KV_TRY(const auto notes, ReadNotes(env, folder));
  KV_TRY(const auto vocabulary, ReadVocabulary(env, folder, config, notes));
  const SaveOptions options = {.name = NameOf(folder), .dtype = MostlyType(set)};
  formats::GgufWriter writer;
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config.model)) {
    SetGpt2Metadata(*gpt2, vocabulary, options, writer);
  } else {
    SetLlamaMetadata(std::get<LlamaConfig>(config.model), vocabulary, options, writer);
  }
  if (!notes.chat_template.empty()) {
    writer.Set("tokenizer.chat_template", std::string_view(notes.chat_template));
  }
  AddHfTensors(set, config.model, writer);
  return writer.Encode();
}

}  // namespace kvasir::model
