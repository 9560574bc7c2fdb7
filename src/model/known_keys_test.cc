#include "model/known_keys.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"

namespace kvasir::model {
namespace {

using formats::GgufWriter;
using U = std::uint32_t;

const std::vector<std::string> kArchitectures = {"gpt2", "llama", "qwen2", "qwen3", "deepseek2"};

// The message, empty where the keys are let through. The vocabulary has 7 tokens.
std::string MessageOf(const std::string& architecture,
                      const std::function<void(GgufWriter&)>& fill) {
  GgufWriter writer;
  writer.Set("general.architecture", std::string_view(architecture));
  fill(writer);
  const auto bytes = writer.Encode().value();
  const auto file = formats::GgufFile::Parse(bytes, "test").value();
  const auto result = RefuseOtherKeys(file.metadata(), architecture, 7);
  if (result) return "";
  EXPECT_EQ(result.error().code, base::ErrorCode::kBadData);
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  return result.error().message;
}

std::string MessageOf(const std::string& architecture, const std::string& name, auto value) {
  return MessageOf(architecture,
                   [&](GgufWriter& writer) { writer.Set(architecture + "." + name, value); });
}

void ExpectRefused(const std::string& name, auto value, const std::string& said) {
  for (const std::string& architecture : kArchitectures) {
    const std::string message = MessageOf(architecture, name, value);
    EXPECT_NE(message.find("'" + architecture + "." + name + "'"), std::string::npos)
        << architecture << ", " << name << ", got: " << message;
    EXPECT_NE(message.find(said), std::string::npos) << message;
  }
}

void ExpectTaken(const std::string& name, auto value) {
  for (const std::string& architecture : kArchitectures) {
    EXPECT_EQ(MessageOf(architecture, name, value), "") << architecture;
  }
}

TEST(KnownKeys, OtherFoldersOfKeysAreFree) {
  for (const std::string& architecture : kArchitectures) {
    EXPECT_EQ(MessageOf(architecture,
                        [](GgufWriter& writer) {
                          writer.Set("general.logit_scale", 3.0f);
                          writer.Set("tokenizer.ggml.something", "new");
                          writer.Set("llamas.logit_scale", 3.0f);
                          writer.Set("split.count", U{0});
                        }),
              "");
  }
}

TEST(KnownKeys, WhatNobodyReadsIsRefused) {
  const std::string said = "not supported; it could change the answer";
  ExpectRefused("attention.scale", 0.5f, said);
  ExpectRefused("attention.chunk_size", U{512}, said);
  ExpectRefused("attention.temperature_scale", 0.1f, said);
  ExpectRefused("attention.indexer.top_k", U{2048}, said);
  ExpectRefused("rope.freq_base_swa", 1e4f, said);
  ExpectRefused("rope.dimension_sections", std::vector<bool>{true}, said);
  ExpectRefused("surprise", "yes", "'");
  ExpectRefused("", U{1}, said);
}

TEST(KnownKeys, WhatChangesTheAnswerMustBeNeutral) {
  ExpectRefused("logit_scale", 2.0f, "is 2; only 1 is supported");
  ExpectRefused("logit_scale", 0.0f, "only 1 is supported");
  ExpectRefused("logit_scale", NAN, "only 1 is supported");
  ExpectRefused("residual_scale", 0.22f, "only 1 is supported");
  ExpectRefused("embedding_scale", U{12}, "is 12; only 1 is supported");
  for (const char* name : {"final_logit_softcapping", "attn_logit_softcapping",
                           "attention.clamp_kqv", "attention.max_alibi_bias"}) {
    ExpectRefused(name, 30.0f, "is 30; only 0 is supported");
    ExpectRefused(name, "none", "only 0 is supported");
    ExpectTaken(name, 0.0f);
  }
  ExpectRefused("attention.causal", false, "is false; only true is supported");
  ExpectRefused("attention.causal", U{1}, "only true is supported");
  ExpectRefused("use_parallel_residual", true, "is true; only false is supported");
  ExpectTaken("attention.causal", true);
  ExpectTaken("use_parallel_residual", false);
  ExpectTaken("logit_scale", 1.0f);
  ExpectTaken("residual_scale", U{1});
}

TEST(KnownKeys, AnArchitectureHasItsOwn) {
  EXPECT_NE(MessageOf("gpt2", "rope.freq_base", 1e4f), "");
  EXPECT_NE(MessageOf("gpt2", "attention.sliding_window", U{9}), "");
  EXPECT_NE(MessageOf("gpt2", "expert_count", U{8}), "");
  EXPECT_EQ(MessageOf("gpt2", "expert_count", U{0}), "");
  EXPECT_NE(MessageOf("deepseek2", "attention.sliding_window", U{9}), "");
  EXPECT_EQ(MessageOf("qwen2", "attention.sliding_window", U{9}), "");
  EXPECT_NE(MessageOf("llama", "attention.kv_lora_rank", U{9}), "");
  EXPECT_NE(MessageOf("llama", "expert_shared_count", U{1}), "");
  EXPECT_NE(MessageOf("qwen3", "attention.layer_norm_epsilon", 1e-5f), "");
}

// What published files of these architectures hold besides.
TEST(KnownKeys, HarmlessOnesAreTaken) {
  ExpectTaken("vocab_size", U{7});
  ExpectTaken("expert_used_count", U{0});
  ExpectTaken("pooling_type", U{3});
  ExpectTaken("rope.scaling.finetuned", true);
  ExpectTaken("tensor_data_layout", "Meta AI original pth");
  EXPECT_EQ(MessageOf("qwen2", "rope.scaling.original_context_length", U{32768}), "");
}

TEST(KnownKeys, TheVocabularysSizeMustAgree) {
  for (const std::string& architecture : kArchitectures) {
    EXPECT_EQ(MessageOf(architecture, "vocab_size", U{8}),
              architecture + ".vocab_size is 8; the vocabulary has 7 tokens");
    EXPECT_NE(MessageOf(architecture, "vocab_size", -7), "");
    EXPECT_NE(MessageOf(architecture, "vocab_size", 7.0f), "");
  }
}

}  // namespace
}  // namespace kvasir::model
