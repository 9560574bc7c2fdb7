// TokenMask: which tokens of a vocabulary are allowed, one bit each.
#ifndef KVASIR_BASE_TOKEN_MASK_H_
#define KVASIR_BASE_TOKEN_MASK_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/token_id.h"

namespace kvasir::base {

// A set of the token ids 0 … size-1. Owns its bits; thread-compatible. Ids beyond the size are a
// programmer error. Invariant: the bits of the last word beyond the size are 0.
class TokenMask {
 public:
  static constexpr std::size_t kWordBits = 64;

  // Nothing is allowed.
  explicit TokenMask(std::size_t size = 0)
      : size_(size), words_((size + kWordBits - 1) / kWordBits, 0) {}

  std::size_t size() const { return size_; }

  void Allow(TokenId id) {
    KV_CHECK(id < size_);
    words_[id / kWordBits] |= Bit(id);
  }
  void Ban(TokenId id) {
    KV_CHECK(id < size_);
    words_[id / kWordBits] &= ~Bit(id);
  }
  bool Test(TokenId id) const {
    KV_CHECK(id < size_);
    return (words_[id / kWordBits] & Bit(id)) != 0;
  }

  // Allows every token.
  void SetAll() {
    for (std::uint64_t& word : words_) word = ~std::uint64_t{0};
    const std::size_t rest = size_ % kWordBits;
    if (rest != 0) words_.back() = (std::uint64_t{1} << rest) - 1;
  }
  // Bans every token.
  void ClearAll() {
    for (std::uint64_t& word : words_) word = 0;
  }

  // Keeps what both allow. Requires equal sizes.
  void And(const TokenMask& other) {
    KV_CHECK(size_ == other.size_);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }

  // Adds what the other allows. Requires equal sizes.
  void Or(const TokenMask& other) {
    KV_CHECK(size_ == other.size_);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }

  // Number of allowed tokens.
  std::size_t Count() const {
    std::size_t count = 0;
    for (std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }

  // Token id i is bit i % 64 of word i / 64.
  std::span<const std::uint64_t> words() const { return words_; }

  friend bool operator==(const TokenMask&, const TokenMask&) = default;

 private:
  static std::uint64_t Bit(TokenId id) { return std::uint64_t{1} << (id % kWordBits); }

  std::size_t size_;
  std::vector<std::uint64_t> words_;  // [ceil(size / 64)]
};

}  // namespace kvasir::base

#endif  // KVASIR_BASE_TOKEN_MASK_H_
