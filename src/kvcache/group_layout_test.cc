// What a policy makes of the cache's layout: what is kept, where it lies, how many bytes it takes,
// what a copy of a block takes along.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "kvcache/block_copy.h"
#include "kvcache/cache_geometry.h"
#include "kvcache/group_test_bytes.h"

namespace kvasir::kvcache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr PolicyShape kShape = {.layers = 4, .kv_heads = 4, .head_dim = 32};  // The lesson's.

CacheGeometryOptions Options(const std::string& spec, std::uint64_t block_tokens = 16,
                             const PolicyShape& shape = kShape) {
  return {.layers = shape.layers,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .block_tokens = block_tokens,
          .hidden_dim = 128,
          .policy = CachePolicy::Parse(spec, shape).value()};
}
CacheGeometry Make(const std::string& spec, std::uint64_t block_tokens = 16) {
  return CacheGeometry::Make(Options(spec, block_tokens)).value();
}
std::string Refusal(const CacheGeometryOptions& options) {
  const auto made = CacheGeometry::Make(options);
  EXPECT_FALSE(made.has_value());
  return made ? "" : made.error().message;
}

const char* const kSpecs[] = {
    "full",
    "window=20,sinks=3",
    "0:window=5;2.1-2:window=9,dtype=f16",
    "dtype=bf16;1:k=int8;2:v=int4",
    "k=int4,group=16,v=int8;3:k=int4,group=32,window=40",
    "0-1:store=hidden,window=64;2.0:dtype=int4",
    "0:store=none;1.2:window=3",
};
// An odd head size, whose parts need padding, and half the lesson's width.
const PolicyShape kShapes[] = {kShape, {.layers = 4, .kv_heads = 3, .head_dim = 5}};

// ------------------------------------------------------------------ what is kept

// By the words of the design: a query at t sees max(0, t − W + 1) … t and the sinks; keys of its
// own group of positions in full precision.
bool Sees(const Retention& keep, std::uint64_t t, std::uint64_t p) {
  if (keep.tail != 0) return p / keep.tail == t / keep.tail;
  return keep.window == 0 || p < keep.sinks || p >= (t < keep.window ? 0 : t - keep.window + 1);
}

TEST(RetentionTest, IsWhatTheNextQuerySees) {
  std::vector<Retention> all = {{}, {.tail = 16}, {.tail = 32}};
  for (const std::uint64_t window : {1u, 2u, 15u, 16u, 17u, 40u}) {
    for (const std::uint64_t sinks : {0u, 1u, 16u, 17u}) {
      if (sinks <= window) all.push_back({.window = window, .sinks = sinks});
    }
  }
  for (const Retention& keep : all) {
    EXPECT_EQ(keep.KeepsAll(), keep == Retention{});
    for (std::uint64_t length = 0; length <= 130; ++length) {
      Retention without_sinks = keep;
      without_sinks.sinks = 0;
      std::uint64_t first = 0;
      while (!Sees(without_sinks, length, first)) ++first;
      ASSERT_EQ(keep.FirstNeeded(length), first) << keep.window << " " << length;
      for (const std::uint64_t block : {16u, 32u, 48u}) {
        for (std::uint64_t entry = 0; entry < 9; ++entry) {
          bool needed = length / block == entry && length % block != 0;
          for (std::uint64_t p = entry * block; p < std::min(length, (entry + 1) * block); ++p) {
            needed = needed || Sees(keep, length, p);
          }
          ASSERT_EQ(keep.NeedsBlock(entry, length, block), needed)
              << keep.window << " " << keep.sinks << " " << keep.tail << " " << length;
        }
      }
    }
  }
}

TEST(GroupLayoutTest, PartsThatKeepTheSamePositionsShareAGroup) {
  const CacheGeometry mixed = Make("0:window=9;1:window=9,dtype=f16;2.1-2:window=9,sinks=1");
  ASSERT_EQ(mixed.groups().size(), 3u);
  EXPECT_FALSE(mixed.KeepsAll());
  EXPECT_EQ(mixed.groups()[0].retention, (Retention{.window = 9}));
  EXPECT_EQ(mixed.parts(0)[0].group, mixed.parts(1)[0].group);
  ASSERT_EQ(mixed.parts(2).size(), 3u);  // Heads 0, 1 and 2, 3.
  EXPECT_EQ(mixed.parts(2)[1].first_head, 1u);
  EXPECT_EQ(mixed.parts(2)[1].heads, 2u);
  EXPECT_EQ(mixed.parts(2)[0].group, mixed.parts(2)[2].group);
  EXPECT_EQ(mixed.parts(2)[0].group, mixed.parts(3)[0].group);
  EXPECT_NE(mixed.parts(2)[0].group, mixed.parts(2)[1].group);
  EXPECT_TRUE(Make("dtype=int8;1:k=int4").KeepsAll());
  EXPECT_NE(Make("window=9"), Make("window=10"));
  EXPECT_NE(Make("dtype=f16"), Make("dtype=bf16"));  // As many bytes.
}

