#include "eval/verify_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

namespace kvasir::eval {
namespace {

std::string_view AnyOf(std::initializer_list<std::string_view> names, RandomStream& random) {
  return names.begin()[random.Below(names.size())];
}

// A run of layers or heads.
std::string AnyRange(std::uint64_t count, RandomStream& random) {
  const std::uint64_t first = random.Below(count);
  return fmt::format("{}-{}", first, random.Between(first, count - 1));
}

std::string AnyOptions(RandomStream& random) {
  std::string options;
  const auto add = [&](std::string_view option) {
    if (!options.empty()) options += ',';
    options += option;
  };
  const std::uint64_t kind = random.Below(8);
  if (kind == 0) {
    add("store=hidden");
  } else if (kind == 1) {
    add("store=none");
  } else {
    if (random.Chance(2, 3)) {
      const std::string_view k = AnyOf({"f32", "f16", "bf16", "int8", "int4"}, random);
      add(fmt::format("k={}", k));
      if (k == "int4" && random.Chance(1, 2)) {
        add(fmt::format("group={}", AnyOf({"16", "32", "64"}, random)));
      }
    }
    if (random.Chance(2, 3)) {
      add(fmt::format("v={}", AnyOf({"f32", "f16", "bf16", "int8", "int4"}, random)));
    }
    if (random.Chance(1, 3)) add("rotate");
  }
  if (options.empty() || random.Chance(1, 3)) {
    const std::uint64_t window = random.Between(1, 40);
    add(fmt::format("window={}", window));
    if (random.Chance(1, 2)) {
      add(fmt::format("sinks={}", random.Between(1, std::min<std::uint64_t>(window, 5))));
    }
  }
  return options;
}

}  // namespace

kvcache::CachePolicy DrawPolicy(const kvcache::PolicyShape& shape, RandomStream& random) {
  if (shape.latent) return kvcache::CachePolicy::Full(shape.layers, shape.kv_heads);
  while (true) {  // Some rules do not go together.
    std::string spec = random.Chance(1, 2) ? AnyOptions(random) : "full";
    for (std::uint64_t rules = random.Below(4); rules > 0; --rules) {
      spec += ';' + AnyRange(shape.layers, random);
      if (random.Chance(1, 3)) spec += '.' + AnyRange(shape.kv_heads, random);
      spec += ':' + AnyOptions(random);
    }
    const auto policy = kvcache::CachePolicy::Parse(spec, shape);
    if (policy) return policy.value();
  }
}

}  // namespace kvasir::eval
