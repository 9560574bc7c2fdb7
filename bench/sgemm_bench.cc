// Our matrix products beside oneDNN's sgemm, on the shapes of a training step of the lesson's model
// (8 sequences of 128 tokens together): one thread each, in turns.
//
//   sgemm_bench [REPETITIONS]     default: 15
//
// Each line is one product: GFLOP/s of both (medians), their share of the multiply-add peak that
// this run measured, and oneDNN's time ÷ ours, the median over the pairs. Ours is timed as training
// runs it: weights are packed once a step, so forward and input-gradient products find them packed;
// of a weight gradient both operands are new, so packing one is part of its time. Before it is
// timed a product is checked: ours against its reference bit by bit, oneDNN's against the bound of
// a sum of k products. Exit status 1 if one fails.
#include <dnnl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/philox.h"
#include "base/thread_team.h"
#include "eval/speed.h"
#include "kernels/matmul.h"
#include "kernels/packed_matrix.h"
#include "kernels/targets.h"

namespace {

using namespace kvasir;           // NOLINT: a program of one file
using namespace kvasir::kernels;  // NOLINT

constexpr std::size_t kTokens = 8 * 128, kWidth = 128, kMiddle = 512, kVocab = 6289,
                      kHeadRows = 64;  // Rows of scores that exist at a time.

// out [m][n] = a · w; of a weight gradient a is the transpose of what lies in memory.
struct Product {
  std::string name;
  std::size_t m, n, k;
  bool weight_gradient = false;
};

const std::vector<Product>& Products() {
  static const std::vector<Product> kProducts = {
      {"queries, keys, values", kTokens, 3 * kWidth, kWidth},
      {"attention's output", kTokens, kWidth, kWidth},
      {"MLP up", kTokens, kMiddle, kWidth},
      {"MLP down", kTokens, kWidth, kMiddle},
      {"head", kHeadRows, kVocab, kWidth},
      {"input gradient of q, k, v", kTokens, kWidth, 3 * kWidth},
      {"input gradient of the head", kHeadRows, kWidth, kVocab},
      {"weight gradient of q, k, v", 3 * kWidth, kWidth, kTokens, true},
      {"weight gradient of up", kMiddle, kWidth, kTokens, true},
      {"weight gradient of down", kWidth, kMiddle, kTokens, true},
      {"weight gradient of the head", kVocab, kWidth, kHeadRows, true},
  };
  return kProducts;
}

base::AlignedArray<float> Values(std::size_t count, std::uint32_t stream) {
  base::AlignedArray<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto w = base::Philox4x32(1, {static_cast<std::uint32_t>(i), stream, 0, 0});
    values.data()[i] = static_cast<float>(base::UniformDouble(w[0], w[1]) * 2 - 1);
  }
  return values;
}

double Seconds(std::size_t times, const std::function<void()>& work) {
  const eval::Stopwatch watch;
  for (std::size_t i = 0; i < times; ++i) work();
  return watch.Seconds() / static_cast<double>(times);
}

// One product with its operands. Weights lie [n][k] (forward and input gradients: as the model file
// has them, or their transpose, which is then what is packed); of a weight gradient the operands
// are [k][m] and [k][n], tokens first.
class Run {
 public:
  explicit Run(const Product& product)
      : p_(product),
        stride_((p_.n + 15) / 16 * 16),
        a_(Values(p_.m * p_.k, 1)),
        b_(Values(p_.n * p_.k, 2)),
        packed_(p_.n, p_.k),
        ours_(p_.m * stride_),
        theirs_(p_.m * p_.n) {
    args_ = {.a = a_.data(),
             .a_row_stride = p_.weight_gradient ? 1 : p_.k,
             .a_k_stride = p_.weight_gradient ? p_.m : 1,
             .w = &packed_,
             .out = ours_.data(),
             .out_stride = stride_,
             .padded_out = true};
    Pack();
  }

  void Ours() {
    if (p_.weight_gradient) Pack();
    Matmul(args_, {0, p_.m}, {0, packed_.panel_count()});
  }

  bool Theirs() {
    const char transposed_a = p_.weight_gradient ? 'T' : 'N';
    const char transposed_b = p_.weight_gradient ? 'N' : 'T';
    const auto size = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
    return dnnl_sgemm(transposed_a, transposed_b, size(p_.m), size(p_.n), size(p_.k), 1.0f,
                      a_.data(), size(p_.weight_gradient ? p_.m : p_.k), b_.data(),
                      size(p_.weight_gradient ? p_.n : p_.k), 0.0f, theirs_.data(),
                      size(p_.n)) == dnnl_success;
  }

