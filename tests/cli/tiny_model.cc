// tiny_model PATH CONTEXT [CHARACTERS]: writes a small GPT-2 of random weights with a character
// vocabulary, for the tests of the program. The same file for the same arguments.
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "base/env.h"
#include "eval/random_gpt2.h"
#include "model/model_file.h"
#include "tokenizer/character_vocabulary.h"

namespace kvasir {
namespace {

constexpr const char* kCharacters = "春风花月江山水人天云日夜雨白青流霜一不上，。\n ab";

base::Result<void> Write(const std::string& path, std::uint64_t context,
                         std::string_view characters) {
  KV_TRY(const auto vocabulary, tokenizer::BuildCharacterVocabulary(characters));
  const model::Gpt2Config config = {.layers = 2,
                                    .heads = 2,
                                    .embedding = 32,
                                    .feed_forward = 64,
                                    .context = context,
                                    .vocab = vocabulary.pieces.size()};
  KV_TRY(const auto model, eval::MakeRandomGpt2(config, /*seed=*/1));
  std::vector<float> values;
  return model::SaveGpt2(
      base::Env::Default(), path, config, vocabulary,
      [&](const model::TensorSpec& spec) -> base::Result<std::span<const float>> {
        values = model->TensorValues(spec);
        return std::span<const float>(values);
      },
      {.name = "tiny"});
}

int Main(int argc, char** argv) {
  std::uint64_t context = 0;
  const std::string_view number = argc > 2 ? argv[2] : "";
  const auto read = std::from_chars(number.data(), number.data() + number.size(), context);
  if (argc < 3 || argc > 4 || read.ec != std::errc() || read.ptr != number.end()) {
    std::fputs("usage: tiny_model PATH CONTEXT [CHARACTERS]\n", stderr);
    return 2;
  }
  const auto written = Write(argv[1], context, argc > 3 ? argv[3] : kCharacters);
  if (written) return 0;
  std::fprintf(stderr, "tiny_model: %s\n", written.error().message.c_str());
  return 1;
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) { return kvasir::Main(argc, argv); }
