#include "model/rope_settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "formats/gguf_writer.h"
#include "kernels/scalar_math.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using formats::GgufWriter;

// rope.… keys of a file with heads of 8 channels; the error's message if it is refused.
struct Outcome {
  RopeSettings rope;
  std::string message;
};

Outcome Read(const std::function<void(GgufWriter&)>& fill) {
  GgufWriter writer;
  writer.Set("general.architecture", "llama");
  fill(writer);
  const auto bytes = writer.Encode().value();
  const auto file = formats::GgufFile::Parse(bytes, "test").value();
  const auto rope = ReadRope(file, "llama", kernels::RopePairing::kNeighbours, 8);
  return rope ? Outcome{rope.value(), ""} : Outcome{{}, rope.error().message};
}

TEST(RopeSettings, NothingSaidIsThePapersRotation) {
  const RopeSettings rope = Read([](auto&) {}).rope;
  EXPECT_EQ(rope.dimensions, 8u);
  const auto frequencies = RopeFrequencies(rope);
  ASSERT_EQ(frequencies.size(), 4u);
  EXPECT_EQ(frequencies[0], 1.0);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(frequencies[i], std::pow(10.0, -static_cast<double>(i)), 1e-14);
  }
}

TEST(RopeSettings, LinearScalingDividesAllFrequencies) {
  const auto typed = Read([](GgufWriter& w) {
    w.Set("llama.rope.scaling.type", "linear");
    w.Set("llama.rope.scaling.factor", 4.0f);
  });
  const auto untyped = Read([](GgufWriter& w) { w.Set("llama.rope.scaling.factor", 4.0f); });
  const auto older = Read([](GgufWriter& w) { w.Set("llama.rope.scale_linear", 4.0f); });
  EXPECT_EQ(typed.message, "");
  EXPECT_EQ(typed.rope.factor, 4.0f);
  EXPECT_EQ(typed.rope, untyped.rope);
  EXPECT_EQ(typed.rope, older.rope);
  EXPECT_EQ(RopeFrequencies(typed.rope)[0], 0.25);
  const auto none = Read([](GgufWriter& w) {
    w.Set("llama.rope.scaling.type", "none");
    w.Set("llama.rope.scaling.factor", 4.0f);
  });
  EXPECT_EQ(none.rope.factor, 1.0f);
}

TEST(RopeSettings, NtkScalingStretchesTheLowestFrequencyAlone) {
  const auto ntk = Read([](GgufWriter& w) {
    w.Set("llama.rope.scaling.type", "ntk");
    w.Set("llama.rope.scaling.factor", 4.0f);
  });
  EXPECT_EQ(ntk.message, "");
  const auto frequencies = RopeFrequencies(ntk.rope);
  EXPECT_EQ(frequencies[0], 1.0);
  EXPECT_NEAR(frequencies[3], 1e-3 / 4, 1e-3 / 4 * 1e-6);  // The base is an f32.
  EXPECT_NEAR(NtkBase(10000, 2, 128), 10000 * std::pow(2.0, 128.0 / 126), 1e-3);
}

TEST(RopeSettings, Llama3ScalingKeepsShortPeriodsAndStretchesLongOnes) {
  const auto llama3 = Read([](GgufWriter& w) {
    w.Set("llama.rope.freq_base", 500000.0f);
    w.Set("llama.rope.scaling.type", "llama3");
    w.Set("llama.rope.scaling.factor", 8.0f);
    w.Set("llama.rope.scaling.low_freq_factor", 1.0f);
    w.Set("llama.rope.scaling.high_freq_factor", 4.0f);
    w.Set("llama.rope.scaling.original_context_length", std::uint32_t{8192});
  });
  ASSERT_EQ(llama3.message, "");
  EXPECT_EQ(llama3.rope.divisors, Llama3Divisors({}, 500000, 8));
  // Llama 3.1's own shape. By the published formula, in other words: wavelength against context.
  const auto divisors = Llama3Divisors({}, 500000, 128);
  std::size_t kept = 0, stretched = 0, blended = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const double wave = 2 * M_PI * std::pow(500000.0, static_cast<double>(i) / 64);
    double expected = 8;
    if (wave < 8192.0 / 4) {
      expected = 1;
      ++kept;
    } else if (wave > 8192.0) {
      ++stretched;
    } else {
      const double smooth = (8192.0 / wave - 1) / (4 - 1);
      expected = 1 / ((1 - smooth) / 8 + smooth);
      ++blended;
    }
    EXPECT_NEAR(divisors[i], expected, expected * 1e-6) << i;
  }
  EXPECT_GT(kept, 20u);
  EXPECT_GT(stretched, 20u);
  EXPECT_GT(blended, 3u);
}

