// Tiny models and vocabularies for tests.
#ifndef KVASIR_MODEL_MODEL_TEST_UTIL_H_
#define KVASIR_MODEL_MODEL_TEST_UTIL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/philox.h"
#include "model/deepseek_config.h"
#include "model/gpt2_model.h"
#include "model/llama_model.h"
#include "tokenizer/character_vocabulary.h"

namespace kvasir::model {

inline constexpr std::uint64_t kTestSeed = 20261130;

// Numbers in [−scale, scale) that depend on the tensor's name and nothing else.
inline TensorSource RandomSource(float scale) {
  auto buffer = std::make_shared<std::vector<float>>();
  return [buffer, scale](const TensorSpec& spec) -> base::Result<std::span<const float>> {
    buffer->resize(spec.shape.ElementCount().value());
    std::uint32_t stream = 0;
    for (char c : spec.name) stream = stream * 31 + static_cast<unsigned char>(c);
    for (std::size_t i = 0; i < buffer->size(); ++i) {
      const auto w = base::Philox4x32(kTestSeed, {static_cast<std::uint32_t>(i), stream, 0, 0});
      (*buffer)[i] = scale * static_cast<float>(base::UniformDouble(w[0], w[1]) * 2 - 1);
    }
    return std::span<const float>(*buffer);
  };
}

// 259 special and byte tokens and the characters of "一二三四五六七": vocabulary 267 with the
// newline.
inline tokenizer::VocabularySpec TestVocabulary() {
  return tokenizer::BuildCharacterVocabulary("一二三四五六七\n").value();
}

inline Gpt2Config TestConfig() {
  Gpt2Config config;
  config.layers = 2;
  config.heads = 2;
  config.embedding = 24;
  config.feed_forward = 40;
  config.context = 48;
  config.vocab = 267;
  return config;
}

// Grouped queries, 4 to 2, of a width that is not the embedding's.
inline LlamaConfig TestLlamaConfig() {
  LlamaConfig config;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 10;
  config.embedding = 24;
  config.feed_forward = 40;
  config.context = 48;
  config.vocab = 267;
  config.rope.dimensions = 10;
  return config;
}

// No width is a multiple of 16 or of another.
inline DeepseekConfig TestDeepseekConfig(std::uint64_t query_rank) {
  DeepseekConfig config;
  config.layers = 2;
  config.heads = 3;
  config.embedding = 24;
  config.feed_forward = 40;
  config.context = 150;
  config.vocab = 67;
  config.query_rank = query_rank;
  config.latent_dim = 21;
  config.nope_dim = 10;
  config.value_dim = 9;
  config.rope.dimensions = 6;
  return config;
}

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_MODEL_TEST_UTIL_H_
