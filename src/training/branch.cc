#include "training/branch.h"

#include <algorithm>
#include <utility>

#include "kernels/grads.h"

namespace kvasir::training {

void DropRows(const Pass& pass, std::uint32_t site, std::size_t width, float* rows) {
  const Disturbance& disturbance = pass.disturbance;
  const auto drop = static_cast<std::uint32_t>(disturbance.dropout * 65536.0f + 0.5f);
  const float scale = 1.0f / (1.0f - disturbance.dropout);
  const base::IndexRange share = pass.member.Share(pass.batch.starts.size());
  const std::size_t elements = pass.batch.length * width;
  for (std::size_t s = share.begin; s < share.end; ++s) {
    const kernels::DropoutKey key{disturbance.seed, disturbance.step, site,
                                  static_cast<std::uint32_t>(pass.batch.first_sequence + s)};
    kernels::Dropout(key, drop, scale, 0, elements, rows + s * elements);
  }
}

Branch::Branch(const NetworkPlan& network, BranchPlan plan, std::unique_ptr<BranchMiddle> middle,
               std::uint32_t site, BranchScratch& scratch)
    : plan_(std::move(plan)),
      width_(network.embedding),
      middle_(std::move(middle)),
      site_(site),
      scratch_(scratch),
      norm_(network.norm, width_, network.norm_eps),
      first_(plan_.first_outputs, width_),
      last_(width_, plan_.last_inputs) {}

void Branch::Bind(const BoundParameters& parameters) {
  const auto weight = [&](const std::string& name) { return parameters.Find(name + ".weight"); };
  const auto bias = [&](const std::string& name) { return parameters.Find(name + ".bias"); };
  norm_.Bind(weight(plan_.norm), bias(plan_.norm));
  first_.Bind(weight(plan_.first), bias(plan_.first));
  last_.Bind(weight(plan_.last), bias(plan_.last));
}

void Branch::Pack(const Member& member) {
  first_.Pack(member);
  last_.Pack(member);
}

void Branch::Recompute(const Pass& pass, const float* x, BranchRows& kept) {
  norm_.Forward(pass.member, x, pass.rows(), kept.normed.data(), kept.stats.data());
  pass.member.Barrier();
  kernels::MatmulShare(first_.Product(kept.normed.data(), kept.first.data()), pass.rows(),
                       pass.member);
  pass.member.Barrier();
  middle_->Forward(pass, kept.first.data(), kept.last.data());
}

void Branch::AddLast(const Pass& pass, const float* x, const BranchRows& kept, float* out) {
  const bool drops = pass.disturbance.dropout > 0;
  float* added = drops ? scratch_.added.data() : out;
  kernels::MatmulArgs product = last_.Product(kept.last.data(), added);
  if (!drops) product.residual = x;
  kernels::MatmulShare(product, pass.rows(), pass.member);
  pass.member.Barrier();
  if (!drops) return;
  DropRows(pass, site_, width_, added);
  pass.member.Barrier();
  const base::IndexRange share = pass.member.Share(pass.rows() * width_);
  for (std::size_t i = share.begin; i < share.end; ++i) out[i] = x[i] + added[i];
  pass.member.Barrier();
}

void Branch::Forward(const Pass& pass, const float* x, BranchRows& kept, float* out) {
  Recompute(pass, x, kept);
  AddLast(pass, x, kept, out);
}

void Branch::Backward(const Pass& pass, const float* x, BranchRows& kept, float* dx) {
  Member& member = pass.member;
  const std::size_t rows = pass.rows();
  const float* dadded = dx;
  if (pass.disturbance.dropout > 0) {
    const base::IndexRange share = member.Share(rows * width_);
    std::copy(dx + share.begin, dx + share.end, scratch_.dadded.data() + share.begin);
    member.Barrier();
    DropRows(pass, site_, width_, scratch_.dadded.data());
    dadded = scratch_.dadded.data();
  }
  float* dlast = scratch_.dlast.data();
  float* dfirst = scratch_.dfirst.data();
  // Two barriers each, so that the dropped rows are there too.
  PackRows(member, kept.last.data(), rows, plan_.last_inputs, scratch_.packed_last);
  PackRows(member, kept.normed.data(), rows, width_, scratch_.packed_normed);
  last_.AddGradients(member, dadded, width_, rows, scratch_.packed_last);
  kernels::MatmulShare(last_.InputGrad(dadded, width_, dlast), rows, member);
  member.Barrier();
  middle_->Backward(pass, kept.first.data(), dlast, dfirst);
  first_.AddGradients(member, dfirst, plan_.first_outputs, rows, scratch_.packed_normed);
  kernels::MatmulShare(first_.InputGrad(dfirst, plan_.first_outputs, scratch_.dnormed.data()), rows,
                       member);
  member.Barrier();
  norm_.Backward(member, x, scratch_.dnormed.data(), rows, kept.stats.data(), dx);
}

}  // namespace kvasir::training
