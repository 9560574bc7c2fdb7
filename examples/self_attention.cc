// Self-attention twice, side by side: plain (all positions again at every step) and with a KV cache
// (only the new ones). Both write the same text, and this program checks that both give the same
// bits at every step; it exits with 1 if one differs. docs/self-attention.md explains it.
//
// Read it from top to bottom: weights, what both ways share, plain, cached, the greedy loop.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned.h"
#include "base/philox.h"
#include "base/result.h"
#include "base/token_id.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/targets.h"
#include "kvcache/block_pool.h"
#include "kvcache/sequence.h"

namespace kvasir {
namespace {

using base::TokenId;
using Floats = std::vector<float>;

// In the shapes below batch is 1; a larger batch is one CachedSequence for each text.
constexpr std::size_t kHeads = 4;
constexpr std::size_t kHeadDim = 8;
constexpr std::size_t kWidth = kHeads * kHeadDim;  // of the vector that stands for a position
constexpr std::size_t kMaxLength = 48;             // positions
constexpr std::string_view kAlphabet = "abcdefghijklmno.";
constexpr TokenId kEnd = kAlphabet.size() - 1;  // "." ends a text.
constexpr std::uint64_t kSeed = 9;

// A language model of one attention layer, with random weights: it has learned nothing, but it
// computes what a trained one computes.
struct Weights {
  Floats token_embedding;        // [vocab][width]
  Floats position_embedding;     // [max_length][width]
  kernels::PackedMatrix qkv;     // [3 · width, width]: rows of q, then k, then v, head by head
  kernels::PackedMatrix output;  // [width, width]
  kernels::PackedMatrix head;    // [vocab, width]
};

Floats RandomFloats(std::size_t count, std::uint32_t tensor, double scale) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto words = base::Philox4x32(kSeed, {static_cast<std::uint32_t>(i), tensor, 0, 0});
    values[i] = static_cast<float>(scale * (2 * base::UniformDouble(words[0], words[1]) - 1));
  }
  return values;
}

Weights RandomWeights() {
  const std::size_t vocab = kAlphabet.size();
  return {
      RandomFloats(vocab * kWidth, 1, 1.0), RandomFloats(kMaxLength * kWidth, 2, 1.0),
      kernels::PackWeights(RandomFloats(3 * kWidth * kWidth, 3, 0.6).data(), 3 * kWidth, kWidth),
      kernels::PackWeights(RandomFloats(kWidth * kWidth, 4, 0.6).data(), kWidth, kWidth),
      kernels::PackWeights(RandomFloats(vocab * kWidth, 5, 0.6).data(), vocab, kWidth)};
}

// ---- What both ways share -------------------------------------------------------------------

// rows · wᵀ (+ residual). [rows][w.k()] -> [rows][w.n()]
Floats Product(std::span<const float> rows, const kernels::PackedMatrix& w,
               const float* residual = nullptr) {
  const std::size_t count = rows.size() / w.k();
  Floats out(count * w.n());
  kernels::MatmulArgs args;
  args.a = rows.data();
  args.a_row_stride = w.k();
  args.w = &w;
  args.residual = residual;
  args.out = out.data();
  args.out_stride = w.n();
  kernels::Matmul(args, {0, count}, {0, w.panel_count()});
  return out;
}

// The vectors of tokens whose first stands at position `start`: [batch, tokens, width]. With a
// cache, start is the number of cached positions. Taking 0 there is the classic mistake.
Floats Embed(const Weights& weights, std::span<const TokenId> tokens, std::size_t start) {
  Floats x(tokens.size() * kWidth);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (std::size_t d = 0; d < kWidth; ++d) {
      x[i * kWidth + d] = weights.token_embedding[tokens[i] * kWidth + d] +
                          weights.position_embedding[(start + i) * kWidth + d];
    }
  }
  return x;
}

// For new positions start, start + 1, …: stores their k and v, and lets their queries look at all
// keys up to their own position.
//   q        [batch, heads, new, head_dim]           from qkv [batch, new, 3 · width]
//   k, v     [batch, heads, start + new, head_dim]   in kv
//   scores   [batch, heads, new, start + new]        inside the kernel, 64 positions at a time
//   result   [batch, new, heads · head_dim]
// The causal mask is a count: the query at position t reads the keys 0 … t and stops. When new is 1
// that is every key there is, and nothing is left of the mask.
Floats StoreAndAttend(const Floats& qkv, std::size_t start, const kernels::KvView& kv) {
  const std::size_t count = qkv.size() / (3 * kWidth);
  for (std::size_t i = 0; i < count; ++i) {
    const float* row = qkv.data() + i * 3 * kWidth;
    kernels::StoreKv(kv, start + i, row + kWidth, row + 2 * kWidth);
  }
  Floats attended(count * kWidth);
  kernels::AttentionArgs args;
  args.q = qkv.data();
  args.q_stride = 3 * kWidth;
  args.first_position = start;
  args.heads = kHeads;
  args.scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim));
  args.kv = kv;
  args.out = attended.data();
  args.out_stride = kWidth;
  kernels::Attention(args, {0, count}, {0, kHeads});
  return attended;
}

// Scores of every token as the next one, from the last position: [vocab].
Floats LastLogits(const Weights& weights, const Floats& x, const Floats& attended) {
  const Floats y = Product(attended, weights.output, x.data());  // [batch, tokens, width]
  return Product(std::span(y).last(kWidth), weights.head);
}

