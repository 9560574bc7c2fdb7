// The matrix products of one decode step beside merely reading as many bytes, in turns.
//
//   gemv_bench [REPETITIONS]     default: 25
//
// Two shapes, the lesson's (4 layers of width 128) and 12 layers of width 768, both with a
// vocabulary of 6,289; weights in f32 and rounded to Q8_0 and Q4_0; one and two threads. A step is
// all its products of one row with the packed weights, in the order of the layers, with a barrier
// after each. The roof is a sum over an array of as many bytes, cut among the threads. Each line:
// microseconds and GB/s of both (medians), and the roof's time ÷ the products', the median over the
// pairs. The last product is first compared with its reference, bit by bit; exit status 1 if it
// differs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/philox.h"
#include "base/thread_team.h"
#include "eval/speed.h"
#include "kernels/matmul.h"
#include "kernels/packed_matrix.h"
#include "kernels/roofs.h"
#include "kernels/targets.h"
#include "tensor/dtype.h"

namespace {

using namespace kvasir;           // NOLINT: a program of one file
using namespace kvasir::kernels;  // NOLINT

struct Shape {
  std::string name;
  std::size_t layers, width, vocab;
  tensor::DType dtype = tensor::DType::kF32;
};

void Fill(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto w = base::Philox4x32(1, {static_cast<std::uint32_t>(i), 0, 0, 0});
    values[i] = static_cast<float>(base::UniformDouble(w[0], w[1]) * 2 - 1);
  }
}

// All matrices of a GPT-2 of a shape, and an array of as many bytes.
class Step {
 public:
  explicit Step(const Shape& shape)
      : dtype_(shape.dtype),
        in_(4 * shape.width),
        out_((std::max(4 * shape.width, shape.vocab) + 15) / 16 * 16) {
    Fill(in_.data(), in_.size());
    for (std::size_t layer = 0; layer < shape.layers; ++layer) {
      Add(3 * shape.width, shape.width);
      Add(shape.width, shape.width);
      Add(4 * shape.width, shape.width);
      Add(shape.width, 4 * shape.width);
    }
    Add(shape.vocab, shape.width);
    words_ = base::AlignedArray<std::uint32_t>(bytes_ / sizeof(std::uint32_t));
    std::fill_n(words_.data(), words_.size(), 1u);
  }

  std::size_t bytes() const { return bytes_; }

  void Products(base::ThreadTeam& team) {
    team.Run([&](base::Member& member) {
      for (const PackedMatrix& weights : matrices_) {
        MatmulShare(Args(weights), 1, member);
        member.Barrier();
      }
    });
  }

  std::uint32_t Read(base::ThreadTeam& team) {
    std::vector<std::uint32_t> sums(team.size());
    team.Run([&](base::Member& member) {
      const base::IndexRange lines = member.Share(words_.size() / 16);
      sums[member.index()] = SumWords(words_.data() + lines.begin * 16, lines.size() * 16);
    });
    std::uint32_t sum = 0;
    for (const std::uint32_t part : sums) sum += part;
    return sum;
  }

  bool LastIsRight(base::ThreadTeam& team) {
    Products(team);
    const PackedMatrix& last = matrices_.back();
    std::vector<float> expected(last.n());
    MatmulArgs args = Args(last);
    args.out = expected.data();
    args.padded_out = false;
    ReferenceMatmul(args, 1);
    return std::memcmp(expected.data(), out_.data(), expected.size() * sizeof(float)) == 0;
  }

 private:
  void Add(std::size_t outputs, std::size_t inputs) {
    if (dtype_ == tensor::DType::kF32) {
      std::vector<float> weights(outputs * inputs);
      Fill(weights.data(), weights.size());
      matrices_.push_back(PackWeights(weights.data(), outputs, inputs));
    } else {
      matrices_.emplace_back(outputs, inputs, dtype_);
      PackBlocks(Blocks(outputs * inputs / kBlockSteps), 0, matrices_.back());
    }
    bytes_ += matrices_.back().bytes();
  }
  // Blocks as a file has them: a scale of 2^-7, then numbers.
  std::vector<std::byte> Blocks(std::size_t count) const {
    const std::size_t bytes = tensor::BlockBytes(dtype_);
    std::vector<std::byte> blocks(count * bytes);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::size_t at = i % bytes;
      blocks[i] = static_cast<std::byte>(at == 0   ? 0x00
                                         : at == 1 ? 0x20
                                                   : (i * 37 + i / 251) & 255);
    }
    return blocks;
  }
  MatmulArgs Args(const PackedMatrix& weights) {
    return {.a = in_.data(),
            .a_row_stride = weights.k(),
            .w = &weights,
            .out = out_.data(),
            .out_stride = out_.size(),
            .padded_out = !weights.rounded()};
  }

  tensor::DType dtype_;
  std::size_t bytes_ = 0;
  base::AlignedArray<float> in_;   // [widest input]
  base::AlignedArray<float> out_;  // [widest output]
  std::vector<PackedMatrix> matrices_;
  base::AlignedArray<std::uint32_t> words_;
};

template <typename Work>
double Seconds(std::size_t times, const Work& work) {
  const eval::Stopwatch watch;
  for (std::size_t i = 0; i < times; ++i) work();
  return watch.Seconds() / static_cast<double>(times);
}

bool Measure(const Shape& shape, std::size_t repetitions) {
  Step step(shape);
  const std::size_t times = 1 + 200'000'000 / step.bytes();  // 200 MB a side and repetition.
  for (const std::size_t threads : {1u, 2u}) {
    base::ThreadTeam team(threads);
    if (!step.LastIsRight(team)) {
      fmt::print(stderr, "{}: not the bits of the reference\n", shape.name);
      return false;
    }
    std::vector<double> products, reads, shares;
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < repetitions; ++i) {
      products.push_back(Seconds(times, [&] { step.Products(team); }));
      reads.push_back(Seconds(times, [&] { sum += step.Read(team); }));
      shares.push_back(reads.back() / products.back());
    }
    const double gigabytes = static_cast<double>(step.bytes()) * 1e-9;
    fmt::print(
        "{:9} {:6.1f} MB  {} thread{}  products {:8.1f} us {:6.1f} GB/s   read {:8.1f} us "
        "{:6.1f} GB/s   share {:.0f} %{}\n",
        shape.name, 1e3 * gigabytes, threads, threads == 1 ? " " : "s",
        1e6 * eval::Median(products), gigabytes / eval::Median(products), 1e6 * eval::Median(reads),
        gigabytes / eval::Median(reads), 100 * eval::Median(shares), sum == 1 ? " " : "");
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t repetitions = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 25;
  if (repetitions < 1) {
    fmt::print(stderr, "gemv_bench [REPETITIONS]: at least 1\n");
    return 1;
  }
  fmt::print("{}\n", CurrentTargetName());
  using tensor::DType;
  for (const Shape& shape : {Shape{"4 x 128", 4, 128, 6289}, Shape{"12 x 768", 12, 768, 6289},
                             Shape{"12 x 768 Q8_0", 12, 768, 6289, DType::kQ8_0},
                             Shape{"12 x 768 Q4_0", 12, 768, 6289, DType::kQ4_0}}) {
    if (!Measure(shape, repetitions)) return 1;
  }
  return 0;
}
