// Files of the Llama family: good ones to the bit, bad ones by one line.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "base/faulty_env.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "model/file_tensors.h"
#include "model/llama_reader.h"
#include "model/model_file.h"
#include "model/model_test_util.h"
#include "model/vocabulary_reader.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using formats::GgufWriter;

LlamaConfig Changed(const std::function<void(LlamaConfig&)>& change) {
  LlamaConfig config = TestLlamaConfig();
  change(config);
  return config;
}

class LlamaFileTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/llama_file_test_" + std::to_string(getpid()) + ".gguf";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // What TestLlamaConfig's file must have, and no more.
  static void SetMetadata(GgufWriter& writer, const std::string& architecture) {
    writer.Set("general.architecture", std::string_view(architecture));
    const auto set = [&](const char* name, std::uint32_t value) {
      writer.Set(architecture + "." + name, value);
    };
    set("context_length", 48);
    set("embedding_length", 24);
    set("block_count", 2);
    set("feed_forward_length", 40);
    set("attention.head_count", 4);
    set("attention.head_count_kv", 2);
    set("attention.key_length", 10);
    writer.Set(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
    WriteVocabulary(TestVocabulary(), writer);
  }
  static void AddTensors(GgufWriter& writer, const LlamaConfig& shapes,
                         const std::string& dropped = "", const std::string& poisoned = "") {
    const TensorSource source = RandomSource(0.3f);
    for (const TensorSpec& spec : LlamaTensors(shapes)) {
      if (spec.name == dropped) continue;
      const auto values = source(spec).value();
      std::vector<float> copy(values.begin(), values.end());
      if (spec.name == poisoned) copy[5] = std::numeric_limits<float>::infinity();
      writer.AddTensor(spec.name, spec.shape, tensor::DType::kF32,
                       tensor::ConvertFromF32(tensor::DType::kF32, copy));
    }
  }
  void Write(const std::function<void(GgufWriter&)>& change,
             const LlamaConfig& shapes = TestLlamaConfig(), const std::string& dropped = "",
             const std::string& poisoned = "") {
    GgufWriter writer;
    SetMetadata(writer, std::string(ArchitectureName(shapes.family)));
    AddTensors(writer, shapes, dropped, poisoned);
    change(writer);
    ASSERT_TRUE(writer.Write(base::Env::Default(), path_).has_value());
  }

  std::unique_ptr<LlamaModel> Load() {
    const auto file = formats::GgufFile::Open(base::Env::Default(), path_).value();
    const auto architecture = file.metadata().GetString("general.architecture").value();
    for (LlamaFamily family : {LlamaFamily::kLlama, LlamaFamily::kQwen2, LlamaFamily::kQwen3}) {
      if (architecture != ArchitectureName(family)) continue;
      auto model = ReadLlama(file, family, TestVocabulary().pieces.size());
      EXPECT_TRUE(model.has_value()) << model.error().message;
      return model ? std::move(model.value()) : nullptr;
    }
    return nullptr;
  }
  void ExpectRefusal(const std::string& named) {
    const auto result = LoadModel(base::Env::Default(), path_);
    const std::string message = result ? std::string() : result.error().message;
    EXPECT_NE(message.find(named), std::string::npos) << named << ", got: " << message;
    EXPECT_NE(message.find(path_), std::string::npos) << "got: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  void ExpectRefused(const std::function<void(GgufWriter&)>& change, const std::string& named) {
    Write(change);
    ExpectRefusal(named);
  }

  std::string path_;
};

