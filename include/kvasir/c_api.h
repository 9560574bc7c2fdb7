/* The library from C, for bindings of other languages: what session.h and request.h offer, as
 * functions over opaque handles.
 *
 * A function that can fail returns null or 0 and, where `error` is not null, sets *error to a new
 * error that the caller frees; it leaves *error alone where it succeeds. No exception and no signal
 * comes out of a function. Texts are UTF-8 and end with a zero byte; those returned belong to the
 * handle they were read from and live as long as it, unless a function says otherwise. Freeing null
 * does nothing. Handles are used by one thread at a time, but for models, which are thread-safe.
 */
#ifndef KVASIR_C_API_H_
#define KVASIR_C_API_H_

#include <stddef.h>
#include <stdint.h>

#include "kvasir/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvasir_error kvasir_error;
typedef struct kvasir_model kvasir_model;
typedef struct kvasir_settings kvasir_settings;
typedef struct kvasir_session kvasir_session;
typedef struct kvasir_request kvasir_request;
typedef struct kvasir_answer kvasir_answer;
typedef struct kvasir_tokens kvasir_tokens;

/* "0.1.0", and the number of the numerics contract. */
KVASIR_API const char* kvasir_version(void);
KVASIR_API int kvasir_numerics_contract(void);

/* Errors. */

typedef enum kvasir_error_code {
  KVASIR_ERROR_USAGE = 1,     /* A setting or argument that is not allowed. */
  KVASIR_ERROR_BAD_DATA = 2,  /* A file or text whose content is wrong. */
  KVASIR_ERROR_IO = 3,        /* The system could not read or write. */
  KVASIR_ERROR_EXHAUSTED = 4, /* Memory or another budget is used up. */
  KVASIR_ERROR_NUMERIC = 5,   /* A number that is not finite; a processor that is too old. */
  KVASIR_ERROR_CANCELLED = 6  /* Whoever asked, asked to stop. */
} kvasir_error_code;

KVASIR_API kvasir_error_code kvasir_error_get_code(const kvasir_error* error);
/* One line, for a person; the hint may be empty. */
KVASIR_API const char* kvasir_error_message(const kvasir_error* error);
KVASIR_API const char* kvasir_error_hint(const kvasir_error* error);
KVASIR_API void kvasir_error_free(kvasir_error* error);

/* Models. */

/* Null or "": $KVASIR_MODEL, else the bundled model where it is installed. */
KVASIR_API kvasir_model* kvasir_model_load(const char* path, kvasir_error** error);
/* Sessions keep what they need of a model that is freed. */
KVASIR_API void kvasir_model_free(kvasir_model* model);
KVASIR_API const char* kvasir_model_path(const kvasir_model* model);
KVASIR_API const char* kvasir_model_architecture(const kvasir_model* model);
KVASIR_API uint64_t kvasir_model_context(const kvasir_model* model);
KVASIR_API uint64_t kvasir_model_vocabulary(const kvasir_model* model);
KVASIR_API uint64_t kvasir_model_parameters(const kvasir_model* model);

/* The text's own tokens; with as_prompt, what a prompt becomes: a start token or, of an empty text,
 * a newline may be added. */
KVASIR_API kvasir_tokens* kvasir_tokenize(const kvasir_model* model, const char* text,
                                          int as_prompt, kvasir_error** error);
KVASIR_API size_t kvasir_tokens_count(const kvasir_tokens* tokens);
/* [count] */
KVASIR_API const uint32_t* kvasir_tokens_data(const kvasir_tokens* tokens);
KVASIR_API void kvasir_tokens_free(kvasir_tokens* tokens);
/* The text of ids [count], to be freed with kvasir_text_free. */
KVASIR_API char* kvasir_detokenize(const kvasir_model* model, const uint32_t* ids, size_t count,
                                   kvasir_error** error);
KVASIR_API void kvasir_text_free(char* text);

/* Sessions: a model at work, with its threads and its cache. Of the settings only the policy can
 * change an answer. */

/* The cache on, everything kept in f32, a thread for each physical core. */
KVASIR_API kvasir_settings* kvasir_settings_new(void);
KVASIR_API void kvasir_settings_free(kvasir_settings* settings);
KVASIR_API void kvasir_settings_set_threads(kvasir_settings* settings, size_t threads);
KVASIR_API void kvasir_settings_set_cache(kvasir_settings* settings, int enabled);
/* In the language of --kv. */
KVASIR_API void kvasir_settings_set_policy(kvasir_settings* settings, const char* policy);
KVASIR_API void kvasir_settings_set_block_tokens(kvasir_settings* settings, uint64_t tokens);
KVASIR_API void kvasir_settings_set_prefill_chunk(kvasir_settings* settings, uint64_t tokens);
KVASIR_API void kvasir_settings_set_max_batch(kvasir_settings* settings, uint64_t texts);
KVASIR_API void kvasir_settings_set_budget(kvasir_settings* settings, uint64_t bytes);

/* Null settings: those of kvasir_settings_new. */
KVASIR_API kvasir_session* kvasir_session_new(const kvasir_model* model,
                                              const kvasir_settings* settings,
                                              kvasir_error** error);
KVASIR_API void kvasir_session_free(kvasir_session* session);

