#include "model/llama2c_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "formats/raw_llama2c.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using ::testing::HasSubstr;
using tokenizer::TokenType;

constexpr formats::Llama2cConfig kSmall = {
    .dim = 8, .hidden_dim = 6, .layers = 2, .heads = 2, .kv_heads = 1, .vocab = 5, .context = 3};

formats::RawBytes Bytes(const formats::Llama2cConfig& config) {
  return formats::RawLlama2cModel(Llama2cHeader(config), Llama2cFloats(config),
                                  [](std::size_t i) { return static_cast<float>(i) / 8; });
}

TEST(Llama2cReader, Config) {
  const LlamaConfig config = ConfigOfLlama2c(kSmall).value();
  EXPECT_EQ(config.family, LlamaFamily::kLlama);
  EXPECT_EQ(config.layers, 2u);
  EXPECT_EQ(config.heads, 2u);
  EXPECT_EQ(config.kv_heads, 1u);
  EXPECT_EQ(config.head_dim, 4u);
  EXPECT_EQ(config.embedding, 8u);
  EXPECT_EQ(config.feed_forward, 6u);
  EXPECT_EQ(config.context, 3u);
  EXPECT_EQ(config.vocab, 5u);
  EXPECT_EQ(config.norm_eps, 1e-5F);
  EXPECT_TRUE(config.tied_head);
  EXPECT_FALSE(config.qkv_bias);
  EXPECT_EQ(config.rope.base, 10000);
  EXPECT_EQ(config.rope.dimensions, 4u);
  EXPECT_EQ(config.rope.pairing, kernels::RopePairing::kNeighbours);
  formats::Llama2cConfig deep = kSmall;
  deep.layers = 1000;
  EXPECT_THAT(ConfigOfLlama2c(deep).error().message, HasSubstr("block_count is 1000"));
}

// Every tensor of the config finds its numbers, and each of the file's is asked for once.
TEST(Llama2cReader, Tensors) {
  for (const bool shared : {true, false}) {
    formats::Llama2cConfig shape = kSmall;
    shape.shared_classifier = shared;
    const formats::RawBytes bytes = Bytes(shape);
    const auto file = formats::Llama2cModel::Parse(bytes, "small.bin").value();
    const TensorSource source = SourceOfLlama2c(file);
    std::size_t tensors = 0;
    for (const TensorSpec& spec : LlamaTensors(ConfigOfLlama2c(shape).value())) {
      EXPECT_EQ(source(spec).value().size(), spec.shape.ElementCount().value());
      ++tensors;
    }
    EXPECT_EQ(tensors, file.tensors().size());
    const auto first = [&](const char* name, tensor::Shape tensor_shape) {
      return source({name, tensor_shape}).value().front() * 8;
    };
    EXPECT_EQ(first("token_embd.weight", {5, 8}), 0);
    EXPECT_EQ(first("blk.1.attn_norm.weight", {8}), 48);
    EXPECT_EQ(first("blk.0.attn_q.weight", {8, 8}), 56);
    EXPECT_EQ(first("blk.1.attn_k.weight", {4, 8}), 56 + 128 + 32);
    // w1, w2, w3 are gate, down, up.
    const float w1 = first("blk.0.ffn_gate.weight", {6, 8});
    EXPECT_EQ(first("blk.0.ffn_down.weight", {8, 6}), w1 + 96);
    EXPECT_EQ(first("blk.0.ffn_up.weight", {6, 8}), w1 + 192);
  }
}

TEST(Llama2cReader, RefusesNumbersThatAreNotFinite) {
  formats::RawBytes bytes = Bytes(kSmall);
  const float poison = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + 28 + 4 * 50, &poison, 4);  // rms_att_weight of layer 1
  const auto file = formats::Llama2cModel::Parse(bytes, "small.bin").value();
  const auto values = SourceOfLlama2c(file)({"blk.1.attn_norm.weight", {8}});
  ASSERT_FALSE(values.has_value());
  EXPECT_EQ(values.error().code, ErrorCode::kBadData);
  EXPECT_EQ(values.error().message,
            "'small.bin': rms_att_weight of layer 1 holds a number that is not finite");
}

formats::Llama2cTokenizer Tokens() {
  return {{"<unk>", "\n<s>\n", "\n</s>\n", "<0x41>", " a b", "", "<0x4>", "<0xag>"},
          {0, 0, 0, 0, -1, -2, -3, -4}};
}

TEST(Llama2cReader, Vocabulary) {
  const auto spec = VocabularyOfLlama2c(Tokens(), 8).value();
  EXPECT_EQ(spec.pieces, (std::vector<std::string>{"<unk>", "<s>", "</s>", "<0x41>", "▁a▁b", "",
                                                   "<0x4>", "<0xag>"}));
  EXPECT_EQ(spec.types,
            (std::vector<TokenType>{TokenType::kUnknown, TokenType::kControl, TokenType::kControl,
                                    TokenType::kByte, TokenType::kNormal, TokenType::kUnused,
                                    TokenType::kNormal, TokenType::kNormal}));
  EXPECT_EQ(spec.scores, Tokens().scores);
  EXPECT_EQ(spec.bos, 1u);
  EXPECT_EQ(spec.eos, 2u);
  EXPECT_EQ(spec.eot, 1u);
  EXPECT_EQ(spec.unk, 0u);
  EXPECT_TRUE(spec.add_bos);
  EXPECT_TRUE(spec.add_space_prefix);
  EXPECT_FALSE(spec.add_eos);
  const auto vocabulary = tokenizer::Vocabulary::Make(spec).value();
  EXPECT_EQ(vocabulary.Bytes(4), " a b");
}

TEST(Llama2cReader, RefusesAnotherNumberOfTokens) {
  const auto message = [](std::uint64_t vocab) {
    const auto spec = VocabularyOfLlama2c(Tokens(), vocab);
    EXPECT_EQ(spec.error().code, ErrorCode::kBadData);
    return spec.error().message;
  };
  EXPECT_EQ(message(7),
            "the tokenizer has 8 tokens, more than the model's 7; they must be as many");
  EXPECT_EQ(message(32000),
            "the tokenizer has 8 tokens, fewer than the model's 32000; they must be as many");
  EXPECT_THAT(VocabularyOfLlama2c({{"a", "b"}, {0, 0}}, 2).error().message,
              HasSubstr("2 tokens; needed are unknown, start and end"));
}

}  // namespace
}  // namespace kvasir::model