TEST(GroupLayoutTest, WhatIsNotStoredHasNoGroup) {
  const CacheGeometry none = Make("store=none");
  EXPECT_TRUE(none.groups().empty());
  EXPECT_FALSE(none.KeepsAll());
  EXPECT_EQ(none.block_bytes(), 0u);
  EXPECT_EQ(none.HeldBytes(1000), 0u);
  EXPECT_EQ(none.replayed_layers(), 4u);
  const CacheGeometry lowest = Make("0.2:store=none");
  EXPECT_EQ(lowest.replayed_layers(), 1u);
  EXPECT_EQ(lowest.groups().size(), 1u);
  EXPECT_FALSE(lowest.parts(0)[1].group);
  EXPECT_EQ(Make("full").replayed_layers(), 0u);
}

// ------------------------------------------------------------------ where it lies

TEST(GroupLayoutTest, EveryByteOfABlockIsOfOnePositionOrPadding) {
  for (const char* spec : kSpecs) {
    for (const PolicyShape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << spec << " " << shape.head_dim);
      const CacheGeometry geometry = CacheGeometry::Make(Options(spec, 64, shape)).value();
      const SlotBytes bytes(geometry);
      std::vector<std::vector<int>> owners;
      for (const CacheGroup& group : geometry.groups()) {
        EXPECT_EQ(group.block_bytes % 64, 0u);
        owners.emplace_back(group.block_bytes);
      }
      std::vector<int> heads(shape.layers * shape.kv_heads);
      const auto mark = [&](const CachePart& part, SlotKind kind, CacheGroupId group) {
        for (std::size_t slot = 0; slot < 64; ++slot) {
          bytes.ForEach(part, kind, slot, [&](std::size_t at, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) ++owners[group.index()].at(at + i);
          });
        }
      };
      for (const CachePart& part : geometry.all_parts()) {
        for (std::uint32_t h = 0; h < part.heads; ++h) {
          ++heads[part.layer * shape.kv_heads + part.first_head + h];
        }
        if (!part.group) continue;
        EXPECT_EQ((part.k_offset | part.v_offset | part.k_scale_offset) % 64, 0u);
        EXPECT_EQ((part.tail_offset | part.row_offset) % 64, 0u);
        mark(part, SlotKind::kStored, *part.group);
        if (!part.tail_group) continue;
        mark(part, SlotKind::kRounded, *part.group);
        mark(part, SlotKind::kTail, *part.tail_group);
      }
      EXPECT_THAT(heads, testing::Each(1));  // In one part.
      std::size_t padding = 0;
      for (const std::vector<int>& of_block : owners) {
        EXPECT_LE(*std::max_element(of_block.begin(), of_block.end()), 1);
        padding += static_cast<std::size_t>(std::ranges::count(of_block, 0));
      }
      EXPECT_LT(padding, geometry.all_parts().size() * 4 * 64);
      if (shape.head_dim == 32) {
        EXPECT_EQ(padding, 0u);
      }
    }
  }
}

TEST(GroupLayoutTest, BlockBytesOfPartsAddUp) {
  for (const char* spec : kSpecs) {
    const CacheGeometry geometry = Make(spec, 32);
    std::vector<std::uint64_t> sums(geometry.groups().size());
    for (const CachePart& part : geometry.all_parts()) {
      if (part.group) sums[part.group->index()] += part.block_bytes;
      if (part.tail_group) sums[part.tail_group->index()] += part.tail_block_bytes;
    }
    std::uint64_t all = 0;
    for (std::size_t g = 0; g < sums.size(); ++g) {
      EXPECT_EQ(sums[g], geometry.groups()[g].block_bytes) << spec;
      all += sums[g];
    }
    EXPECT_EQ(geometry.block_bytes(), all);
  }
}

// ------------------------------------------------------------------ how many bytes