  bool BothAreRight() {
    Ours();
    if (!Theirs()) return false;
    base::AlignedArray<float> expected(p_.m * stride_);
    MatmulArgs reference = args_;
    reference.out = expected.data();
    reference.padded_out = false;
    ReferenceMatmul(reference, p_.m);
    // |error| of any order of k products of numbers below 1 is below k² · eps / 2, each side.
    const double bound = static_cast<double>(p_.k) * static_cast<double>(p_.k) *
                         std::numeric_limits<float>::epsilon();
    for (std::size_t m = 0; m < p_.m; ++m) {
      for (std::size_t n = 0; n < p_.n; ++n) {
        const float ours = ours_.data()[m * stride_ + n];
        const float right = expected.data()[m * stride_ + n];
        if (!(ours == right && std::signbit(ours) == std::signbit(right))) return false;
        if (!(std::fabs(theirs_.data()[m * p_.n + n] - right) <= bound)) return false;
      }
    }
    return true;
  }

  double flops() const {
    return 2.0 * static_cast<double>(p_.m) * static_cast<double>(p_.n) * static_cast<double>(p_.k);
  }

 private:
  void Pack() {
    const PackSource source =
        p_.weight_gradient ? PackSource{b_.data(), 1, p_.n} : PackSource{b_.data(), p_.k, 1};
    PackPanels(source, packed_, {0, packed_.panel_count()});
  }

  Product p_;
  std::size_t stride_;
  base::AlignedArray<float> a_, b_;
  PackedMatrix packed_;
  base::AlignedArray<float> ours_;    // [m][stride]
  base::AlignedArray<float> theirs_;  // [m][n]
  MatmulArgs args_;
};

}  // namespace

int main(int argc, char** argv) {
  // OpenMP reads this before main.
  const char* threads = std::getenv("OMP_NUM_THREADS");
  if (threads == nullptr || std::string(threads) != "1") {
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
    fmt::print(stderr, "sgemm_bench: set OMP_NUM_THREADS=1\n");
    return 1;
  }
  const std::size_t repetitions = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 15;
  if (repetitions < 1) {
    fmt::print(stderr, "sgemm_bench [REPETITIONS]: at least 1\n");
    return 1;
  }
  base::ThreadTeam team(1);
  const double peak = eval::MeasureFmaRoof(5, team);
  fmt::print("{}, multiply-add peak {:.0f} GFLOP/s, oneDNN {}.{}.{}\n", CurrentTargetName(), peak,
             dnnl_version()->major, dnnl_version()->minor, dnnl_version()->patch);
  double ours_all = 0, theirs_all = 0, flops_all = 0;
  for (const Product& product : Products()) {
    Run run(product);
    if (!run.BothAreRight()) {
      fmt::print(stderr, "{}: a wrong result\n", product.name);
      return 1;
    }
    // About 10 ms a side.
    const auto times = static_cast<std::size_t>(1 + peak * 1e9 * 0.01 / run.flops());
    std::vector<double> ours, theirs, ratios;
    for (std::size_t i = 0; i < repetitions; ++i) {
      ours.push_back(Seconds(times, [&] { run.Ours(); }));
      theirs.push_back(Seconds(times, [&] { run.Theirs(); }));
      ratios.push_back(theirs.back() / ours.back());
    }
    const double we = eval::Median(ours), they = eval::Median(theirs);
    ours_all += we;
    theirs_all += they;
    flops_all += run.flops();
    fmt::print(
        "{:28} {:5} x {:4} x {:4}  ours {:6.1f} GFLOP/s ({:4.0f} %)  oneDNN {:6.1f} ({:4.0f} %)"
        "  ratio {:.2f}\n",
        product.name, product.m, product.n, product.k, run.flops() / we * 1e-9,
        run.flops() / we * 1e-7 / peak, run.flops() / they * 1e-9, run.flops() / they * 1e-7 / peak,
        eval::Median(ratios));
  }
  fmt::print("all, each once: ours {:.1f} GFLOP/s, oneDNN {:.1f}, ratio {:.2f}\n",
             flops_all / ours_all * 1e-9, flops_all / theirs_all * 1e-9, theirs_all / ours_all);
  return 0;
}
