#include "training/network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/softmax.h"
#include "training/mlp_middle.h"

namespace kvasir::training {

Network::Network(NetworkPlan plan, const ParameterLayout& layout, const NetworkSize& size)
    : plan_(std::move(plan)),
      layout_(layout),
      scratch_(plan_, size.sequences * plan_.context),
      attention_(plan_, size.sequences, size.members),
      norm_(plan_.norm, plan_.embedding, plan_.norm_eps),
      head_(plan_.vocab, plan_.embedding) {
  const std::size_t rows = size.sequences * plan_.context;
  const auto add = [&](const BranchPlan& branch, std::unique_ptr<BranchMiddle> middle) {
    const auto site = static_cast<std::uint32_t>(1 + branches_.size());
    branches_.emplace_back(plan_, branch, std::move(middle), site, scratch_);
    if (!size.recompute || kept_.size() < 2) kept_.emplace_back(branch, plan_.embedding, rows);
  };
  branches_.reserve(plan_.branches());
  for (std::size_t layer = 0; layer < plan_.layers; ++layer) {
    add(plan_.AttentionBranch(layer), std::make_unique<AttentionMiddle>(plan_, layer, attention_));
    add(plan_.MlpBranch(layer), std::make_unique<MlpMiddle>(plan_.mlp, plan_.feed_forward));
  }
  for (std::size_t i = 0; i <= branches_.size(); ++i) {
    residual_.emplace_back(rows * plan_.embedding);
  }
  normed_ = base::AlignedArray<float>(rows * plan_.embedding);
  stats_.resize(rows);
  logits_ = base::AlignedArray<float>(std::min(rows, kHeadRows) * LogitStride());
  dresidual_ = base::AlignedArray<float>(rows * plan_.embedding);
}

void Network::Bind(const float* parameters, float* gradient) {
  const BoundParameters bound{layout_, parameters, gradient};
  token_embedding_ = bound.Find("token_embd.weight");
  position_embedding_ = bound.Find("position_embd.weight");
  for (Branch& branch : branches_) branch.Bind(bound);
  norm_.Bind(bound.Find("output_norm.weight"), bound.Find("output_norm.bias"));
  head_.Bind(plan_.tied_head ? token_embedding_ : bound.Find("output.weight"), {});
}

void Network::Pack(Member& member) {
  for (Branch& branch : branches_) branch.Pack(member);
  head_.Pack(member);
  member.Barrier();
}

void Network::Embed(const Pass& pass) {
  const std::size_t width = plan_.embedding;
  const base::IndexRange share = pass.RowShare();
  for (std::size_t r = share.begin; r < share.end; ++r) {
    const std::size_t position = r % pass.batch.length;
    const float* token = token_embedding_.value + pass.batch.Input(r) * width;
    float* x = residual_[0].data() + r * width;
    if (position_embedding_.value == nullptr) {
      std::copy_n(token, width, x);
      continue;
    }
    const float* place = position_embedding_.value + position * width;
    for (std::size_t d = 0; d < width; ++d) x[d] = token[d] + place[d];
  }
  pass.member.Barrier();
  if (pass.disturbance.dropout == 0) return;
  DropRows(pass, 0, width, residual_[0].data());
  pass.member.Barrier();
}

void Network::Forward(Member& member, const MicroBatch& batch, const Disturbance& disturbance) {
  KV_CHECK(batch.rows() <= stats_.size());
  const Pass pass{member, batch, disturbance};
  Embed(pass);
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    branches_[i].Forward(pass, residual_[i].data(), KeptOf(i), residual_[i + 1].data());
  }
  norm_.Forward(member, residual_.back().data(), batch.rows(), normed_.data(), stats_.data());
  member.Barrier();
}

kernels::MatmulArgs Network::LogitRows(const float* normed_rows) {
  kernels::MatmulArgs args = head_.Product(normed_rows, logits_.data());
  args.out_stride = LogitStride();
  args.padded_out = true;
  return args;
}

