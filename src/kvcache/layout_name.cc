#include "kvcache/layout_name.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <span>
#include <string>

#include "kvcache/cache_policy.h"

namespace kvasir::kvcache {
namespace {

// Of the layouts that kernels::KvView and kernels::LatentView document.
constexpr int kLayoutVersion = 1;

}  // namespace

base::Hash128 LayoutName(const CacheGeometry& geometry) {
  std::string text = fmt::format("{} {} {} {} {} {} {} {}", kLayoutVersion, geometry.layers(),
                                 geometry.kv_heads(), geometry.head_dim(), geometry.block_tokens(),
                                 geometry.latent_dim(), geometry.rope_dim(), geometry.hidden_dim());
  for (const CacheGroup& group : geometry.groups()) {
    fmt::format_to(std::back_inserter(text), "|{} {} {} {}", group.retention.window,
                   group.retention.sinks, group.retention.tail, group.block_bytes);
  }
  for (const CachePart& part : geometry.all_parts()) {
    const auto index = [](const std::optional<CacheGroupId>& id) {
      return id ? static_cast<std::int64_t>(id->index()) : -1;
    };
    fmt::format_to(std::back_inserter(text), "|{} {} {} {} {} {} {} {} {} {} {}", part.layer,
                   part.first_head, part.heads, PolicyOptions(part.policy), index(part.group),
                   part.k_offset, part.v_offset, part.k_scale_offset, index(part.tail_group),
                   part.tail_offset, part.row_offset);
  }
  return base::HashBytes128(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace kvasir::kvcache
