// ModelService: one model for many clients; from calls to requests of the engine, and everything
// that can be answered without it.
#ifndef KVASIR_SERVER_MODEL_SERVICE_H_
#define KVASIR_SERVER_MODEL_SERVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/token_mask.h"
#include "constraints/constraint_compiler.h"
#include "model/model.h"
#include "server/answer.h"
#include "server/chat_template.h"
#include "server/completion_answer.h"
#include "server/completion_call.h"
#include "server/next_answer.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::server {

struct ModelServiceOptions {
  std::string id = {};             // What clients call the model.
  std::string chat_template = {};  // tokenizer.chat_template of its file; empty: none.
  base::Hash128 weights = {};      // Of the file's bytes.
  std::string cache_policy = {};   // "full,dtype=f32"
  std::uint64_t created = 0;       // When the server started, in seconds since 1970.
  double deadline_seconds = 0;     // Longest time for a request; 0: no end.
};

// system_fingerprint: equal ones and equal seeds promise equal bytes. Of the model's weights, the
// version of the numerics contract and the cache's policy.
std::string Fingerprint(const base::Hash128& weights, std::string_view cache_policy);

// Borrows model and tokenizer. Thread-safe: all but Make is const, or guards itself.
class ModelService {
 public:
  // kUsage for a chat template that is not known, or an empty id.
  static base::Result<std::unique_ptr<ModelService>> Make(const model::Model& model,
                                                          const tokenizer::Tokenizer& tokenizer,
                                                          ModelServiceOptions options);

  const std::string& id() const { return options_.id; }
  const std::string& fingerprint() const { return fingerprint_; }
  const std::string& cache_policy() const { return options_.cache_policy; }

  // An answer that has not been submitted, its requests ready. client: whom the engine shares
  // evenly among. ApiError: 400, 404 for another model.
  ApiResult<std::shared_ptr<Answer>> Complete(std::string_view body, bool chat,
                                              const std::string& client);
  ApiResult<std::shared_ptr<Answer>> Next(std::string_view body, const std::string& client);

  // A prompt's tokens: 400 for a text or ids that are none of the model's.
  ApiResult<std::vector<base::TokenId>> IdsOf(const PromptInput& prompt) const;

  // Bodies of replies.
  ApiResult<std::string> Tokenize(std::string_view body) const;
  ApiResult<std::string> Detokenize(std::string_view body) const;
  std::string Models() const;
  ApiResult<std::string> ModelNamed(std::string_view id) const;

 private:
  ModelService(const model::Model& model, const tokenizer::Tokenizer& tokenizer,
               ModelServiceOptions options, ChatEncoder chat);

  const tokenizer::Vocabulary& vocabulary() const { return tokenizer_.vocabulary(); }
  ApiResult<void> CheckModel(std::string_view id) const;
  // The tokens of each prompt.
  ApiResult<std::vector<std::vector<base::TokenId>>> PromptsOf(const CompletionCall& call) const;
  ApiResult<std::shared_ptr<const constraints::Matcher>> MatcherOf(const CompletionCall& call);
  // The tokens of answer_prefix, and the matcher once it has taken them.
  ApiResult<std::vector<base::TokenId>> PrefixOf(const CompletionCall& call) const;
  ApiResult<std::shared_ptr<const constraints::Matcher>> After(
      std::shared_ptr<const constraints::Matcher> matcher,
      std::span<const base::TokenId> prefix) const;
  // A request with everything but its prompt.
  ApiResult<engine::EngineRequest> RequestOf(const CompletionCall& call, std::uint64_t seed);
  AnswerHead HeadOf(const CompletionCall& call, std::string_view body, std::uint64_t seed) const;
  std::string ModelJson() const;

  const model::Model& model_;
  const tokenizer::Tokenizer& tokenizer_;
  const ModelServiceOptions options_;
  const ChatEncoder chat_;
  const std::string fingerprint_;
  const base::TokenMask drawable_;         // [vocab]: where no constraint says otherwise
  const std::vector<base::TokenId> ends_;  // The vocabulary's.
  constraints::ConstraintCompiler compiler_;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_MODEL_SERVICE_H_
