#include "training/model_config.h"

#include <bit>
#include <utility>

#include "model/gpt2_model.h"
#include "model/llama_model.h"

namespace kvasir::training {
namespace {

using base::ErrorCode;
using base::MakeError;

std::uint64_t Bits(double value) { return std::bit_cast<std::uint64_t>(value); }

// Calls body with the concrete config.
template <typename Variant, typename Body>
auto With(const Variant& config, const Body& body) {
  return std::visit([&](const auto& c) { return body(c); }, config);
}

base::Result<void> CheckFamily(const model::Gpt2Config&) { return base::Success(); }

base::Result<void> CheckFamily(const model::LlamaConfig& c) {
  if (!c.head_norms) return base::Success();
  return MakeError(ErrorCode::kBadData, "models of {} cannot be trained; gpt2 and llama can",
                   model::ArchitectureName(c.family));
}

std::vector<std::uint64_t> Numbers(const model::Gpt2Config& c) {
  return {c.layers,  c.heads, c.embedding,      c.feed_forward,
          c.context, c.vocab, Bits(c.norm_eps), c.tied_head ? 1u : 0u};
}

std::vector<std::uint64_t> Numbers(const model::LlamaConfig& c) {
  const model::RopeSettings& rope = c.rope;
  std::vector<std::uint64_t> numbers = {static_cast<std::uint64_t>(c.family) + 1,
                                        c.layers,
                                        c.heads,
                                        c.kv_heads,
                                        c.head_dim,
                                        c.embedding,
                                        c.feed_forward,
                                        c.context,
                                        c.vocab,
                                        Bits(c.norm_eps),
                                        c.tied_head ? 1u : 0u,
                                        c.qkv_bias ? 1u : 0u,
                                        static_cast<std::uint64_t>(rope.pairing),
                                        rope.dimensions,
                                        Bits(rope.base),
                                        Bits(rope.factor),
                                        rope.divisors.size(),
                                        c.windows.size()};
  for (const float divisor : rope.divisors) numbers.push_back(Bits(divisor));
  numbers.insert(numbers.end(), c.windows.begin(), c.windows.end());
  return numbers;
}

}  // namespace

std::string_view ModelConfig::architecture() const {
  return gpt2() != nullptr ? "gpt2" : model::ArchitectureName(llama()->family);
}
std::uint64_t ModelConfig::layers() const {
  return With(config_, [](const auto& c) { return c.layers; });
}
std::uint64_t ModelConfig::heads() const {
  return With(config_, [](const auto& c) { return c.heads; });
}
std::uint64_t ModelConfig::kv_heads() const {
  return gpt2() != nullptr ? gpt2()->heads : llama()->kv_heads;
}
std::uint64_t ModelConfig::head_dim() const {
  return gpt2() != nullptr ? gpt2()->head_dim() : llama()->head_dim;
}
std::uint64_t ModelConfig::embedding() const {
  return With(config_, [](const auto& c) { return c.embedding; });
}
std::uint64_t ModelConfig::feed_forward() const {
  return With(config_, [](const auto& c) { return c.feed_forward; });
}
std::uint64_t ModelConfig::context() const {
  return With(config_, [](const auto& c) { return c.context; });
}
std::uint64_t ModelConfig::vocab() const {
  return With(config_, [](const auto& c) { return c.vocab; });
}
bool ModelConfig::tied_head() const {
  return With(config_, [](const auto& c) { return c.tied_head; });
}

base::Result<void> ModelConfig::Check() const {
  return With(config_, [](const auto& c) -> base::Result<void> {
    KV_TRY(model::CheckConfig(c));
    return CheckFamily(c);
  });
}

std::vector<model::TensorSpec> ModelConfig::Tensors() const {
  return gpt2() != nullptr ? model::Gpt2Tensors(*gpt2()) : model::LlamaTensors(*llama());
}

std::uint64_t ModelConfig::ParameterCount() const { return model::CountNumbers(Tensors()); }

std::vector<std::uint64_t> ModelConfig::Fingerprint() const {
  return With(config_, [](const auto& c) { return Numbers(c); });
}

base::Result<void> ModelConfig::Save(base::Env& env, const std::string& path,
                                     const tokenizer::VocabularySpec& vocabulary,
                                     const model::TensorSource& source,
                                     const model::SaveOptions& options) const {
  if (gpt2() != nullptr) return SaveGpt2(env, path, *gpt2(), vocabulary, source, options);
  return SaveLlama(env, path, *llama(), vocabulary, source, options);
}

base::Result<std::unique_ptr<model::Model>> ModelConfig::MakeModel(
    const model::TensorSource& source) const {
  std::unique_ptr<model::Model> made;
  if (gpt2() != nullptr) {
    KV_TRY(made, model::Gpt2Model::Make(*gpt2(), source));
  } else {
    KV_TRY(made, model::LlamaModel::Make(*llama(), source));
  }
  return made;
}

}  // namespace kvasir::training
