// The random sequences of one trial of Verify, and the bits of a plain run over them.
#ifndef KVASIR_EVAL_VERIFY_WORLD_H_
#define KVASIR_EVAL_VERIFY_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "eval/random_stream.h"
#include "kvcache/cache_policy.h"
#include "model/model.h"

namespace kvasir::eval {

inline constexpr std::size_t kMaxVerifySequences = 64;

// A sequence and the plain run's logits. Rows of a large vocabulary are kept for a random part of
// the positions only, the last always among them.
class PlainSequence {
 public:
  std::vector<base::TokenId> tokens;
  std::size_t shared_prefix = 0;  // Leading tokens equal to those of the world's first sequence.

  // [vocab], or empty if this position's row was not kept.
  std::span<const float> Row(std::size_t position, std::size_t vocab) const {
    const std::size_t row = row_of_[position];
    if (row == kNotKept) return {};
    return std::span(rows_).subspan(row * vocab, vocab);
  }
  // Keeps about 1 of keep_one_in rows.
  void ChooseRows(std::uint64_t keep_one_in, RandomStream& random);
  // Token by token, one thread, the smallest blocks, alone in its cache.
  base::Result<void> RunPlainly(const model::Model& model,
                                const std::optional<kvcache::CachePolicy>& policy = std::nullopt);

 private:
  static constexpr std::size_t kNotKept = SIZE_MAX;
  std::vector<std::size_t> row_of_;  // [tokens]: index into rows_, or kNotKept.
  std::size_t kept_ = 0;
  std::vector<float> rows_;  // [kept][vocab]
};

// 2 to 64 sequences, 1 to context tokens each, some of them sharing a prefix with the first.
// `full`: the first one fills the context.
std::vector<PlainSequence> DrawWorld(const model::ModelShape& shape, RandomStream& random,
                                     bool full);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_VERIFY_WORLD_H_