// The lesson's model: 4 layers · 128 numbers of K and of V a position.
TEST(GroupLayoutTest, BytesOfEveryType) {
  constexpr std::uint64_t kNumbers = 4 * 128 * 2;
  EXPECT_EQ(Make("full").bytes_per_token(), kNumbers * 4);
  EXPECT_EQ(Make("dtype=f16").bytes_per_token(), kNumbers * 2);
  EXPECT_EQ(Make("dtype=bf16").bytes_per_token(), kNumbers * 2);
  EXPECT_EQ(Make("dtype=int8").bytes_per_token() * 16, kNumbers * 17);  // 8.5 bits
  EXPECT_EQ(Make("dtype=int4").bytes_per_token() * 8, kNumbers * 5);    // 5 bits
  EXPECT_EQ(Make("store=hidden").bytes_per_token() * 100, kNumbers * 4 * 50);
  EXPECT_LE(Make("store=hidden").HeldBytes(128) * 100, Make("full").HeldBytes(128) * 52);
}

// 4 + 32 / G bits, and the tail in f32: its block stays until its last group is complete.
TEST(GroupLayoutTest, BytesOfKeysByChannel) {
  const CacheGeometry geometry = Make("k=int4,group=32,v=int4", 64);
  ASSERT_EQ(geometry.groups().size(), 2u);
  const std::uint64_t rounded = geometry.groups()[0].block_bytes;
  const std::uint64_t tail = geometry.groups()[1].block_bytes;
  EXPECT_EQ(rounded * 8, 64u * 4 * (128 * 5 + 128 * 5));
  EXPECT_EQ(tail, 64u * 4 * 128 * 4);
  EXPECT_EQ(geometry.groups()[1].retention, (Retention{.tail = 32}));
  EXPECT_EQ(geometry.HeldBytes(64), rounded);
  EXPECT_EQ(geometry.HeldBytes(65), 2 * rounded + tail);
  EXPECT_EQ(geometry.HeldBytes(96), 2 * rounded + tail);  // The next key goes there.
  EXPECT_EQ(geometry.HeldBytes(128), 2 * rounded);
}

std::uint64_t NeededBlocks(const Retention& keep, std::uint64_t length, std::uint64_t block) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i * block < length; ++i) {
    count += keep.NeedsBlock(i, length, block) ? 1 : 0;
  }
  return count;
}

TEST(GroupLayoutTest, HeldBytesCountBlockByBlock) {
  for (const char* spec : kSpecs) {
    for (const std::uint64_t block : {32u, 64u}) {
      const CacheGeometry geometry = Make(spec, block);
      for (std::uint64_t length = 0; length <= 300; ++length) {
        std::uint64_t bytes = 0;
        for (const CacheGroup& group : geometry.groups()) {
          bytes += NeededBlocks(group.retention, length, block) * group.block_bytes;
        }
        ASSERT_EQ(geometry.HeldBytes(length), bytes) << spec << " " << length;
      }
    }
  }
}

// A step holds what is needed at its start and the blocks of its own positions.
TEST(GroupLayoutTest, PeakBytesAreEnoughAndNotMuchMore) {
  for (const char* spec : kSpecs) {
    const CacheGeometry geometry = Make(spec, 32);
    for (const std::uint64_t step : {1u, 7u, 32u, 50u, 400u}) {
      for (std::uint64_t length = 1; length <= 300; length += 13) {
        std::uint64_t peak = 0;
        std::vector<std::uint64_t> peaks(geometry.groups().size());
        for (std::uint64_t from = 0; from < length; ++from) {
          std::uint64_t bytes = 0;
          for (std::size_t g = 0; g < peaks.size(); ++g) {
            const std::uint64_t blocks = NeededBlocks(geometry.groups()[g].retention, from, 32) +
                                         geometry.BlocksFor(std::min(length, from + step)) -
                                         geometry.BlocksFor(from);
            peaks[g] = std::max(peaks[g], blocks);
            bytes += blocks * geometry.groups()[g].block_bytes;
          }
          peak = std::max(peak, bytes);
        }
        std::uint64_t most = 0;
        for (std::size_t g = 0; g < peaks.size(); ++g) {
          most +=
              std::min(peaks[g] + 2, geometry.BlocksFor(length)) * geometry.groups()[g].block_bytes;
        }
        ASSERT_GE(geometry.PeakBytes(length, step), peak) << spec << " " << step << " " << length;
        ASSERT_LE(geometry.PeakBytes(length, step), most) << spec << " " << step << " " << length;
      }
    }
  }
}

