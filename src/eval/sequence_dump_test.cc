// What dumps hold, by what must follow from it: the head's product of the last hidden row is the
// logits, attention's sums of values are what a layer adds, queries against the keys give the
// weights. Every architecture, under cache policies that change what a query reads.
#include "eval/sequence_dump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>

#include "eval/eval_test_models.h"
#include "model/deepseek_model.h"
#include "model/model_test_util.h"
#include "model/step_tap.h"

namespace kvasir::eval {
namespace {

using model::TensorSource;
using model::TensorSpec;

constexpr double kUnit = 0x1p-24;
constexpr std::size_t kTokens = 45;
constexpr DumpKind kAllKinds[] = {DumpKind::kLogits, DumpKind::kHidden, DumpKind::kAttention,
                                  DumpKind::kKeys, DumpKind::kValues};

// Random weights by tensor, with a last product of each MLP that adds nothing: so a layer adds what
// attention makes and no more.
TensorSource AttentionAlone() {
  auto zeros = std::make_shared<std::vector<float>>();
  return [random = model::RandomSource(0.4f),
          zeros](const TensorSpec& spec) -> base::Result<std::span<const float>> {
    if (spec.name.find("ffn_down") == std::string::npos) return random(spec);
    zeros->assign(spec.shape.ElementCount().value(), 0.0f);
    return std::span<const float>(*zeros);
  };
}

std::vector<float> Weights(const std::string& name, std::uint64_t count) {
  const TensorSource source = AttentionAlone();
  const auto values = source({name, {count}}).value();
  return {values.begin(), values.end()};
}

enum class Kind { kGpt2, kLlama, kQwen2, kQwen3, kDeepseek };

std::unique_ptr<model::Model> MakeModel(Kind kind, std::uint64_t layers = 3) {
  if (kind == Kind::kGpt2) {
    model::Gpt2Config config = model::TestConfig();
    config.layers = layers;
    return model::Gpt2Model::Make(config, AttentionAlone()).value();
  }
  if (kind == Kind::kDeepseek) {
    model::DeepseekConfig config = model::TestDeepseekConfig(0);
    config.layers = layers;
    return model::DeepseekModel::Make(config, AttentionAlone()).value();
  }
  model::LlamaConfig config = model::TestLlamaConfig();
  config.layers = layers;
  if (kind == Kind::kLlama) {
    config.windows = {0, 9, 20};
    config.windows.resize(layers);
  }
  if (kind == Kind::kQwen2) {
    config.family = model::LlamaFamily::kQwen2;
    config.qkv_bias = true;
  }
  if (kind == Kind::kQwen3) {
    config.family = model::LlamaFamily::kQwen3;
    config.head_norms = true;
    config.rope.dimensions = 6;
  }
  config.rope.pairing = PairingOf(config.family);
  return model::LlamaModel::Make(config, AttentionAlone()).value();
}

struct Case {
  Kind kind;
  const char* spec;  // "": the full cache.
  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << static_cast<int>(c.kind) << " '" << c.spec << "'";
  }
};

// Numbers, and by how much those of f32 may be off.
struct Bounded {
  std::vector<double> x, error;
};

// rows · in: sums of K products, each a chain.
Bounded Multiply(std::span<const float> rows, const Bounded& in) {
  const std::size_t width = in.x.size();
  Bounded out;
  for (std::size_t n = 0; n < rows.size() / width; ++n) {
    double sum = 0, error = 0;
    for (std::size_t k = 0; k < width; ++k) {
      const double w = rows[n * width + k];
      sum += w * in.x[k];
      error +=
          std::abs(w) * (in.error[k] + static_cast<double>(width + 2) * kUnit * std::abs(in.x[k]));
    }
    out.x.push_back(sum);
    out.error.push_back(error);
  }
  return out;
}

class SequenceDumpTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    model_ = MakeModel(GetParam().kind);
    tokens_.resize(kTokens);
    for (std::size_t i = 0; i < kTokens; ++i) {
      tokens_[i] = static_cast<base::TokenId>(i * i * 7 + 3 * i + 1) % 67;
    }
  }

  const model::ModelShape& shape() const { return model_->shape(); }
  ArrangementOptions Options() const {
    ArrangementOptions options;
    if (*GetParam().spec != '\0') {
      options.policy = kvcache::CachePolicy::Parse(GetParam().spec, shape().Policy()).value();
    }
    return options;
  }
  std::vector<float> Dump(DumpKind kind) const { return DumpOf(*model_, kind, Options()); }
  std::vector<float> DumpOf(const model::Model& model, DumpKind kind,
                            const ArrangementOptions& options, std::size_t threads = 1) const {
    base::ThreadTeam team(threads);
    auto dump = DumpSequence(model, kind, tokens_, options, team);
    EXPECT_TRUE(dump) << dump.error().message;
    EXPECT_EQ(dump.value().size(),
              DumpShape(model.shape(), kind, kTokens).value().ElementCount().value());
    return std::move(dump.value());
  }

  bool Visible(std::size_t layer, std::size_t t, std::size_t j) const {
    std::size_t window = shape().windows.empty() ? 0 : shape().windows[layer];
    std::size_t sinks = 0;
    if (std::string(GetParam().spec).find("window=12,sinks=3") != std::string::npos) {
      window = window == 0 ? 12 : std::min<std::size_t>(window, 12);
      sinks = 3;
    }
    return j <= t && (window == 0 || j + window > t || j < sinks);
  }

  // What a head's sum of values becomes until the output product reads it.
  Bounded Attended(std::size_t layer, std::size_t head, const Bounded& sum) const {
    if (GetParam().kind != Kind::kDeepseek) return sum;
    const model::DeepseekConfig c = model::TestDeepseekConfig(0);
    const std::uint64_t rows = c.nope_dim + c.value_dim;
    const std::vector<float> up = Weights("blk." + std::to_string(layer) + ".attn_kv_b.weight",
                                          c.heads * rows * c.latent_dim);
    const float* values = up.data() + (head * rows + c.nope_dim) * c.latent_dim;
    return Multiply(std::span(values, c.value_dim * c.latent_dim), sum);
  }

  std::unique_ptr<model::Model> model_;
  std::vector<base::TokenId> tokens_;
};

