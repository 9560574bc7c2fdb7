// Checkpoints: a GGUF container of the flat arrays and of what they belong to.
#include <algorithm>
#include <bit>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/hash.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "tensor/convert.h"
#include "training/trainer.h"

namespace kvasir::training {
namespace {

using base::ErrorCode;
using base::MakeError;

constexpr std::uint32_t kVersion = 1;  // Of this layout; another is refused.

std::uint64_t Bits(double value) { return std::bit_cast<std::uint64_t>(value); }

std::span<const std::byte> AsBytes(const base::AlignedArray<float>& array) {
  return std::as_bytes(array.span());
}

// Over everything a resumed run takes from the file.
std::uint64_t Checksum(std::initializer_list<std::uint64_t> numbers,
                       std::initializer_list<const base::AlignedArray<float>*> arrays) {
  std::uint64_t sum = base::HashSpan64(std::span(numbers.begin(), numbers.size()));
  for (const base::AlignedArray<float>* array : arrays) {
    sum = base::HashBytes64(AsBytes(*array), sum);
  }
  return sum;
}

base::Result<void> ReadArray(const formats::GgufFile& file, const char* name,
                             base::AlignedArray<float>& out) {
  KV_TRY(const formats::GgufTensor* tensor, file.Get(name));
  KV_TRY(const tensor::DType dtype, file.DTypeOf(*tensor));
  if (dtype != tensor::DType::kF32 || tensor->data.size() != out.size() * sizeof(float)) {
    return MakeError(ErrorCode::kBadData, "checkpoint '{}': tensor '{}' has {} bytes; expected {}",
                     file.name(), name, tensor->data.size(), out.size() * sizeof(float));
  }
  tensor::ConvertToF32(dtype, tensor->data, out.span());
  return base::Success();
}

}  // namespace

// Of everything that decides the bits of a run, but the number of steps: a run may be made longer.
std::uint64_t Trainer::Fingerprint() const {
  const std::uint64_t values[] = {config_.layers,
                                  config_.heads,
                                  config_.embedding,
                                  config_.feed_forward,
                                  config_.context,
                                  config_.vocab,
                                  Bits(config_.norm_eps),
                                  config_.tied_head ? 1u : 0u,
                                  options_.seed,
                                  options_.batch,
                                  options_.shards,
                                  Bits(options_.learning_rate),
                                  Bits(options_.final_rate),
                                  options_.warmup,
                                  Bits(options_.beta1),
                                  Bits(options_.beta2),
                                  Bits(options_.epsilon),
                                  Bits(options_.weight_decay),
                                  Bits(options_.clip),
                                  Bits(options_.dropout)};
  return base::HashSpan64(text_, base::HashSpan64(std::span<const std::uint64_t>(values)));
}

base::Result<void> Trainer::SaveCheckpoint(base::Env& env, const std::string& path) const {
  formats::GgufWriter writer;
  writer.Set("general.architecture", "kvasir-checkpoint");
  writer.Set("checkpoint.version", kVersion);
  writer.Set("checkpoint.fingerprint", Fingerprint());
  writer.Set("checkpoint.steps_planned", options_.steps);
  writer.Set("checkpoint.steps_done", steps_done_);
  writer.Set("checkpoint.best_loss_bits", Bits(best_loss));
  writer.Set("checkpoint.checksum",
             Checksum({Fingerprint(), options_.steps, steps_done_, Bits(best_loss)},
                      {&parameters_, &first_moment_, &second_moment_}));
  const auto add = [&](const char* name, const base::AlignedArray<float>& array) {
    writer.AddTensorView(name, {array.size()}, tensor::DType::kF32, AsBytes(array));
  };
  add("parameters", parameters_);
  add("first_moment", first_moment_);
  add("second_moment", second_moment_);
  return writer.Write(env, path);
}

base::Result<void> Trainer::LoadCheckpoint(base::Env& env, const std::string& path) {
  KV_TRY(const auto file, formats::GgufFile::Open(env, path));
  const formats::GgufMetadata& metadata = file.metadata();
  KV_TRY(const std::string_view kind, metadata.GetString("general.architecture"));
  if (kind != "kvasir-checkpoint") {
    return MakeError(ErrorCode::kBadData, "'{}' is not a checkpoint of kvasir train", path);
  }
  KV_TRY(const std::uint64_t version, metadata.GetUint("checkpoint.version"));
  if (version != kVersion) {
    return MakeError(ErrorCode::kBadData, "checkpoint '{}' has version {}; supported is {}", path,
                     version, kVersion);
  }
  KV_TRY(const std::uint64_t fingerprint, metadata.GetUint("checkpoint.fingerprint"));
  if (fingerprint != Fingerprint()) {
    return WithHint(MakeError(ErrorCode::kBadData,
                              "checkpoint '{}' belongs to another text, shape or setting", path),
                    "resume with the text files and flags that the run was started with; only "
                    "--steps, --threads and --micro-batch may differ");
  }
  KV_TRY(const std::uint64_t steps, metadata.GetUint("checkpoint.steps_done"));
  KV_TRY(const std::uint64_t best, metadata.GetUint("checkpoint.best_loss_bits"));
  KV_TRY(const std::uint64_t expected, metadata.GetUint("checkpoint.checksum"));
  base::AlignedArray<float> parameters(layout_.size()), first(layout_.size()),
      second(layout_.size());
  KV_TRY(ReadArray(file, "parameters", parameters));
  KV_TRY(ReadArray(file, "first_moment", first));
  KV_TRY(ReadArray(file, "second_moment", second));
  KV_TRY(const std::uint64_t planned, metadata.GetUint("checkpoint.steps_planned"));
  const std::uint64_t sum =
      Checksum({fingerprint, planned, steps, best}, {&parameters, &first, &second});
  if (sum != expected) {
    return MakeError(ErrorCode::kBadData,
                     "checkpoint '{}' is damaged: checksum {:016x}, not {:016x}", path, sum,
                     expected);
  }
  std::copy_n(parameters.data(), parameters.size(), parameters_.data());
  std::copy_n(first.data(), first.size(), first_moment_.data());
  std::copy_n(second.data(), second.size(), second_moment_.data());
  steps_done_ = steps;
  best_loss = std::bit_cast<double>(best);
  packed_ = false;
  return base::Success();
}

}  // namespace kvasir::training
