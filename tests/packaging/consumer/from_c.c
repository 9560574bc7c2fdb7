/* Continues 春 in C and prints the text, or the error. usage: from_c [MODEL] */
#include <kvasir/c_api.h>
#include <stdio.h>

static int told(const kvasir_event* event, void* context) {
  *(size_t*)context += event->text_bytes;
  return 1;
}

int main(int argc, char** argv) {
  kvasir_error* error = NULL;
  kvasir_model* model = kvasir_model_load(argc > 1 ? argv[1] : NULL, &error);
  kvasir_session* session = model != NULL ? kvasir_session_new(model, NULL, &error) : NULL;
  kvasir_request* request = kvasir_request_new("春");
  kvasir_answer* answer = NULL;
  size_t bytes = 0;
  int status = 1;
  kvasir_request_set_seed(request, 1);
  kvasir_request_set_max_tokens(request, 24);
  if (session != NULL) answer = kvasir_generate(session, request, told, &bytes, &error);
  if (answer != NULL && bytes == kvasir_answer_text_bytes(answer, 0)) {
    printf("%s\n", kvasir_answer_text(answer, 0));
    status = 0;
  } else if (error != NULL) {
    fprintf(stderr, "%s\n", kvasir_error_message(error));
  }
  kvasir_answer_free(answer);
  kvasir_request_free(request);
  kvasir_session_free(session);
  kvasir_model_free(model);
  kvasir_error_free(error);
  return status;
}
