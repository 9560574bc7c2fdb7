#include "training/trainer.h"

#include <algorithm>
#include <cmath>

#include "kernels/grads.h"
#include "training/trained_policy.h"

namespace kvasir::training {
namespace {

using base::ErrorCode;
using base::MakeError;

constexpr std::size_t kNormChunk = 4096;  // Elements whose squares are summed by one member.

// base^exponent by squaring: the same multiplications everywhere.
double Power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

base::Result<std::unique_ptr<Trainer>> Trainer::Make(const ModelConfig& config,
                                                     const TrainOptions& options,
                                                     std::span<const TokenId> text,
                                                     base::ThreadTeam& team) {
  KV_TRY(config.Check());
  KV_TRY(CheckOptions(options));
  KV_TRY(const auto policy, TrainedPolicy(config, options.kv));
  for (TokenId token : text) {
    if (token >= config.vocab()) {
      return MakeError(ErrorCode::kBadData, "token id {} is not below the vocabulary size {}",
                       token, config.vocab());
    }
  }
  KV_TRY(auto order, WindowOrder::Make(text.size(), config.context(), options.seed));
  return std::unique_ptr<Trainer>(new Trainer(config, PlanOf(config, policy, options.kv_error != 1),
                                              options, text, std::move(order), team));
}

Trainer::Trainer(const ModelConfig& config, NetworkPlan plan, const TrainOptions& options,
                 std::span<const TokenId> text, WindowOrder order, base::ThreadTeam& team)
    : config_(config),
      options_(options),
      layout_(config),
      text_(text),
      order_(std::move(order)),
      team_(team),
      network_(std::move(plan), layout_,
               {std::min(options.micro_batch, options.batch), team.size(), options.recompute}),
      parameters_(layout_.size()),
      first_moment_(layout_.size()),
      second_moment_(layout_.size()),
      shard_gradient_(layout_.size()),
      total_gradient_(layout_.size()),
      shard_lookup_(config.tied_head() ? config.vocab() * config.embedding() : 0),
      starts_(options.batch),
      losses_(options.batch * config.context()),
      chunk_sums_((layout_.size() + kNormChunk - 1) / kNormChunk) {
  Initialise(layout_, config_.layers(), options.seed, parameters_.span());
  network_.Bind(parameters_.data(), shard_gradient_.data());
}

void Trainer::EnsurePacked(Member& member) {
  if (packed_) return;
  network_.Pack(member);  // Ends with a barrier: all have read packed_.
  if (member.index() == 0) packed_ = true;
}

void Trainer::RunShard(Member& member, base::IndexRange sequences) {
  const std::size_t length = config_.context();
  const auto weight = static_cast<float>(1.0 / static_cast<double>(options_.batch * length));
  const Disturbance disturbance{static_cast<float>(options_.dropout), options_.seed,
                                static_cast<std::uint32_t>(steps_done_),
                                static_cast<float>(options_.kv_error)};
  const std::size_t micro = std::min(options_.micro_batch, options_.batch);
  for (std::size_t begin = sequences.begin; begin < sequences.end; begin += micro) {
    const std::size_t count = std::min(micro, sequences.end - begin);
    const MicroBatch batch{text_, std::span(starts_).subspan(begin, count), length, begin};
    network_.Forward(member, batch, disturbance);
    network_.Backward(member, batch, disturbance, weight, losses_.data() + begin * length,
                      config_.tied_head() ? shard_lookup_.data() : nullptr);
  }
}

base::Result<void> Trainer::Join(Peers& peers) {
  if (peers.count() > options_.shards) {
    return MakeError(ErrorCode::kUsage,
                     "--shards {} is not allowed for {} processes: each needs one", options_.shards,
                     peers.count());
  }
  peers_ = &peers;
  own_gradients_.clear();
  const base::IndexRange own = ShardsOf(peers.rank());
  for (std::size_t s = own.begin; s < own.end && peers.rank() > 0; ++s) {
    own_gradients_.emplace_back(layout_.size());
  }
  return base::Success();
}

base::IndexRange Trainer::ShardsOf(std::size_t rank) const {
  if (!peers_) return {0, options_.shards};
  return base::SplitEvenly(options_.shards, peers_->count(), rank);
}

base::Result<void> Trainer::ShareGradients() {
  const std::size_t rank = peers_->rank(), count = peers_->count();
  const auto total = std::as_writable_bytes(total_gradient_.span());
  if (rank > 0) {
    KV_TRY(peers_->Receive(rank - 1, total));
    team_.Run([&](Member& member) {
      const base::IndexRange share = member.Share(layout_.size());
      for (const base::AlignedArray<float>& own : own_gradients_) {
        kernels::AddInto(own.data() + share.begin, share.size(),
                         total_gradient_.data() + share.begin);
      }
    });
  }
  if (rank + 1 < count) {
    KV_TRY(peers_->Send(rank + 1, total));
  }
  KV_TRY(peers_->Broadcast(count - 1, total));
  for (std::size_t other = 0; other < count; ++other) {
    const base::IndexRange shards = ShardsOf(other);
    const std::size_t begin =
        base::SplitEvenly(options_.batch, options_.shards, shards.begin).begin;
    const std::size_t end = base::SplitEvenly(options_.batch, options_.shards, shards.end - 1).end;
    const auto losses =
        std::span(losses_).subspan(begin * config_.context(), (end - begin) * config_.context());
    KV_TRY(peers_->Broadcast(other, std::as_writable_bytes(losses)));
  }
  return base::Success();
}

base::Result<double> Trainer::AccumulateGradients() {
  const base::IndexRange shards = ShardsOf(peers_ ? peers_->rank() : 0);
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    starts_[i] = order_.Start(steps_done_ * options_.batch + i);
  }
  team_.Run([&](Member& member) {
    EnsurePacked(member);
    const base::IndexRange share = member.Share(layout_.size());
    const base::IndexRange lookup = member.Share(shard_lookup_.size());
    std::fill(total_gradient_.data() + share.begin, total_gradient_.data() + share.end, 0.0f);
    for (std::size_t s = shards.begin; s < shards.end; ++s) {
      std::fill(shard_gradient_.data() + share.begin, shard_gradient_.data() + share.end, 0.0f);
      std::fill(shard_lookup_.data() + lookup.begin, shard_lookup_.data() + lookup.end, 0.0f);
      member.Barrier();
      RunShard(member, base::SplitEvenly(options_.batch, options_.shards, s));
      if (config_.tied_head()) {
        kernels::AddInto(
            shard_lookup_.data() + lookup.begin, lookup.size(),
            shard_gradient_.data() + layout_.Find("token_embd.weight").begin + lookup.begin);
        member.Barrier();
      }
      if (own_gradients_.empty()) {
        kernels::AddInto(shard_gradient_.data() + share.begin, share.size(),
                         total_gradient_.data() + share.begin);
      } else {
        std::copy_n(shard_gradient_.data() + share.begin, share.size(),
                    own_gradients_[s - shards.begin].data() + share.begin);
      }
    }
  });
  if (peers_ && peers_->count() > 1) {
    KV_TRY(ShareGradients());
  }
  double sum = 0;
  for (double loss : losses_) sum += loss;
  return sum;
}

double Trainer::GradientNorm() {
  team_.Run([&](Member& member) {
    const base::IndexRange chunks = member.Share(chunk_sums_.size());
    for (std::size_t c = chunks.begin; c < chunks.end; ++c) {
      const std::size_t begin = c * kNormChunk;
      chunk_sums_[c] = kernels::SumSquares(total_gradient_.data() + begin,
                                           std::min(kNormChunk, layout_.size() - begin));
    }
  });
  double sum = 0;
  for (double chunk : chunk_sums_) sum += chunk;
  return std::sqrt(sum);
}

void Trainer::Update(double gradient_norm) {
  const std::uint64_t t = steps_done_ + 1;
  kernels::AdamWStep step;
  step.learning_rate = static_cast<float>(LearningRate(options_, steps_done_));
  step.beta1 = static_cast<float>(options_.beta1);
  step.beta2 = static_cast<float>(options_.beta2);
  step.epsilon = static_cast<float>(options_.epsilon);
  step.correction1 = static_cast<float>(1.0 / (1.0 - Power(options_.beta1, t)));
  step.correction2 = static_cast<float>(1.0 / (1.0 - Power(options_.beta2, t)));
  const bool clips = options_.clip > 0 && gradient_norm > options_.clip;
  step.gradient_scale = clips ? static_cast<float>(options_.clip / gradient_norm) : 1.0f;
  team_.Run([&](Member& member) {
    for (const ParameterSlice& slice : layout_.slices()) {
      kernels::AdamWStep own = step;
      own.weight_decay = slice.decays ? static_cast<float>(options_.weight_decay) : 0.0f;
      const base::IndexRange share = member.Share(slice.size);
      const std::size_t begin = slice.begin + share.begin;
      kernels::AdamW(own, total_gradient_.data() + begin, share.size(), parameters_.data() + begin,
                     first_moment_.data() + begin, second_moment_.data() + begin);
    }
  });
  packed_ = false;
}

base::Result<StepReport> Trainer::Step() {
  StepReport report;
  report.step = steps_done_ + 1;
  KV_TRY(const double loss_sum, AccumulateGradients());
  report.loss = loss_sum / static_cast<double>(losses_.size());
  report.gradient_norm = GradientNorm();
  report.learning_rate = LearningRate(options_, steps_done_);
  if (!std::isfinite(report.loss) || !std::isfinite(report.gradient_norm)) {
    return MakeError(ErrorCode::kNumeric,
                     "step {}: loss {} and gradient norm {} are not both finite; the weights are "
                     "those of step {}",
                     report.step, report.loss, report.gradient_norm, steps_done_);
  }
  Update(report.gradient_norm);
  ++steps_done_;
  return report;
}

base::Result<double> Trainer::Gradient(std::vector<float>& gradient) {
  KV_TRY(const double loss_sum, AccumulateGradients());
  gradient.assign(total_gradient_.data(), total_gradient_.data() + total_gradient_.size());
  return loss_sum / static_cast<double>(losses_.size());
}

Evaluation Trainer::Evaluate(std::span<const TokenId> text) {
  KV_CHECK(text.size() >= 2);
  const std::size_t context = config_.context();
  const std::size_t micro = std::min(options_.micro_batch, options_.batch);
  std::vector<std::size_t> starts;
  std::vector<double> losses(text.size() - 1);
  for (std::size_t start = 0; start + 1 < text.size(); start += context) starts.push_back(start);
  for (std::size_t i = 0; i < starts.size();) {
    // Whole windows together, the last, shorter one alone.
    const std::size_t length = std::min(context, text.size() - 1 - starts[i]);
    std::size_t count = 1;
    while (length == context && count < micro && i + count < starts.size() &&
           text.size() - 1 - starts[i + count] >= context) {
      ++count;
    }
    const MicroBatch batch{text, std::span(starts).subspan(i, count), length, 0};
    team_.Run([&](Member& member) {
      EnsurePacked(member);
      network_.Forward(member, batch, {});
      network_.Losses(member, batch, losses.data() + starts[i]);
    });
    i += count;
  }
  double sum = 0;
  for (double loss : losses) sum += loss;
  return {losses.size(), sum / static_cast<double>(losses.size())};
}

std::vector<float> Trainer::Logits(std::span<const TokenId> tokens) {
  KV_CHECK(!tokens.empty() && tokens.size() <= config_.context());
  std::vector<float> logits(tokens.size() * config_.vocab());
  const std::size_t start = 0;
  const MicroBatch batch{tokens, std::span(&start, 1), tokens.size(), 0};
  team_.Run([&](Member& member) {
    EnsurePacked(member);
    network_.Forward(member, batch, {});
    network_.Logits(member, batch, logits.data());
  });
  return logits;
}

model::TensorSource Trainer::Source() const { return Source(parameters_.span()); }

model::TensorSource Trainer::Source(std::span<const float> flat) const {
  return [this, flat](const model::TensorSpec& spec) -> base::Result<std::span<const float>> {
    const ParameterSlice& slice = layout_.Find(spec.name);
    return flat.subspan(slice.begin, slice.size);
  };
}

}  // namespace kvasir::training
