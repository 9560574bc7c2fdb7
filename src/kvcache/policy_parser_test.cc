// The --kv language: what it means, beside an oracle that applies settings one by one, and what
// each mistake is told.
#include "kvcache/policy_parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "kvcache/policy_rule.h"

namespace kvasir::kvcache {
namespace {

using kernels::KvType;
using ::testing::HasSubstr;

constexpr PolicyShape kLearned = {.layers = 4, .kv_heads = 3, .head_dim = 32};
constexpr PolicyShape kRotary = {.layers = 4, .kv_heads = 3, .head_dim = 32, .rotary = true};
constexpr PolicyShape kLatent = {.layers = 4, .rotary = true, .latent = true};

CachePolicy Parsed(std::string_view spec, const PolicyShape& shape = kLearned) {
  auto policy = CachePolicy::Parse(spec, shape);
  EXPECT_TRUE(policy.has_value()) << spec << ": " << policy.error().message;
  return policy ? policy.value() : CachePolicy::Full(shape.layers, shape.kv_heads);
}

std::string Refused(std::string_view spec, const PolicyShape& shape = kLearned) {
  const auto policy = CachePolicy::Parse(spec, shape);
  EXPECT_FALSE(policy.has_value()) << spec << " gave " << policy.value().Canonical();
  if (policy) return "";
  EXPECT_EQ(policy.error().code, base::ErrorCode::kUsage);
  EXPECT_EQ(policy.error().message.find('\n'), std::string::npos);
  return policy.error().message;
}

TEST(PolicyParser, ReadsTheExampleOfTheHelp) {
  const CachePolicy policy = Parsed("dtype=f16;2-3:dtype=int8,window=64,sinks=4;1.0-1:window=32");
  const HeadPolicy half = {.k = KvType::kF16, .v = KvType::kF16};
  const HeadPolicy narrow = {.k = KvType::kF16, .v = KvType::kF16, .window = 32};
  const HeadPolicy last = {.k = KvType::kInt8, .v = KvType::kInt8, .window = 64, .sinks = 4};
  for (std::uint64_t head = 0; head < 3; ++head) {
    EXPECT_EQ(policy.At(0, head), half);
    EXPECT_EQ(policy.At(1, head), head < 2 ? narrow : half);
    EXPECT_EQ(policy.At(2, head), last);
    EXPECT_EQ(policy.At(3, head), last);
  }
}

TEST(PolicyParser, ReadsEverySetting) {
  EXPECT_TRUE(Parsed("full").IsFull());
  EXPECT_TRUE(Parsed("dtype=f32,full,store=kv").IsFull());
  EXPECT_EQ(Parsed("k=bf16").At(3, 2), (HeadPolicy{.k = KvType::kBf16}));
  EXPECT_EQ(Parsed("v=int4").At(0, 0), (HeadPolicy{.v = KvType::kInt4}));
  EXPECT_EQ(Parsed("dtype=int4,group=32").At(0, 0),
            (HeadPolicy{.k = KvType::kInt4Channel, .v = KvType::kInt4, .group = 32}));
  EXPECT_EQ(Parsed("rotate,k=int8").At(0, 0), (HeadPolicy{.k = KvType::kInt8, .rotate = true}));
  EXPECT_EQ(Parsed("store=hidden").At(1, 1), (HeadPolicy{.store = KvStore::kHidden}));
  EXPECT_EQ(Parsed("0+2-3.1:store=none").At(2, 1), (HeadPolicy{.store = KvStore::kNone}));
  EXPECT_TRUE(Parsed("0+2-3.1:store=none").At(1, 1) == HeadPolicy{});
  EXPECT_TRUE(Parsed("0+2-3.1:store=none").At(2, 0) == HeadPolicy{});
  EXPECT_EQ(Parsed("window=4294967295,sinks=256").At(0, 0).window, kMaxWindow);
  EXPECT_EQ(Parsed("window=5,sinks=0").At(0, 0), (HeadPolicy{.window = 5}));
}

TEST(PolicyParser, LaterRulesOverrideSettingBySetting) {
  EXPECT_EQ(Parsed("window=64,sinks=4;1:window=32").At(1, 0),
            (HeadPolicy{.window = 32, .sinks = 4}));
  EXPECT_EQ(Parsed("window=64,sinks=4,dtype=f16;full").At(0, 0),
            (HeadPolicy{.k = KvType::kF16, .v = KvType::kF16}));
  // A group belongs to its k.
  EXPECT_EQ(Parsed("k=int4,group=32;k=int4").At(0, 0), (HeadPolicy{.k = KvType::kInt4}));
  EXPECT_EQ(Parsed("k=int4;group=64").At(0, 0),
            (HeadPolicy{.k = KvType::kInt4Channel, .group = 64}));
  EXPECT_EQ(Parsed("k=int4,group=32;group=64").At(0, 0),
            (HeadPolicy{.k = KvType::kInt4Channel, .group = 64}));
  EXPECT_EQ(Parsed("k=int4,group=32;dtype=f32").At(0, 0), HeadPolicy{});
  // What is not K and V has neither types nor rotation.
  EXPECT_EQ(Parsed("dtype=int4,group=32,rotate,window=8;2:store=hidden").At(2, 0),
            (HeadPolicy{.window = 8, .store = KvStore::kHidden}));
  EXPECT_EQ(Parsed("dtype=int8,rotate;2.1:store=none").At(2, 1),
            (HeadPolicy{.store = KvStore::kNone}));
  EXPECT_EQ(Parsed("store=none;store=kv,k=f16").At(2, 1), (HeadPolicy{.k = KvType::kF16}));
  // Only the end counts: the window comes later, the contradiction is gone.
  EXPECT_EQ(Parsed("sinks=4;window=64").At(0, 0), (HeadPolicy{.window = 64, .sinks = 4}));
  EXPECT_EQ(Parsed("store=hidden;0.1:store=kv;0:store=none").At(0, 1),
            (HeadPolicy{.store = KvStore::kNone}));
}

struct Mistake {
  std::string_view spec;
  std::string_view message;  // All of it.
};

TEST(PolicyParser, NamesSettingValueRangeAndPlace) {
  const Mistake mistakes[] = {
      {"dtype=f16;2:window=0",
       "window is '0' in 'window=0' at character 13 (rule 2), but must be a number from 1 to "
       "4294967295"},
      {"window=4294967296",
       "window is '4294967296' in 'window=4294967296' at character 1 (rule 1), but must be a "
       "number from 1 to 4294967295"},
      {"window",
       "window is '' in 'window' at character 1 (rule 1), but must be a number from 1 to "
       "4294967295"},
      {"window=-1",
       "window is '-1' in 'window=-1' at character 1 (rule 1), but must be a number from 1 to "
       "4294967295"},
      {"window=64,sinks=257",
       "sinks is '257' in 'sinks=257' at character 11 (rule 1), but must be a number from 0 to "
       "256"},
      {"window=3,sinks=4",
       "'sinks=4' at character 10 (rule 1) is more than 'window=3' at character 1 (rule 1) allows: "
       "at most 3"},
      {"window=8,sinks=4;1:window=3",
       "'sinks=4' at character 10 (rule 1) is more than 'window=3' at character 20 (rule 2) "
       "allows: at most 3"},
      {"sinks=4",
       "'sinks=4' at character 1 (rule 1) needs a window, but there is none: add window=N"},
      {"k=int4,group=0",
       "group is '0' in 'group=0' at character 8 (rule 1), but must be 16, 32, 64, 128 or 256"},
      {"k=int4,group=48",
       "group is '48' in 'group=48' at character 8 (rule 1), but must be 16, 32, 64, 128 or 256"},
      {"k=int8,group=32",
       "'group=32' at character 8 (rule 1) is allowed with k=int4 only, but k is int8"},
      {"v=int4,group=32",
       "'group=32' at character 8 (rule 1) is allowed with k=int4 only, but k is f32"},
      {"dtype=f64",
       "dtype is 'f64' in 'dtype=f64' at character 1 (rule 1), but must be f32, f16, bf16, int8 or "
       "int4"},
      {"k=", "k is '' in 'k=' at character 1 (rule 1), but must be f32, f16, bf16, int8 or int4"},
      {"store=disk",
       "store is 'disk' in 'store=disk' at character 1 (rule 1), but must be kv, hidden or none"},
      {"rotate=1", "'rotate=1' at character 1 (rule 1) is not allowed: rotate takes no value"},
      {"full=1", "'full=1' at character 1 (rule 1) is not allowed: full takes no value"},
      {"full,full", "'full' at character 6 (rule 1) stands in the rule a second time"},
      {"window=64,full",
       "'window=64' at character 1 (rule 1) contradicts 'full' at character 11 (rule 1): a rule "
       "may have one of the two"},
      {"dtype=f16,k=f32",
       "'k=f32' at character 11 (rule 1) sets k a second time in one rule: 'dtype=f16' at "
       "character 1 (rule 1) sets it, too"},
      {"window=8,window=8",
       "'window=8' at character 10 (rule 1) sets window a second time in one rule: 'window=8' at "
       "character 1 (rule 1) sets it, too"},
      {"4:dtype=f16",
       "layer '4' at character 1 (rule 1) is not allowed: the model has layers 0 to 3"},
      {"dtype=f16;0-9:full",
       "layer '9' at character 13 (rule 2) is not allowed: the model has layers 0 to 3"},
      {"1.3:dtype=f16",
       "head '3' at character 3 (rule 1) is not allowed: the model has heads 0 to 2"},
      {"1.0+:dtype=f16",
       "head '' at character 5 (rule 1) is not allowed: the model has heads 0 to 2"},
      {":dtype=f16",
       "layer '' at character 1 (rule 1) is not allowed: the model has layers 0 to 3"},
      {"3-1:full", "the layers '3-1' at character 1 (rule 1) go down, but a range must go up: 1-3"},
      {"99999999999999999999:full",
       "layer '99999999999999999999' at character 1 (rule 1) is not allowed: the model has layers "
       "0 to 3"},
      {"1.0:store=hidden",
       "'store=hidden' at character 5 (rule 1) is for head 0 of layer 1, but head 1 is "
       "'full,dtype=f32': the layer's input serves all of its kv heads, so they all have the same "
       "policy"},
      {"store=hidden,dtype=int8",
       "'dtype=int8' at character 14 (rule 1) does not go with 'store=hidden' at character 1 (rule "
       "1): store=hidden keeps the layer's input in f32, so that K and V are rebuilt exactly"},
      {"store=none;v=f16",
       "'v=f16' at character 12 (rule 2) does not go with 'store=none' at character 1 (rule 1): "
       "store=none keeps nothing that could be rounded: K and V are computed in f32 each time"},
      {"dtype=int8;store=none,rotate",
       "'rotate' at character 23 (rule 2) does not go with 'store=none' at character 12 (rule 2): "
       "store=none keeps nothing that could be rounded: K and V are computed in f32 each time"},
  };
  for (const Mistake& mistake : mistakes) {
    EXPECT_EQ(Refused(mistake.spec), mistake.message) << mistake.spec;
  }
}

TEST(PolicyParser, RefusesWhatIsNoSpec) {
  EXPECT_THAT(Refused(""), HasSubstr("the cache policy is empty"));
  EXPECT_THAT(Refused("dtype=f16;"), HasSubstr("'' at character 11 (rule 2) is an empty rule"));
  EXPECT_THAT(Refused(";dtype=f16"), HasSubstr("'' at character 1 (rule 1) is an empty rule"));
  EXPECT_THAT(Refused("dtype=f16,"),
              HasSubstr("'' at character 11 (rule 1) is not a setting; allowed are dtype=T"));
  EXPECT_THAT(Refused("1:"), HasSubstr("'' at character 3 (rule 1) is not a setting"));
  EXPECT_THAT(Refused("cache=off"), HasSubstr("'cache=off' at character 1 (rule 1) is not"));
  EXPECT_THAT(Refused(" dtype=f16"), HasSubstr("' dtype=f16' at character 1 (rule 1) is not"));
  EXPECT_THAT(Refused("dtype=f16;\n\xff\x01" + std::string(100, 'x')),
              HasSubstr("'\\x0a\\xff\\x01xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…' at character 11"));
  EXPECT_THAT(Refused(std::string(kMaxPolicyChars + 1, ';')),
              HasSubstr("has 1048577 characters, but at most 1048576"));
}

TEST(PolicyParser, RotarySinksGoWithFewerSettings) {
  for (const std::string_view beside : {"k=int4,group=32", "store=hidden", "store=none"}) {
    const std::string spec = fmt::format("window=64,sinks=4,{}", beside);
    EXPECT_EQ(Parsed(spec).At(0, 0).sinks, 4u);
    EXPECT_THAT(Refused(spec, kRotary), HasSubstr("in a model with rotary positions: a rotary"))
        << spec;
  }
  EXPECT_EQ(Parsed("window=64,sinks=4,dtype=int4,rotate", kRotary).At(0, 0).sinks, 4u);
  EXPECT_EQ(Parsed("window=64,store=hidden", kRotary).At(0, 0).window, 64u);
}

TEST(PolicyParser, LatentModelsAreFullAndF32) {
  EXPECT_TRUE(Parsed("full,dtype=f32", kLatent).IsFull());
  EXPECT_TRUE(Parsed("1-2:store=kv", kLatent).IsFull());
  for (const std::string_view spec : {"window=8", "dtype=f16", "k=int4,group=16", "v=int8",
                                      "rotate", "store=hidden", "store=none"}) {
    EXPECT_THAT(Refused(spec, kLatent), HasSubstr("latent attention (MLA) keeps one entry for all "
                                                  "heads, always full and f32"))
        << spec;
  }
  EXPECT_THAT(Refused("1.0:full", kLatent), HasSubstr("head '0' at character 3 (rule 1) is not"));
}

TEST(PolicyParser, ARuleKnowsWhereItsSettingsStand) {
  const PolicyText text = {"dtype=f16;2-3.0+2:v=int8,window=64"};
  const auto parsed = ParsePolicyRule(text, text.spec.substr(10), kLearned);
  ASSERT_TRUE(parsed.has_value());
  const PolicyRule& rule = parsed.value();
  EXPECT_EQ(rule.layers, (IndexRanges{{2, 3}}));
  EXPECT_EQ(rule.heads, (IndexRanges{{0, 0}, {2, 2}}));
  EXPECT_EQ(text.Quote(rule.at[PolicySetting::kV]), "'v=int8' at character 19 (rule 2)");
  EXPECT_EQ(text.Quote(rule.at[PolicySetting::kWindow]), "'window=64' at character 26 (rule 2)");
  EXPECT_FALSE(rule.Names(PolicySetting::kK));
  EXPECT_TRUE(rule.full.empty());
}

// Every setting on its own, as an oracle understands it: a map a head.
struct Oracle {
  std::map<std::string, std::string> settings[4][3];

