// Checkpoints: a GGUF container of the flat arrays and of what they belong to.
#include <bit>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "tensor/convert.h"
#include "training/trained_policy.h"
#include "training/trainer.h"

namespace kvasir::training {
namespace {

using base::ErrorCode;
using base::MakeError;

constexpr std::uint32_t kVersion = 3;  // Of this layout; another is refused.

using Bytes = std::span<const std::byte>;

std::uint64_t Bits(double value) { return std::bit_cast<std::uint64_t>(value); }

// The numbers of a checkpoint, in the order in which its checksum takes them.
struct Numbers {
  std::uint64_t fingerprint = 0;
  std::uint64_t steps_planned = 0;
  std::uint64_t steps_done = 0;
  std::uint64_t eval_every = 0;  // 0: nothing is measured
  std::uint64_t held_out = 0;    // Hash of the held-out text; 0 without one.
  std::uint64_t best_step = 0;
  std::uint64_t best_loss_bits = 0;
};

constexpr struct {
  const char* key;
  std::uint64_t Numbers::*value;
} kNumbers[] = {
    {"checkpoint.fingerprint", &Numbers::fingerprint},
    {"checkpoint.steps_planned", &Numbers::steps_planned},
    {"checkpoint.steps_done", &Numbers::steps_done},
    {"checkpoint.eval_every", &Numbers::eval_every},
    {"checkpoint.held_out", &Numbers::held_out},
    {"checkpoint.best_step", &Numbers::best_step},
    {"checkpoint.best_loss_bits", &Numbers::best_loss_bits},
};

Numbers NumbersOf(const BestModel& best) {
  Numbers numbers;
  numbers.best_step = best.step;
  numbers.best_loss_bits = Bits(best.loss);
  if (!best.held_out.empty()) {
    numbers.eval_every = best.eval_every;
    numbers.held_out = base::HashSpan64(best.held_out);
  }
  return numbers;
}

// Over everything a resumed run takes from the file.
std::uint64_t Checksum(const Numbers& numbers, std::span<const Bytes> arrays) {
  std::uint64_t sum = 0;
  for (const auto& number : kNumbers) {
    sum = base::HashSpan64(std::span(&(numbers.*number.value), 1), sum);
  }
  for (const Bytes array : arrays) sum = base::HashBytes64(array, sum);
  return sum;
}

// The bytes of one array of `floats` floats, as they lie in the file.
base::Result<Bytes> FindArray(const formats::GgufFile& file, const char* name, std::size_t floats) {
  KV_TRY(const formats::GgufTensor* tensor, file.Get(name));
  KV_TRY(const tensor::DType dtype, file.DTypeOf(*tensor));
  if (dtype != tensor::DType::kF32 || tensor->data.size() != floats * sizeof(float)) {
    return MakeError(ErrorCode::kBadData, "checkpoint '{}': tensor '{}' has {} bytes; expected {}",
                     file.name(), name, tensor->data.size(), floats * sizeof(float));
  }
  return Bytes(tensor->data);
}

// That the checkpoint is of this run: its text, shape and settings, and what its best is judged by.
base::Result<void> CheckSameRun(const std::string& path, const Numbers& numbers,
                                std::uint64_t fingerprint, const BestModel& best) {
  const Numbers own = NumbersOf(best);
  base::Error error;
  if (numbers.fingerprint != fingerprint) {
    error = MakeError(ErrorCode::kBadData,
                      "checkpoint '{}' belongs to another text, shape or setting", path);
  } else if (numbers.held_out != own.held_out) {
    error = MakeError(ErrorCode::kBadData, "checkpoint '{}' belongs to {} held-out text", path,
                      numbers.held_out == 0 ? "a run without a"
                      : own.held_out == 0   ? "a run with a"
                                            : "another");
  } else if (numbers.eval_every != own.eval_every) {
    error = MakeError(ErrorCode::kBadData,
                      "checkpoint '{}' belongs to --eval-every {}, not {}: another model could "
                      "be the best",
                      path, numbers.eval_every, own.eval_every);
  } else {
    return base::Success();
  }
  return WithHint(std::move(error),
                  "resume with the text files and flags that the run was started with; only "
                  "--steps, --stop-at, --patience, --threads, --micro-batch, --checkpoint-every, "
                  "--output, --name, --dtype, --log, --json and what is reported may differ");
}

}  // namespace

// Of everything that decides the bits of a run, but the number of steps: a run may be made longer.
std::uint64_t Trainer::Fingerprint() const {
  std::vector<std::uint64_t> values = config_.Fingerprint();
  values.insert(values.end(),
                {options_.seed, options_.batch, options_.shards, Bits(options_.learning_rate),
                 Bits(options_.final_rate), options_.warmup,
                 static_cast<std::uint64_t>(options_.schedule), Bits(options_.decay_share),
                 Bits(options_.beta1), Bits(options_.beta2), Bits(options_.epsilon),
                 Bits(options_.weight_decay), Bits(options_.clip), Bits(options_.dropout)});
  if (options_.start_weights != 0) values.push_back(options_.start_weights);
  if (!options_.kv.empty()) {
    // Equal policies have one canonical text, however they were written.
    const std::string kv = TrainedPolicy(config_, options_.kv).value().Canonical();
    values.push_back(base::HashBytes64(std::as_bytes(std::span(kv))));
    values.push_back(Bits(options_.kv_error));
  }
  return base::HashSpan64(text_, base::HashSpan64(std::span<const std::uint64_t>(values)));
}

base::Result<void> Trainer::SaveCheckpoint(base::Env& env, const std::string& path,
                                           const BestModel& best) const {
  Numbers numbers = NumbersOf(best);
  numbers.fingerprint = Fingerprint();
  numbers.steps_planned = options_.steps;
  numbers.steps_done = steps_done_;
  std::vector<Bytes> arrays;
  formats::GgufWriter writer;
  const auto add = [&](const char* name, const base::AlignedArray<float>& array) {
    arrays.push_back(std::as_bytes(array.span()));
    writer.AddTensorView(name, {array.size()}, tensor::DType::kF32, arrays.back());
  };
  add("parameters", parameters_);
  add("first_moment", first_moment_);
  add("second_moment", second_moment_);
  if (best.measured()) add("best_parameters", best.parameters);
  writer.Set("general.architecture", "kvasir-checkpoint");
  writer.Set("checkpoint.version", kVersion);
  for (const auto& number : kNumbers) writer.Set(number.key, numbers.*number.value);
  writer.Set("checkpoint.checksum", Checksum(numbers, arrays));
  return writer.Write(env, path);
}

base::Result<void> Trainer::LoadCheckpoint(base::Env& env, const std::string& path,
                                           BestModel& best) {
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
  Numbers numbers;
  for (const auto& number : kNumbers) {
    KV_TRY(numbers.*number.value, metadata.GetUint(number.key));
  }
  KV_TRY(CheckSameRun(path, numbers, Fingerprint(), best));
  std::vector<Bytes> arrays;
  for (const char* name : {"parameters", "first_moment", "second_moment", "best_parameters"}) {
    if (arrays.size() == 3 && numbers.best_step == 0) break;
    KV_TRY(const Bytes array, FindArray(file, name, layout_.size()));
    arrays.push_back(array);
  }
  KV_TRY(const std::uint64_t expected, metadata.GetUint("checkpoint.checksum"));
  const std::uint64_t sum = Checksum(numbers, arrays);
  if (sum != expected) {
    return MakeError(ErrorCode::kBadData,
                     "checkpoint '{}' is damaged: checksum {:016x}, not {:016x}", path, sum,
                     expected);
  }
  const auto take = [&](std::size_t index, base::AlignedArray<float>& out) {
    tensor::ConvertToF32(tensor::DType::kF32, arrays[index], out.span());
  };
  if (numbers.best_step > 0) {
    best.Reserve(layout_.size());
    take(3, best.parameters);
  }
  best.step = numbers.best_step;
  best.loss = std::bit_cast<double>(numbers.best_loss_bits);
  take(0, parameters_);
  take(1, first_moment_);
  take(2, second_moment_);
  steps_done_ = numbers.steps_done;
  packed_ = false;
  return base::Success();
}

}  // namespace kvasir::training
