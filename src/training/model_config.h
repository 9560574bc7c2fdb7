// The shape of a model to train, of any architecture that the trainer knows.
#ifndef KVASIR_TRAINING_MODEL_CONFIG_H_
#define KVASIR_TRAINING_MODEL_CONFIG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "model/gpt2_config.h"
#include "model/llama_config.h"
#include "model/model.h"
#include "model/model_file.h"
#include "model/tensor_spec.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::training {

// A value. What it says of one architecture, the rest of the trainer need not know; what the
// network is made of, PlanOf (network_plan.h) tells.
class ModelConfig {
 public:
  ModelConfig(model::Gpt2Config config) : config_(std::move(config)) {}   // NOLINT: one of them
  ModelConfig(model::LlamaConfig config) : config_(std::move(config)) {}  // NOLINT

  const model::Gpt2Config* gpt2() const { return std::get_if<model::Gpt2Config>(&config_); }
  const model::LlamaConfig* llama() const { return std::get_if<model::LlamaConfig>(&config_); }

  std::string_view architecture() const;  // As in GGUF: "gpt2".
  std::uint64_t layers() const;
  std::uint64_t heads() const;
  std::uint64_t kv_heads() const;
  std::uint64_t head_dim() const;
  std::uint64_t embedding() const;
  std::uint64_t feed_forward() const;
  std::uint64_t context() const;
  std::uint64_t vocab() const;
  bool tied_head() const;

  // kBadData naming the setting, its value and what is allowed; also for a model of a family that
  // cannot be trained. Everything below requires a config that passed.
  base::Result<void> Check() const;

  // All tensors, in the order in which files and the trainer hold them; their numbers together.
  std::vector<model::TensorSpec> Tensors() const;
  std::uint64_t ParameterCount() const;

  // Everything that decides the bits of a model of this shape, as numbers.
  std::vector<std::uint64_t> Fingerprint() const;

  // Writes the model as GGUF, whole or not at all.
  base::Result<void> Save(base::Env& env, const std::string& path,
                          const tokenizer::VocabularySpec& vocabulary,
                          const model::TensorSource& source,
                          const model::SaveOptions& options) const;

  // A model of these weights, for the sampler.
  base::Result<std::unique_ptr<model::Model>> MakeModel(const model::TensorSource& source) const;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;

 private:
  std::variant<model::Gpt2Config, model::LlamaConfig> config_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_MODEL_CONFIG_H_