void Network::Logits(Member& member, const MicroBatch& batch, float* logits) {
  kernels::MatmulShare(head_.Product(normed_.data(), logits), batch.rows(), member);
  member.Barrier();
}

void Network::Losses(Member& member, const MicroBatch& batch, double* losses) {
  for (std::size_t begin = 0; begin < batch.rows(); begin += kHeadRows) {
    const std::size_t rows = std::min(kHeadRows, batch.rows() - begin);
    kernels::MatmulShare(LogitRows(normed_.data() + begin * plan_.embedding), rows, member);
    member.Barrier();
    const base::IndexRange share = member.Share(rows);
    for (std::size_t r = share.begin; r < share.end; ++r) {
      losses[begin + r] = kernels::CrossEntropy(logits_.data() + r * LogitStride(), plan_.vocab,
                                                batch.Target(begin + r));
    }
    member.Barrier();
  }
}

void Network::BackwardHead(Member& member, const MicroBatch& batch, float weight, double* losses) {
  const std::size_t width = plan_.embedding;
  const std::size_t stride = LogitStride();
  float* dnormed = scratch_.dnormed.data();
  for (std::size_t begin = 0; begin < batch.rows(); begin += kHeadRows) {
    const std::size_t rows = std::min(kHeadRows, batch.rows() - begin);
    const float* x = normed_.data() + begin * width;
    kernels::MatmulShare(LogitRows(x), rows, member);
    PackRows(member, x, rows, width, scratch_.packed_normed);
    const base::IndexRange share = member.Share(rows);
    for (std::size_t r = share.begin; r < share.end; ++r) {
      losses[begin + r] = kernels::CrossEntropyGrad(logits_.data() + r * stride, plan_.vocab,
                                                    batch.Target(begin + r), weight);
    }
    member.Barrier();
    kernels::MatmulShare(head_.InputGrad(logits_.data(), stride, dnormed + begin * width), rows,
                         member);
    head_.AddGradients(member, logits_.data(), stride, rows, scratch_.packed_normed);
    member.Barrier();
  }
  const base::IndexRange all = member.Share(batch.rows() * width);
  std::fill(dresidual_.data() + all.begin, dresidual_.data() + all.end, 0.0f);
  member.Barrier();
  norm_.Backward(member, residual_.back().data(), dnormed, batch.rows(), stats_.data(),
                 dresidual_.data());
}

void Network::BackwardEmbedding(const Pass& pass, float* lookup) {
  if (pass.disturbance.dropout > 0) {
    DropRows(pass, 0, plan_.embedding, dresidual_.data());
    pass.member.Barrier();
  }
  // Members own columns, so each element's chain over the rows stays with one of them.
  const std::size_t width = plan_.embedding;
  const MicroBatch& batch = pass.batch;
  const base::IndexRange columns = ColumnShare(pass.member, width);
  float* tokens = lookup ? lookup : token_embedding_.gradient;
  float* places = position_embedding_.gradient;
  for (std::size_t r = 0; r < batch.rows(); ++r) {
    const std::size_t position = r % batch.length;
    float* token = tokens + batch.Input(r) * width;
    const float* d = dresidual_.data() + r * width;
    for (std::size_t c = columns.begin; c < columns.end; ++c) token[c] += d[c];
    if (places == nullptr) continue;
    for (std::size_t c = columns.begin; c < columns.end; ++c) places[position * width + c] += d[c];
  }
  pass.member.Barrier();
}

void Network::Backward(Member& member, const MicroBatch& batch, const Disturbance& disturbance,
                       float weight, double* losses, float* lookup) {
  const Pass pass{member, batch, disturbance};
  BackwardHead(member, batch, weight, losses);
  for (std::size_t i = branches_.size(); i-- > 0;) {
    const float* x = residual_[i].data();
    // Those of the last two branches are still there.
    if (i + kept_.size() < branches_.size()) branches_[i].Recompute(pass, x, KeptOf(i));
    branches_[i].Backward(pass, x, KeptOf(i), dresidual_.data());
  }
  BackwardEmbedding(pass, lookup);
}

}  // namespace kvasir::training
