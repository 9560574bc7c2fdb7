// Settings and requests from C: each function sets one field. Where memory runs out while a text is
// copied, the field stays as it was.
#include <memory>

#include "api/c_api_handles.h"
#include "kvasir/c_api.h"

using kvasir::api::Guarded;
using kvasir::api::TextOf;

namespace {

template <typename Body>
void Try(Body&& body) {
  Guarded<int>(nullptr, 0, [&] {
    body();
    return 1;
  });
}

void SetConstraint(kvasir_request* request, kvasir::Constraint (*make)(std::string),
                   const char* text) {
  Try([&] { request->request.constraint = make(TextOf(text)); });
}

}  // namespace

kvasir_settings* kvasir_settings_new(void) { return new (std::nothrow) kvasir_settings(); }
void kvasir_settings_free(kvasir_settings* settings) { delete settings; }
void kvasir_settings_set_threads(kvasir_settings* settings, size_t threads) {
  settings->options.threads = threads;
}
void kvasir_settings_set_cache(kvasir_settings* settings, int enabled) {
  settings->options.cache.enabled = enabled != 0;
}
void kvasir_settings_set_policy(kvasir_settings* settings, const char* policy) {
  Try([&] { settings->options.cache.policy = TextOf(policy); });
}
void kvasir_settings_set_block_tokens(kvasir_settings* settings, uint64_t tokens) {
  settings->options.cache.block_tokens = tokens;
}
void kvasir_settings_set_prefill_chunk(kvasir_settings* settings, uint64_t tokens) {
  settings->options.cache.prefill_chunk = tokens;
}
void kvasir_settings_set_max_batch(kvasir_settings* settings, uint64_t texts) {
  settings->options.cache.max_batch = texts;
}
void kvasir_settings_set_budget(kvasir_settings* settings, uint64_t bytes) {
  settings->options.cache.budget_bytes = bytes;
}

kvasir_request* kvasir_request_new(const char* prompt) {
  return Guarded<kvasir_request*>(nullptr, nullptr, [&] {
    auto request = std::make_unique<kvasir_request>();
    request->request.prompt = TextOf(prompt);
    return request.release();
  });
}
void kvasir_request_free(kvasir_request* request) { delete request; }
void kvasir_request_set_prompt_tokens(kvasir_request* request, const uint32_t* ids, size_t count) {
  if (count == 0) return request->request.prompt_tokens.clear();
  Try([&] { request->request.prompt_tokens.assign(ids, ids + count); });
}
void kvasir_request_set_roll(kvasir_request* request, int roll) {
  request->request.overflow = roll != 0 ? kvasir::Overflow::kRoll : kvasir::Overflow::kStop;
}
void kvasir_request_set_max_tokens(kvasir_request* request, uint64_t tokens) {
  request->request.max_tokens = tokens;
}
void kvasir_request_set_temperature(kvasir_request* request, float temperature) {
  request->request.temperature = temperature;
}
void kvasir_request_set_top_k(kvasir_request* request, uint32_t k) { request->request.top_k = k; }
void kvasir_request_set_top_p(kvasir_request* request, float p) { request->request.top_p = p; }
void kvasir_request_set_min_p(kvasir_request* request, float p) { request->request.min_p = p; }
void kvasir_request_set_repeat_penalty(kvasir_request* request, float penalty) {
  request->request.repeat_penalty = penalty;
}
void kvasir_request_set_presence_penalty(kvasir_request* request, float penalty) {
  request->request.presence_penalty = penalty;
}
void kvasir_request_set_frequency_penalty(kvasir_request* request, float penalty) {
  request->request.frequency_penalty = penalty;
}
void kvasir_request_set_seed(kvasir_request* request, uint64_t seed) {
  request->request.seed = seed;
}
void kvasir_request_set_count(kvasir_request* request, uint64_t count) {
  request->request.count = count;
}
void kvasir_request_set_best_of(kvasir_request* request, uint64_t drawn) {
  request->request.best_of = drawn;
}
void kvasir_request_set_end_token(kvasir_request* request, uint32_t id) {
  request->request.end_token = id;
}
void kvasir_request_set_top_logprobs(kvasir_request* request, size_t count) {
  request->request.top_logprobs = count;
}
void kvasir_request_set_ignore_end(kvasir_request* request, int ignore) {
  request->request.ignore_end = ignore != 0;
}
void kvasir_request_set_bias(kvasir_request* request, uint32_t id, float bias) {
  Try([&] { request->request.biases[id] = bias; });
}
void kvasir_request_add_stop(kvasir_request* request, const char* text) {
  Try([&] { request->request.stops.push_back(TextOf(text)); });
}
void kvasir_request_add_ban(kvasir_request* request, const char* text) {
  Try([&] { request->request.bans.push_back(TextOf(text)); });
}
void kvasir_request_set_regex(kvasir_request* request, const char* expression) {
  SetConstraint(request, kvasir::Constraint::Regex, expression);
}
void kvasir_request_set_grammar(kvasir_request* request, const char* grammar) {
  SetConstraint(request, kvasir::Constraint::Grammar, grammar);
}
void kvasir_request_set_json_schema(kvasir_request* request, const char* schema, int assert_formats,
                                    int compact) {
  Try([&] {
    kvasir::Constraint constraint = kvasir::Constraint::JsonSchema(TextOf(schema));
    constraint.assert_formats = assert_formats != 0;
    constraint.compact_json = compact != 0;
    request->request.constraint = std::move(constraint);
  });
}
void kvasir_request_add_choice(kvasir_request* request, const char* text) {
  Try([&] {
    auto& constraint = request->request.constraint;
    if (!constraint || constraint->kind != kvasir::Constraint::Kind::kChoices) {
      constraint = kvasir::Constraint::Choices({});
    }
    constraint->texts.push_back(TextOf(text));
  });
}