// ------------------------------------------------------------------ what is refused

TEST(GroupLayoutTest, RefusalsNameTheSetting) {
  EXPECT_THAT(Refusal(Options("k=int4,group=32", 48)),
              AllOf(HasSubstr("block_tokens is 48"), HasSubstr("group=32")));
  EXPECT_THAT(Refusal(Options("0:k=int4,group=256", 128)), HasSubstr("group=256"));
  EXPECT_TRUE(CacheGeometry::Make(Options("k=int4,group=16", 48)).has_value());
  CacheGeometryOptions hidden = Options("1:store=hidden");
  hidden.hidden_dim = 0;
  EXPECT_THAT(Refusal(hidden), AllOf(HasSubstr("hidden_dim is 0"), HasSubstr("1 to 1048576")));
  hidden.hidden_dim = kMaxHiddenDim + 1;
  EXPECT_THAT(Refusal(hidden), HasSubstr("hidden_dim is 1048577"));
  hidden.policy = CachePolicy::Full(4, 4);  // Nobody asks for it then.
  EXPECT_TRUE(CacheGeometry::Make(hidden).has_value());
}

TEST(GroupLayoutTest, ALatentCacheKnowsOnlyTheFullPolicy) {
  CacheGeometryOptions latent = {.layers = 2, .latent_dim = 8, .rope_dim = 4};
  latent.policy = CachePolicy::Full(2, 0);
  EXPECT_TRUE(CacheGeometry::Make(latent).has_value());
  std::vector<HeadPolicy> heads(2);
  heads[1].window = 7;
  latent.policy = CachePolicy::Of(2, 0, heads);
  EXPECT_THAT(Refusal(latent), AllOf(HasSubstr("window=7"), HasSubstr("MLA")));
}

TEST(GroupLayoutDeathTest, APolicyOfAnotherShape) {
  CacheGeometryOptions options = Options("window=5");
  options.layers = 3;
  EXPECT_DEATH((void)CacheGeometry::Make(options), "policy.layers");
}

// ------------------------------------------------------------------ what a copy takes along

TEST(GroupCopyTest, FilledSlotsOfEveryTypeAndNoOtherTiles) {
  for (const char* spec : kSpecs) {
    for (const PolicyShape& shape : kShapes) {
      const CacheGeometry geometry = CacheGeometry::Make(Options(spec, 32, shape)).value();
      const SlotBytes bytes(geometry);
      for (std::uint32_t g = 0; g < geometry.groups().size(); ++g) {
        for (std::uint32_t slots = 0; slots <= 32; ++slots) {
          SCOPED_TRACE(testing::Message() << spec << " group " << g << " slots " << slots);
          const std::size_t size = geometry.groups()[g].block_bytes;
          base::AlignedArray<std::byte> from(size);
          base::AlignedArray<std::byte> to(size);  // Zeros.
          std::memset(from.data(), 0xAB, size);
          CopySlots(geometry, CacheGroupId(g), slots, from.data(), to.data());
          const auto copied = [&](const CachePart& part, SlotKind kind, std::size_t slot) {
            std::size_t zeros = 0;
            std::size_t all = 0;
            bytes.ForEach(part, kind, slot, [&](std::size_t at, std::size_t count) {
              all += count;
              zeros += static_cast<std::size_t>(
                  std::count(to.data() + at, to.data() + at + count, std::byte{0}));
            });
            return zeros == 0     ? std::optional(true)
                   : zeros == all ? std::optional(false)
                                  : std::nullopt;
          };
          for (const CachePart& part : geometry.all_parts()) {
            for (std::size_t slot = 0; slot < 32; ++slot) {
              const bool in_tile = slot < (slots + 15) / 16 * 16;
              const auto expect = [&](SlotKind kind, bool must) {
                const std::optional<bool> is = copied(part, kind, slot);
                if (must) {
                  ASSERT_EQ(is, true) << "slot " << slot;
                } else if (!in_tile) {
                  ASSERT_EQ(is, false) << "slot " << slot;
                }
              };
              if (part.group == CacheGroupId(g)) expect(SlotKind::kStored, slot < slots);
              if (part.tail_group == CacheGroupId(g)) expect(SlotKind::kTail, slot < slots);
              if (!part.tail_group || part.group != CacheGroupId(g)) continue;
              const std::size_t group = part.policy.group;
              expect(SlotKind::kRounded, slot / group < slots / group);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::kvcache
