#include "formats/llama2c_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/philox.h"
#include "formats/raw_llama2c.h"

namespace kvasir::formats {
namespace {

using base::ErrorCode;
using ::testing::HasSubstr;

constexpr Llama2cConfig kSmall = {
    .dim = 8, .hidden_dim = 6, .layers = 2, .heads = 2, .kv_heads = 1, .vocab = 5, .context = 3};

RawBytes Bytes(const Llama2cConfig& config, std::ptrdiff_t more_floats = 0) {
  const auto floats = static_cast<std::ptrdiff_t>(Llama2cFloats(config)) + more_floats;
  return RawLlama2cModel(Llama2cHeader(config), static_cast<std::size_t>(floats),
                         [](std::size_t i) { return static_cast<float>(i); });
}

float FirstNumber(const Llama2cTensor& tensor) {
  float number;
  std::memcpy(&number, tensor.data.data(), sizeof(number));
  return number;
}

std::string Refusal(const RawBytes& bytes) {
  const auto model = Llama2cModel::Parse(bytes, "bad.bin");
  if (model) return "";
  EXPECT_EQ(model.error().code, ErrorCode::kBadData);
  EXPECT_THAT(model.error().message, HasSubstr("bad.bin: "));
  EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
  return model.error().message;
}

// Every tensor begins where the format says: the numbers count up through the file.
TEST(Llama2cModel, TensorsInFileOrder) {
  for (const bool shared : {true, false}) {
    Llama2cConfig config = kSmall;
    config.shared_classifier = shared;
    const RawBytes bytes = Bytes(config);
    const auto model = Llama2cModel::Parse(bytes, "small.bin").value();
    EXPECT_EQ(model.config(), config);
    EXPECT_EQ(model.name(), "small.bin");
    std::size_t at = 0;
    const auto expect = [&](const char* name, std::uint64_t layer, tensor::Shape shape) {
      const Llama2cTensor* tensor = model.Find(name, layer);
      ASSERT_NE(tensor, nullptr) << name;
      EXPECT_EQ(tensor->shape, shape) << name;
      EXPECT_EQ(FirstNumber(*tensor), static_cast<float>(at)) << name << " " << layer;
      at += shape.ElementCount().value();
      EXPECT_EQ(tensor->data.size(), shape.ElementCount().value() * 4);
    };
    const auto expect_layers = [&](const char* name, tensor::Shape shape) {
      for (std::uint64_t layer = 0; layer < 2; ++layer) expect(name, layer, shape);
    };
    expect("token_embedding_table", 0, {5, 8});
    expect_layers("rms_att_weight", {8});
    expect_layers("wq", {8, 8});
    expect_layers("wk", {4, 8});
    expect_layers("wv", {4, 8});
    expect_layers("wo", {8, 8});
    expect_layers("rms_ffn_weight", {8});
    expect_layers("w1", {6, 8});
    expect_layers("w2", {8, 6});
    expect_layers("w3", {6, 8});
    expect("rms_final_weight", 0, {8});
    at += 2 * 3 * 2;  // freq_cis_real, freq_cis_imag: [context, head_dim / 2]
    if (!shared) expect("wcls", 0, {5, 8});
    EXPECT_EQ(28 + 4 * at, bytes.size());
    EXPECT_EQ(model.tensors().size(), 20u + (shared ? 0 : 1));
    EXPECT_EQ(model.Find("wq", 2), nullptr);
    EXPECT_EQ(model.Find("freq_cis_real", 0), nullptr);
    EXPECT_EQ(model.Find("wcls", 0) == nullptr, shared);
  }
}

TEST(Llama2cModel, RefusesBadHeaders) {
  const char* const names[] = {"dim",        "hidden_dim", "n_layers", "n_heads",
                               "n_kv_heads", "vocab_size", "seq_len"};
  for (std::size_t i = 0; i < 7; ++i) {
    for (const std::int32_t value : {0, -1, std::numeric_limits<std::int32_t>::min()}) {
      if (i == 5 && value != 0) continue;
      RawBytes bytes = Bytes(kSmall);
      std::memcpy(bytes.data() + 4 * i, &value, 4);
      const std::string message = Refusal(bytes);
      EXPECT_THAT(message, HasSubstr(std::string(names[i]) + " is " + std::to_string(value)));
    }
  }
  Llama2cConfig config = kSmall;
  config.heads = 3;
  config.kv_heads = 3;
  EXPECT_THAT(Refusal(Bytes(config)), HasSubstr("dim 8 and n_heads 3"));
  config.heads = config.kv_heads = 8;  // One channel a head.
  EXPECT_THAT(Refusal(Bytes(config)), HasSubstr("dim 8 and n_heads 8"));
  config.heads = 4;
  config.kv_heads = 3;
  EXPECT_THAT(Refusal(Bytes(config)), HasSubstr("n_kv_heads 3 does not divide n_heads 4"));
  RawBytes versioned = Bytes(kSmall);
  const std::uint32_t magic = 0x616B3432;
  std::memcpy(versioned.data(), &magic, 4);
  EXPECT_THAT(Refusal(versioned), HasSubstr("version 1 or later"));
}

TEST(Llama2cModel, RefusesAnyOtherSize) {
  const RawBytes whole = Bytes(kSmall);
  EXPECT_EQ(Refusal(whole), "");
  for (std::size_t size = 0; size < whole.size(); size += size < 40 ? 1 : 37) {
    EXPECT_NE(Refusal(RawBytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))),
              "");
  }
  EXPECT_THAT(Refusal(Bytes(kSmall, 1)), HasSubstr("its header asks for"));
  EXPECT_THAT(Refusal(Bytes(kSmall, -1)), HasSubstr("its header asks for"));
  RawBytes one_more = whole;
  one_more.push_back(std::byte{0});
  EXPECT_NE(Refusal(one_more), "");
  // Sums and products beyond 64 bits; nothing of that size is allocated.
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const RawBytes huge =
      RawLlama2cModel({most - 1, most, most, 1, 1, most, most}, 100, [](auto) { return 0; });
  EXPECT_THAT(Refusal(huge), HasSubstr("2^64 or more"));
  const RawBytes large = RawLlama2cModel({2, 2, most, 1, 1, 2, 2}, 100, [](auto) { return 0; });
  EXPECT_THAT(Refusal(large), HasSubstr("its header asks for"));
}

TEST(Llama2cModel, RandomHeadersNeverCrash) {
  constexpr std::uint64_t kSeed = 20261130;
  for (std::uint32_t trial = 0; trial < 5000; ++trial) {
    RawBytes bytes = Bytes(kSmall);
    const auto draw = base::Philox4x32(kSeed, {trial, 0, 0, 0});
    const std::uint32_t value = trial % 2 == 0 ? draw[1] : draw[1] % 16;
    std::memcpy(bytes.data() + 4 * (draw[0] % 7), &value, 4);
    const auto model = Llama2cModel::Parse(bytes, "random.bin");
    if (model) {
      EXPECT_EQ(28 + 4 * Llama2cFloats(model.value().config()), bytes.size());
    }
  }
}

TEST(Llama2cModel, OpensFiles) {
  EXPECT_EQ(Llama2cModel::Open(base::Env::Default(), "/nowhere/model.bin").error().code,
            ErrorCode::kIo);
}

}  // namespace
}  // namespace kvasir::formats
