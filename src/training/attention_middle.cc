#include "training/attention_middle.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/hadamard.h"
#include "kernels/kv_store.h"

namespace kvasir::training {
namespace {

std::vector<KvRun> RunsOf(const NetworkPlan& plan, std::size_t layer) {
  std::vector<KvRun> runs;
  for (const HeadRun& heads : plan.runs[layer]) runs.emplace_back(plan.attention, heads);
  return runs;
}

std::size_t LayerBytes(const NetworkPlan& plan, std::size_t layer, std::size_t sequences) {
  std::size_t bytes = 0;
  for (const KvRun& run : RunsOf(plan, layer)) bytes += run.Bytes(sequences, plan.context);
  return bytes;
}

}  // namespace

AttentionShared::AttentionShared(const NetworkPlan& network, std::size_t max_sequences,
                                 std::size_t members)
    : plan(network.attention),
      sequences(max_sequences),
      context(network.context),
      kv(KvBytes(network, sequences)),
      exaggerated(plan, {0, plan.kv_heads, {}}) {
  if (network.exaggerates) {
    exaggerated_rows = base::AlignedArray<float>(sequences * context * 2 * plan.kv_width());
    exaggerated_kv = base::AlignedArray<std::byte>(exaggerated.Bytes(sequences, context));
    exaggerated.Place(exaggerated_kv.data(), sequences, context);
  }
  if (plan.rope) turns.emplace(*plan.rope, plan.head_dim, context);
  for (std::size_t i = 0; i < Workers(network, sequences, members); ++i) {
    grads.emplace_back(network, context);
  }
}

std::size_t AttentionShared::KvBytes(const NetworkPlan& plan, std::size_t sequences) {
  std::size_t most = 0;
  for (std::size_t layer = 0; layer < plan.layers; ++layer) {
    most = std::max(most, LayerBytes(plan, layer, sequences));
  }
  return most;
}

std::size_t AttentionShared::ExaggeratedBytes(const NetworkPlan& plan, std::size_t sequences) {
  const KvRun run(plan.attention, {0, plan.attention.kv_heads, {}});
  return run.Bytes(sequences, plan.context) +
         sequences * plan.context * 2 * plan.attention.kv_width() * sizeof(float);
}

std::size_t AttentionShared::Workers(const NetworkPlan& plan, std::size_t sequences,
                                     std::size_t members) {
  return std::min(members, sequences * plan.attention.kv_heads);
}

AttentionMiddle::AttentionMiddle(const NetworkPlan& plan, std::size_t layer,
                                 AttentionShared& shared)
    : shared_(shared), plan_(shared.plan), runs_(RunsOf(plan, layer)) {
  std::byte* next = shared_.kv.data();
  for (KvRun& run : runs_) {
    run.Place(next, shared_.sequences, shared_.context);
    next += run.Bytes(shared_.sequences, shared_.context);
  }
}

const KvRun& AttentionMiddle::RunOf(std::size_t kv_head) const {
  const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const KvRun& run) {
    return kv_head < run.heads().first + run.heads().count;
  });
  KV_CHECK(found != runs_.end());
  return *found;
}

void AttentionMiddle::RotateRow(const KvRun& run, float* first) const {
  const std::size_t dim = plan_.head_dim;
  const std::size_t group = plan_.heads / plan_.kv_heads;
  float* k = first + plan_.q_width() + run.heads().first * dim;
  kernels::HadamardRotate(first + run.heads().first * group * dim, run.heads().count * group, dim);
  kernels::HadamardRotate(k, run.heads().count, dim);
  kernels::HadamardRotate(k + plan_.kv_width(), run.heads().count, dim);
}

void AttentionMiddle::RotateHeads(const KvRun& run, float* last) const {
  const std::size_t group = plan_.heads / plan_.kv_heads;
  kernels::HadamardRotate(last + run.heads().first * group * plan_.head_dim,
                          run.heads().count * group, plan_.head_dim);
}

void AttentionMiddle::Store(const Pass& pass, const float* first, bool rounded_only) const {
  const std::size_t length = pass.batch.length;
  const base::IndexRange rows = pass.RowShare();
  bool groups = false;
  for (const KvRun& run : runs_) {
    if (rounded_only && !run.heads().rounds()) continue;
    groups = groups || run.heads().has_groups();
    for (std::size_t r = rows.begin; r < rows.end; ++r) {
      const float* k = first + r * plan_.qkv_width() + plan_.q_width();
      run.Store(r / length, length, r % length, k, k + plan_.kv_width());
    }
  }
  pass.member.Barrier();
  if (!groups) return;
  for (const KvRun& run : runs_) run.CompleteGroups(pass.member, pass.batch.starts.size(), length);
  pass.member.Barrier();
}

// read [2 · kv_width]: exact + error · (rounded − exact). Of keys by channel also for queries of
// their own group, but for those of a group that is not complete, which nothing has rounded.
void AttentionMiddle::ExaggerateRow(const KvRun& run, std::size_t row, std::size_t length,
                                    float error, const float* exact, float* read) const {
  const std::size_t dim = plan_.head_dim, position = row % length;
  const kernels::KvView view = run.View(row / length, length);
  const bool in_tail = run.heads().has_groups() && position >= length / view.group * view.group;
  for (std::size_t head = 0; head < run.heads().count; ++head) {
    const std::size_t at = (run.heads().first + head) * dim;
    float* k = read + at;
    float* v = k + plan_.kv_width();
    kernels::LoadKv(view, position, head, k, v, in_tail ? position : kernels::kLaterGroup);
    for (float* numbers : {k, v}) {
      const float* own = exact + (numbers - read);
      for (std::size_t d = 0; d < dim; ++d) {
        numbers[d] = std::fma(error, numbers[d] - own[d], own[d]);
      }
    }
  }
}

