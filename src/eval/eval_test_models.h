// For tests: small models, and models that are wrong on purpose.
#ifndef KVASIR_EVAL_EVAL_TEST_MODELS_H_
#define KVASIR_EVAL_EVAL_TEST_MODELS_H_

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "eval/random_gpt2.h"
#include "model/model.h"
#include "tokenizer/character_tokenizer.h"
#include "tokenizer/character_vocabulary.h"

namespace kvasir::eval {

inline std::unique_ptr<model::Gpt2Model> TinyGpt2(std::uint64_t vocab, std::uint64_t context = 40) {
  auto made = MakeRandomGpt2({.layers = 2,
                              .heads = 2,
                              .embedding = 24,
                              .feed_forward = 56,
                              .context = context,
                              .vocab = vocab},
                             /*seed=*/7);
  KV_CHECK(made.has_value());
  return std::move(made.value());
}

inline std::unique_ptr<tokenizer::CharacterTokenizer> TokenizerOf(std::string_view text) {
  auto spec = tokenizer::BuildCharacterVocabulary(text);
  KV_CHECK(spec.has_value());
  auto vocabulary = tokenizer::Vocabulary::Make(std::move(spec.value()));
  KV_CHECK(vocabulary.has_value());
  auto made = tokenizer::CharacterTokenizer::Make(std::move(vocabulary.value()));
  KV_CHECK(made.has_value());
  return std::move(made.value());
}

// Runs the inner model, then lets a function change the logits.
class MeddledModel : public model::Model {
 public:
  struct Step {
    std::span<const model::BatchItem> items;
    std::span<const std::size_t> lengths;  // Of the items' sequences before the step.
    const base::ThreadTeam& team;
    std::span<float> logits;
  };
  using Meddle = std::function<void(const Step&)>;

  MeddledModel(const model::Model& inner, Meddle meddle)
      : inner_(inner), meddle_(std::move(meddle)) {}

  const model::ModelShape& shape() const override { return inner_.shape(); }
  base::Result<void> Forward(std::span<const model::BatchItem> items, model::Scratch& scratch,
                             base::ThreadTeam& team, std::span<float> logits) const override {
    std::vector<std::size_t> lengths;
    for (const model::BatchItem& item : items) lengths.push_back(item.sequence->length());
    KV_TRY(inner_.Forward(items, scratch, team, logits));
    meddle_({items, lengths, team, logits});
    return base::Success();
  }

 private:
  const model::Model& inner_;
  Meddle meddle_;
};

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_EVAL_TEST_MODELS_H_
