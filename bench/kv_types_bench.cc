// How long attention takes over keys and values of every type, beside f32: one query a layer, as a
// step of generation asks.
//
//   kv_types_bench [POSITIONS [REPETITIONS [QUERIES]]]     default: 4096 15 1
//
// Each line is one pair of types: microseconds a step (the median), the bytes of K and V that it
// must read and at which rate, and its time over that of f32, the median over repetitions in which
// all types take turns. Results are first compared with the plain reference, bit by bit. Exit
// status 1 if one differs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/philox.h"
#include "base/thread_team.h"
#include "eval/speed.h"
#include "kernels/attention.h"
#include "kernels/kv_address.h"
#include "kernels/targets.h"

namespace {

using namespace kvasir;           // NOLINT: a program of one file
using namespace kvasir::kernels;  // NOLINT

struct Types {
  KvType k, v;
};
constexpr Types kTypes[] = {
    {KvType::kF32, KvType::kF32},          {KvType::kF16, KvType::kF16},
    {KvType::kBf16, KvType::kBf16},        {KvType::kInt8, KvType::kInt8},
    {KvType::kInt8, KvType::kInt4},        {KvType::kInt4, KvType::kInt4},
    {KvType::kInt4Channel, KvType::kInt8}, {KvType::kInt4Channel, KvType::kInt4}};
constexpr std::uint32_t kBlockTokens = 32;
constexpr std::uint32_t kGroup = 32;

struct Shape {
  std::uint32_t heads, kv_heads, head_dim, layers;
};

std::vector<float> Values(std::size_t n, std::uint32_t stream) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto w = base::Philox4x32(1, {static_cast<std::uint32_t>(i), stream, 0, 0});
    values[i] = static_cast<float>(base::UniformDouble(w[0], w[1]) * 2 - 1);
  }
  return values;
}

// The layers of one text under one pair of types, and the step that reads them.
class Run {
 public:
  Run(const Shape& shape, Types types, std::size_t positions, std::size_t queries)
      : shape_(shape), positions_(positions), queries_(queries) {
    const std::size_t tiles = shape.kv_heads * kBlockTokens / kLanes;
    const auto round = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
    const std::size_t k = round(tiles * KTileBytes(types.k, shape.head_dim));
    const std::size_t v = round(tiles * VTileBytes(types.v, shape.head_dim));
    const bool by_channel = types.k == KvType::kInt4Channel;
    const std::size_t scales =
        by_channel ? round(shape.kv_heads * ChannelScaleBytes(shape.head_dim)) : 0;
    const std::size_t tail =
        by_channel ? round(tiles * KTileBytes(KvType::kF32, shape.head_dim)) : 0;
    const std::size_t blocks = (positions + kBlockTokens - 1) / kBlockTokens;
    bytes_ = blocks * (k + v + scales) * shape.layers;
    memory_ = base::AlignedArray<std::byte>(bytes_);
    tail_ = base::AlignedArray<std::byte>(blocks * tail);
    for (std::size_t b = 0; b < blocks * shape.layers; ++b) {
      table_.push_back(memory_.data() + b * (k + v + scales));
    }
    for (std::size_t b = 0; b < blocks; ++b) tails_.push_back(tail_.data() + b * tail);
    q_ = Values(queries * shape.heads * shape.head_dim, 3);
    out_.resize(q_.size());
    args_.q = q_.data();
    args_.q_stride = args_.out_stride = shape.heads * shape.head_dim;
    args_.out = out_.data();
    args_.first_position = positions - queries;
    args_.heads = shape.heads;
    args_.scale = 0.3f;
    args_.kv = {.blocks = nullptr,
                .k_offset = 0,
                .v_offset = k,
                .block_tokens = kBlockTokens,
                .kv_heads = shape.kv_heads,
                .head_dim = shape.head_dim,
                .k_type = types.k,
                .v_type = types.v,
                .group = kGroup,
                .k_scale_offset = k + v,
                .tail_blocks = tails_.data(),
                .tail_offset = 0};
    for (std::size_t layer = 0; layer < shape.layers; ++layer) Fill(layer);
  }

  std::size_t bytes() const { return bytes_; }