void AttentionMiddle::Exaggerate(const Pass& pass, const float* first) const {
  const std::size_t length = pass.batch.length, width = 2 * plan_.kv_width();
  KV_CHECK(shared_.exaggerated_rows.size() >= pass.rows() * width);
  const base::IndexRange rows = pass.RowShare();
  for (std::size_t r = rows.begin; r < rows.end; ++r) {
    const float* exact = first + r * plan_.qkv_width() + plan_.q_width();  // Keys, then values.
    float* read = shared_.exaggerated_rows.data() + r * width;
    std::copy_n(exact, width, read);
    for (const KvRun& run : runs_) {
      if (run.heads().rounds()) {
        ExaggerateRow(run, r, length, pass.disturbance.kv_error, exact, read);
      }
    }
    shared_.exaggerated.Store(r / length, length, r % length, read, read + plan_.kv_width());
  }
  pass.member.Barrier();
}

void AttentionMiddle::Attend(const Pass& pass, const float* first, float* last) const {
  const std::size_t length = pass.batch.length;
  const std::size_t group = plan_.heads / plan_.kv_heads;
  for (std::size_t unit = pass.member.index(); unit < pass.batch.starts.size() * plan_.heads;
       unit += pass.member.count()) {
    const std::size_t sequence = unit / plan_.heads;
    const std::size_t head = unit % plan_.heads;
    const KvRun& run = RunOf(head / group);
    const KvRun& read = Exaggerates(pass) ? shared_.exaggerated : run;
    const std::size_t first_head = read.heads().first * group;
    const std::size_t column = first_head * plan_.head_dim;
    kernels::AttentionArgs args;
    args.q = first + sequence * length * plan_.qkv_width() + column;
    args.q_stride = plan_.qkv_width();
    args.heads = read.heads().count * group;
    args.scale = 1.0f / std::sqrt(static_cast<float>(plan_.head_dim));
    args.window = run.heads().window();
    args.kv = read.View(sequence, length);
    args.out = last + sequence * length * plan_.q_width() + column;
    args.out_stride = plan_.q_width();
    kernels::Attention(args, {0, length}, {head - first_head, head - first_head + 1});
  }
  pass.member.Barrier();
}

void AttentionMiddle::Forward(const Pass& pass, float* first, float* last) {
  const std::size_t length = pass.batch.length;
  const base::IndexRange rows = pass.RowShare();
  for (std::size_t r = rows.begin; r < rows.end; ++r) {
    float* row = first + r * plan_.qkv_width();
    if (shared_.turns) {  // Keys follow queries.
      shared_.turns->Turn(r % length, plan_.heads + plan_.kv_heads, row);
    }
    VisitRotated([&](const KvRun& run) { RotateRow(run, row); });
  }
  Store(pass, first, /*rounded_only=*/false);
  if (Exaggerates(pass)) Exaggerate(pass, first);
  Attend(pass, first, last);
  VisitRotated([&](const KvRun& run) {
    for (std::size_t r = rows.begin; r < rows.end; ++r) {
      RotateHeads(run, last + r * plan_.q_width());
    }
  });
  pass.member.Barrier();
}

void AttentionMiddle::Backward(const Pass& pass, const float* first, float* dlast, float* dfirst) {
  const std::size_t length = pass.batch.length;
  const std::size_t width = plan_.qkv_width();
  const base::IndexRange rows = pass.RowShare();
  VisitRotated([&](const KvRun& run) {
    for (std::size_t r = rows.begin; r < rows.end; ++r) {
      RotateHeads(run, dlast + r * plan_.q_width());
    }
  });
  Store(pass, first, /*rounded_only=*/true);  // Other layers have used the blocks.
  const float* read = nullptr;
  if (Exaggerates(pass)) {
    Exaggerate(pass, first);
    read = shared_.exaggerated_rows.data();
  }
  for (std::size_t unit = pass.member.index(); unit < pass.batch.starts.size() * plan_.kv_heads;
       unit += pass.member.count()) {
    const std::size_t sequence = unit / plan_.kv_heads;
    const std::size_t kv_head = unit % plan_.kv_heads;
    const std::size_t row = sequence * length;
    shared_.grads[pass.member.index()].Run(
        RunOf(kv_head),
        {sequence, length, first + row * width, dlast + row * plan_.q_width(), dfirst + row * width,
         read == nullptr ? nullptr : read + row * 2 * plan_.kv_width()},
        kv_head);
  }
  pass.member.Barrier();
  for (std::size_t r = rows.begin; r < rows.end; ++r) {
    float* row = dfirst + r * width;
    VisitRotated([&](const KvRun& run) { RotateRow(run, row); });
    if (shared_.turns) shared_.turns->TurnBack(r % length, plan_.heads + plan_.kv_heads, row);
  }
  pass.member.Barrier();
}

}  // namespace kvasir::training
