// tiny_model PATH CONTEXT [CHARACTERS [ARCHITECTURE]]: writes a small model of random weights with
// a character vocabulary, for the tests of the program. CHARACTERS "": some; ARCHITECTURE: gpt2
// (the default), llama or deepseek2. The same file for the same arguments.
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "base/env.h"
#include "eval/random_gpt2.h"
#include "eval/random_weights.h"
#include "model/model_file.h"
#include "tokenizer/character_vocabulary.h"

namespace kvasir {
namespace {

constexpr const char* kCharacters = "春风花月江山水人天云日夜雨白青流霜一不上，。\n ab";

base::Result<void> WriteGpt2(const std::string& path, std::uint64_t context,
                             const tokenizer::VocabularySpec& vocabulary) {
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

base::Result<void> WriteDeepseek(const std::string& path, std::uint64_t context,
                                 const tokenizer::VocabularySpec& vocabulary) {
  model::DeepseekConfig config;
  config.layers = 3;
  config.heads = 2;
  config.embedding = 32;
  config.feed_forward = 64;
  config.context = context;
  config.vocab = vocabulary.pieces.size();
  config.latent_dim = 24;
  config.nope_dim = 12;
  config.value_dim = 16;
  config.rope.dimensions = 8;
  return model::SaveDeepseek(base::Env::Default(), path, config, vocabulary,
                             eval::RandomWeights(/*seed=*/1), {.name = "tiny"});
}

// Grouped queries, and a window in the second layer.
base::Result<void> WriteLlama(const std::string& path, std::uint64_t context,
                              const tokenizer::VocabularySpec& vocabulary) {
  model::LlamaConfig config;
  config.layers = 3;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = config.rope.dimensions = 10;
  config.embedding = 32;
  config.feed_forward = 64;
  config.context = context;
  config.vocab = vocabulary.pieces.size();
  config.windows = {0, 9, 0};
  return model::SaveLlama(base::Env::Default(), path, config, vocabulary,
                          eval::RandomWeights(/*seed=*/1), {.name = "tiny"});
}

base::Result<void> Write(const std::string& path, std::uint64_t context,
                         std::string_view characters, std::string_view architecture) {
  KV_TRY(const auto vocabulary, tokenizer::BuildCharacterVocabulary(characters));
  if (architecture == "gpt2") return WriteGpt2(path, context, vocabulary);
  if (architecture == "llama") return WriteLlama(path, context, vocabulary);
  if (architecture == "deepseek2") return WriteDeepseek(path, context, vocabulary);
  return base::MakeError(base::ErrorCode::kUsage, "no architecture '{}'", architecture);
}

int Main(int argc, char** argv) {
  std::uint64_t context = 0;
  const std::string_view number = argc > 2 ? argv[2] : "";
  const auto read = std::from_chars(number.data(), number.data() + number.size(), context);
  if (argc < 3 || argc > 5 || read.ec != std::errc() || read.ptr != number.end()) {
    std::fputs("usage: tiny_model PATH CONTEXT [CHARACTERS [ARCHITECTURE]]\n", stderr);
    return 2;
  }
  const std::string_view characters = argc > 3 ? argv[3] : "";
  const auto written = Write(argv[1], context, characters.empty() ? kCharacters : characters,
                             argc > 4 ? argv[4] : "gpt2");
  if (written) return 0;
  std::fprintf(stderr, "tiny_model: %s\n", written.error().message.c_str());
  return 1;
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) { return kvasir::Main(argc, argv); }
