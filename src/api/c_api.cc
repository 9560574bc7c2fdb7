// Models, sessions and answers from C.
#include "kvasir/c_api.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "api/c_api_handles.h"

using kvasir::api::Guarded;
using kvasir::api::TextOf;

namespace {

std::vector<kvasir::TokenId> IdsOf(const uint32_t* ids, size_t count) {
  return count == 0 ? std::vector<kvasir::TokenId>()
                    : std::vector<kvasir::TokenId>(ids, ids + count);
}

const kvasir::Continuation& ContinuationOf(const kvasir_answer* answer, size_t i) {
  return answer->answer.continuations[i];
}

}  // namespace

const char* kvasir_version(void) { return kvasir::Version(); }
int kvasir_numerics_contract(void) { return kvasir::NumericsContract(); }

kvasir_error_code kvasir_error_get_code(const kvasir_error* error) {
  return static_cast<kvasir_error_code>(error->error.code);
}
const char* kvasir_error_message(const kvasir_error* error) { return error->error.message.c_str(); }
const char* kvasir_error_hint(const kvasir_error* error) { return error->error.hint.c_str(); }
void kvasir_error_free(kvasir_error* error) { delete error; }

kvasir_model* kvasir_model_load(const char* path, kvasir_error** error) {
  return Guarded<kvasir_model*>(
      error, nullptr, [&] { return new kvasir_model{kvasir::Model::Load(TextOf(path)).value()}; });
}
void kvasir_model_free(kvasir_model* model) { delete model; }
const char* kvasir_model_path(const kvasir_model* model) {
  return model->model.info().path.c_str();
}
const char* kvasir_model_architecture(const kvasir_model* model) {
  return model->model.info().architecture.c_str();
}
uint64_t kvasir_model_context(const kvasir_model* model) { return model->model.info().context; }
uint64_t kvasir_model_vocabulary(const kvasir_model* model) {
  return model->model.info().vocabulary;
}
uint64_t kvasir_model_parameters(const kvasir_model* model) {
  return model->model.info().parameters;
}

kvasir_tokens* kvasir_tokenize(const kvasir_model* model, const char* text, int as_prompt,
                               kvasir_error** error) {
  return Guarded<kvasir_tokens*>(error, nullptr, [&] {
    const std::string given = TextOf(text);
    auto ids = as_prompt != 0 ? model->model.PromptTokens(given) : model->model.Tokenize(given);
    return new kvasir_tokens{std::move(ids).value()};
  });
}
size_t kvasir_tokens_count(const kvasir_tokens* tokens) { return tokens->ids.size(); }
const uint32_t* kvasir_tokens_data(const kvasir_tokens* tokens) { return tokens->ids.data(); }
void kvasir_tokens_free(kvasir_tokens* tokens) { delete tokens; }

char* kvasir_detokenize(const kvasir_model* model, const uint32_t* ids, size_t count,
                        kvasir_error** error) {
  return Guarded<char*>(error, nullptr, [&] {
    const std::string text = model->model.Detokenize(IdsOf(ids, count)).value();
    auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy == nullptr) throw std::bad_alloc();
    std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
  });
}
void kvasir_text_free(char* text) { std::free(text); }

kvasir_session* kvasir_session_new(const kvasir_model* model, const kvasir_settings* settings,
                                   kvasir_error** error) {
  return Guarded<kvasir_session*>(error, nullptr, [&] {
    const kvasir::SessionOptions options =
        settings != nullptr ? settings->options : kvasir::SessionOptions();
    return new kvasir_session{kvasir::Session::Make(model->model, options).value()};
  });
}
void kvasir_session_free(kvasir_session* session) { delete session; }

kvasir_answer* kvasir_generate(kvasir_session* session, const kvasir_request* request,
                               kvasir_callback callback, void* context, kvasir_error** error) {
  return Guarded<kvasir_answer*>(error, nullptr, [&] {
    kvasir::TokenCallback told;
    std::string text;  // With a zero byte at its end.
    if (callback != nullptr) {
      told = [&](const kvasir::TokenEvent& event) {
        text = event.text;
        const kvasir_event shown = {event.continuation, event.token.id, event.token.logprob,
                                    text.c_str(), text.size()};
        return callback(&shown, context) != 0;
      };
    }
    return new kvasir_answer{session->session.Generate(request->request, told).value()};
  });
}
void kvasir_answer_free(kvasir_answer* answer) { delete answer; }
uint64_t kvasir_answer_seed(const kvasir_answer* answer) { return answer->answer.seed; }
size_t kvasir_answer_count(const kvasir_answer* answer) {
  return answer->answer.continuations.size();
}
const char* kvasir_answer_text(const kvasir_answer* answer, size_t i) {
  return ContinuationOf(answer, i).text.c_str();
}
size_t kvasir_answer_text_bytes(const kvasir_answer* answer, size_t i) {
  return ContinuationOf(answer, i).text.size();
}
const char* kvasir_answer_finish(const kvasir_answer* answer, size_t i) {
  return kvasir::FinishReasonName(ContinuationOf(answer, i).finish).data();
}
size_t kvasir_answer_token_count(const kvasir_answer* answer, size_t i) {
  return ContinuationOf(answer, i).tokens.size();
}
uint32_t kvasir_answer_token(const kvasir_answer* answer, size_t i, size_t t) {
  return ContinuationOf(answer, i).tokens[t].id;
}
double kvasir_answer_logprob(const kvasir_answer* answer, size_t i, size_t t) {
  return ContinuationOf(answer, i).tokens[t].logprob;
}

int kvasir_logits(kvasir_session* session, const uint32_t* ids, size_t count, int last_only,
                  float* values, size_t capacity, kvasir_error** error) {
  return Guarded<int>(error, 0, [&] {
    kvasir::Session& made = session->session;
    const std::vector<kvasir::TokenId> tokens = IdsOf(ids, count);
    // Before anything is computed.
    const uint64_t vocabulary = made.model().info().vocabulary;
    const size_t rows = last_only != 0 ? 1 : count;
    if (rows > capacity / vocabulary) {
      throw kvasir::Exception({kvasir::ErrorCode::kUsage,
                               "there is room for " + std::to_string(capacity) +
                                   " numbers: " + std::to_string(rows) + " rows of " +
                                   std::to_string(vocabulary) + " are needed",
                               {}});
    }
    const kvasir::Logits logits =
        (last_only != 0 ? made.LastLogits(tokens) : made.AllLogits(tokens)).value();
    std::copy(logits.values.begin(), logits.values.end(), values);
    return 1;
  });
}

int kvasir_evaluate(kvasir_session* session, const char* text, uint64_t stride,
                    kvasir_evaluation* evaluation, kvasir_error** error) {
  return Guarded<int>(error, 0, [&] {
    const kvasir::Evaluation scored = session->session.Evaluate(TextOf(text), stride).value();
    *evaluation = {scored.tokens, scored.nll, scored.perplexity, scored.bits_per_char};
    return 1;
  });
}
