// A language model as the engine sees it: rows of tokens in, rows of logits out, over a cache.
#ifndef KVASIR_MODEL_MODEL_H_
#define KVASIR_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "kvcache/cache_geometry.h"
#include "kvcache/cache_policy.h"
#include "kvcache/sequence.h"

namespace kvasir::model {

class StepTap;

using base::TokenId;

// What a step must read and compute at least, for benchmarks to compare with.
struct StepWork {
  std::uint64_t weights = 0;             // Numbers read whole, whatever the rows: all but tables of
                                         // embeddings, of which it counts one row.
  std::uint64_t saved_weight_bytes = 0;  // By so much they are shorter than in f32.
  // Multiply-adds in one layer: of a row's products up to queries, keys and values, and of those
  // after; of attention for a query and one position that it sees.
  std::uint64_t before_attention = 0;
  std::uint64_t after_attention = 0;
  std::uint64_t per_visible = 0;
};

// What a caller must know to make caches and buffers for a model.
struct ModelShape {
  std::string_view architecture;
  std::uint64_t layers = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;  // This and head_dim: 0 where the cache holds latents.
  std::uint64_t head_dim = 0;
  std::uint64_t embedding = 0;
  std::uint64_t feed_forward = 0;
  std::uint64_t context = 0;  // Longest sequence, in tokens.
  std::uint64_t vocab = 0;
  std::uint64_t parameters = 0;
  // Multi-head latent attention: what the cache holds of a token instead of keys and values.
  std::uint64_t latent_dim = 0;
  std::uint64_t rope_dim = 0;
  bool rotary = false;  // Positions turn queries and keys; else each has an embedding of its own.
  std::vector<std::uint64_t> windows =
      {};  // [layers]: the model's own, 0: none; empty: none at all
  StepWork work = {};

  // Some products run over rounded weights, under R6.
  bool rounded() const { return work.saved_weight_bytes != 0; }
  kvcache::PolicyShape Policy() const {
    return {layers, kv_heads, head_dim, rotary, latent_dim != 0};
  }
  // The cache this model needs, under a policy made for Policy(); null: full, in f32.
  // Blocks are as long as asked, or the next longer size that holds whole groups of keys (group=G).
  kvcache::CacheGeometryOptions Cache(
      std::uint64_t block_tokens,
      const std::optional<kvcache::CachePolicy>& policy = std::nullopt) const;
  // Positions that a text in such a cache may have: the context, or, where every layer sees only a
  // window of rotary positions, as many as the numerics allow.
  std::uint64_t MaxPositions(const kvcache::CacheGeometry& geometry) const;
};

// New tokens of one sequence. The first stands at position sequence->length(); all are computed in
// one step and then belong to the sequence.
struct BatchItem {
  kvcache::CachedSequence* sequence = nullptr;
  std::span<const TokenId> tokens;  // At least one.
  std::size_t logit_rows = 0;       // Logits are wanted of this many last tokens.
};

// Buffers of a step, kept from step to step so that none allocates once the largest has been seen.
// Single-threaded: one per concurrent caller.
class Scratch {
 public:
  // At least `count` floats under this name, contents undefined.
  float* Get(std::size_t slot, std::size_t count) {
    if (slot >= buffers_.size()) buffers_.resize(slot + 1);
    if (buffers_[slot].size() < count) buffers_[slot] = base::AlignedArray<float>(count);
    return buffers_[slot].data();
  }

  // Steps with this scratch are shown to the tap (step_tap.h); null, as at first: to none.
  void set_tap(StepTap* tap) { tap_ = tap; }
  StepTap* tap() const { return tap_; }

 private:
  std::vector<base::AlignedArray<float>> buffers_;
  StepTap* tap_ = nullptr;
};

// Immutable once built; Forward is thread-safe for distinct sequences, scratches and teams.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelShape& shape() const = 0;

  // Computes all items' tokens (mixed prefill and decode), writes their K and V, and the logits of
  // the rows wanted, item by item in order: logits [Σ logit_rows][vocab]. On success every sequence
  // is longer by its tokens; on an Error none is. kUsage: a token id outside the vocabulary, or a
  // sequence that would outgrow the context; kExhausted: no blocks left. A sequence may stand in
  // one item only. Bits of a row: a function of the sequence's tokens up to it, and of nothing
  // else.
  virtual base::Result<void> Forward(std::span<const BatchItem> items, Scratch& scratch,
                                     base::ThreadTeam& team, std::span<float> logits) const = 0;
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_MODEL_H_