  bool HasTheReferenceBits() {
    Step(*std::make_unique<base::ThreadTeam>(1));
    std::vector<float> expected(out_.size());
    AttentionArgs args = Layer(shape_.layers - 1);
    args.out = expected.data();
    ReferenceAttention(args, {0, queries_}, {0, shape_.heads});
    return std::memcmp(expected.data(), out_.data(), out_.size() * sizeof(float)) == 0;
  }

  void Step(base::ThreadTeam& team) {
    team.Run([&](base::Member& member) {
      for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
        Attention(Layer(layer), {0, queries_}, member.Share(shape_.heads));
        member.Barrier();
      }
    });
  }

 private:
  AttentionArgs Layer(std::size_t layer) const {
    AttentionArgs args = args_;
    args.kv.blocks = table_.data() + layer * tails_.size();
    return args;
  }
  void Fill(std::size_t layer) {
    const KvView view = Layer(layer).kv;
    const std::size_t width = shape_.kv_heads * shape_.head_dim;
    const std::vector<float> values = Values(width * 64, 7);
    for (std::size_t t = 0; t < positions_; ++t) {
      StoreKv(view, t, values.data() + t * 7 % 61 * width, values.data() + t * 5 % 63 * width);
      if (view.k_type != KvType::kInt4Channel || (t + 1) % kGroup != 0) continue;
      for (std::size_t head = 0; head < shape_.kv_heads; ++head) {
        CompleteKeyGroup(view, t / kGroup, head);
      }
    }
  }

  Shape shape_;
  std::size_t positions_, queries_;
  std::size_t bytes_ = 0;
  base::AlignedArray<std::byte> memory_, tail_;
  std::vector<std::byte*> table_, tails_;
  std::vector<float> q_, out_;
  AttentionArgs args_;
};

bool Measure(const Shape& shape, std::size_t positions, std::size_t repetitions,
             std::size_t queries) {
  std::vector<std::unique_ptr<Run>> runs;
  for (const Types& types : kTypes) {
    runs.push_back(std::make_unique<Run>(shape, types, positions, queries));
    if (runs.back()->HasTheReferenceBits()) continue;
    fmt::print(stderr, "{} {}: not the bits of the reference\n", KvTypeName(types.k),
               KvTypeName(types.v));
    return false;
  }
  for (const std::size_t threads : {1u, 2u}) {
    base::ThreadTeam team(threads);
    std::vector<std::vector<double>> seconds(runs.size()), ratios(runs.size());
    for (std::size_t i = 0; i < repetitions; ++i) {
      for (std::size_t r = 0; r < runs.size(); ++r) {
        runs[r]->Step(team);
        const eval::Stopwatch watch;
        runs[r]->Step(team);
        seconds[r].push_back(watch.Seconds());
        ratios[r].push_back(seconds[r].back() / seconds[0].back());
      }
    }
    fmt::print("{} heads over {} of {}, {} layers, {} positions, {} queries, {} threads, {}\n",
               shape.heads, shape.kv_heads, shape.head_dim, shape.layers, positions, queries,
               threads, CurrentTargetName());
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const double time = eval::Median(seconds[r]);
      fmt::print("  K {:16} V {:4}  {:9.1f} us  {:6.2f} MB  {:6.2f} GB/s  {:5.3f} of f32's time\n",
                 KvTypeName(kTypes[r].k), KvTypeName(kTypes[r].v), time * 1e6,
                 static_cast<double>(runs[r]->bytes()) * 1e-6,
                 static_cast<double>(runs[r]->bytes()) / time * 1e-9, eval::Median(ratios[r]));
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, std::size_t otherwise) {
    return argc > i ? static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)) : otherwise;
  };
  const std::size_t positions = number(1, 4096), repetitions = number(2, 15),
                    queries = number(3, 1);
  if (queries < 1 || queries > positions || repetitions < 1) {
    fmt::print(stderr,
               "kv_types_bench [POSITIONS [REPETITIONS [QUERIES]]]: queries 1 to positions, "
               "at least one repetition\n");
    return 1;
  }
  for (const Shape& shape : {Shape{4, 4, 32, 4}, Shape{12, 12, 64, 2}, Shape{12, 3, 64, 2}}) {
    if (!Measure(shape, positions, repetitions, queries)) return 1;
  }
  return 0;
}
