// For tests: a small random model, and one whose logits the test writes.
#ifndef KVASIR_ENGINE_ENGINE_TEST_MODELS_H_
#define KVASIR_ENGINE_ENGINE_TEST_MODELS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "model/gpt2_model.h"
#include "model/model.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/character_vocabulary.h"

namespace kvasir::engine {

// Weights large enough that attention and positions decide between tokens.
inline std::unique_ptr<model::Gpt2Model> TinyGpt2(std::uint64_t vocab, std::uint64_t context) {
  const model::Gpt2Config config = {.layers = 2,
                                    .heads = 2,
                                    .embedding = 24,
                                    .feed_forward = 40,
                                    .context = context,
                                    .vocab = vocab};
  std::vector<float> values;
  std::uint32_t tensor = 0;
  auto made = model::Gpt2Model::Make(
      config, [&](const model::TensorSpec& spec) -> base::Result<std::span<const float>> {
        values.resize(spec.shape.ElementCount().value());
        for (std::size_t i = 0; i < values.size(); ++i) {
          const auto words = base::Philox4x32(11, {static_cast<std::uint32_t>(i), tensor, 0, 0});
          const auto symmetric =
              static_cast<float>(2.0 * base::UniformDouble(words[0], words[1]) - 1.0);
          values[i] =
              spec.name.ends_with("norm.weight") ? 1.0f + 0.1f * symmetric : 0.4f * symmetric;
        }
        ++tensor;
        return std::span<const float>(values);
      });
  EXPECT_TRUE(made);
  return std::move(made.value());
}

inline tokenizer::Vocabulary VocabularyOf(std::string_view text) {
  auto spec = tokenizer::BuildCharacterVocabulary(text);
  EXPECT_TRUE(spec);
  auto vocabulary = tokenizer::Vocabulary::Make(std::move(spec.value()));
  EXPECT_TRUE(vocabulary);
  return std::move(vocabulary.value());
}

inline std::unique_ptr<tokenizer::CharacterTokenizer> TokenizerOf(std::string_view text) {
  auto made = tokenizer::CharacterTokenizer::Make(VocabularyOf(text));
  EXPECT_TRUE(made);
  return std::move(made.value());
}

// Logits after a position are what the test says; keeps lengths as a real model does.
class ScriptedModel : public model::Model {
 public:
  // position: of the last token before the row, `token`. row: [vocab], zeros to begin with.
  using Script =
      std::function<void(std::size_t position, base::TokenId token, std::span<float> row)>;

  ScriptedModel(std::uint64_t vocab, std::uint64_t context, Script script)
      : script_(std::move(script)) {
    shape_ = {"scripted", 1, 1, 1, 16, 16, 16, context, vocab, 0};
  }

  const model::ModelShape& shape() const override { return shape_; }
  base::Result<void> Forward(std::span<const model::BatchItem> items, model::Scratch&,
                             base::ThreadTeam&, std::span<float> logits) const override {
    std::fill(logits.begin(), logits.end(), 0.0f);
    std::size_t row = 0;
    for (const model::BatchItem& item : items) {
      EXPECT_LE(item.sequence->length() + item.tokens.size(), shape_.context);
      KV_TRY(item.sequence->Reserve(item.tokens.size()));
      for (std::size_t i = item.tokens.size() - item.logit_rows; i < item.tokens.size(); ++i) {
        script_(item.sequence->length() + i, item.tokens[i],
                logits.subspan(row++ * shape_.vocab, shape_.vocab));
      }
      item.sequence->Advance(item.tokens.size());
    }
    return base::Success();
  }

 private:
  model::ModelShape shape_;
  Script script_;
};

// Emits these tokens greedily, whatever the prompt's length.
inline ScriptedModel::Script Say(std::size_t prompt_tokens, std::vector<base::TokenId> tokens) {
  return [=](std::size_t position, base::TokenId, std::span<float> row) {
    const std::size_t i = position + 1 - prompt_tokens;
    row[i < tokens.size() ? tokens[i] : tokens.back()] = 9.0f;
  };
}

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_ENGINE_TEST_MODELS_H_
