#include "training/attention_middle.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention.h"
#include "kernels/grads.h"
#include "kernels/matmul.h"

namespace kvasir::training {
namespace {

using Workspace = AttentionShared::Workspace;

// A matrix of `rows` whose element (r, c) is data[r · row_stride + c · column_stride].
struct Strided {
  const float* data;
  std::size_t row_stride;
  std::size_t column_stride;
};

void Pack(const Strided& source, std::size_t n, std::size_t k, kernels::PackedMatrix& out) {
  out.Reshape(n, k);
  kernels::PackPanels({source.data, source.row_stride, source.column_stride}, out,
                      {0, out.panel_count()});
}

// out [rows][w.n()] = a · wᵀ, or the chains carried on from what out holds.
void Multiply(const Strided& a, std::size_t rows, const kernels::PackedMatrix& w, float* out,
              std::size_t out_stride, bool carry_on = false) {
  kernels::MatmulArgs args;
  args.a = a.data;
  args.a_row_stride = a.row_stride;
  args.a_k_stride = a.column_stride;
  args.w = &w;
  args.out = out;
  args.out_stride = out_stride;
  args.accumulate = carry_on;
  kernels::Matmul(args, {0, rows}, {0, w.panel_count()});
}

}  // namespace

AttentionShared::AttentionShared(const NetworkPlan& network, std::size_t sequences,
                                 std::size_t members)
    : plan(network.attention),
      kv(plan, sequences, network.context),
      work(std::min(members, sequences * plan.kv_heads)) {
  const std::size_t length = network.context;
  if (plan.rope) turns.emplace(*plan.rope, plan.head_dim, length);
  for (Workspace& w : work) {
    w.p = base::AlignedArray<float>(length * length);
    w.ds = base::AlignedArray<float>(length * length);
    w.keys = kernels::PackedMatrix(length, plan.head_dim);
    w.values = kernels::PackedMatrix(length, plan.head_dim);
    w.keys_t = kernels::PackedMatrix(plan.head_dim, length);
    w.queries_t = kernels::PackedMatrix(plan.head_dim, length);
    w.grads_t = kernels::PackedMatrix(plan.head_dim, length);
  }
}

float AttentionMiddle::Scale() const {
  return 1.0f / std::sqrt(static_cast<float>(plan_.head_dim));
}

void AttentionMiddle::Forward(const Pass& pass, float* first, float* last) {
  const std::size_t length = pass.batch.length;
  const std::size_t width = plan_.qkv_width();
  const base::IndexRange rows = pass.RowShare();
  for (std::size_t r = rows.begin; r < rows.end; ++r) {
    float* q = first + r * width;
    float* k = q + plan_.q_width();
    if (shared_.turns) {  // Keys follow queries.
      shared_.turns->Turn(r % length, plan_.heads + plan_.kv_heads, q);
    }
    kernels::StoreKv(shared_.kv.View(r / length, length), r % length, k, k + plan_.kv_width());
  }
  pass.member.Barrier();
  for (std::size_t unit = pass.member.index(); unit < pass.batch.starts.size() * plan_.heads;
       unit += pass.member.count()) {
    const std::size_t sequence = unit / plan_.heads;
    const std::size_t head = unit % plan_.heads;
    kernels::AttentionArgs args;
    args.q = first + sequence * length * width;
    args.q_stride = width;
    args.heads = plan_.heads;
    args.scale = Scale();
    args.window = window_;
    args.kv = shared_.kv.View(sequence, length);
    args.out = last + sequence * length * plan_.q_width();
    args.out_stride = plan_.q_width();
    kernels::Attention(args, {0, length}, {head, head + 1});
  }
  pass.member.Barrier();
}

void AttentionMiddle::WeightsAndGrads(Workspace& work, std::size_t length, const float* q,
                                      const float* grad) const {
  Multiply({q, plan_.qkv_width(), 1}, length, work.keys, work.p.data(), length);      // q · kᵀ
  Multiply({grad, plan_.q_width(), 1}, length, work.values, work.ds.data(), length);  // dO · vᵀ
  for (std::size_t i = 0; i < length; ++i) {
    float* p = work.p.data() + i * length;
    float* ds = work.ds.data() + i * length;
    const std::size_t hidden = kernels::FirstVisible(i, window_);
    std::fill_n(p, hidden, 0.0f);
    std::fill_n(ds, hidden, 0.0f);
    const std::size_t visible = i + 1 - hidden;
    kernels::CausalSoftmaxRow(p + hidden, visible, length - hidden, Scale());
    kernels::CausalSoftmaxGradRow(p + hidden, ds + hidden, visible, length - hidden, Scale());
  }
}

// The gradients of a kv head are chains over its query heads ascending, and of each over the
// queries ascending.
void AttentionMiddle::KvHeadGrad(Workspace& work, std::size_t length, std::size_t kv_head,
                                 const float* first, const float* dlast, float* dfirst) const {
  const std::size_t dim = plan_.head_dim;
  const std::size_t stride = plan_.qkv_width();
  const std::size_t group = plan_.heads / plan_.kv_heads;
  const std::size_t key = plan_.q_width() + kv_head * dim;
  const std::size_t value = key + plan_.kv_width();
  Pack({first + key, stride, 1}, length, dim, work.keys);
  Pack({first + value, stride, 1}, length, dim, work.values);
  Pack({first + key, 1, stride}, dim, length, work.keys_t);
  for (std::size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const float* q = first + head * dim;
    const float* grad = dlast + head * dim;
    const bool carry_on = head > kv_head * group;
    Pack({q, 1, stride}, dim, length, work.queries_t);
    Pack({grad, 1, plan_.q_width()}, dim, length, work.grads_t);
    WeightsAndGrads(work, length, q, grad);
    const Strided p = {work.p.data(), 1, length}, ds = {work.ds.data(), 1, length};  // Transposed.
    Multiply({work.ds.data(), length, 1}, length, work.keys_t, dfirst + head * dim, stride);
    Multiply(ds, length, work.queries_t, dfirst + key, stride, carry_on);
    Multiply(p, length, work.grads_t, dfirst + value, stride, carry_on);
  }
}

void AttentionMiddle::Backward(const Pass& pass, const float* first, float* dlast, float* dfirst) {
  const std::size_t length = pass.batch.length;
  const std::size_t width = plan_.qkv_width();
  for (std::size_t unit = pass.member.index(); unit < pass.batch.starts.size() * plan_.kv_heads;
       unit += pass.member.count()) {
    const std::size_t row = unit / plan_.kv_heads * length;
    KvHeadGrad(shared_.work[pass.member.index()], length, unit % plan_.kv_heads,
               first + row * width, dlast + row * plan_.q_width(), dfirst + row * width);
  }
  pass.member.Barrier();
  if (!shared_.turns) return;
  const base::IndexRange rows = pass.RowShare();
  for (std::size_t r = rows.begin; r < rows.end; ++r) {
    shared_.turns->TurnBack(r % length, plan_.heads + plan_.kv_heads, dfirst + r * width);
  }
  pass.member.Barrier();
}

}  // namespace kvasir::training
