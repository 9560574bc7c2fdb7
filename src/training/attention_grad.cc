#include "training/attention_grad.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention.h"
#include "kernels/grads.h"
#include "kernels/kv_store.h"
#include "kernels/matmul.h"

namespace kvasir::training {
namespace {

// Element (n, k) at data[n · n_stride + k · k_stride].
void PackInto(const float* data, std::size_t n_stride, std::size_t k_stride, std::size_t n,
              std::size_t k, kernels::PackedMatrix& out) {
  out.Reshape(n, k);
  kernels::PackPanels({data, n_stride, k_stride}, out, {0, out.panel_count()});
}

// out = a · wᵀ with a's element (m, k) at data[m · row_stride + k · k_stride].
struct Product {
  const float* a;
  std::size_t row_stride;
  std::size_t k_stride;
  const kernels::PackedMatrix& w;
  float* out;
  std::size_t out_stride;
  bool carry_on = false;  // The chains, from what out holds.

  void Run(base::IndexRange rows, base::IndexRange panels) const {
    kernels::MatmulArgs args;
    args.a = a;
    args.a_row_stride = row_stride;
    args.a_k_stride = k_stride;
    args.w = &w;
    args.out = out;
    args.out_stride = out_stride;
    args.accumulate = carry_on;
    kernels::Matmul(args, rows, panels);
  }
};

// Queries, and positions of a sum, that are computed together: only where one sees another.
constexpr std::size_t kSegment = 64;

std::size_t SegmentsOf(std::size_t length) { return (length + kSegment - 1) / kSegment; }
base::IndexRange SegmentRows(std::size_t segment, std::size_t length) {
  return {segment * kSegment, std::min(length, (segment + 1) * kSegment)};
}

bool Rounds(const NetworkPlan& plan) {
  return plan.AnyRun([](const HeadRun& run) { return run.rounds(); });
}
bool HasGroups(const NetworkPlan& plan) {
  return plan.AnyRun([](const HeadRun& run) { return run.has_groups(); });
}

std::size_t RoundUp16(std::size_t n) { return (n + 15) / 16 * 16; }

}  // namespace

AttentionGrad::Segments::Segments(std::size_t channels, std::size_t context) {
  for (std::size_t s = 0; s < SegmentsOf(context); ++s) {
    parts_.emplace_back(channels, SegmentRows(s, context).size());
  }
}

void AttentionGrad::Segments::Pack(const float* rows, std::size_t stride, std::size_t channels,
                                   std::size_t length) {
  for (std::size_t s = 0; s < SegmentsOf(length); ++s) {
    const base::IndexRange range = SegmentRows(s, length);
    PackInto(rows + range.begin * stride, 1, stride, channels, range.size(), parts_[s]);
  }
}

AttentionGrad::AttentionGrad(const NetworkPlan& plan, std::size_t context)
    : plan_(plan.attention),
      p_(context * context),
      ds_(context * context),
      keys_(context, plan_.head_dim),
      values_(context, plan_.head_dim),
      keys_by_channel_(plan_.head_dim, context),
      queries_by_channel_(plan_.head_dim, context),
      grads_by_channel_(plan_.head_dim, context) {
  if (Rounds(plan)) {
    read_keys_ = base::AlignedArray<float>(context * plan_.head_dim);
    read_values_ = base::AlignedArray<float>(context * plan_.head_dim);
  }
  if (HasGroups(plan)) {
    own_keys_ = kernels::PackedMatrix(context, plan_.head_dim);
    own_keys_by_channel_ = Segments(plan_.head_dim, context);
  }
}

std::size_t AttentionGrad::Floats(const NetworkPlan& plan, std::size_t context) {
  const std::size_t dim = plan.attention.head_dim;
  const std::size_t by_position = RoundUp16(context) * dim;
  const std::size_t by_channel = RoundUp16(dim) * context;
  return 2 * context * context + 2 * by_position + 3 * by_channel +
         (Rounds(plan) ? 2 * context * dim : 0) + (HasGroups(plan) ? by_position + by_channel : 0);
}

// The last group may not be complete: no query reads its keys rounded.
void AttentionGrad::LoadRounded(const KvRun& run, const Rows& rows, std::size_t kv_head) {
  const std::size_t dim = plan_.head_dim;
  const kernels::KvView view = run.View(rows.sequence, rows.length);
  const std::size_t head = kv_head - run.heads().first;
  const std::size_t grouped = run.heads().has_groups() ? rows.length / view.group * view.group : 0;
  for (std::size_t t = 0; t < rows.length; ++t) {
    const std::size_t reader = run.heads().has_groups() && t >= grouped ? t : kernels::kLaterGroup;
    kernels::LoadKv(view, t, head, read_keys_.data() + t * dim, read_values_.data() + t * dim,
                    reader);
  }
}

// Keys and values as queries read them.
void AttentionGrad::PackRead(const KvRun& run, const Rows& rows, std::size_t kv_head) {
  const std::size_t dim = plan_.head_dim, length = rows.length;
  const std::size_t stride = plan_.qkv_width();
  const float* own = rows.first + plan_.q_width() + kv_head * dim;
  Strided keys = {own, stride};
  Strided values = {own + plan_.kv_width(), stride};
  if (rows.read != nullptr) {
    keys = {rows.read + kv_head * dim, 2 * plan_.kv_width()};
    values = {keys.data + plan_.kv_width(), keys.stride};
  } else if (run.heads().rounds()) {
    LoadRounded(run, rows, kv_head);
    keys = {read_keys_.data(), dim};
    values = {read_values_.data(), dim};
  }
  PackInto(keys.data, keys.stride, 1, length, dim, keys_);
  PackInto(values.data, values.stride, 1, length, dim, values_);
  keys_by_channel_.Pack(keys.data, keys.stride, dim, length);
  if (group_ == 0) return;
  PackInto(own, stride, 1, length, dim, own_keys_);
  own_keys_by_channel_.Pack(own, stride, dim, length);
}

// p_ = softmax(q · kᵀ · scale) and ds_ = the gradient of q · kᵀ, both 0 where nothing is seen.
void AttentionGrad::Weights(const KvRun& run, std::size_t length, const Strided& q,
                            const Strided& dout) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(plan_.head_dim));
  const Product scores{q.data, q.stride, 1, keys_, p_.data(), length};
  const Product own_scores{q.data, q.stride, 1, own_keys_, p_.data(), length};
  const Product grads{dout.data, dout.stride, 1, values_, ds_.data(), length};
  const std::size_t step = group_ == 0 ? kSegment : std::min<std::size_t>(kSegment, group_);
  for (std::size_t begin = 0; begin < length; begin += step) {
    const base::IndexRange rows = {begin, std::min(length, begin + step)};
    const base::IndexRange seen = {kernels::FirstVisible(begin, run.heads().window()) / 16,
                                   (rows.end + 15) / 16};
    grads.Run(rows, seen);
    if (group_ == 0) {
      scores.Run(rows, seen);
      continue;
    }
    const std::size_t own = std::max(begin / group_ * group_ / 16, seen.begin);
    scores.Run(rows, {seen.begin, own});
    own_scores.Run(rows, {own, seen.end});
  }
  for (std::size_t i = 0; i < length; ++i) {
    float* p = p_.data() + i * length;
    float* ds = ds_.data() + i * length;
    const std::size_t hidden = kernels::FirstVisible(i, run.heads().window());
    std::fill_n(p, hidden, 0.0f);
    std::fill_n(ds, hidden, 0.0f);
    kernels::CausalSoftmaxRow(p + hidden, i + 1 - hidden, length - hidden, scale);
    kernels::CausalSoftmaxGradRow(p + hidden, ds + hidden, i + 1 - hidden, length - hidden, scale);
  }
}

