#include "training/memory.h"

#include <algorithm>
#include <initializer_list>

#include "base/checked.h"
#include "base/token_id.h"
#include "kernels/norm.h"

namespace kvasir::training {
namespace {

constexpr std::uint64_t kFloat = sizeof(float);
constexpr std::uint64_t kPanel = 16;        // Outputs a panel of kernels::PackedMatrix.
constexpr std::uint64_t kHeadRows = 64;     // Rows of logits that exist at a time (network.h).
constexpr std::uint64_t kKvTokens = 64;     // Positions of a block of keys and values (network.cc).
constexpr std::uint64_t kNormChunk = 4096;  // Of the gradient norm's partial sums (trainer.cc).

// A sum of products in checked arithmetic.
class ByteSum {
 public:
  void Add(std::initializer_list<std::uint64_t> factors) {
    const auto product = base::CheckedProduct(factors);
    total_ = total_ && product ? base::CheckedAdd(*total_, *product) : std::nullopt;
  }
  std::optional<std::uint64_t> total() const { return total_; }

 private:
  std::optional<std::uint64_t> total_ = 0;
};

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

// A matrix packed for products, and its transpose.
void AddBothPacked(ByteSum& sum, std::uint64_t count, std::uint64_t n, std::uint64_t k) {
  sum.Add({count, RoundUp(n, kPanel), k, kFloat});
  sum.Add({count, RoundUp(k, kPanel), n, kFloat});
}

void AddWeights(ByteSum& sum, const model::Gpt2Config& c, const MemoryUse& use) {
  const std::uint64_t parameters = model::ParameterCount(c);
  const std::uint64_t best = use.held_out ? 1 : 0;
  // Weights, two moments, the gradients of a shard and of the step; the best model.
  sum.Add({5 + best, parameters, kFloat});
  // While a file is written: the checkpoint's bytes, or the model's tensors and their bytes.
  sum.Add({std::max<std::uint64_t>(2, use.checkpoints ? 3 + best : 0), parameters, kFloat});
  if (c.tied_head) sum.Add({c.vocab, c.embedding, kFloat});  // Look-ups' part of the gradient.
  AddBothPacked(sum, c.layers, 3 * c.embedding, c.embedding);
  AddBothPacked(sum, c.layers, c.embedding, c.embedding);
  AddBothPacked(sum, 2 * c.layers, c.feed_forward, c.embedding);
  AddBothPacked(sum, 1, c.vocab, c.embedding);
  sum.Add({parameters / kNormChunk + 1, sizeof(double)});
}

void AddActivations(ByteSum& sum, const model::Gpt2Config& c, std::uint64_t sequences) {
  const std::uint64_t width = c.embedding, middle = c.feed_forward;
  const std::uint64_t rows = sequences * c.context;
  sum.Add({c.layers, rows, 7 * width + 2 * middle, kFloat});  // Network::Layer
  sum.Add({2 * c.layers + 1, rows, sizeof(kernels::RowStats)});
  sum.Add({c.layers + 1, rows, width, kFloat});  // The residual stream.
  sum.Add({rows, 9 * width + middle, kFloat});   // The last norm; gradients.
  sum.Add({rows, RoundUp(std::max(width, middle), kPanel) + RoundUp(width, kPanel), kFloat});
  sum.Add({std::min(rows, kHeadRows), RoundUp(c.vocab, kPanel), kFloat});
  sum.Add({sequences, RoundUp(c.context, kKvTokens), 2 * width, kFloat});
}

}  // namespace

std::optional<std::uint64_t> TrainingBytes(const model::Gpt2Config& config,
                                           const TrainOptions& options, const MemoryUse& use) {
  const std::uint64_t sequences = std::min(options.micro_batch, options.batch);
  ByteSum sum;
  AddWeights(sum, config, use);
  AddActivations(sum, config, sequences);
  // Attention's backward pass, for each thread that gets a head.
  const std::uint64_t workers = std::min(use.threads, sequences * config.heads);
  const std::uint64_t length = config.context, dim = config.head_dim();
  sum.Add({workers, 2, length, length, kFloat});
  sum.Add({workers, 2 * RoundUp(length, kPanel), dim, kFloat});
  sum.Add({workers, 3 * RoundUp(dim, kPanel), length, kFloat});
  sum.Add({options.batch, length, sizeof(double)});  // Losses of the step.
  sum.Add({use.text_tokens, sizeof(base::TokenId)});
  sum.Add({use.text_tokens / length + 1, sizeof(std::uint64_t)});  // The order of the windows.
  return sum.total();
}

}  // namespace kvasir::training