/* Requests: a prompt and how to continue it. What is not allowed is told by kvasir_generate. */

KVASIR_API kvasir_request* kvasir_request_new(const char* prompt);
KVASIR_API void kvasir_request_free(kvasir_request* request);
/* In place of the prompt's text: ids [count]. */
KVASIR_API void kvasir_request_set_prompt_tokens(kvasir_request* request, const uint32_t* ids,
                                                 size_t count);
KVASIR_API void kvasir_request_set_max_tokens(kvasir_request* request, uint64_t tokens);
/* At the end of the context: 0 stops, 1 rolls on. */
KVASIR_API void kvasir_request_set_roll(kvasir_request* request, int roll);
KVASIR_API void kvasir_request_set_temperature(kvasir_request* request, float temperature);
KVASIR_API void kvasir_request_set_top_k(kvasir_request* request, uint32_t k);
KVASIR_API void kvasir_request_set_top_p(kvasir_request* request, float p);
KVASIR_API void kvasir_request_set_min_p(kvasir_request* request, float p);
KVASIR_API void kvasir_request_set_repeat_penalty(kvasir_request* request, float penalty);
KVASIR_API void kvasir_request_set_presence_penalty(kvasir_request* request, float penalty);
KVASIR_API void kvasir_request_set_frequency_penalty(kvasir_request* request, float penalty);
KVASIR_API void kvasir_request_set_bias(kvasir_request* request, uint32_t id, float bias);
/* Without one, a random seed is drawn and told in the answer. */
KVASIR_API void kvasir_request_set_seed(kvasir_request* request, uint64_t seed);
KVASIR_API void kvasir_request_set_count(kvasir_request* request, uint64_t count);
KVASIR_API void kvasir_request_set_best_of(kvasir_request* request, uint64_t drawn);
KVASIR_API void kvasir_request_add_stop(kvasir_request* request, const char* text);
KVASIR_API void kvasir_request_add_ban(kvasir_request* request, const char* text);
KVASIR_API void kvasir_request_set_end_token(kvasir_request* request, uint32_t id);
KVASIR_API void kvasir_request_set_ignore_end(kvasir_request* request, int ignore);
KVASIR_API void kvasir_request_set_top_logprobs(kvasir_request* request, size_t count);
/* A later constraint replaces an earlier one; choices are collected. */
KVASIR_API void kvasir_request_set_regex(kvasir_request* request, const char* expression);
KVASIR_API void kvasir_request_set_json_schema(kvasir_request* request, const char* schema,
                                               int assert_formats, int compact);
KVASIR_API void kvasir_request_set_grammar(kvasir_request* request, const char* grammar);
KVASIR_API void kvasir_request_add_choice(kvasir_request* request, const char* text);

/* What is told as a token comes; it lives for the call. */
typedef struct kvasir_event {
  size_t continuation; /* index */
  uint32_t id;
  double logprob;   /* Natural logarithm; the model's own, before temperature and filters. */
  const char* text; /* What became certain with it: whole characters; may be empty. */
  size_t text_bytes;
} kvasir_event;

/* Returns 0 to end the run: what there is by then is the answer. */
typedef int (*kvasir_callback)(const kvasir_event* event, void* context);

/* callback may be null. */
KVASIR_API kvasir_answer* kvasir_generate(kvasir_session* session, const kvasir_request* request,
                                          kvasir_callback callback, void* context,
                                          kvasir_error** error);
KVASIR_API void kvasir_answer_free(kvasir_answer* answer);
KVASIR_API uint64_t kvasir_answer_seed(const kvasir_answer* answer);
KVASIR_API size_t kvasir_answer_count(const kvasir_answer* answer);
/* Of continuation i, which must be below the count. */
KVASIR_API const char* kvasir_answer_text(const kvasir_answer* answer, size_t i);
KVASIR_API size_t kvasir_answer_text_bytes(const kvasir_answer* answer, size_t i);
/* "stop", "length", "constraint" or "cancelled". */
KVASIR_API const char* kvasir_answer_finish(const kvasir_answer* answer, size_t i);
KVASIR_API size_t kvasir_answer_token_count(const kvasir_answer* answer, size_t i);
/* Of its token t, which must be below the token count. */
KVASIR_API uint32_t kvasir_answer_token(const kvasir_answer* answer, size_t i, size_t t);
KVASIR_API double kvasir_answer_logprob(const kvasir_answer* answer, size_t i, size_t t);

/* Logits of ids [count] into values [capacity], which must hold count · vocabulary numbers, or with
 * last_only one row of them. Returns 1, or 0 with an error. */
KVASIR_API int kvasir_logits(kvasir_session* session, const uint32_t* ids, size_t count,
                             int last_only, float* values, size_t capacity, kvasir_error** error);

/* How well the model predicts a text (session.h). Returns 1, or 0 with an error. */
typedef struct kvasir_evaluation {
  uint64_t tokens;
  double nll;
  double perplexity;
  double bits_per_char;
} kvasir_evaluation;
KVASIR_API int kvasir_evaluate(kvasir_session* session, const char* text, uint64_t stride,
                               kvasir_evaluation* evaluation, kvasir_error** error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif  // KVASIR_C_API_H_