TEST_F(LlamaFileTest, RoundTripsEveryKindInEveryDType) {
  const LlamaConfig configs[] = {
      TestLlamaConfig(),
      Changed([](LlamaConfig& c) {
        c.tied_head = true;
        c.rope.base = 500000;
        c.rope.divisors = Llama3Divisors({.original_context = 64}, c.rope.base, 10);
      }),
      Changed([](LlamaConfig& c) {
        c.family = LlamaFamily::kQwen2;
        c.rope.pairing = PairingOf(c.family);
        c.qkv_bias = true;
        c.rope.factor = 2;
        c.windows = {7, 7};
      }),
      Changed([](LlamaConfig& c) {
        c.family = LlamaFamily::kQwen3;
        c.rope.pairing = PairingOf(c.family);
        c.head_norms = true;
        c.rope.dimensions = 6;
        c.windows = {0, 5};
      }),
  };
  for (const LlamaConfig& config : configs) {
    for (tensor::DType dtype : {tensor::DType::kF32, tensor::DType::kF16, tensor::DType::kBF16}) {
      const TensorSource source = RandomSource(0.3f);
      ASSERT_TRUE(
          SaveLlama(base::Env::Default(), path_, config, TestVocabulary(), source, {"tiny", dtype})
              .has_value());
      const auto model = Load();
      ASSERT_NE(model, nullptr);
      EXPECT_EQ(model->config(), config);
      for (const TensorSpec& spec : LlamaTensors(config)) {
        const auto values = source(spec).value();
        std::vector<float> expected(values.size());
        const tensor::DType stored = spec.shape.rank() == 2 ? dtype : tensor::DType::kF32;
        tensor::ConvertToF32(stored, tensor::ConvertFromF32(stored, values), expected);
        EXPECT_EQ(model->TensorValues(spec), expected) << spec.name;
      }
      const auto loaded = LoadModel(base::Env::Default(), path_).value();
      EXPECT_EQ(loaded.name, "tiny");
      EXPECT_EQ(loaded.model->shape().architecture, ArchitectureName(config.family));
      EXPECT_EQ(loaded.model->shape().kv_heads, 2u);
      EXPECT_EQ(loaded.tokenizer->Encode("一七").value().size(), 2u);
    }
  }
}

TEST_F(LlamaFileTest, MissingKeysHaveTheFormatsDefaults) {
  LlamaConfig square = TestLlamaConfig();  // Heads of 24 / 4 channels, as many for K and V.
  square.head_dim = square.rope.dimensions = 6;
  square.kv_heads = 4;
  GgufWriter writer;
  writer.Set("general.architecture", "llama");
  for (const auto& [name, value] :
       {std::pair("context_length", 48u), std::pair("embedding_length", 24u),
        std::pair("block_count", 2u), std::pair("feed_forward_length", 40u),
        std::pair("attention.head_count", 4u)}) {
    writer.Set(square.Key(name), value);
  }
  writer.Set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  WriteVocabulary(TestVocabulary(), writer);
  AddTensors(writer, square);
  ASSERT_TRUE(writer.Write(base::Env::Default(), path_).has_value());
  const auto model = Load();
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->config(), square);
}

TEST_F(LlamaFileTest, BiasesOfLlamaFilesAreTaken) {
  LlamaConfig biased = TestLlamaConfig();
  biased.qkv_bias = true;
  Write([](auto&) {}, biased);
  const auto model = Load();
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->config(), biased);
}

TEST_F(LlamaFileTest, WindowPatternsAreRead) {
  const auto windows = [&](const std::function<void(GgufWriter&)>& change) {
    Write(change);
    const auto model = Load();
    return model ? model->config().windows : std::vector<std::uint64_t>{99};
  };
  const std::string key = "llama.attention.sliding_window";
  EXPECT_EQ(windows([](auto&) {}), std::vector<std::uint64_t>{});
  EXPECT_EQ(windows([&](GgufWriter& w) { w.Set(key, std::uint32_t{9}); }),
            (std::vector<std::uint64_t>{9, 9}));
  EXPECT_EQ(windows([&](GgufWriter& w) {
              w.Set(key, std::uint32_t{9});
              w.Set(key + "_pattern", std::uint32_t{2});
            }),
            (std::vector<std::uint64_t>{9, 0}));
  EXPECT_EQ(windows([&](GgufWriter& w) {
              w.Set(key, std::uint32_t{9});
              w.Set(key + "_pattern", std::vector<bool>{false, true});
            }),
            (std::vector<std::uint64_t>{0, 9}));
}