  void Apply(const std::string& name, const std::string& value, std::size_t layer,
             std::size_t head) {
    auto& map = settings[layer][head];
    if (name == "full") {
      map.erase("window");
      map.erase("sinks");
    } else if (name == "dtype") {
      map["k"] = map["v"] = value;
    } else {
      map[name] = value;
    }
  }
  HeadPolicy At(std::size_t layer, std::size_t head) const {
    const auto& map = settings[layer][head];
    const auto get = [&](const char* name, const char* otherwise) {
      return map.contains(name) ? map.at(name) : std::string(otherwise);
    };
    const auto type = [&](const char* name) {
      const std::string text = get(name, "f32");
      for (const KvType known :
           {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8, KvType::kInt4}) {
        if (kernels::KvTypeName(known) == text) return known;
      }
      ADD_FAILURE() << text;
      return KvType::kF32;
    };
    return {.k = type("k"),
            .v = type("v"),
            .rotate = map.contains("rotate"),
            .window = std::stoull(get("window", "0")),
            .sinks = std::stoull(get("sinks", "0"))};
  }
};

TEST(PolicyParser, RandomRulesAgreeWithTheOracle) {
  constexpr std::uint32_t kSeed = 5;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const auto draw = [&](std::uint32_t count) { return random() % count; };
  const char* const types[] = {"f32", "f16", "bf16", "int8", "int4"};
  for (int trial = 0; trial < 2000; ++trial) {
    Oracle oracle;
    std::string spec;
    for (std::uint32_t rule = 1 + draw(4); rule > 0; --rule) {
      std::vector<std::pair<std::string, std::string>> options;
      if (draw(2))
        options.emplace_back("dtype", types[draw(5)]);
      else if (draw(2))
        options.emplace_back("v", types[draw(5)]);
      if (draw(3) == 0) options.emplace_back("rotate", "");
      if (draw(3) == 0)
        options.emplace_back("window", fmt::to_string(10 + draw(90)));
      else if (draw(3) == 0)
        options.emplace_back("full", "");
      if (options.empty() || draw(4) == 0) options.emplace_back("k", types[draw(5)]);
      if (options.back().first == "k" && options.front().first == "dtype") options.pop_back();
      std::shuffle(options.begin(), options.end(), random);
      const std::uint32_t layer = draw(4), last = layer + draw(4 - layer), head = draw(3);
      const std::uint32_t selector = draw(3);  // None, layers, one head of layers.
      spec += spec.empty() ? "" : ";";
      if (selector > 0) spec += fmt::format("{}-{}", layer, last);
      if (selector == 2) spec += fmt::format(".{}", head);
      for (std::size_t i = 0; i < options.size(); ++i) {
        const auto& [name, value] = options[i];
        spec += i > 0 ? "," : selector > 0 ? ":" : "";
        spec += value.empty() ? name : fmt::format("{}={}", name, value);
        for (std::size_t l = 0; l < 4; ++l) {
          for (std::size_t h = 0; h < 3; ++h) {
            if (selector > 0 && (l < layer || l > last)) continue;
            if (selector == 2 && h != head) continue;
            oracle.Apply(name, value, l, h);
          }
        }
      }
    }
    const CachePolicy policy = Parsed(spec);
    for (std::size_t l = 0; l < 4; ++l) {
      for (std::size_t h = 0; h < 3; ++h) ASSERT_EQ(policy.At(l, h), oracle.At(l, h)) << spec;
    }
    ASSERT_EQ(Parsed(policy.Canonical()), policy) << spec;
  }
}

}  // namespace
}  // namespace kvasir::kvcache
