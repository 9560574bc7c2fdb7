// Attention by the definition (R3, R6), one number after the other: for readers and as the tests'
// oracle.
#include <cmath>
#include <vector>

#include "kernels/attention.h"
#include "kernels/hadamard.h"
#include "kernels/kv_address.h"
#include "kernels/kv_numbers.h"
#include "kernels/reference_softmax.h"

namespace kvasir::kernels {
namespace {

// One query of one head.
struct Reader {
  const AttentionArgs& args;
  std::size_t query;
  std::size_t kv_head;
  const float* q;

  std::size_t position() const { return args.first_position + query; }
};

std::vector<std::size_t> Seen(const AttentionArgs& args, std::size_t position) {
  std::vector<std::size_t> seen;
  const std::size_t first = FirstVisible(position, args.window);
  for (std::size_t j = 0; j <= position; ++j) {
    if (j < args.sinks || j >= first) seen.push_back(j);
  }
  return seen;
}

// q[d] against a key of plain numbers: a chain, then the scale.
float PlainScore(const Reader& reader, const std::vector<float>& key) {
  float s = 0;
  for (std::size_t d = 0; d < key.size(); ++d) s = std::fma(reader.q[d], key[d], s);
  return s * reader.args.scale;
}

float TurnedSinkScore(const Reader& reader, std::size_t j) {
  const SinkTurns& turns = reader.args.sink_turns;
  std::vector<float> key(reader.args.kv.head_dim);
  LoadKey(reader.args.kv, j, reader.kv_head, reader.position(), key.data());
  ReferenceRope({.turn = turns.turns + reader.query * turns.query_stride + j * 2 * turns.pairs,
                 .pairs = turns.pairs,
                 .pairing = turns.pairing,
                 .heads = 1,
                 .head_stride = key.size(),
                 .x = key.data()});
  if (turns.rotate) ReferenceHadamardRotate(key.data(), 1, key.size());
  return PlainScore(reader, key);
}

// Keys rounded by channel, of an earlier group than the reader's.
float ChannelScore(const Reader& reader, std::size_t j) {
  const KvView& kv = reader.args.kv;
  const std::byte* tile = KTile(kv, j, reader.kv_head);
  const std::uint16_t* scales = ChannelScales(kv, j, reader.kv_head);
  float chain = 0;
  ReferenceLaneSum sum;
  for (std::size_t d = 0; d < kv.head_dim; ++d) {
    const NumberScale scale = ChannelScale(scales, d, kv.head_dim);
    const float q = reader.q[d];
    chain = std::fma(q * scale.scale, KeyNumber(tile, kv.k_type, d, j % kLanes), chain);
    sum.At(d) = std::fma(q, scale.minimum, sum.At(d));
  }
  return (chain + sum.Fold()) * reader.args.scale;
}

float Score(const Reader& reader, std::size_t j) {
  const KvView& kv = reader.args.kv;
  if (reader.args.sink_turns.turns != nullptr && j < reader.args.sinks) {
    return TurnedSinkScore(reader, j);
  }
  if (kv.k_type == KvType::kInt4Channel) {
    if (j / kv.group != reader.position() / kv.group) return ChannelScore(reader, j);
    std::vector<float> key(kv.head_dim);
    LoadKey(kv, j, reader.kv_head, reader.position(), key.data());
    return PlainScore(reader, key);
  }
  const std::byte* tile = KTile(kv, j, reader.kv_head);
  float chain = 0;
  ReferenceLaneSum sum;
  for (std::size_t d = 0; d < kv.head_dim; ++d) {
    chain = std::fma(reader.q[d], KeyNumber(tile, kv.k_type, d, j % kLanes), chain);
    sum.At(d) += reader.q[d];
  }
  const NumberScale scale = PositionScale(tile, kv.k_type, j % kLanes, kv.head_dim);
  if (kv.k_type == KvType::kInt8) chain *= scale.scale;
  if (kv.k_type == KvType::kInt4) {
    chain = std::fma(scale.scale, chain, scale.minimum * sum.Fold());
  }
  return chain * reader.args.scale;
}

// o [head_dim] += the values of one block's positions, weighted.
void Weigh(const KvView& kv, std::size_t kv_head, SeenPositions positions,
           std::span<const float> weights, float* o) {
  ReferenceLaneSum minima;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::size_t row = positions[i] % kLanes;
    const std::byte* tile = VTile(kv, positions[i], kv_head);
    const NumberScale scale = PositionScale(tile, kv.v_type, row, kv.head_dim);
    float& lane = minima.At(positions[i]);
    lane = std::fma(weights[i], scale.minimum, lane);
    const float weight = weights[i] * scale.scale;
    for (std::size_t d = 0; d < kv.head_dim; ++d) {
      o[d] = std::fma(weight, ValueNumber(tile, kv.v_type, row, d, kv.head_dim), o[d]);
    }
  }
  if (kv.v_type != KvType::kInt4) return;
  for (std::size_t d = 0; d < kv.head_dim; ++d) o[d] += minima.Fold();
}

Reader ReaderOf(const AttentionArgs& args, std::size_t query, std::size_t head) {
  return {args, query, head / (args.heads / args.kv.kv_heads),
          args.q + query * args.q_stride + head * args.kv.head_dim};
}

}  // namespace

void ReferenceAttention(const AttentionArgs& args, base::IndexRange queries,
                        base::IndexRange heads) {
  const std::size_t head_dim = args.kv.head_dim;
  for (std::size_t head = heads.begin; head < heads.end; ++head) {
    for (std::size_t query = queries.begin; query < queries.end; ++query) {
      const Reader reader = ReaderOf(args, query, head);
      const auto score = [&](std::size_t j) { return Score(reader, j); };
      const auto weigh = [&](SeenPositions positions, std::span<const float> weights, float* o) {
        Weigh(args.kv, reader.kv_head, positions, weights, o);
      };
      ReferenceSoftmax(Seen(args, reader.position()), head_dim, score, weigh,
                       args.out + query * args.out_stride + head * head_dim);
    }
  }
}

void ReferenceAttentionWeights(const AttentionArgs& args, std::size_t query, std::size_t head,
                               float* weights) {
  const Reader reader = ReaderOf(args, query, head);
  ReferenceSoftmaxWeights(
      Seen(args, reader.position()), reader.position() + 1,
      [&](std::size_t j) { return Score(reader, j); }, weights);
}

}  // namespace kvasir::kernels
