// The bundled model: its size, its bits on every target, and what it learned.
#include <gtest/gtest.h>

#include "base/hash.h"
#include "eval/sequence_logits.h"
#include "kernels/softmax.h"
#include "kernels/targets.h"
#include "model/model_file.h"

namespace kvasir::eval {
namespace {

constexpr const char* kPath = KVASIR_SOURCE_DIR "/models/tang-lesson.gguf";

TEST(BundledModel, GoldenLogitsOnEveryTarget) {
  EXPECT_LE(base::Env::Default().Map(kPath).value()->bytes().size(), 6u << 20);
  const auto loaded = model::LoadModel(base::Env::Default(), kPath).value();
  const model::ModelShape& shape = loaded.model->shape();
  EXPECT_EQ(shape.layers, 4u);
  EXPECT_EQ(shape.embedding, 128u);
  EXPECT_EQ(shape.context, 128u);
  EXPECT_EQ(shape.vocab, 6915u);
  // Characters that only the held-out poems hold.
  EXPECT_EQ(loaded.tokenizer->vocabulary().spec().untrained.size(), 24u);
  const auto tokens =
      loaded.tokenizer->Encode("大漠孤烟直，长河落日圆。萧关逢候骑，都护在燕然。").value();
  base::ThreadTeam team(1);
  for (const kernels::Target& target : kernels::AvailableTargets()) {
    kernels::ForceTarget(target);
    const auto rows = SequenceLogits(*loaded.model, tokens, {}, team).value();
    EXPECT_EQ(base::HashSpan64(std::span<const float>(rows)), 859350985218731728ull) << target.name;
    // It has learned the form: the loss on this poem is far below ln 6915 = 8.84.
    double loss = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      loss += kernels::CrossEntropy(rows.data() + i * shape.vocab, shape.vocab, tokens[i + 1]);
    }
    EXPECT_LT(loss / static_cast<double>(tokens.size() - 1), 5.0);
  }
  kernels::UseBestTarget();
}

}  // namespace
}  // namespace kvasir::eval
