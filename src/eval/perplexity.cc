#include "eval/perplexity.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/utf8.h"
#include "eval/model_cache.h"
#include "eval/text_windows.h"
#include "kernels/scalar_math.h"
#include "kernels/softmax.h"

namespace kvasir::eval {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::TokenId;

constexpr double kLn2 = 0.6931471805599453;

// Runs windows through the model, some at a time, and turns rows of logits into losses.
class LossRun {
 public:
  LossRun(const model::Model& model, std::span<const TokenId> tokens,
          const ArrangementOptions& arrangement, base::ThreadTeam& team)
      : model_(model),
        tokens_(tokens),
        arrangement_(arrangement),
        team_(team),
        losses_(tokens.size() - 1) {
    const std::size_t rows = LogitRowsPerStep(model.shape());
    chunk_ =
        arrangement.prefill_chunk == 0
            ? rows
            : static_cast<std::size_t>(std::min<std::uint64_t>(rows, arrangement.prefill_chunk));
    group_ = std::max<std::size_t>(1, rows / model.shape().context);
  }

  base::Result<std::vector<double>> Run(std::span<const TextWindow> windows) {
    KV_TRY(const auto pool,
           MakeModelCache(model_.shape(), {.block_tokens = arrangement_.block_tokens,
                                           .policy = arrangement_.policy,
                                           .sequences = std::min(group_, windows.size())}));
    std::vector<kvcache::CachedSequence> sequences;
    for (std::size_t i = 0; i < std::min(group_, windows.size()); ++i)
      sequences.emplace_back(*pool);
    for (std::size_t first = 0; first < windows.size(); first += group_) {
      const auto group = windows.subspan(first, std::min(group_, windows.size() - first));
      for (kvcache::CachedSequence& sequence : sequences) sequence.Reset();
      // The first window of a group is never shorter than the others.
      for (std::size_t begin = 0; begin < group[0].inputs; begin += chunk_) {
        KV_TRY(Step(group, sequences, begin));
      }
    }
    return std::move(losses_);
  }

 private:
  // Inputs [begin, begin + chunk) of every window of the group.
  base::Result<void> Step(std::span<const TextWindow> group,
                          std::vector<kvcache::CachedSequence>& sequences, std::size_t begin) {
    items_.clear();
    rows_.clear();
    for (std::size_t i = 0; i < group.size(); ++i) {
      const TextWindow& window = group[i];
      const std::size_t end = std::min(begin + chunk_, window.inputs);
      if (end <= begin) continue;
      if (!arrangement_.kv_cache) sequences[i].Reset();
      const std::size_t from = arrangement_.kv_cache ? begin : 0;
      const std::size_t wanted = end - std::min(end, std::max(begin, window.skip));
      items_.push_back({&sequences[i], tokens_.subspan(window.start + from, end - from), wanted});
      for (std::size_t k = end - wanted; k < end; ++k) rows_.push_back(window.start + k);
    }
    const std::size_t vocab = model_.shape().vocab;
    logits_.resize(std::max(logits_.size(), rows_.size() * vocab));
    KV_TRY(model_.Forward(items_, scratch_, team_, std::span(logits_).first(rows_.size() * vocab)));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      KV_TRY(CheckFinite(std::span(logits_).subspan(i * vocab, vocab), rows_[i]));
    }
    team_.Run([&](base::Member& member) {
      const base::IndexRange share = member.Share(rows_.size());
      for (std::size_t i = share.begin; i < share.end; ++i) {
        losses_[rows_[i]] =
            kernels::CrossEntropy(logits_.data() + i * vocab, vocab, tokens_[rows_[i] + 1]);
      }
    });
    return base::Success();
  }

  const model::Model& model_;
  std::span<const TokenId> tokens_;
  const ArrangementOptions arrangement_;
  base::ThreadTeam& team_;
  std::size_t chunk_;  // Inputs of a window a step.
  std::size_t group_;  // Windows a step.
  model::Scratch scratch_;
  std::vector<model::BatchItem> items_;
  std::vector<std::size_t> rows_;  // Text positions of the step's rows of logits.
  std::vector<float> logits_;      // [rows][vocab]
  std::vector<double> losses_;     // [tokens − 1]
};

// Characters that end with the first token are given, not predicted.
std::uint64_t PredictedCharacters(const tokenizer::Vocabulary& vocabulary, TokenId first,
                                  std::string_view text) {
  const auto count = [](std::string_view part) {
    return static_cast<std::uint64_t>(
        std::count_if(part.begin(), part.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  };
  const std::string_view bytes = vocabulary.Bytes(first);
  const bool led = vocabulary.add_space_prefix() && bytes.starts_with(' ');  // Not of the text.
  const std::size_t given_bytes = bytes.size() - (led ? 1 : 0);
  std::uint64_t given = count(text.substr(0, given_bytes));
  // A byte token may leave its character open.
  if (given > 0 && given_bytes < text.size() && (text[given_bytes] & 0xC0) == 0x80) --given;
  return count(text) - given;
}

}  // namespace

base::Result<std::vector<double>> TokenLosses(const model::Model& model,
                                              std::span<const TokenId> tokens,
                                              const PerplexityOptions& options,
                                              base::ThreadTeam& team) {
  const std::uint64_t context = model.shape().context;
  const std::uint64_t stride = options.stride == 0 ? context : options.stride;
  if (stride > context) {
    return MakeError(ErrorCode::kUsage, "stride {} is not allowed: 1 to {}, the model's context",
                     stride, context);
  }
  if (tokens.size() < 2) {
    return MakeError(ErrorCode::kBadData,
                     "the text has {} {}; at least 2 are needed, one to predict the other from",
                     tokens.size(), tokens.size() == 1 ? "token" : "tokens");
  }
  const std::vector<TextWindow> windows = CutTextWindows(tokens.size(), context, stride);
  return LossRun(model, tokens, options.arrangement, team).Run(windows);
}

base::Result<Perplexity> EvaluateText(const model::Model& model,
                                      const tokenizer::Tokenizer& tokenizer, std::string_view text,
                                      const PerplexityOptions& options, base::ThreadTeam& team) {
  Perplexity result;
  KV_TRY(result.text_tokens, tokenizer.Encode(text));
  KV_TRY(result.token_nll, TokenLosses(model, result.text_tokens, options, team));
  double sum = 0;
  for (double nll : result.token_nll) sum += nll;
  result.tokens = result.token_nll.size();
  result.nll = sum / static_cast<double>(result.tokens);
  result.perplexity = kernels::ExpF64(result.nll);
  result.characters = PredictedCharacters(tokenizer.vocabulary(), result.text_tokens.front(), text);
  result.bits_per_char = sum / kLn2 / static_cast<double>(result.characters);
  return result;
}

}  // namespace kvasir::eval
