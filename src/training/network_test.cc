// Pieces of the network that no whole-run test would notice alone.
#include "training/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "training/trained_policy.h"
#include "training/trainer.h"

namespace kvasir::training {
namespace {

model::Gpt2Config Config() {
  model::Gpt2Config config;
  config.layers = 1;
  config.heads = 2;
  config.embedding = 16;
  config.feed_forward = 32;
  config.context = 150;  // More than two blocks of K and V, and than one chunk of logits.
  config.vocab = 37;
  return config;
}

struct Fixture {
  Fixture()
      : layout(Config()),
        parameters(layout.size()),
        gradient(layout.size()),
        network(PlanOf(Config(), TrainedPolicy(Config(), "").value()), layout,
                {.sequences = 2, .members = 2}) {
    network.Bind(parameters.data(), gradient.data());
    Initialise(layout, Config().layers, 5, parameters.span());
    for (std::size_t i = 0; i < 400; ++i) text.push_back(static_cast<TokenId>(i * i % 37));
  }
  ParameterLayout layout;
  base::AlignedArray<float> parameters, gradient;
  Network network;
  std::vector<TokenId> text;
};

// Losses alone and losses beside gradients are the same numbers; logits come from the same rows.
TEST(Network, LossesAgreeWithAndWithoutGradients) {
  Fixture f;
  const std::vector<std::size_t> starts = {0, 7};
  const MicroBatch batch{f.text, starts, 150, 0};
  std::vector<double> alone(300), beside(300);
  std::vector<float> logits(300 * 37);
  base::ThreadTeam team(2);
  team.Run([&](Member& member) {
    f.network.Pack(member);
    f.network.Forward(member, batch, {});
    f.network.Losses(member, batch, alone.data());
    f.network.Logits(member, batch, logits.data());
    f.network.Backward(member, batch, {}, 1.0f / 300, beside.data(), nullptr);
  });
  EXPECT_EQ(alone, beside);
  double sum = 0;
  for (float g : f.gradient.span()) sum += std::abs(g);
  EXPECT_GT(sum, 0);
}

// A sequence's rows do not depend on the others in the micro-batch, nor on its place there.
TEST(Network, SequencesAreIndependent) {
  Fixture f;
  base::ThreadTeam team(1);
  const auto logits = [&](std::vector<std::size_t> starts) {
    const MicroBatch batch{f.text, starts, 150, 0};
    std::vector<float> rows(batch.rows() * 37);
    team.Run([&](Member& member) {
      f.network.Pack(member);
      f.network.Forward(member, batch, {});
      f.network.Logits(member, batch, rows.data());
    });
    return rows;
  };
  const auto pair = logits({11, 90});
  const auto swapped = logits({90, 11});
  const auto alone = logits({90});
  const std::size_t half = 150 * 37;
  EXPECT_EQ(std::memcmp(pair.data() + half, alone.data(), half * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(swapped.data(), alone.data(), half * sizeof(float)), 0);
}

// Dropout is keyed by the sequence's index in the global batch, so micro-batches may be cut
// anywhere.
TEST(Network, DropoutFollowsTheGlobalIndex) {
  Fixture f;
  base::ThreadTeam team(1);
  const Disturbance dropout{0.3f, 9, 4};
  const auto run = [&](std::vector<std::size_t> starts, std::size_t first) {
    const MicroBatch batch{f.text, starts, 100, first};
    std::vector<double> losses(batch.rows());
    team.Run([&](Member& member) {
      f.network.Pack(member);
      f.network.Forward(member, batch, dropout);
      f.network.Losses(member, batch, losses.data());
    });
    return losses;
  };
  const auto both = run({3, 50}, 2);
  const auto second = run({50}, 3);
  const auto other = run({50}, 2);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), both.begin() + 100));
  EXPECT_NE(second, other);
}

}  // namespace
}  // namespace kvasir::training
