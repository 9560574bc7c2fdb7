// Which stretches of the text a step trains on: a pure function of (seed, step), so a run resumed
// at any step reads exactly what the unbroken run reads.
#ifndef KVASIR_TRAINING_WINDOWS_H_
#define KVASIR_TRAINING_WINDOWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"

namespace kvasir::training {

// Epochs of windows of `context` inputs and as many targets (the inputs shifted by one). Each epoch
// starts at an offset of its own below min(context, tokens − context), cuts the rest into
// consecutive windows and shuffles them; so over the epochs every token is a target equally often,
// the last one too. Single-threaded (it keeps the current epoch's order).
class WindowOrder {
 public:
  // kBadData, naming both numbers, unless tokens > context.
  static base::Result<WindowOrder> Make(std::size_t tokens, std::size_t context,
                                        std::uint64_t seed);

  // Start of the n-th window of the run.
  std::size_t Start(std::uint64_t n);
  // Windows of an epoch; epochs may differ by one.
  std::size_t EpochWindows(std::uint64_t epoch) const;

 private:
  WindowOrder(std::size_t tokens, std::size_t context, std::uint64_t seed)
      : tokens_(tokens), context_(context), seed_(seed) {}
  std::size_t Offset(std::uint64_t epoch) const;
  void LoadEpoch(std::uint64_t epoch);

  std::size_t tokens_;
  std::size_t context_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::uint64_t epoch_begin_ = 0;    // windows of all epochs before
  std::vector<std::size_t> starts_;  // of the current epoch, shuffled
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_WINDOWS_H_
