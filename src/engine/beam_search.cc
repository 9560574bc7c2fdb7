#include "engine/beam_search.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/token_mask.h"
#include "constraints/constraint.h"
#include "engine/sequence_pool.h"
#include "kvcache/sequence.h"
#include "sampling/log_probs.h"
#include "tokenizer/stream_decoder.h"

namespace kvasir::engine {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenMask;

struct Beam {
  std::vector<TokenId> text;  // Prompt and tokens.
  std::vector<GeneratedToken> tokens;
  double logprob = 0;  // nats, of the tokens together
  std::unique_ptr<constraints::Matcher> matcher;
  kvcache::CachedSequence sequence;  // Of text, but for its last tokens.
};

// One way to lengthen a beam, or a finished beam as it is.
struct Candidate {
  double logprob;  // of the whole text
  std::size_t beam;
  std::optional<TokenId> token;  // Nothing: finished.
  double token_logprob;
  std::size_t choices;  // Tokens that the constraint allowed.
};

bool Better(const Candidate& a, const Candidate& b) {
  return std::tuple(-a.logprob, a.beam, a.token.value_or(0)) <
         std::tuple(-b.logprob, b.beam, b.token.value_or(0));
}

class Search {
 public:
  Search(const model::Model& model, const GenerateRequest& request, std::uint64_t width,
         const GeneratorOptions& options, base::ThreadTeam& team,
         std::unique_ptr<kvcache::BlockPool> pool)
      : model_(model),
        request_(request),
        width_(static_cast<std::size_t>(width)),
        options_(options),
        team_(team),
        pool_(std::move(pool)),
        mask_(model.shape().vocab) {
    beams_.push_back(
        {request.prompt, {}, 0, request.constraint->Clone(), kvcache::CachedSequence(*pool_)});
  }

  base::Result<std::vector<Beam>> Run() {
    KV_TRY(Prefill());
    while (!std::ranges::all_of(beams_, [this](const Beam& beam) { return Finished(beam); })) {
      KV_TRY(ComputeLogits());
      KV_TRY(auto candidates, Candidates());
      if (candidates.empty()) {
        return MakeError(ErrorCode::kUsage, "the constraint leads nowhere after {} tokens",
                         beams_.front().tokens.size());
      }
      Keep(candidates);
    }
    return std::move(beams_);
  }

 private:
  bool Finished(const Beam& beam) const {
    return beam.matcher->IsComplete() || beam.tokens.size() >= request_.max_tokens;
  }

  // All of the prompt but its last token, whose logits the first step wants.
  base::Result<void> Prefill() {
    Beam& beam = beams_.front();
    const std::uint64_t chunk = options_.prefill_chunk == 0
                                    ? options_.step_tokens
                                    : std::min(options_.prefill_chunk, options_.step_tokens);
    const std::size_t end = options_.use_cache ? beam.text.size() - 1 : 0;
    while (beam.sequence.length() < end) {
      const std::size_t begin = beam.sequence.length();
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(chunk, end - begin));
      const model::BatchItem item = {&beam.sequence, std::span(beam.text).subspan(begin, count), 0};
      KV_TRY(model_.Forward({&item, 1}, scratch_, team_, {}));
    }
    return base::Success();
  }

  // logits_ [unfinished beams][vocab], in order.
  base::Result<void> ComputeLogits() {
    std::vector<model::BatchItem> items;
    for (Beam& beam : beams_) {
      if (Finished(beam)) continue;
      if (!options_.use_cache) beam.sequence.Reset();
      items.push_back({&beam.sequence, std::span(beam.text).subspan(beam.sequence.length()), 1});
    }
    logits_.resize(items.size() * model_.shape().vocab);
    return model_.Forward(items, scratch_, team_, logits_);
  }

