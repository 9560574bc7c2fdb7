// The readers of requests: any bytes end in an ApiError that says something, or in a call whose
// values are in their ranges; what was parsed is written back as the same JSON.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "server/cache_page.h"
#include "server/completion_call.h"
#include "server/endpoints.h"
#include "server/host_check.h"
#include "server/json_writer.h"
#include "server/next_answer.h"

using namespace kvasir::server;  // NOLINT(google-build-using-namespace)

namespace {

template <typename T>
void CheckError(const ApiResult<T>& result) {
  if (result) return;
  KV_CHECK(result.error().status >= 400 && result.error().status < 500);
  KV_CHECK(!result.error().message.empty());
  const std::string json = ErrorJson(result.error());
  KV_CHECK(!kvasir::base::FirstInvalidUtf8(json) && ParseBody(json).has_value());
}

void CheckCall(const CompletionCall& call) {
  KV_CHECK(call.n >= 1 && call.n <= kMaxN);
  KV_CHECK(call.chat ? !call.messages.empty() : !call.prompts.empty());
  KV_CHECK(call.prompts.size() * call.n <= kMaxChoicesOfCall);
  KV_CHECK(call.stops.size() <= kMaxStops && call.top_logprobs <= kMaxTopLogprobs);
  KV_CHECK(call.cache_salt.size() <= kMaxSaltBytes);
  KV_CHECK(!(call.constraint && call.verse));
  KV_CHECK(!call.include_usage || call.stream);
  // Ids are the engine's to judge; every other setting is in its range.
  kvasir::sampling::SamplingOptions options = call.sampling;
  options.logit_bias.clear();
  options.top_k = 0;
  KV_CHECK(kvasir::sampling::Validate(options, 1).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  IsLoopbackHost(input);
  HttpRequest request;
  request.method = size % 2 == 0 ? "GET" : "POST";
  request.target = std::string(input.substr(0, 100));
  request.content_type = std::string(input.substr(0, 40));
  CheckError(FindEndpoint(request));
  CheckError(ReadCacheCall(input));

  const auto body = ParseBody(input);
  CheckError(body);
  if (!body) return 0;
  const std::string written = DumpJson(body.value());
  const auto again = ParseBody(written);
  KV_CHECK(again.has_value() && DumpJson(again.value()) == written);
  for (const bool chat : {false, true}) {
    const auto call = ReadCompletionCall(body.value(), chat);
    CheckError(call);
    if (call) CheckCall(call.value());
  }
  CheckError(ReadNextCall(body.value()));
  return 0;
}
