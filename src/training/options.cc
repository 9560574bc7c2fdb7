#include "training/options.h"

#include <string_view>

namespace kvasir::training {
namespace {

using base::ErrorCode;
using base::MakeError;

base::Result<void> InRange(std::string_view flag, double value, double low, double high) {
  if (!(value >= low && value <= high)) {
    return MakeError(ErrorCode::kUsage, "{} {} is not allowed; allowed are {} to {}", flag, value,
                     low, high);
  }
  return base::Success();
}

}  // namespace

base::Result<void> CheckOptions(const TrainOptions& o) {
  KV_TRY(InRange("--steps", static_cast<double>(o.steps), 1, 1e9));
  KV_TRY(InRange("--batch", static_cast<double>(o.batch), 1, 65536));
  if (o.shards < 1 || o.shards > o.batch) {
    return MakeError(ErrorCode::kUsage, "--shards {} is not allowed; allowed are 1 to --batch, {}",
                     o.shards, o.batch);
  }
  KV_TRY(InRange("--micro-batch", static_cast<double>(o.micro_batch), 1, 65536));
  KV_TRY(InRange("--lr", o.learning_rate, 1e-9, 10));
  KV_TRY(InRange("--final-lr", o.final_rate, 0, 1));
  KV_TRY(InRange("--warmup", static_cast<double>(o.warmup), 0, 1e9));
  KV_TRY(InRange("--decay", o.decay_share, 0, 1));
  KV_TRY(InRange("--beta1", o.beta1, 0, 0.999999));
  KV_TRY(InRange("--beta2", o.beta2, 0, 0.999999));
  KV_TRY(InRange("--epsilon", o.epsilon, 1e-12, 1));
  KV_TRY(InRange("--weight-decay", o.weight_decay, 0, 10));
  KV_TRY(InRange("--clip", o.clip, 0, 1e9));
  KV_TRY(InRange("--kv-error", o.kv_error, 1, 16));
  if (o.kv_error != 1 && o.kv.empty()) {
    return MakeError(ErrorCode::kUsage, "--kv-error {} needs a --kv SPEC that rounds", o.kv_error);
  }
  return InRange("--dropout", o.dropout, 0, 0.9);
}

}  // namespace kvasir::training