TEST_P(SequenceDumpTest, LastHiddenRowsTimesTheHeadAreTheLogits) {
  const std::vector<float> logits = Dump(DumpKind::kLogits), hidden = Dump(DumpKind::kHidden);
  const std::size_t width = shape().embedding;
  const auto head = Weights("output.weight", shape().vocab * width);
  const float* rows = hidden.data() + shape().layers * kTokens * width;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    float chain = 0;  // R1
    for (std::size_t k = 0; k < width; ++k) {
      chain =
          std::fma(rows[i / shape().vocab * width + k], head[i % shape().vocab * width + k], chain);
    }
    ASSERT_EQ(chain, logits[i]) << i;
  }
}

TEST_P(SequenceDumpTest, FirstHiddenRowsAreTheEmbeddings) {
  const std::vector<float> hidden = Dump(DumpKind::kHidden);
  const std::size_t width = shape().embedding;
  const auto table = Weights("token_embd.weight", shape().vocab * width);
  const bool learned = GetParam().kind == Kind::kGpt2;
  const auto places = Weights("position_embd.weight", shape().context * width);
  for (std::size_t i = 0; i < kTokens * width; ++i) {
    const float row = table[tokens_[i / width] * width + i % width];
    ASSERT_EQ(hidden[i], learned ? row + places[i] : row) << i;
  }
}

// The bound: weights and sums of at most kTokens values differ by a rounding for each term and six
// for each of two blocks (rescaling either side); a product by one for each term.
TEST_P(SequenceDumpTest, WeightedValuesAreWhatALayerAdds) {
  const std::vector<float> hidden = Dump(DumpKind::kHidden), weights = Dump(DumpKind::kAttention),
                           v = Dump(DumpKind::kValues);
  const std::size_t heads = shape().heads, width = shape().embedding;
  const tensor::Shape v_shape = DumpShape(shape(), DumpKind::kValues, kTokens).value();
  const std::size_t value_dim = v_shape[3], group = heads / v_shape[1];
  for (std::size_t layer = 0; layer + 1 < shape().layers; ++layer) {
    for (std::size_t t = 0; t < kTokens; ++t) {
      Bounded all;
      for (std::size_t head = 0; head < heads; ++head) {
        const float* row = &weights[((layer * heads + head) * kTokens + t) * kTokens];
        Bounded sum = {std::vector<double>(value_dim), std::vector<double>(value_dim)};
        for (std::size_t j = 0; j < kTokens; ++j) {
          const float* value = &v[((layer * v_shape[1] + head / group) * kTokens + j) * value_dim];
          for (std::size_t d = 0; d < value_dim; ++d) {
            sum.x[d] += double{row[j]} * value[d];
            sum.error[d] += (kTokens + 20) * kUnit * std::abs(double{row[j]} * value[d]);
          }
        }
        const Bounded attended = Attended(layer, head, sum);
        all.x.insert(all.x.end(), attended.x.begin(), attended.x.end());
        all.error.insert(all.error.end(), attended.error.begin(), attended.error.end());
      }
      const std::string block = "blk." + std::to_string(layer) + ".";
      const Bounded added =
          Multiply(Weights(block + "attn_output.weight", width * all.x.size()), all);
      const auto bias = Weights(block + "attn_output.bias", width);
      for (std::size_t n = 0; n < width; ++n) {
        const double x = hidden[(layer * kTokens + t) * width + n];
        const double b = GetParam().kind == Kind::kGpt2 ? bias[n] : 0.0f;
        const double exact = x + b + added.x[n];
        const double bound = added.error[n] + 2 * kUnit * (std::abs(exact) + std::abs(x));
        ASSERT_NEAR(hidden[((layer + 1) * kTokens + t) * width + n], exact, bound)
            << layer << " " << t << " " << n;
      }
    }
  }
}

