// encode_texts VOCABULARY TEXTS: the token ids of each of the texts in a file, which end with a NUL
// each, one line a text. VOCABULARY: a GGUF file or a tokenizer.json. Checks that decoding them
// gives the text again, in Unicode's normalization form C where the vocabulary asks for it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/env.h"
#include "formats/gguf_reader.h"
#include "formats/tokenizer_json.h"
#include "model/hf_vocabulary.h"
#include "model/vocabulary_reader.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

namespace kvasir {
namespace {

bool Composes(const tokenizer::VocabularySpec& spec) {
  return spec.kind == tokenizer::VocabularyKind::kByteLevel &&
         spec.pre == tokenizer::PreTokenizer::kQwen2;
}

base::Result<tokenizer::VocabularySpec> ReadVocabulary(base::Env& env, const std::string& path) {
  if (!path.ends_with(".json")) {
    KV_TRY(const auto file, formats::GgufFile::Open(env, path));
    return model::ReadVocabulary(file);
  }
  KV_TRY(const auto file, formats::ReadTokenizerJson(env, path));
  std::uint64_t rows = file.tokens.back().id + std::uint64_t{1};
  if (!file.added.empty()) rows = std::max(rows, file.added.back().id + std::uint64_t{1});
  return model::VocabularyOfJson(file, rows);
}

base::Result<void> Run(const std::string& vocabulary_path, const std::string& texts_path) {
  base::Env& env = base::Env::Default();
  KV_TRY(auto spec, ReadVocabulary(env, vocabulary_path));
  KV_TRY(auto vocabulary, tokenizer::Vocabulary::Make(std::move(spec)));
  KV_TRY(const auto tokenizer, tokenizer::MakeTokenizer(std::move(vocabulary)));
  KV_TRY(const auto texts, env.Map(texts_path));
  const bool composes = Composes(tokenizer->vocabulary().spec());
  for (std::string_view rest = texts->text(); !rest.empty();) {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(text.size() + 1);
    KV_TRY(const auto ids, tokenizer->Encode(text));
    KV_TRY(const auto back, tokenizer::Decode(tokenizer->vocabulary(), ids));
    if (back != (composes ? tokenizer::ToNfc(text) : text)) {
      return base::MakeError(base::ErrorCode::kBadData, "'{}' came back as '{}'", text, back);
    }
    fmt::print("{}\n", fmt::join(ids, " "));
  }
  return base::Success();
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: encode_texts VOCABULARY TEXTS\n", stderr);
    return 2;
  }
  const auto run = kvasir::Run(argv[1], argv[2]);
  if (run) return 0;
  std::fprintf(stderr, "encode_texts: %s\n", run.error().message.c_str());
  return 1;
}
