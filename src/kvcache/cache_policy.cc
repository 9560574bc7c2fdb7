#include "kvcache/cache_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "kvcache/policy_parser.h"

namespace kvasir::kvcache {
namespace {

using kernels::KvType;

// As --kv writes it: int4 per channel is int4 with a group.
std::string_view TypeText(KvType type) {
  return kernels::KvTypeName(type == KvType::kInt4Channel ? KvType::kInt4 : type);
}

// Ascending numbers as RANGEs: "0-1+4".
std::string RangesText(std::span<const std::uint64_t> numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : "+", numbers[i]);
    if (end - i > 1) text += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

void AddRule(std::string& spec, std::string_view selector, const HeadPolicy& policy) {
  if (policy == HeadPolicy{}) return;
  spec += fmt::format("{}{}{}{}", spec.empty() ? "" : ";", selector, selector.empty() ? "" : ":",
                      PolicyOptions(policy));
}

bool AllEqual(std::span<const HeadPolicy> heads) {
  return std::all_of(heads.begin(), heads.end(),
                     [&](const HeadPolicy& head) { return head == heads[0]; });
}

}  // namespace

std::string_view KvStoreName(KvStore store) {
  switch (store) {
    case KvStore::kKv:
      return "kv";
    case KvStore::kHidden:
      return "hidden";
    case KvStore::kNone:
      return "none";
  }
  return "?";
}

CachePolicy CachePolicy::Full(std::uint64_t layers, std::uint64_t kv_heads) {
  const std::uint64_t entries = std::max<std::uint64_t>(1, kv_heads);
  return CachePolicy(layers, entries, std::vector<HeadPolicy>(layers * entries));
}

base::Result<CachePolicy> CachePolicy::Parse(std::string_view spec, const PolicyShape& shape) {
  KV_TRY(auto heads, ParseHeadPolicies(spec, shape));
  return Of(shape.layers, shape.kv_heads, std::move(heads));
}

CachePolicy CachePolicy::Of(std::uint64_t layers, std::uint64_t kv_heads,
                            std::vector<HeadPolicy> heads) {
  const std::uint64_t entries = std::max<std::uint64_t>(1, kv_heads);
  KV_CHECK(heads.size() == layers * entries);
  return CachePolicy(layers, entries, std::move(heads));
}

std::string PolicyOptions(const HeadPolicy& policy) {
  std::string text = "full";
  if (policy.window != 0) text = fmt::format("window={}", policy.window);
  if (policy.sinks != 0) text += fmt::format(",sinks={}", policy.sinks);
  const std::string_view k = TypeText(policy.k);
  const std::string_view v = TypeText(policy.v);
  text += k == v ? fmt::format(",dtype={}", k) : fmt::format(",k={},v={}", k, v);
  if (policy.group != 0) text += fmt::format(",group={}", policy.group);
  if (policy.rotate) text += ",rotate";
  if (policy.store != KvStore::kKv) text += fmt::format(",store={}", KvStoreName(policy.store));
  return text;
}

std::string CachePolicy::Canonical() const {
  std::string spec;
  std::vector<bool> done(layers_);
  for (std::uint64_t layer = 0; layer < layers_; ++layer) {
    if (done[layer]) continue;
    const std::span<const HeadPolicy> row = Layer(layer);
    std::vector<std::uint64_t> alike;
    for (std::uint64_t other = layer; other < layers_; ++other) {
      if (!std::equal(row.begin(), row.end(), Layer(other).begin())) continue;
      done[other] = true;
      alike.push_back(other);
    }
    const std::string layers = RangesText(alike);
    if (AllEqual(row)) {
      AddRule(spec, alike.size() == layers_ ? "" : layers, row[0]);
      continue;
    }
    for (std::uint64_t head = 0; head < kv_heads_; ++head) {
      if (std::find(row.begin(), row.begin() + head, row[head]) != row.begin() + head) continue;
      std::vector<std::uint64_t> heads;
      for (std::uint64_t other = head; other < kv_heads_; ++other) {
        if (row[other] == row[head]) heads.push_back(other);
      }
      AddRule(spec, fmt::format("{}.{}", layers, RangesText(heads)), row[head]);
    }
  }
  return spec.empty() ? PolicyOptions({}) : spec;
}

bool CachePolicy::IsFull() const {
  return std::all_of(heads_.begin(), heads_.end(),
                     [](const HeadPolicy& head) { return head == HeadPolicy{}; });
}

bool CachePolicy::IsLossless() const {
  return std::all_of(heads_.begin(), heads_.end(), [](const HeadPolicy& head) {
    return head.k == KvType::kF32 && head.v == KvType::kF32 && head.window == 0 && !head.rotate;
  });
}

void CachePolicy::LimitWindows(std::span<const std::uint64_t> model_windows) {
  KV_CHECK(model_windows.size() == layers_);
  for (std::uint64_t i = 0; i < heads_.size(); ++i) {
    const std::uint64_t limit = model_windows[i / kv_heads_];
    HeadPolicy& head = heads_[i];
    if (limit == 0 || (head.window != 0 && head.window < limit)) continue;
    head.window = limit;
    head.sinks = 0;
  }
}

}  // namespace kvasir::kvcache