// Queries of every layer, head and position.
class QueryTap : public model::StepTap {
 public:
  using Key = std::tuple<std::size_t, std::size_t, std::size_t>;

  void OnHidden(const model::TapRows&, const float*) override {}
  void OnAttention(const base::Member&, const model::TapRows& rows, std::size_t first_head,
                   const kernels::AttentionArgs& args) override {
    Keep(rows, first_head, args, args.kv.head_dim);
  }
  void OnLatentAttention(const base::Member&, const model::TapRows& rows,
                         const kernels::LatentAttentionArgs& args) override {
    Keep(rows, 0, args, args.latents.width());
  }

  std::map<Key, std::vector<float>> queries;
  float scale = 0;

 private:
  template <typename Args>
  void Keep(const model::TapRows& rows, std::size_t first_head, const Args& args,
            std::size_t width) {
    scale = args.scale;
    for (std::size_t i = 0; i < rows.count; ++i) {
      for (std::size_t head = 0; head < args.heads; ++head) {
        const float* q = args.q + i * args.q_stride + head * width;
        queries[{rows.layer, first_head + head, rows.first_position + i}].assign(q, q + width);
      }
    }
  }
};

// Against softmax in double precision. The bound: a score's chain over a key and two scales, then
// an exponential and the sums as above. Keys that other queries than their own read otherwise
// (turned sinks, rounded groups) are left to the kernels' tests; then weights are told by what they
// must leave out, and by their sum.
TEST_P(SequenceDumpTest, WeightsAreTheSoftmaxOfQueriesAndKeys) {
  const std::vector<float> weights = Dump(DumpKind::kAttention), k = Dump(DumpKind::kKeys);
  const tensor::Shape k_shape = DumpShape(shape(), DumpKind::kKeys, kTokens).value();
  const std::string spec = GetParam().spec;
  const bool same_keys = spec.find("group") == std::string::npos &&
                         (!shape().rotary || spec.find("sinks") == std::string::npos);
  QueryTap tap;
  base::ThreadTeam team(1);
  ASSERT_TRUE(TapSequence(*model_, tokens_, Options(), team, tap));
  ASSERT_EQ(tap.queries.size(), shape().layers * shape().heads * kTokens);
  for (const auto& [key, q] : tap.queries) {
    const auto [layer, head, t] = key;
    const float* got = &weights[((layer * shape().heads + head) * kTokens + t) * kTokens];
    std::vector<double> exact(kTokens);
    double sum = 0, score_error = 0;
    for (std::size_t j = 0; j <= t; ++j) {
      if (!Visible(layer, t, j)) continue;
      const std::size_t kv_head = head / (shape().heads / k_shape[1]);
      const float* row = &k[((layer * k_shape[1] + kv_head) * kTokens + j) * k_shape[3]];
      double score = 0, terms = 0;
      for (std::size_t d = 0; d < q.size(); ++d) {
        score += double{q[d]} * row[d];
        terms += std::abs(double{q[d]} * row[d]);
      }
      exact[j] = std::exp(score * tap.scale);
      sum += exact[j];
      score_error =
          std::max(score_error, static_cast<double>(q.size() + 4) * kUnit * terms * tap.scale);
    }
    const double relative = std::expm1(2 * score_error) + (kTokens + 20) * kUnit;
    double total = 0;
    for (std::size_t j = 0; j < kTokens; ++j) {
      total += got[j];
      if (!Visible(layer, t, j)) {
        ASSERT_EQ(got[j], 0.0f) << layer << " " << t << " " << j;
      }
      if (!same_keys) continue;
      ASSERT_NEAR(got[j], exact[j] / sum, 2 * relative * exact[j] / sum)
          << layer << " " << head << " " << t << " " << j;
    }
    ASSERT_NEAR(total, 1, (kTokens + 20) * kUnit) << layer << " " << head << " " << t;
  }
}

TEST_P(SequenceDumpTest, ArrangementChangesNoBit) {
  for (const DumpKind kind : kAllKinds) {
    const std::vector<float> expected = Dump(kind);
    for (const std::uint64_t chunk : {1u, 7u}) {
      for (const bool cached : {true, false}) {
        ArrangementOptions options = Options();
        options.block_tokens = 32;
        options.prefill_chunk = chunk;
        options.kv_cache = cached;
        EXPECT_EQ(DumpOf(*model_, kind, options, /*threads=*/chunk == 1 ? 1 : 2), expected)
            << static_cast<int>(kind) << " " << chunk << cached;
      }
    }
  }
}