void AttentionGrad::AddOverKeys(const KvRun& run, std::size_t length, const float* weights,
                                const Segments& keys, bool carry_on, float* dq) const {
  for (std::size_t q = 0; q < SegmentsOf(length); ++q) {
    const base::IndexRange queries = SegmentRows(q, length);
    const std::size_t first = kernels::FirstVisible(queries.begin, run.heads().window()) / kSegment;
    for (std::size_t s = first; s <= q; ++s) {
      Product{weights + s * kSegment, length, 1, keys[s], dq, plan_.qkv_width(),
              carry_on || s > first}
          .Run(queries, {0, keys[s].panel_count()});
    }
  }
}

void AttentionGrad::AddOverQueries(const KvRun& run, std::size_t length, const float* weights,
                                   const Segments& rows, bool carry_on, float* dkv) const {
  const std::size_t window = run.heads().window();
  for (std::size_t k = 0; k < SegmentsOf(length); ++k) {
    const base::IndexRange keys = SegmentRows(k, length);
    // The last query that sees one of these keys sees the last of them.
    const std::size_t last =
        window < length ? std::min(length - 1, keys.end - 1 + window - 1) : length - 1;
    for (std::size_t s = k; s <= last / kSegment; ++s) {
      Product{weights + s * kSegment * length,
              1,
              length,
              rows[s],
              dkv,
              plan_.qkv_width(),
              carry_on || s > k}
          .Run(keys, {0, rows[s].panel_count()});
    }
  }
}

// dq = ds_ · keys. Where queries read the keys of their own group exactly, these come last, as they
// do by position; ds_ and p_ are used up.
void AttentionGrad::QueryGrad(const KvRun& run, std::size_t length, float* dq) {
  if (group_ == 0) {
    AddOverKeys(run, length, ds_.data(), keys_by_channel_, /*carry_on=*/false, dq);
    return;
  }
  std::fill_n(p_.data(), length * length, 0.0f);
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t first = i / group_ * group_;
    float* row = ds_.data() + i * length + first;
    std::copy_n(row, i + 1 - first, p_.data() + i * length + first);
    std::fill_n(row, i + 1 - first, 0.0f);
  }
  AddOverKeys(run, length, ds_.data(), keys_by_channel_, /*carry_on=*/false, dq);
  AddOverKeys(run, length, p_.data(), own_keys_by_channel_, /*carry_on=*/true, dq);
}

void AttentionGrad::Run(const KvRun& run, const Rows& rows, std::size_t kv_head) {
  const std::size_t dim = plan_.head_dim, length = rows.length;
  const std::size_t stride = plan_.qkv_width(), out_stride = plan_.q_width();
  const std::size_t group = plan_.heads / plan_.kv_heads;
  float* dkey = rows.dfirst + plan_.q_width() + kv_head * dim;
  float* dvalue = dkey + plan_.kv_width();
  group_ = run.heads().has_groups() && rows.read == nullptr ? run.heads().policy.group : 0;
  PackRead(run, rows, kv_head);
  for (std::size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const float* q = rows.first + head * dim;
    const float* dout = rows.dlast + head * dim;
    const bool carry_on = head > kv_head * group;
    queries_by_channel_.Pack(q, stride, dim, length);
    grads_by_channel_.Pack(dout, out_stride, dim, length);
    Weights(run, length, {q, stride}, {dout, out_stride});
    AddOverQueries(run, length, p_.data(), grads_by_channel_, carry_on, dvalue);   // Pᵀ · dO
    AddOverQueries(run, length, ds_.data(), queries_by_channel_, carry_on, dkey);  // dSᵀ · q
    QueryGrad(run, length, rows.dfirst + head * dim);
  }
}

}  // namespace kvasir::training