TEST(RopeSettings, TheTensorOfDivisorsIsTaken) {
  const std::vector<float> divisors = {1, 1.5f, 8, 8};
  const auto rope = Read([&](GgufWriter& w) {
    w.AddTensor("rope_freqs.weight", {4}, tensor::DType::kF32,
                tensor::ConvertFromF32(tensor::DType::kF32, divisors));
  });
  EXPECT_EQ(rope.message, "");
  EXPECT_EQ(rope.rope.divisors, divisors);
  EXPECT_NEAR(RopeFrequencies(rope.rope)[1], 0.1 / 1.5, 1e-15);
  const auto part = Read([&](GgufWriter& w) {
    w.Set("llama.rope.dimension_count", std::uint32_t{4});
    w.AddTensor("rope_freqs.weight", {4}, tensor::DType::kF32,
                tensor::ConvertFromF32(tensor::DType::kF32, divisors));
  });
  EXPECT_NE(part.message.find("rope_freqs.weight"), std::string::npos);
  EXPECT_NE(part.message.find("[2]"), std::string::npos) << part.message;
}

TEST(RopeSettings, RefusesByNameAndValue) {
  const auto refused = [](const std::function<void(GgufWriter&)>& fill, const std::string& named) {
    const std::string message = Read(fill).message;
    EXPECT_NE(message.find(named), std::string::npos) << "got: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  };
  const auto set = [](const char* key, auto value) {
    return [key, value](GgufWriter& w) { w.Set(key, value); };
  };
  const float inf = std::numeric_limits<float>::infinity();
  for (float base : {0.0f, -1.0f, NAN, inf, 0.5f, 1e30f}) {
    refused(set("llama.rope.freq_base", base), "llama.rope.freq_base is");
  }
  for (float factor : {0.0f, -2.0f, NAN, inf, 1e-6f, 1e9f}) {
    refused(set("llama.rope.scaling.factor", factor), "llama.rope.scaling.factor is");
    refused(set("llama.rope.scale_linear", factor), "llama.rope.scale_linear is");
  }
  for (std::uint32_t dimensions : {0u, 1u, 3u, 7u, 10u, 4294967295u}) {
    refused(set("llama.rope.dimension_count", dimensions),
            "dimension_count is " + std::to_string(dimensions));
  }
  for (const char* type : {"yarn", "longrope", "dynamic", "su", ""}) {
    refused(set("llama.rope.scaling.type", type), "'" + std::string(type) + "'");
  }
  refused(set("llama.rope.scaling.type", std::uint32_t{1}), "scaling.type");
  refused(set("llama.rope.scaling.attn_factor", 0.5f), "attn_factor is 0.5");
  refused(set("llama.rope.scaling.type", "ntk"), "scaling.factor is missing");
  refused(set("llama.rope.scaling.type", "linear"), "scaling.factor is missing");
  refused(
      [](GgufWriter& w) {
        w.Set("llama.rope.scaling.type", "none");
        w.Set("llama.rope.scaling.attn_factor", 0.5f);
      },
      "attn_factor is 0.5");
  const auto llama3 = [](const char* key, auto value) {
    return [key, value](GgufWriter& w) {
      w.Set("llama.rope.scaling.type", "llama3");
      w.Set("llama.rope.scaling.factor", 8.0f);
      w.Set("llama.rope.scaling.original_context_length", std::uint32_t{8192});
      w.Set(key, value);
    };
  };
  refused(llama3("llama.rope.scaling.factor", 0.5f), "scaling.factor is 0.5");
  refused(llama3("llama.rope.scaling.low_freq_factor", 4.0f), "must exceed");
  refused(llama3("llama.rope.scaling.high_freq_factor", NAN), "high_freq_factor is nan");
  refused(llama3("llama.rope.scaling.original_context_length", std::uint32_t{0}),
          "original_context_length is 0");
  for (float divisor : {0.0f, -1.0f, NAN, inf, 1e-9f}) {
    refused(
        [&](GgufWriter& w) {
          const std::vector<float> divisors = {1, 1, divisor, 1};
          w.AddTensor("rope_freqs.weight", {4}, tensor::DType::kF32,
                      tensor::ConvertFromF32(tensor::DType::kF32, divisors));
        },
        "rope_freqs.weight");
  }
}

// What the limits are for: no angle of accepted settings is beyond the range of sin and cos.
TEST(RopeSettings, NoAcceptedAngleIsTooLarge) {
  RopeSettings rope;
  rope.dimensions = 8;
  rope.base = 1;
  rope.factor = 1.0f / 64;
  rope.divisors = {1.0f / 64, 1, 1, 1};
  ASSERT_TRUE(CheckRope("llama", rope, 8).has_value());
  for (double frequency : RopeFrequencies(rope)) {
    EXPECT_LE(frequency * static_cast<double>(kMaxRopePositions), kernels::kMaxAngle);
  }
}

}  // namespace
}  // namespace kvasir::model