// A layer knows nothing of those above it: so the last one, whose rows go another way, shows the
// same as when another follows.
TEST_P(SequenceDumpTest, LaterLayersChangeNoBit) {
  const auto shorter = MakeModel(GetParam().kind, 2);
  ArrangementOptions options = Options();
  if (options.policy) {
    options.policy =
        kvcache::CachePolicy::Parse(GetParam().spec, shorter->shape().Policy()).value();
  }
  for (const DumpKind kind : {DumpKind::kAttention, DumpKind::kKeys, DumpKind::kValues}) {
    std::vector<float> longer = Dump(kind);
    longer.resize(longer.size() / 3 * 2);
    EXPECT_EQ(DumpOf(*shorter, kind, options), longer) << static_cast<int>(kind);
  }
}

const Case kCases[] = {
    {Kind::kGpt2, ""},
    {Kind::kGpt2, "window=12,sinks=3"},
    {Kind::kGpt2, "dtype=int8;1.0:dtype=f16"},
    {Kind::kGpt2, "k=int4,v=f16,group=16"},
    {Kind::kLlama, ""},
    {Kind::kLlama, "window=12,sinks=3"},
    {Kind::kLlama, "store=hidden"},
    {Kind::kLlama, "0-1:store=none"},
    {Kind::kQwen2, ""},
    {Kind::kQwen3, ""},
    {Kind::kQwen3, "store=none"},
    {Kind::kDeepseek, ""},
};
INSTANTIATE_TEST_SUITE_P(Models, SequenceDumpTest, testing::ValuesIn(kCases));

TEST(DumpShapeTest, TellsWhatIsTooLarge) {
  model::ModelShape shape;
  shape.layers = shape.heads = shape.kv_heads = 32;
  shape.head_dim = 128;
  shape.embedding = shape.context = 4096;
  shape.vocab = 32000;
  EXPECT_EQ(DumpShape(shape, DumpKind::kAttention, 1024).value(),
            (tensor::Shape{32, 32, 1024, 1024}));  // 4 GiB to the byte.
  const auto refused = DumpShape(shape, DumpKind::kAttention, 1025);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUsage);
  EXPECT_EQ(refused.error().message,
            "attention of 1025 tokens would be [32, 32, 1025, 1025] numbers, 4303360000 bytes; "
            "allowed are 4294967296 bytes");
  EXPECT_EQ(DumpShape(shape, DumpKind::kHidden, 9).value(), (tensor::Shape{33, 9, 4096}));
  shape.vocab = UINT64_MAX;
  EXPECT_EQ(DumpShape(shape, DumpKind::kLogits, 2).error().message,
            "logits of 2 tokens would be [2, 18446744073709551615] numbers, more than 2^64 bytes; "
            "allowed are 4294967296 bytes");
}

TEST(DumpShapeTest, NamesAreThoseOfTheKinds) {
  for (const DumpKind kind : kAllKinds) {
    EXPECT_EQ(DumpKindNamed(kDumpNames[static_cast<std::size_t>(kind)]), kind);
  }
  EXPECT_FALSE(DumpKindNamed("x"));
  EXPECT_FALSE(DumpKindNamed(""));
}

TEST(DumpSequenceTest, RefusesWhatDoesNotFit) {
  const auto model = TinyGpt2(65);
  base::ThreadTeam team(1);
  for (const DumpKind kind : kAllKinds) {
    EXPECT_EQ(DumpSequence(*model, kind, {}, {}, team).error().message,
              "the text has 0 tokens; allowed are 1 to 40, the context");
    const std::vector<base::TokenId> unknown = {64, 65};
    EXPECT_EQ(DumpSequence(*model, kind, unknown, {}, team).error().code, base::ErrorCode::kUsage);
  }
}

TEST(DumpSequenceTest, RefusesTooMuchMemoryBeforeAnyStep) {
  const auto inner = TinyGpt2(65, /*context=*/17000);
  const MeddledModel model(*inner, [](const MeddledModel::Step&) { ADD_FAILURE() << "a step"; });
  const std::vector<base::TokenId> tokens(17000, 1u);
  base::ThreadTeam team(1);
  EXPECT_EQ(DumpSequence(model, DumpKind::kAttention, tokens, {}, team).error().message,
            "attention of 17000 tokens would be [2, 2, 17000, 17000] numbers, 4624000000 bytes; "
            "allowed are 4294967296 bytes");
}

}  // namespace
}  // namespace kvasir::eval
