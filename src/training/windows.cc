#include "training/windows.h"

#include <algorithm>
#include <utility>

#include "base/philox.h"

namespace kvasir::training {
namespace {

constexpr std::uint32_t kOffsetPurpose = 0x4F464653;   // "OFFS"
constexpr std::uint32_t kShufflePurpose = 0x53485546;  // "SHUF"

// A number below bound, its bias below bound / 2^64.
std::uint64_t Below(std::uint64_t bound, std::uint64_t seed, std::uint32_t purpose,
                    std::uint64_t epoch, std::uint64_t index) {
  const auto w = base::Philox4x32(
      seed, {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
             static_cast<std::uint32_t>(epoch), purpose});
  const std::uint64_t random = std::uint64_t{w[0]} << 32 | w[1];
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(random) * bound >> 64);
}

}  // namespace

base::Result<WindowOrder> WindowOrder::Make(std::size_t tokens, std::size_t context,
                                            std::uint64_t seed) {
  if (tokens <= context) {
    return base::MakeError(base::ErrorCode::kBadData,
                           "the text has {} tokens; it needs more than the context of {}", tokens,
                           context);
  }
  WindowOrder order(tokens, context, seed);
  order.LoadEpoch(0);
  return order;
}

std::size_t WindowOrder::Offset(std::uint64_t epoch) const {
  return Below(std::min(context_, tokens_ - context_), seed_, kOffsetPurpose, epoch, 0);
}

std::size_t WindowOrder::EpochWindows(std::uint64_t epoch) const {
  return (tokens_ - 1 - Offset(epoch)) / context_;
}

void WindowOrder::LoadEpoch(std::uint64_t epoch) {
  const std::size_t offset = Offset(epoch);
  starts_.resize(EpochWindows(epoch));
  for (std::size_t i = 0; i < starts_.size(); ++i) starts_[i] = offset + i * context_;
  for (std::size_t i = starts_.size(); i > 1; --i) {  // Fisher and Yates
    std::swap(starts_[i - 1], starts_[Below(i, seed_, kShufflePurpose, epoch, i)]);
  }
  epoch_ = epoch;
}

std::size_t WindowOrder::Start(std::uint64_t n) {
  if (n < epoch_begin_) {
    epoch_begin_ = 0;
    LoadEpoch(0);
  }
  while (n - epoch_begin_ >= starts_.size()) {
    epoch_begin_ += starts_.size();
    LoadEpoch(epoch_ + 1);
  }
  return starts_[n - epoch_begin_];
}

}  // namespace kvasir::training
