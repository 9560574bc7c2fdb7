#include "model/model_file.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "formats/gguf_reader.h"
#include "formats/printable.h"
#include "model/gpt2_reader.h"
#include "model/vocabulary_reader.h"
#include "tokenizer/character_tokenizer.h"

namespace kvasir::model {
namespace {

using base::Error;
using base::ErrorCode;
using base::MakeError;

struct OpenFile {
  formats::GgufFile file;
  std::string name;
};

base::Result<OpenFile> OpenGpt2(base::Env& env, const std::string& path) {
  KV_TRY(auto file, formats::GgufFile::Open(env, path));
  KV_TRY(const auto architecture, file.metadata().GetString("general.architecture"));
  if (architecture != "gpt2") {
    return MakeError(ErrorCode::kBadData,
                     "'{}' holds a model of architecture {}; supported is gpt2", path,
                     formats::Quoted(architecture));
  }
  KV_TRY(const auto name, file.metadata().OptionalString("general.name"));
  std::string label = name ? std::string(*name) : std::filesystem::path(path).stem().string();
  return OpenFile{std::move(file), std::move(label)};
}

// Which file a config or vocabulary was refused in.
Error InFile(const std::string& path, Error error) {
  if (error.message.find(path) == std::string::npos)
    error.message = "'" + path + "': " + error.message;
  return error;
}

}  // namespace

base::Result<LoadedGpt2> LoadGpt2(base::Env& env, const std::string& path) {
  KV_TRY(auto open, OpenGpt2(env, path));
  auto vocabulary = ReadVocabulary(open.file);
  if (!vocabulary) return InFile(path, vocabulary.error());
  auto model = ReadGpt2(open.file, vocabulary.value().pieces.size());
  if (!model) return InFile(path, model.error());
  return LoadedGpt2{std::move(open.name), std::move(model.value()), std::move(vocabulary.value())};
}

base::Result<LoadedModel> LoadModel(base::Env& env, const std::string& path) {
  KV_TRY(auto loaded, LoadGpt2(env, path));
  auto vocabulary = tokenizer::Vocabulary::Make(std::move(loaded.vocabulary));
  if (!vocabulary) return InFile(path, vocabulary.error());
  auto characters = tokenizer::CharacterTokenizer::Make(std::move(vocabulary.value()));
  if (!characters) return InFile(path, characters.error());
  return LoadedModel{std::move(loaded.name), std::move(loaded.model),
                     std::move(characters.value())};
}

}  // namespace kvasir::model