TEST_F(LlamaFileTest, RefusesBadMetadata) {
  const auto set = [](const char* key, auto value) {
    return [key, value](GgufWriter& writer) { writer.Set(key, value); };
  };
  using U = std::uint32_t;
  ExpectRefused(set("llama.block_count", U{0}), "block_count is 0");
  ExpectRefused(set("llama.block_count", std::uint64_t{1} << 31), "block_count is 2147483648");
  ExpectRefused(set("llama.block_count", U{3}), "blk.2.");
  ExpectRefused(set("llama.embedding_length", U{0}), "embedding_length is 0");
  ExpectRefused(set("llama.embedding_length", U{4294967295u}), "embedding_length is 4294967295");
  ExpectRefused(set("llama.embedding_length", U{25}), "token_embd.weight");
  ExpectRefused(set("llama.feed_forward_length", U{0}), "feed_forward_length is 0");
  ExpectRefused(set("llama.feed_forward_length", U{41}), "blk.0.ffn_gate.weight");
  ExpectRefused(set("llama.context_length", U{0}), "context_length is 0");
  ExpectRefused(set("llama.context_length", std::uint64_t{1} << 62), "context_length is");
  ExpectRefused(set("llama.attention.head_count", U{0}), "head_count is 0");
  ExpectRefused(set("llama.attention.head_count_kv", U{0}), "head_count_kv is 0");
  ExpectRefused(set("llama.attention.head_count_kv", U{3}), "head_count_kv 3");
  ExpectRefused(set("llama.attention.head_count_kv", U{8}), "head_count_kv 8");
  ExpectRefused(set("llama.attention.head_count", "4"), "head_count");
  for (U odd : {0u, 7u, 514u, 4294967295u}) {
    ExpectRefused(set("llama.attention.key_length", odd), "head dimension " + std::to_string(odd));
  }
  ExpectRefused(set("llama.attention.value_length", U{8}), "value_length is 8");
  for (float eps : {0.0f, -1.0f, NAN, INFINITY}) {
    ExpectRefused(set("llama.attention.layer_norm_rms_epsilon", eps), "layer_norm_rms_epsilon");
  }
  ExpectRefused(set("llama.rope.freq_base", 0.0f), "freq_base is 0");
  ExpectRefused(set("llama.rope.dimension_count", U{12}), "dimension_count is 12");
  ExpectRefused(set("llama.rope.scaling.type", "yarn"), "'yarn'");
  ExpectRefused(set("llama.expert_count", U{8}), "mixtures of experts");
  ExpectRefused(set("llama.logit_scale", 2.0f), "'llama.logit_scale' is 2; only 1");
  ExpectRefused(set("llama.attention.scale", 0.5f), "'llama.attention.scale' is 0.5");
  ExpectRefused(set("llama.vocab_size", U{268}), "llama.vocab_size is 268");
  ExpectRefused(set("llama.attention.sliding_window", U{0}), "sliding_window is 0");
  ExpectRefused(set("llama.attention.sliding_window", std::uint64_t{1} << 63),
                "sliding_window is 9223372036854775808");
  const auto pattern = [](auto value) {
    return [value](GgufWriter& writer) {
      writer.Set("llama.attention.sliding_window", std::uint32_t{9});
      writer.Set("llama.attention.sliding_window_pattern", value);
    };
  };
  ExpectRefused(set("llama.attention.sliding_window_pattern", U{2}),
                "llama.attention.sliding_window is missing");
  ExpectRefused(pattern(U{0}), "sliding_window_pattern is 0");
  ExpectRefused(pattern(std::vector<bool>{true}), "array of 1 bool");
  ExpectRefused(pattern("all"), "sliding_window_pattern");
}

TEST_F(LlamaFileTest, HeadsThatDoNotDivideTheWidthNeedTheirOwnLength) {
  GgufWriter writer;
  writer.Set("general.architecture", "llama");
  for (const char* key :
       {"context_length", "embedding_length", "block_count", "feed_forward_length"}) {
    writer.Set(std::string("llama.") + key, std::uint32_t{24});
  }
  writer.Set("llama.attention.head_count", std::uint32_t{5});
  writer.Set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  WriteVocabulary(TestVocabulary(), writer);
  ASSERT_TRUE(writer.Write(base::Env::Default(), path_).has_value());
  ExpectRefusal("embedding_length 24 is not a multiple of llama.attention.head_count 5");
}