// ---- Plain: every position again ------------------------------------------------------------

Floats PlainLogits(const Weights& weights, std::span<const TokenId> text) {
  const Floats x = Embed(weights, text, 0);               // [batch, seq, width]
  const Floats qkv = Product(x, weights.qkv);             // [batch, seq, 3 · width]
  constexpr std::uint32_t kRoom = 64;                     // positions, at least kMaxLength
  base::AlignedArray<float> k_and_v(2 * kRoom * kWidth);  // gone when this function returns
  std::byte* block = reinterpret_cast<std::byte*>(k_and_v.data());
  const kernels::KvView kv = {&block, 0, kRoom * kWidth * sizeof(float), kRoom, kHeads, kHeadDim};
  return LastLogits(weights, x, StoreAndAttend(qkv, 0, kv));
}

// ---- Cached: new positions only -------------------------------------------------------------

class CachedSelfAttention {
 public:
  CachedSelfAttention(const Weights& weights, kvcache::BlockPool& pool)
      : weights_(weights), cache_(pool) {}

  // To be called before another text: else it would continue the old one.
  void Reset() { cache_.Reset(); }
  const kvcache::CachedSequence& cache() const { return cache_; }

  // Takes the tokens that follow those already seen. An Error if the pool has no block left.
  base::Result<Floats> Logits(std::span<const TokenId> fresh) {
    KV_TRY(cache_.Reserve(fresh.size()));  // room, taken block by block as the text grows
    const std::size_t start = cache_.length();
    const Floats x = Embed(weights_, fresh, start);  // [batch, new, width]
    const Floats qkv = Product(x, weights_.qkv);     // [batch, new, 3 · width]
    const Floats attended = StoreAndAttend(qkv, start, cache_.View(/*layer=*/0));
    cache_.Advance(fresh.size());  // [batch, heads, start + new, head_dim] from now on
    return LastLogits(weights_, x, attended);
  }

 private:
  const Weights& weights_;
  kvcache::CachedSequence cache_;  // k and v of every position seen
};

// ---- The greedy loop ------------------------------------------------------------------------

struct Work {
  std::size_t plain = 0;   // positions computed
  std::size_t cached = 0;  // positions computed
};

// Writes on from the prompt both ways. False if any bit of any step's logits differed.
base::Result<bool> Continue(const Weights& weights, CachedSelfAttention& attention,
                            std::string_view prompt, Work& work) {
  std::vector<TokenId> text;
  for (char c : prompt) text.push_back(static_cast<TokenId>(kAlphabet.find(c)));
  attention.Reset();
  fmt::print("\nprompt \"{}\"\n{:>6}{:>16}{:>17}{:>15}{:>13}{:>11}  next\n", prompt, "length",
             "plain computes", "cached computes", "keys read", "cache bytes", "same bits");
  std::span<const TokenId> fresh = text;  // First the whole prompt, then one token at a time.
  std::string written;
  while (text.size() < kMaxLength) {
    const Floats plain = PlainLogits(weights, text);
    KV_TRY(const Floats cached, attention.Logits(fresh));
    const bool same = plain.size() == cached.size() &&
                      std::memcmp(plain.data(), cached.data(), plain.size() * sizeof(float)) == 0;
    work.plain += text.size();
    work.cached += fresh.size();
    const auto best = std::max_element(cached.begin(), cached.end()) - cached.begin();
    const auto next = static_cast<TokenId>(best);  // Ties go to the lower id.
    fmt::print("{:>6}{:>16}{:>17}{:>15}{:>13}{:>11}  {}\n", text.size(), text.size(), fresh.size(),
               attention.cache().length(), attention.cache().held_bytes(), same ? "yes" : "NO",
               kAlphabet[next]);
    if (!same) return false;
    written += kAlphabet[next];
    if (next == kEnd) break;  // The end token: stop before computing anything for it.
    text.push_back(next);
    fresh = std::span(text).last(1);
  }
  fmt::print("text   \"{}{}\"\n", prompt, written);
  return true;
}

base::Result<bool> Run() {
  KV_TRY(kernels::CheckProcessor());
  KV_TRY(const auto geometry,
         kvcache::CacheGeometry::Make({.layers = 1, .kv_heads = kHeads, .head_dim = kHeadDim}));
  KV_TRY(const auto pool,
         kvcache::BlockPool::Make(geometry, {.budget_bytes = 4 * geometry.block_bytes()}));
  const Weights weights = RandomWeights();
  CachedSelfAttention attention(weights, *pool);
  fmt::print("k and v of one position: 2 x {} heads x {} numbers x 4 bytes = {} bytes\n", kHeads,
             kHeadDim, geometry.bytes_per_token());
  Work work;
  bool same = true;
  for (std::string_view prompt : {"kamel", "lama", "begin"}) {
    KV_TRY(const bool equal, Continue(weights, attention, prompt, work));
    same = same && equal;
  }
  fmt::print("\npositions computed: plain {}, cached {}; bits {}\n", work.plain, work.cached,
             same ? "equal at every step" : "DIFFERENT");
  return same;
}

}  // namespace
}  // namespace kvasir

int main() {
  const kvasir::base::Result<bool> same = kvasir::Run();
  if (!same) fmt::print(stderr, "self_attention: error: {}\n", same.error().message);
  return same && same.value() ? 0 : 1;
}
