#include "kvcache/cache_geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace kvasir::kvcache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CacheGeometry Valid(const CacheGeometryOptions& options) {
  return CacheGeometry::Make(options).value();
}

// The message of the refusal; fails the test if there is none.
std::string Refusal(const CacheGeometryOptions& options) {
  const base::Result<CacheGeometry> result = CacheGeometry::Make(options);
  if (result) {
    ADD_FAILURE() << "accepted";
    return "";
  }
  EXPECT_EQ(result.error().code, base::ErrorCode::kUsage);
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  return result.error().message;
}

TEST(CacheGeometryTest, LessonsModelTakesFourKibibytesAToken) {
  const CacheGeometry lesson = Valid({.layers = 4, .kv_heads = 4, .head_dim = 32});
  EXPECT_EQ(lesson.block_tokens(), 16u);
  EXPECT_EQ(lesson.bytes_per_token(), 4096u);
  EXPECT_EQ(lesson.layer_bytes_per_token(), 1024u);
  EXPECT_EQ(lesson.block_bytes(), 65536u);
  EXPECT_EQ(lesson.bytes_per_token() * 128, 512u * 1024u);
}

// GPT-3 175B: 2 · 96 · 12288 values a token, in f32 twice the 4,718,592 bytes of f16.
TEST(CacheGeometryTest, LargeModels) {
  EXPECT_EQ(Valid({.layers = 96, .kv_heads = 96, .head_dim = 128}).bytes_per_token(),
            2u * 4'718'592u);
  EXPECT_EQ(Valid({.layers = 80, .kv_heads = 8, .head_dim = 128}).bytes_per_token(), 2u * 327'680u);
}

TEST(CacheGeometryTest, LayersFollowEachOtherKBeforeV) {
  const CacheGeometry shape =
      Valid({.layers = 3, .kv_heads = 2, .head_dim = 5, .block_tokens = 32});
  const std::uint64_t part = 2 * 32 * 5 * 4;  // [kv_heads, block_tokens, head_dim] of f32
  for (std::uint64_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(shape.k_offset(layer), 2 * layer * part);
    EXPECT_EQ(shape.v_offset(layer), (2 * layer + 1) * part);
  }
  EXPECT_EQ(shape.block_bytes(), 6 * part);
}

// A head_dim whose rows are no multiple of 64 bytes still leaves every part aligned, unpadded.
TEST(CacheGeometryTest, PartsAreAlignedForEveryHeadDim) {
  for (std::uint64_t head_dim = 1; head_dim <= kMaxHeadDim; ++head_dim) {
    for (const std::uint64_t block_tokens : {16u, 48u, 256u}) {
      const CacheGeometry shape =
          Valid({.layers = 2, .kv_heads = 3, .head_dim = head_dim, .block_tokens = block_tokens});
      ASSERT_EQ(shape.k_offset(1) % 64, 0u);
      ASSERT_EQ(shape.v_offset(0) % 64, 0u);
      ASSERT_EQ(shape.v_offset(1) % 64, 0u);
      ASSERT_EQ(shape.block_bytes() % 64, 0u);
      ASSERT_EQ(shape.block_bytes(), block_tokens * shape.bytes_per_token());
    }
  }
}

// DeepSeek-V2: 512 + 64 values a token and layer, whatever the number of heads; 60 layers.
TEST(CacheGeometryTest, ALatentEntryIsTheLatentAndOneKey) {
  const CacheGeometry deepseek = Valid({.layers = 60, .latent_dim = 512, .rope_dim = 64});
  EXPECT_TRUE(deepseek.is_latent());
  EXPECT_EQ(deepseek.latent_dim(), 512u);
  EXPECT_EQ(deepseek.rope_dim(), 64u);
  EXPECT_EQ(deepseek.kv_heads(), 0u);
  EXPECT_EQ(deepseek.head_dim(), 0u);
  EXPECT_EQ(deepseek.layer_bytes_per_token(), (512u + 64u) * 4u);
  EXPECT_EQ(deepseek.bytes_per_token(), 60u * 576u * 4u);
  EXPECT_FALSE(Valid({.layers = 1, .kv_heads = 1, .head_dim = 1}).is_latent());
}

TEST(CacheGeometryTest, LatentPartsAreAlignedAndUnpaddedForEveryWidth) {
  for (std::uint64_t latent_dim = 1; latent_dim <= kMaxHeadDim; latent_dim += 3) {
    for (const std::uint64_t rope_dim : {0u, 1u, 6u, 64u}) {
      for (const std::uint64_t block_tokens : {16u, 48u, 256u}) {
        const CacheGeometry shape = Valid({.layers = 3,
                                           .block_tokens = block_tokens,
                                           .latent_dim = latent_dim,
                                           .rope_dim = rope_dim});
        const std::uint64_t part = block_tokens * (latent_dim + rope_dim) * 4;
        for (std::uint64_t layer = 0; layer < 3; ++layer) {
          ASSERT_EQ(shape.latent_offset(layer), layer * part);
          ASSERT_EQ(shape.latent_offset(layer) % 64, 0u);
        }
        ASSERT_EQ(shape.block_bytes(), 3 * part);
        ASSERT_EQ(shape.block_bytes(), block_tokens * shape.bytes_per_token());
      }
    }
  }
}

TEST(CacheGeometryTest, BothKindsAtOnceOrBadLatentWidthsAreRefusedByName) {
  for (const std::uint64_t bad :
       std::vector<std::uint64_t>{1025, std::uint64_t{1} << 32, std::uint64_t{1} << 63,
                                  std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_THAT(Refusal({.layers = 1, .latent_dim = bad}),
                AllOf(HasSubstr("latent_dim is " + std::to_string(bad)), HasSubstr("1 to 1024")));
    EXPECT_THAT(Refusal({.layers = 1, .latent_dim = 8, .rope_dim = bad}),
                AllOf(HasSubstr("rope_dim is " + std::to_string(bad)), HasSubstr("0 to 1024")));
  }
  EXPECT_THAT(Refusal({.layers = 1, .kv_heads = 2, .head_dim = 8, .latent_dim = 32}),
              AllOf(HasSubstr("kv_heads 2"), HasSubstr("head_dim 8"), HasSubstr("latent_dim 32")));
  EXPECT_THAT(Refusal({.layers = 1, .head_dim = 8, .latent_dim = 32}), HasSubstr("head_dim 8"));
  EXPECT_THAT(Refusal({.layers = 1, .kv_heads = 2, .head_dim = 8, .rope_dim = 4}),
              AllOf(HasSubstr("rope_dim is 4"), HasSubstr("latent_dim")));
  EXPECT_THAT(Refusal({.layers = 1, .rope_dim = 4}), HasSubstr("kv_heads is 0"));
  // No limits of single widths can make a latent block too large: 1024 · 2048 · 256 · 4 bytes.
  EXPECT_TRUE(CacheGeometry::Make(
                  {.layers = 1024, .block_tokens = 256, .latent_dim = 1024, .rope_dim = 1024})
                  .has_value());
}

TEST(CacheGeometryDeathTest, OffsetsOfTheOtherKind) {
  const CacheGeometry latent = Valid({.layers = 2, .latent_dim = 4, .rope_dim = 2});
  EXPECT_DEATH(latent.k_offset(0), "!is_latent");
  EXPECT_DEATH(latent.v_offset(0), "!is_latent");
  EXPECT_DEATH(latent.latent_offset(2), "layer < layers_");
  const CacheGeometry plain = Valid({.layers = 2, .kv_heads = 1, .head_dim = 4});
  EXPECT_DEATH(plain.latent_offset(0), "is_latent");
}

TEST(CacheGeometryTest, BlocksForRoundsUpAndNeverOverflows) {
  const CacheGeometry shape = Valid({.layers = 1, .kv_heads = 1, .head_dim = 1});
  EXPECT_EQ(shape.BlocksFor(0), 0u);
  EXPECT_EQ(shape.BlocksFor(1), 1u);
  EXPECT_EQ(shape.BlocksFor(16), 1u);
  EXPECT_EQ(shape.BlocksFor(17), 2u);
  EXPECT_EQ(shape.BlocksFor(std::numeric_limits<std::uint64_t>::max()), std::uint64_t{1} << 60);
}

TEST(CacheGeometryTest, AcceptsExactlyTheMultiplesOfSixteenUpTo256) {
  for (std::uint64_t block_tokens = 0; block_tokens <= 300; ++block_tokens) {
    const bool accepted =
        CacheGeometry::Make(
            {.layers = 1, .kv_heads = 1, .head_dim = 1, .block_tokens = block_tokens})
            .has_value();
    EXPECT_EQ(accepted, block_tokens != 0 && block_tokens % 16 == 0 && block_tokens <= 256)
        << block_tokens;
  }
  for (const std::uint64_t block_tokens :
       std::vector<std::uint64_t>{0, 7, 1'000'000'000, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_THAT(Refusal({.layers = 1, .kv_heads = 1, .head_dim = 1, .block_tokens = block_tokens}),
                AllOf(HasSubstr("block_tokens"), HasSubstr(std::to_string(block_tokens)),
                      HasSubstr("multiple of 16 up to 256")));
  }
}

TEST(CacheGeometryTest, AMeasurementMayAskForLargerBlocks) {
  const CacheGeometry whole = Valid(
      {.layers = 2, .kv_heads = 3, .head_dim = 5, .block_tokens = 4096, .max_block_tokens = 4096});
  EXPECT_EQ(whole.block_bytes(), 4096 * whole.bytes_per_token());
  EXPECT_EQ(whole.BlocksFor(4097), 2u);
  EXPECT_THAT(Refusal({.layers = 2,
                       .kv_heads = 3,
                       .head_dim = 5,
                       .block_tokens = 4112,
                       .max_block_tokens = 4096}),
              HasSubstr("block_tokens is 4112, but must be a multiple of 16 up to 4096"));
}

// Case C139: zero heads, an unbounded layer count or a product that wraps may come from a file.
TEST(CacheGeometryTest, RefusalsNameTheSettingAndTheLimit) {
  for (const std::uint64_t bad : std::vector<std::uint64_t>{
           0, 1025, std::uint64_t{1} << 31, std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 1,
           std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()}) {
    const auto names = [bad](const char* setting) {
      return AllOf(HasSubstr(setting), HasSubstr(std::to_string(bad)), HasSubstr("1 to 1024"));
    };
    EXPECT_THAT(Refusal({.layers = bad, .kv_heads = 4, .head_dim = 32}), names("layers"));
    EXPECT_THAT(Refusal({.layers = 4, .kv_heads = bad, .head_dim = 32}), names("kv_heads"));
    EXPECT_THAT(Refusal({.layers = 4, .kv_heads = 4, .head_dim = bad}), names("head_dim"));
  }
}

TEST(CacheGeometryTest, EachLimitIsAllowedButNotAllTogether) {
  EXPECT_TRUE(CacheGeometry::Make({.layers = 1024, .kv_heads = 1024, .head_dim = 128}).has_value());
  const CacheGeometry most =
      Valid({.layers = 1024, .kv_heads = 1024, .head_dim = 1024, .block_tokens = 128});
  EXPECT_EQ(most.block_bytes(), kMaxBlockBytes);
  EXPECT_THAT(Refusal({.layers = 1024, .kv_heads = 1024, .head_dim = 1024, .block_tokens = 144}),
              AllOf(HasSubstr("layers 1024"), HasSubstr("block_tokens 144"),
                    HasSubstr(std::to_string(kMaxBlockBytes))));
}

TEST(CacheGeometryDeathTest, ALayerThatDoesNotExistHasNoOffset) {
  const CacheGeometry shape = Valid({.layers = 2, .kv_heads = 1, .head_dim = 1});
  EXPECT_DEATH(shape.k_offset(2), "layer < layers_");
  EXPECT_DEATH(shape.v_offset(2), "layer < layers_");
}

TEST(CacheGeometryTest, EqualShapesAreEqual) {
  const CacheGeometryOptions options = {.layers = 2, .kv_heads = 1, .head_dim = 8};
  EXPECT_EQ(Valid(options), Valid(options));
  CacheGeometryOptions other = options;
  other.block_tokens = 32;
  EXPECT_NE(Valid(options), Valid(other));
  const CacheGeometryOptions latent = {.layers = 2, .latent_dim = 12, .rope_dim = 4};
  EXPECT_EQ(Valid(latent), Valid(latent));
  EXPECT_EQ(Valid(options).bytes_per_token(), Valid(latent).bytes_per_token());
  EXPECT_NE(Valid(options), Valid(latent));  // As many bytes, but not the same ones.
}

}  // namespace
}  // namespace kvasir::kvcache