TEST_F(LlamaFileTest, RefusesBadTensors) {
  for (const TensorSpec& spec : LlamaTensors(TestLlamaConfig())) {
    if (spec.name == "output.weight") continue;  // Without it the head is tied.
    Write([](auto&) {}, TestLlamaConfig(), spec.name);
    ExpectRefusal(spec.name);
  }
  Write([](auto&) {}, Changed([](LlamaConfig& c) { c.kv_heads = 1; }));
  ExpectRefusal("'blk.0.attn_k.weight' has shape [10, 24]");
  for (std::uint64_t vocab : {266u, 268u}) {  // Fewer and more rows than tokens.
    Write([](auto&) {}, Changed([&](LlamaConfig& c) { c.vocab = vocab; }));
    ExpectRefusal("'token_embd.weight' has shape [" + std::to_string(vocab) + ", 24]");
  }
  for (const char* name : {"token_embd.weight", "blk.1.ffn_gate.weight", "output_norm.weight"}) {
    Write([](auto&) {}, TestLlamaConfig(), "", name);
    ExpectRefusal(name);
  }
  // A tensor that the pass would leave out.
  Write([](GgufWriter& writer) {
    writer.AddTensor("blk.0.attn_output.bias", {24}, tensor::DType::kF32,
                     std::vector<std::byte>(96));
  });
  ExpectRefusal("'blk.0.attn_output.bias'");
  // Qwen's must have what llama's may lack.
  Write([](auto&) {}, Changed([](LlamaConfig& c) { c.family = LlamaFamily::kQwen2; }));
  ExpectRefusal("blk.0.attn_q.bias");
  Write([](auto&) {}, Changed([](LlamaConfig& c) { c.family = LlamaFamily::kQwen3; }));
  ExpectRefusal("blk.0.attn_q_norm.weight");
}

TEST_F(LlamaFileTest, ATensorsNumbersComeFromTheFileAsTheyAre) {
  Write([](auto&) {});
  const auto file = formats::GgufFile::Open(base::Env::Default(), path_).value();
  const auto specs = LlamaTensors(TestLlamaConfig());
  EXPECT_TRUE(CheckTensors(file, specs).has_value());
  EXPECT_TRUE(RefuseOtherTensors(file, specs).has_value());
  EXPECT_FALSE(RefuseOtherTensors(file, std::span(specs).first(3)).has_value());
  const TensorSource written = RandomSource(0.3f), read = FileSource(file);
  for (const TensorSpec& spec : specs) {
    const auto expected = written(spec).value(), got = read(spec).value();
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got.begin(), got.end())) << spec.name;
  }
}

TEST_F(LlamaFileTest, EveryCutFileIsRefused) {
  Write([](auto&) {});
  const std::size_t size = base::Env::Default().Map(path_).value()->bytes().size();
  for (std::size_t cut = 0; cut < size; cut += cut < 256 ? 1 : 997) {
    base::FaultyEnv env(base::Env::Default());
    env.TruncateReads(cut);
    EXPECT_FALSE(LoadModel(env, path_).has_value()) << cut;
  }
}

// Mutations of them reach the pass only if they do.
TEST_F(LlamaFileTest, TheFuzzersSeedsAreWhatTheirNamesSay) {
  std::size_t valid = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(KVASIR_SOURCE_DIR "/fuzz/corpus/llama")) {
    const auto file = formats::GgufFile::Open(base::Env::Default(), entry.path().string()).value();
    const auto architecture = file.metadata().GetString("general.architecture").value();
    bool loads = false;
    for (LlamaFamily family : {LlamaFamily::kLlama, LlamaFamily::kQwen2, LlamaFamily::kQwen3}) {
      if (architecture == ArchitectureName(family)) loads = ReadLlama(file, family, 3).has_value();
    }
    EXPECT_EQ(loads, entry.path().filename().string().starts_with("valid-")) << entry.path();
    valid += loads;
  }
  EXPECT_EQ(valid, 6u);
}

TEST_F(LlamaFileTest, AFailedSaveKeepsTheOldModel) {
  Write([](auto&) {});
  base::FaultyEnv env(base::Env::Default());
  env.LimitBytes(1000);
  EXPECT_FALSE(SaveLlama(env, path_, TestLlamaConfig(), TestVocabulary(), RandomSource(1),
                         {"tiny", tensor::DType::kF32})
                   .has_value());
  EXPECT_TRUE(LoadModel(base::Env::Default(), path_).has_value());
}

}  // namespace
}  // namespace kvasir::model
