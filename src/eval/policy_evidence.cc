#include "eval/policy_evidence.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "eval/model_cache.h"
#include "eval/text_windows.h"
#include "kernels/softmax.h"

namespace kvasir::eval {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;
using kvcache::CachePolicy;

// The same windows under one policy.
struct Side {
  std::unique_ptr<kvcache::BlockPool> pool;
  std::vector<kvcache::CachedSequence> sequences;
};

class Lockstep {
 public:
  Lockstep(const model::Model& model, std::span<const TokenId> tokens,
           const ArrangementOptions& arrangement, base::ThreadTeam& team)
      : model_(model), tokens_(tokens), arrangement_(arrangement), team_(team) {
    const std::size_t rows = LogitRowsPerStep(model.shape());
    chunk_ =
        arrangement.prefill_chunk == 0
            ? rows
            : static_cast<std::size_t>(std::min<std::uint64_t>(rows, arrangement.prefill_chunk));
    group_ = std::max<std::size_t>(1, rows / model.shape().context);
  }

  base::Result<PolicyEvidence> Run(std::span<const CachePolicy> policies) {
    const auto context = static_cast<std::size_t>(model_.shape().context);
    const std::vector<TextWindow> windows = CutTextWindows(tokens_.size(), context, context);
    const std::size_t width = std::min(group_, windows.size());
    KV_TRY(Side full, MakeSide(FullCache(), width));
    std::vector<Side> sides;
    for (const CachePolicy& policy : policies) {
      KV_TRY(Side side, MakeSide(policy, width));
      sides.push_back(std::move(side));
    }
    full_evidence_.resize(tokens_.size() - 1);
    evidence_.assign(policies.size(), std::vector<TokenEvidence>(tokens_.size() - 1));
    for (std::size_t first = 0; first < windows.size(); first += width) {
      const auto group = std::span(windows).subspan(first, std::min(width, windows.size() - first));
      Restart(full);
      for (Side& side : sides) Restart(side);
      // The first window of a group is never shorter than the others.
      for (std::size_t begin = 0; begin < group[0].inputs; begin += chunk_) {
        KV_TRY(Step(group, begin, full));
        TakeFull();
        for (std::size_t i = 0; i < sides.size(); ++i) {
          KV_TRY(Step(group, begin, sides[i]));
          Compare(evidence_[i]);
        }
      }
    }
    PolicyEvidence result = {.full = SumUp(full_evidence_), .policies = {}};
    for (const auto& tokens : evidence_) result.policies.push_back(SumUp(tokens));
    return result;
  }

 private:
  CachePolicy FullCache() const {
    return CachePolicy::Full(model_.shape().layers, model_.shape().kv_heads);
  }

  base::Result<Side> MakeSide(const CachePolicy& policy, std::size_t width) const {
    Side side;
    KV_TRY(side.pool, MakeModelCache(model_.shape(), {.block_tokens = arrangement_.block_tokens,
                                                      .policy = policy,
                                                      .sequences = width}));
    for (std::size_t i = 0; i < width; ++i) side.sequences.emplace_back(*side.pool);
    return side;
  }

  static void Restart(Side& side) {
    for (kvcache::CachedSequence& sequence : side.sequences) sequence.Reset();
  }

  // Inputs [begin, begin + chunk) of every window of the group: logits_ of all of them.
  base::Result<void> Step(std::span<const TextWindow> group, std::size_t begin, Side& side) {
    items_.clear();
    rows_.clear();
    for (std::size_t i = 0; i < group.size(); ++i) {
      const TextWindow& window = group[i];
      const std::size_t end = std::min(begin + chunk_, window.inputs);
      if (end <= begin) continue;
      if (!arrangement_.kv_cache) side.sequences[i].Reset();
      const std::size_t from = arrangement_.kv_cache ? begin : 0;
      items_.push_back(
          {&side.sequences[i], tokens_.subspan(window.start + from, end - from), end - begin});
      for (std::size_t k = begin; k < end; ++k) rows_.push_back(window.start + k);
    }
    const std::size_t vocab = model_.shape().vocab;
    logits_.resize(std::max(logits_.size(), rows_.size() * vocab));
    KV_TRY(model_.Forward(items_, scratch_, team_, std::span(logits_).first(rows_.size() * vocab)));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      KV_TRY(CheckFinite(Row(i), rows_[i]));
    }
    return base::Success();
  }

  std::span<const float> Row(std::size_t i) const {
    const std::size_t vocab = model_.shape().vocab;
    return std::span(logits_).subspan(i * vocab, vocab);
  }

  double Loss(std::size_t i) const {
    return kernels::CrossEntropy(Row(i).data(), Row(i).size(), tokens_[rows_[i] + 1]);
  }

  // The rows are the full cache's.
  void TakeFull() {
    full_.resize(std::max(full_.size(), rows_.size()));
    team_.Run([&](base::Member& member) {
      const base::IndexRange share = member.Share(rows_.size());
      for (std::size_t i = share.begin; i < share.end; ++i) {
        full_[i].Set(Row(i));
        full_evidence_[rows_[i]] = {.nll = Loss(i), .divergence = 0, .same_top = true};
      }
    });
  }

  void Compare(std::vector<TokenEvidence>& evidence) {
    team_.Run([&](base::Member& member) {
      const base::IndexRange share = member.Share(rows_.size());
      TokenDistribution here;
      for (std::size_t i = share.begin; i < share.end; ++i) {
        here.Set(Row(i));
        evidence[rows_[i]] = {.nll = Loss(i),
                              .divergence = full_[i].Divergence(here),
                              .same_top = full_[i].top() == here.top()};
      }
    });
  }

  const model::Model& model_;
  const std::span<const TokenId> tokens_;
  const ArrangementOptions arrangement_;
  base::ThreadTeam& team_;
  std::size_t chunk_;  // Inputs of a window a step.
  std::size_t group_;  // Windows a step.
  model::Scratch scratch_;
  std::vector<model::BatchItem> items_;
  std::vector<std::size_t> rows_;                     // Text positions of the rows of logits.
  std::vector<float> logits_;                         // [rows][vocab]
  std::vector<TokenDistribution> full_;               // [rows]
  std::vector<TokenEvidence> full_evidence_;          // [tokens − 1]
  std::vector<std::vector<TokenEvidence>> evidence_;  // [policies][tokens − 1]
};

}  // namespace

base::Result<PolicyEvidence> EvaluatePolicies(const model::Model& model,
                                              std::span<const TokenId> tokens,
                                              std::span<const CachePolicy> policies,
                                              const ArrangementOptions& arrangement,
                                              base::ThreadTeam& team) {
  if (tokens.size() < 2) {
    return MakeError(ErrorCode::kBadData,
                     "the text has {} {}; at least 2 are needed, one to predict the other from",
                     tokens.size(), tokens.size() == 1 ? "token" : "tokens");
  }
  return Lockstep(model, tokens, arrangement, team).Run(policies);
}

}  // namespace kvasir::eval
