// Generator: continues many prompts together, one batch a step.
#ifndef KVASIR_ENGINE_GENERATOR_H_
#define KVASIR_ENGINE_GENERATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "engine/generator_options.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/trace.h"
#include "model/model.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::engine {

struct TokenEvent {
  std::size_t request = 0;   // index
  std::uint32_t choice = 0;  // choice_index
  const GeneratedToken& token;
  std::string_view text;               // What became certain with this token; may be empty.
  std::optional<FinishReason> finish;  // Of the choice's last token.
};

struct LogitsEvent {
  std::size_t request = 0;
  std::uint32_t choice = 0;
  std::size_t position = 0;    // The row predicts the token at position + 1.
  std::span<const float> row;  // [vocab], raw
};

// Each may be null. Called from Run's thread, in the order of the events of a choice; those of
// different choices interleave in an order that is no promise.
struct Observer {
  std::function<base::Result<void>(const TokenEvent&)> on_token;  // Its Error ends the run.
  std::function<void(const LogitsEvent&)> on_logits;
  std::function<void(const StepTrace&)> on_step;
};

struct Timing {
  double prefill_ms = 0;  // Steps' time, by their share of positions before the first token.
  double decode_ms = 0;   // The rest.
};

struct GenerateReport {
  std::vector<RequestResult> results;  // [requests]
  Usage usage;
  Timing timing;
  WorkCounts work;
  std::uint64_t steps = 0;
  std::uint64_t bytes_per_token = 0;    // K and V of one position, in all layers
  std::uint64_t peak_bytes = 0;         // Most bytes of K and V held from one step to the next.
  std::uint64_t peak_shared_bytes = 0;  // Of these, most in blocks that several sequences use;
  std::uint64_t peak_saved_bytes = 0;   // most that sharing them saves.
  std::uint64_t idle_bytes = 0;         // Kept at the end of texts that nobody writes any more.
  std::uint64_t preemptions = 0;        // Sequences that gave their blocks up for others.
  std::vector<StepTrace> trace;         // [steps], if the observer has an on_step.

  // Completion tokens ÷ decode time; 0 if nothing was decoded.
  double TokensPerSecond() const {
    return timing.decode_ms > 0
               ? static_cast<double>(usage.completion_tokens) * 1000.0 / timing.decode_ms
               : 0.0;
  }
};

// A scheduler for callers that have all their requests at once and wait for the answers. Borrows
// model, vocabulary and team, which must outlive it and fit together. Single-threaded. Runs share
// nothing but buffers and cached blocks: each is a function of its requests.
class Generator {
 public:
  // kUsage for options that are not allowed.
  static base::Result<std::unique_ptr<Generator>> Make(const model::Model& model,
                                                       const tokenizer::Vocabulary& vocabulary,
                                                       base::ThreadTeam& team,
                                                       const GeneratorOptions& options);

  // Continues every prompt. All requests are checked before anything is computed; a prompt is
  // computed once for all its choices (with the cache), which then share its blocks; so is what
  // prompts have in common. Where the budget does not hold all texts, the latest wait. A text ends
  // with kLength when prompt and continuation fill the context; a prompt that fills it alone gets
  // no token (Case C57). Errors: kUsage, naming the request if there are several, also for a text
  // that may outgrow the budget alone; kNumeric naming the position of a logit that is not finite;
  // kExhausted when memory runs out; on_token's.
  base::Result<GenerateReport> Run(std::span<const GenerateRequest> requests,
                                   const Observer& observer = {});

  // As Scheduler's, between runs.
  std::size_t ExportBlocks(std::span<const TokenId> text, kvcache::BlockStore& to) {
    return scheduler_->ExportBlocks({}, text, to);
  }
  std::size_t ImportBlocks(std::span<const TokenId> text, kvcache::BlockStore& from) {
    return scheduler_->ImportBlocks({}, text, from);
  }

 private:
  explicit Generator(std::unique_ptr<Scheduler> scheduler) : scheduler_(std::move(scheduler)) {}

  const std::unique_ptr<Scheduler> scheduler_;  // Without requests, but in Run.
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_GENERATOR_H_
