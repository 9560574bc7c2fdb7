// Gathers what a run of the engine tells into answers, so that a run that is stopped has them too.
#ifndef KVASIR_API_ANSWER_BUILDER_H_
#define KVASIR_API_ANSWER_BUILDER_H_

#include <cstdint>
#include <exception>
#include <vector>

#include "base/result.h"
#include "engine/generator.h"
#include "kvasir/request.h"
#include "kvasir/session.h"

namespace kvasir::api {

// For one run. Borrows requests [n] and what the engine is asked for each of them. Single-threaded.
class AnswerBuilder {
 public:
  AnswerBuilder(const std::vector<Request>& requests,
                const std::vector<engine::GenerateRequest>& asked);

  // Runs the requests and tells the callback. Where it returns false the run ends, and that is no
  // error; where it throws, the run ends with kCancelled and `thrown` holds what it threw.
  base::Result<Usage> Run(engine::Generator& generator, const TokenCallback& callback,
                          std::exception_ptr& thrown);
  // What has come: of each request the count best continuations. What was cut short is kCancelled.
  std::vector<Answer> Finish();

 private:
  // Whether to go on.
  bool Take(const engine::TokenEvent& event, const TokenCallback& callback);

  const std::vector<Request>& requests_;
  const std::vector<engine::GenerateRequest>& asked_;
  std::vector<std::vector<engine::ChoiceResult>> choices_;  // [requests][choices]
};

}  // namespace kvasir::api

#endif  // KVASIR_API_ANSWER_BUILDER_H_
