#include "model/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/hf_rope.h"

namespace kvasir::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

base::Result<HfConfig> Read(const std::string& members) {
  const auto file = formats::JsonDocument::Parse("{" + members + "}", "c.json");
  EXPECT_TRUE(file.has_value()) << members;
  return ReadHfConfig(file.value());
}

const std::string kGpt2 =
    R"("model_type":"gpt2","n_layer":2,"n_head":3,"n_embd":12,"n_positions":8,"vocab_size":7)";
std::string Llama(const std::string& type) {
  return R"("model_type":")" + type +
         R"(","num_hidden_layers":2,"num_attention_heads":4,"hidden_size":16,)"
         R"("intermediate_size":24,"max_position_embeddings":32,"vocab_size":9)";
}

void Refused(const std::string& members, const std::string& why) {
  const auto read = Read(members);
  ASSERT_FALSE(read.has_value()) << members;
  EXPECT_EQ(read.error().code, base::ErrorCode::kBadData);
  EXPECT_THAT(read.error().message, HasSubstr("c.json"));
  EXPECT_THAT(read.error().message, HasSubstr(why));
}

TEST(HfConfig, Gpt2AndWhatItLeavesOut) {
  const auto config = Read(kGpt2).value();
  const auto& gpt2 = std::get<Gpt2Config>(config.model);
  const Gpt2Config expected = {.layers = 2,
                               .heads = 3,
                               .embedding = 12,
                               .feed_forward = 48,
                               .context = 8,
                               .vocab = 7,
                               .norm_eps = 1e-5f,
                               .tied_head = true};
  EXPECT_EQ(gpt2, expected);
  EXPECT_EQ(config.vocab(), 7u);
  EXPECT_FALSE(config.bos || config.pad);
  EXPECT_TRUE(config.ends.empty());
  const auto other = Read(kGpt2 + R"(,"n_inner":20,"layer_norm_epsilon":1e-6,"eos_token_id":[3,4],)"
                                  R"("tie_word_embeddings":false,"bos_token_id":2,"n_ctx":null,)"
                                  R"("kvasir_untrained_token_ids":[5])")
                         .value();
  EXPECT_EQ(std::get<Gpt2Config>(other.model).feed_forward, 20u);
  EXPECT_EQ(std::get<Gpt2Config>(other.model).norm_eps, 1e-6f);
  EXPECT_FALSE(std::get<Gpt2Config>(other.model).tied_head);
  EXPECT_EQ(other.bos, 2u);
  EXPECT_THAT(other.ends, ElementsAre(3, 4));
  EXPECT_THAT(other.untrained, ElementsAre(5));
}

TEST(HfConfig, FamiliesDifferInWhatTheyHave) {
  const auto of = [](const std::string& type, const std::string& more = "") {
    return std::get<LlamaConfig>(Read(Llama(type) + more).value().model);
  };
  EXPECT_EQ(of("llama").kv_heads, 4u);
  EXPECT_EQ(of("llama").head_dim, 4u);
  EXPECT_EQ(of("llama").norm_eps, 1e-6f);
  EXPECT_EQ(of("llama").rope.pairing, kernels::RopePairing::kNeighbours);
  EXPECT_FALSE(of("llama").qkv_bias || of("llama").head_norms || of("llama").tied_head);
  EXPECT_TRUE(of("qwen2").qkv_bias);
  EXPECT_EQ(of("qwen2").rope.pairing, kernels::RopePairing::kHalves);
  EXPECT_TRUE(of("qwen3").head_norms);
  EXPECT_EQ(of("qwen3").head_dim, 128u);
  EXPECT_EQ(of("qwen3", R"(,"head_dim":8,"num_key_value_heads":2)").head_dim, 8u);
}

