#include "training/attention_middle.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/hadamard.h"

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
      kv(KvBytes(network, sequences)) {
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

void AttentionMiddle::Attend(const Pass& pass, const float* first, float* last) const {
  const std::size_t length = pass.batch.length;
  const std::size_t group = plan_.heads / plan_.kv_heads;
  for (std::size_t unit = pass.member.index(); unit < pass.batch.starts.size() * plan_.heads;
       unit += pass.member.count()) {
    const std::size_t sequence = unit / plan_.heads;
    const std::size_t head = unit % plan_.heads;
    const KvRun& run = RunOf(head / group);
    const std::size_t first_head = run.heads().first * group;
    const std::size_t column = first_head * plan_.head_dim;
    kernels::AttentionArgs args;
    args.q = first + sequence * length * plan_.qkv_width() + column;
    args.q_stride = plan_.qkv_width();
    args.heads = run.heads().count * group;
    args.scale = 1.0f / std::sqrt(static_cast<float>(plan_.head_dim));
    args.window = run.heads().window();
    args.kv = run.View(sequence, length);
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
  for (std::size_t unit = pass.member.index(); unit < pass.batch.starts.size() * plan_.kv_heads;
       unit += pass.member.count()) {
    const std::size_t sequence = unit / plan_.kv_heads;
    const std::size_t kv_head = unit % plan_.kv_heads;
    const std::size_t row = sequence * length;
    shared_.grads[pass.member.index()].Run(RunOf(kv_head),
                                           {sequence, length, first + row * width,
                                            dlast + row * plan_.q_width(), dfirst + row * width},
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
