#include "eval/verify_world.h"

#include <algorithm>

#include "eval/model_cache.h"
#include "eval/sequence_logits.h"

namespace kvasir::eval {
namespace {

using base::TokenId;

std::vector<TokenId> DrawTokens(std::size_t count, std::uint64_t vocab, RandomStream& random) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(vocab));
  return tokens;
}

// 2 … 64, small ones as likely as large ones.
std::size_t DrawSequenceCount(RandomStream& random) {
  const std::uint64_t high = std::uint64_t{2} << random.Below(6);  // 2, 4, … 64
  return random.Between(std::max<std::uint64_t>(2, high / 2), high);
}

}  // namespace

void PlainSequence::ChooseRows(std::uint64_t keep_one_in, RandomStream& random) {
  row_of_.assign(tokens.size(), kNotKept);
  kept_ = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (t + 1 == tokens.size() || random.Below(keep_one_in) == 0) row_of_[t] = kept_++;
  }
}

base::Result<void> PlainSequence::RunPlainly(const model::Model& model,
                                             const std::optional<kvcache::CachePolicy>& policy) {
  const std::size_t vocab = model.shape().vocab;
  KV_TRY(const auto pool, MakeModelCache(model.shape(), {.policy = policy}));
  kvcache::CachedSequence cache(*pool);
  base::ThreadTeam team(1);
  model::Scratch scratch;
  rows_.resize(kept_ * vocab);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const bool kept = row_of_[t] != kNotKept;
    const std::span<float> row =
        kept ? std::span(rows_).subspan(row_of_[t] * vocab, vocab) : std::span<float>();
    const model::BatchItem item = {&cache, std::span(tokens).subspan(t, 1), kept ? 1u : 0u};
    KV_TRY(model.Forward({&item, 1}, scratch, team, row));
    if (kept) {
      KV_TRY(CheckFinite(row, t));
    }
  }
  return base::Success();
}

std::vector<PlainSequence> DrawWorld(const model::ModelShape& shape, RandomStream& random,
                                     bool full) {
  constexpr std::uint64_t kMaxFloats = std::uint64_t{16} << 20;  // 64 MiB of rows a trial.
  const std::size_t context = shape.context;
  std::vector<PlainSequence> world(DrawSequenceCount(random));
  // Long sequences are drawn as long as their tokens last; the others are short.
  std::size_t left = 2 * context;
  std::size_t total = 0;
  for (PlainSequence& sequence : world) {
    const bool first = &sequence == &world.front();
    const std::size_t longest = std::min(context, std::max<std::size_t>(left, 4));
    const std::size_t length = first && full ? context : random.Between(1, longest);
    sequence.tokens = DrawTokens(length, shape.vocab, random);
    const bool second = &sequence == &world.front() + 1;  // So that there is always one.
    if (second || (!first && random.Chance(1, 2))) {
      sequence.shared_prefix = random.Between(1, std::min(length, world.front().tokens.size()));
      std::copy_n(world.front().tokens.begin(), sequence.shared_prefix, sequence.tokens.begin());
    }
    left -= std::min(left, length);
    total += length;
  }
  const std::uint64_t keep_one_in = (total * shape.vocab + kMaxFloats - 1) / kMaxFloats;
  for (PlainSequence& sequence : world) sequence.ChooseRows(keep_one_in, random);
  return world;
}

}  // namespace kvasir::eval