TEST(HfConfig, Windows) {
  const auto of = [](const std::string& more) {
    return std::get<LlamaConfig>(Read(Llama("qwen2") + more).value().model).windows;
  };
  EXPECT_TRUE(of(R"(,"sliding_window":5)").empty());
  EXPECT_TRUE(of(R"(,"sliding_window":5,"use_sliding_window":true)").empty());  // From 28 on.
  EXPECT_THAT(of(R"(,"sliding_window":5,"use_sliding_window":true,"max_window_layers":1)"),
              ElementsAre(0, 5));
  EXPECT_THAT(of(R"(,"sliding_window":5,"use_sliding_window":true,"max_window_layers":9,)"
                 R"("layer_types":["sliding_attention","full_attention"])"),
              ElementsAre(5, 0));
  Refused(Llama("qwen2") + R"(,"use_sliding_window":true,"max_window_layers":0)", "sliding_window");
  Refused(Llama("qwen2") + R"(,"layer_types":["full_attention"])", "for 1 layers; there are 2");
  Refused(Llama("qwen2") + R"(,"layer_types":["a","b"])", "holds 'a'");
  Refused(Llama("qwen2") + R"(,"sliding_window":5,"layer_types":["sliding_attention",)"
                           R"("full_attention"])",
          "use_sliding_window is false");
  Refused(Llama("llama") + R"(,"sliding_window":5)", "'sliding_window' is 5");
}

TEST(HfConfig, Rope) {
  const auto of = [](const std::string& more) {
    return std::get<LlamaConfig>(Read(Llama("llama") + more).value().model).rope;
  };
  EXPECT_EQ(of("").base, 10000.0f);
  EXPECT_EQ(of(R"(,"rope_theta":500000.0)").base, 500000.0f);
  EXPECT_EQ(of(R"(,"rope_parameters":{"rope_theta":7,"rope_type":"default"})").base, 7.0f);
  EXPECT_EQ(of(R"(,"rope_scaling":{"type":"linear","factor":4})").factor, 4.0f);
  const auto scaled = of(R"(,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,)"
                         R"("high_freq_factor":4,"original_max_position_embeddings":8192})");
  EXPECT_EQ(scaled.divisors, Llama3Divisors({}, 10000, 4));
  // What is written is read as the same.
  for (const std::string& more :
       {std::string(), std::string(R"(,"rope_theta":123.4)"),
        std::string(R"(,"rope_scaling":{"rope_type":"linear","factor":0.3})"),
        std::string(R"(,"rope_scaling":{"rope_type":"llama3","factor":32,"low_freq_factor":1,)"
                    R"("high_freq_factor":4,"original_max_position_embeddings":8192})")}) {
    const RopeSettings rope = of(more);
    EXPECT_EQ(of("," + HfRopeText(rope).value()), rope) << more;
  }
  RopeSettings odd = of("");
  odd.divisors = {1.5f, 2.5f};
  EXPECT_THAT(HfRopeText(odd).error().message, HasSubstr("rope_freqs.weight"));
  Refused(Llama("llama") + R"(,"rope_scaling":{"rope_type":"yarn"})", "is 'yarn'");
  Refused(Llama("llama") + R"(,"rope_scaling":{"rope_type":"linear"})", "factor is missing");
  Refused(Llama("llama") + R"(,"rope_scaling":{"rope_type":"linear","factor":2,"beta":1})", "beta");
  Refused(Llama("llama") + R"(,"rope_scaling":3)", "must be an object");
  Refused(Llama("llama") + R"(,"rope_theta":0.5)", "rope_theta is 0.5");
}

TEST(HfConfig, RefusesWhatWouldChangeTheAnswer) {
  Refused("", "model_type is missing");
  Refused(R"("model_type":"mamba")", "is 'mamba'");
  Refused(kGpt2 + R"(,"activation_function":"gelu")", "activation_function is 'gelu'");
  Refused(kGpt2 + R"(,"scale_attn_by_inverse_layer_idx":true)", "only false is supported");
  Refused(kGpt2 + R"(,"logit_scale":2)", "'logit_scale' is 2");
  Refused(kGpt2 + R"(,"eos_token_id":-1)", "eos_token_id holds -1");
  Refused(kGpt2 + R"(,"n_layer2":{})", "an object");
  Refused(Llama("llama") + R"(,"hidden_act":"relu")", "only 'silu'");
  Refused(Llama("llama") + R"(,"attention_bias":true)", "attention_bias is true");
  Refused(Llama("llama") + R"(,"head_dim":3)", "head dimension 3");
  EXPECT_TRUE(Read(Llama("llama") + R"(,"attention_bias":false,"partial_rotary_factor":1.0,)"
                                    R"("quantization_config":null,"use_cache":false)")
                  .has_value());
}

}  // namespace
}  // namespace kvasir::model