  // The best `width` ways to go on from all beams.
  base::Result<std::vector<Candidate>> Candidates() {
    std::vector<Candidate> best;
    std::size_t row = 0;
    for (std::size_t b = 0; b < beams_.size(); ++b) {
      const Beam& beam = beams_[b];
      if (Finished(beam)) {
        best.push_back({beam.logprob, b, std::nullopt, 0, 0});
        continue;
      }
      const std::size_t vocab = model_.shape().vocab;
      const std::span<const float> logits = std::span(logits_).subspan(row++ * vocab, vocab);
      const auto model = sampling::Normalise(logits);
      if (!model) {
        return MakeError(model.error().code, "the logits after position {} are no distribution: {}",
                         beam.text.size() - 1, model.error().message);
      }
      beam.matcher->Mask(mask_);
      KV_TRY(beam.matcher->Status());
      const std::size_t choices = mask_.Count();
      for (TokenId id = 0; id < vocab; ++id) {
        if (!mask_.Test(id)) continue;
        const double logprob = model.value().LogProb(logits[id]);
        best.push_back({beam.logprob + logprob, b, id, logprob, choices});
      }
    }
    const std::size_t kept = std::min(width_, best.size());
    std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(kept), best.end(),
                      Better);
    best.resize(kept);
    return best;
  }

  void Keep(std::span<const Candidate> candidates) {
    std::vector<Beam> next;
    for (const Candidate& candidate : candidates) {
      Beam& parent = beams_[candidate.beam];
      next.push_back({parent.text, parent.tokens, candidate.logprob, parent.matcher->Clone(),
                      parent.sequence.Fork()});
      if (!candidate.token) continue;
      Beam& beam = next.back();
      KV_CHECK(beam.matcher->Accept(*candidate.token));
      beam.text.push_back(*candidate.token);
      beam.tokens.push_back({*candidate.token, candidate.token_logprob, candidate.choices, {}});
    }
    beams_ = std::move(next);
  }

  const model::Model& model_;
  const GenerateRequest& request_;
  const std::size_t width_;
  const GeneratorOptions& options_;
  base::ThreadTeam& team_;
  std::unique_ptr<kvcache::BlockPool> pool_;
  std::vector<Beam> beams_;  // At most width_, the best first; before pool_ goes, they go.
  model::Scratch scratch_;
  std::vector<float> logits_;
  TokenMask mask_;
};

base::Result<void> Check(const model::ModelShape& shape, const GenerateRequest& request,
                         std::uint64_t width) {
  if (width < 1 || width > kMaxBeams) {
    return MakeError(ErrorCode::kUsage, "a beam of {} texts is not allowed: it must be 1 to {}",
                     width, kMaxBeams);
  }
  KV_CHECK(request.constraint != nullptr);
  KV_TRY(CheckRequest(request, shape));
  if (request.max_tokens > shape.context - request.prompt.size()) {
    return MakeError(ErrorCode::kUsage,
                     "a prompt of {} tokens and {} more do not fit the model's context of {}",
                     request.prompt.size(), request.max_tokens, shape.context);
  }
  return base::Success();
}

}  // namespace

base::Result<std::vector<ChoiceResult>> BeamSearch(const model::Model& model,
                                                   const tokenizer::Vocabulary& vocabulary,
                                                   const GenerateRequest& request,
                                                   std::uint64_t width,
                                                   const GeneratorOptions& options,
                                                   base::ThreadTeam& team) {
  KV_TRY(Check(model.shape(), request, width));
  // Parents and children live side by side for a moment.
  KV_TRY(auto pool, MakeSequencePool(model.shape(), options, 2 * width));
  Search search(model, request, width, options, team, std::move(pool));
  KV_TRY(const auto beams, search.Run());
  std::vector<ChoiceResult> results;
  for (const Beam& beam : beams) {
    ChoiceResult& result = results.emplace_back();
    result.index = static_cast<std::uint32_t>(results.size() - 1);
    result.tokens = beam.tokens;
    result.finish = beam.matcher->IsComplete() ? FinishReason::kConstraint : FinishReason::kLength;
    tokenizer::StreamDecoder decoder(vocabulary);
    for (const GeneratedToken& token : beam.tokens) result.text += decoder.Append(token.id);
    result.text += decoder.Flush();
  }
  return results;
}

}  // namespace kvasir::engine
