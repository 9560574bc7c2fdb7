// Any bytes as a --kv text, for models of three kinds: an error names a place, and a policy's
// canonical text means the same policy.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "kvcache/cache_policy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using kvasir::kvcache::CachePolicy;
  using kvasir::kvcache::PolicyShape;
  const std::string_view spec(reinterpret_cast<const char*>(data), size);
  for (const PolicyShape& shape :
       {PolicyShape{.layers = 4, .kv_heads = 4, .head_dim = 32},
        PolicyShape{.layers = 3, .kv_heads = 2, .head_dim = 8, .rotary = true},
        PolicyShape{.layers = 2, .rotary = true, .latent = true}}) {
    const auto policy = CachePolicy::Parse(spec, shape);
    if (!policy) {
      KV_CHECK(policy.error().message.size() < 1000);
      KV_CHECK(policy.error().message.find('\n') == std::string::npos);
      continue;
    }
    const auto again = CachePolicy::Parse(policy.value().Canonical(), shape);
    KV_CHECK(again.has_value() && again.value() == policy.value());
  }
  return 0;
}
