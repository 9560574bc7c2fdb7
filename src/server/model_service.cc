#include "server/model_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/random_seed.h"
#include "constraints/acrostic.h"
#include "constraints/drawable_tokens.h"
#include "constraints/verse_form.h"
#include "engine/clock.h"
#include "engine/prompt.h"
#include "kernels/contract.h"
#include "server/json_writer.h"
#include "tokenizer/stream_decoder.h"

namespace kvasir::server {
namespace {

using base::TokenId;

// What the engine and the tokenizer say of a request is told as being about a field.
ApiError About(std::string field, const base::Error& error) {
  ApiError told(error);
  told.param = std::move(field);
  return told;
}

// The field that an engine's refusal is about: settings that only a vocabulary of this size can
// judge, else the text itself.
std::string FieldAtFault(const sampling::SamplingOptions& sampling, std::uint64_t vocab,
                         std::string text) {
  if (sampling.top_k > vocab) return "top_k";
  const auto& bias = sampling.logit_bias;
  return !bias.empty() && bias.rbegin()->first >= vocab ? "logit_bias" : std::move(text);
}

}  // namespace

std::string Fingerprint(const base::Hash128& weights, std::string_view cache_policy) {
  const std::string text = fmt::format("{:016x}{:016x} contract={} cache={}", weights.high,
                                       weights.low, kernels::kContractVersion, cache_policy);
  return fmt::format("kvasir-{:016x}", base::HashBytes64(std::as_bytes(std::span(text))));
}

ModelService::ModelService(const model::Model& model, const tokenizer::Tokenizer& tokenizer,
                           ModelServiceOptions options, ChatEncoder chat)
    : model_(model),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      chat_(std::move(chat)),
      fingerprint_(Fingerprint(options_.weights, options_.cache_policy)),
      drawable_(constraints::DefaultMask(tokenizer.vocabulary())),
      ends_(engine::EndTokens(tokenizer.vocabulary())),
      compiler_(tokenizer.vocabulary()) {}

base::Result<std::unique_ptr<ModelService>> ModelService::Make(
    const model::Model& model, const tokenizer::Tokenizer& tokenizer, ModelServiceOptions options) {
  if (options.id.empty()) {
    return base::MakeError(base::ErrorCode::kUsage, "the model's name is empty");
  }
  KV_TRY(auto chat, ChatEncoder::Make(tokenizer, options.chat_template));
  return std::unique_ptr<ModelService>(
      new ModelService(model, tokenizer, std::move(options), std::move(chat)));
}

ApiResult<void> ModelService::CheckModel(std::string_view id) const {
  if (id == options_.id) return BOOST_OUTCOME_V2_NAMESPACE::success();
  constexpr std::size_t kShown = 64;
  return ApiError(404,
                  fmt::format("there is no model '{}': this server has '{}'", id.substr(0, kShown),
                              options_.id),
                  "model", "model_not_found");
}

ApiResult<std::vector<TokenId>> ModelService::IdsOf(const PromptInput& prompt) const {
  if (prompt.ids) {
    if (const auto known = vocabulary().CheckIds(*prompt.ids); !known) {
      return About("prompt", known.error());
    }
    return *prompt.ids;
  }
  auto ids = engine::PromptTokens(tokenizer_, prompt.text);
  if (!ids) return About("prompt", ids.error());
  return std::move(ids.value());
}

ApiResult<std::vector<std::vector<TokenId>>> ModelService::PromptsOf(
    const CompletionCall& call) const {
  std::vector<std::vector<TokenId>> prompts;
  if (call.chat) {
    KV_TRY(auto ids, chat_.Encode(call.messages));
    prompts.push_back(std::move(ids));
  }
  for (const PromptInput& prompt : call.prompts) {
    KV_TRY(auto ids, IdsOf(prompt));
    prompts.push_back(std::move(ids));
  }
  KV_TRY(const auto prefix, PrefixOf(call));
  for (auto& ids : prompts) ids.insert(ids.end(), prefix.begin(), prefix.end());
  const std::uint64_t context = model_.shape().context;
  for (const auto& ids : prompts) {
    if (ids.size() <= context) continue;
    return ApiError(400,
                    fmt::format("the prompt has {} tokens, but the model's context holds only {}",
                                ids.size(), context),
                    call.chat ? "messages" : "prompt", "context_length_exceeded");
  }
  return prompts;
}

ApiResult<std::shared_ptr<const constraints::Matcher>> ModelService::MatcherOf(
    const CompletionCall& call) {
  std::shared_ptr<const constraints::Matcher> matcher;
  if (call.constraint) {
    auto made = compiler_.Make(*call.constraint);
    if (!made) {
      ApiError error(made.error());
      error.code = "invalid_constraint";
      return error;
    }
    matcher = std::move(made.value());
  }
  if (call.verse) {
    const VerseCall& verse = *call.verse;
    const auto make = [&]() -> base::Result<std::unique_ptr<constraints::Matcher>> {
      KV_TRY(const auto rules, constraints::MakeVerseRules(verse.rules));
      if (verse.form == "acrostic") {
        return constraints::MakeAcrosticMatcher(vocabulary(), *verse.heads,
                                                static_cast<std::size_t>(verse.chars), rules);
      }
      KV_TRY(const auto form, constraints::ParseVerseForm(verse.form));
      return constraints::MakeVerseMatcher(vocabulary(), form, verse.heads, rules);
    };
    auto made = make();
    if (!made) return About("verse", made.error());
    matcher = std::move(made.value());
    // A poem is whole or not begun; the prompt's length comes on top, and is the client's matter.
  }
  return matcher;
}

// Only a prefix whose tokens spell just it: a tokenizer may put a space before a text.
ApiResult<std::vector<TokenId>> ModelService::PrefixOf(const CompletionCall& call) const {
  if (call.answer_prefix.empty()) return std::vector<TokenId>();
  auto ids = tokenizer_.Encode(call.answer_prefix);
  if (!ids) return About("answer_prefix", ids.error());
  std::string spelt;
  for (const TokenId id : ids.value()) spelt += vocabulary().Bytes(id);
  if (spelt == call.answer_prefix) return std::move(ids.value());
  return ApiError(400, "'answer_prefix' is no text of this model's tokens by itself",
                  "answer_prefix", "invalid_value");
}

ApiResult<std::shared_ptr<const constraints::Matcher>> ModelService::After(
    std::shared_ptr<const constraints::Matcher> matcher, std::span<const TokenId> prefix) const {
  if (!matcher || prefix.empty()) return matcher;
  std::shared_ptr<constraints::Matcher> after = matcher->Clone();
  std::size_t characters = 0;
  for (const TokenId id : prefix) {
    if (!after->Accept(id)) {
      return ApiError(
          400,
          fmt::format("the constraint does not allow 'answer_prefix' from its character {} on",
                      characters + 1),
          "answer_prefix", "invalid_value");
    }
    characters += CountCharacters(vocabulary().Bytes(id));
  }
  return std::shared_ptr<const constraints::Matcher>(std::move(after));
}

ApiResult<engine::EngineRequest> ModelService::RequestOf(const CompletionCall& call,
                                                         std::uint64_t seed) {
  engine::EngineRequest request;
  engine::GenerateRequest& work = request.generate;
  work.max_tokens = call.max_tokens.value_or(model_.shape().context);
  // A prompt is scored only where tokens follow: some are drawn, and not shown. Two, so that the
  // request outlives the step that computes the prompt, after which the engine tells its scores.
  if (call.echo && call.logprobs && work.max_tokens == 0) work.max_tokens = 2;
  work.sampling = call.sampling;
  work.seed = seed;
  work.choices = call.n;
  work.stops = call.stops;
  work.top_logprobs =
      std::min<std::size_t>(call.top_logprobs, static_cast<std::size_t>(model_.shape().vocab));
  work.prompt_logprobs = call.echo && call.logprobs;
  work.end_tokens = ends_;
  if (call.chat) {
    for (const TokenId end : chat_.end_tokens()) {
      if (std::find(ends_.begin(), ends_.end(), end) == ends_.end()) {
        work.end_tokens.push_back(end);
      }
    }
  }
  KV_TRY(auto matcher, MatcherOf(call));
  KV_TRY(const auto prefix, PrefixOf(call));
  KV_TRY(work.constraint, After(std::move(matcher), prefix));
  work.continued = static_cast<std::size_t>(call.continued);
  request.cache_salt = call.cache_salt;
  if (options_.deadline_seconds > 0) {
    request.deadline_us =
        engine::Clock::Steady().Now() + static_cast<std::uint64_t>(options_.deadline_seconds * 1e6);
  }
  return request;
}

AnswerHead ModelService::HeadOf(const CompletionCall& call, std::string_view body,
                                std::uint64_t seed) const {
  AnswerHead head;
  head.chat = call.chat;
  head.logprobs = call.logprobs;
  head.top_logprobs = call.top_logprobs > 0;
  head.include_usage = call.include_usage;
  // The same request with the same seed has the same name, so that whole answers can be compared.
  const std::string named = fmt::format("{} {} {}", fingerprint_, seed, body);
  const base::Hash128 hash = base::HashBytes128(std::as_bytes(std::span(named)));
  head.id = fmt::format("{}-{:016x}{:016x}", call.chat ? "chatcmpl" : "cmpl", hash.high, hash.low);
  head.created = options_.created;
  head.model = options_.id;
  head.fingerprint = fingerprint_;
  return head;
}

ApiResult<std::shared_ptr<Answer>> ModelService::Complete(std::string_view body, bool chat,
                                                          const std::string& client) {
  KV_TRY(const JsonValue json, ParseBody(body));
  KV_TRY(const CompletionCall call, ReadCompletionCall(json, chat));
  KV_TRY(CheckModel(call.model));
  const std::uint64_t seed = call.seed ? *call.seed : base::RandomSeed();
  KV_TRY(auto request, RequestOf(call, seed));
  request.client = client;
  KV_TRY(auto prompts, PromptsOf(call));
  CompletionAnswerOptions options;
  options.head = HeadOf(call, body, seed);
  options.seed = seed;
  options.n = call.n;
  options.stream = call.stream;
  options.echo = call.echo;
  options.hide_tokens = call.echo && call.logprobs && call.max_tokens == 0u;
  for (const auto& ids : prompts) {
    const bool told = !chat && (call.echo || call.logprobs);
    KV_TRY(auto text, told ? tokenizer::Decode(vocabulary(), ids) : std::string());
    options.prompt_texts.push_back(std::move(text));
  }
  if (call.echo && call.logprobs) options.prompt_ids = prompts;
  auto answer = std::make_shared<CompletionAnswer>(std::move(options), vocabulary());
  for (auto& ids : prompts) {
    request.generate.prompt = std::move(ids);
    const auto checked = engine::CheckRequest(request.generate, model_.shape());
    if (!checked) {
      return About(FieldAtFault(request.generate.sampling, model_.shape().vocab,
                                chat ? "messages" : "prompt"),
                   checked.error());
    }
    answer->requests.push_back(request);
  }
  return std::shared_ptr<Answer>(std::move(answer));
}

ApiResult<std::shared_ptr<Answer>> ModelService::Next(std::string_view body,
                                                      const std::string& client) {
  KV_TRY(const JsonValue json, ParseBody(body));
  KV_TRY(NextCall call, ReadNextCall(json));
  if (const JsonValue* model = json.Find("model"); model != nullptr && model->is_string()) {
    KV_TRY(CheckModel(model->text));
  }
  engine::EngineRequest request;
  request.client = client;
  request.cache_salt = call.cache_salt;
  KV_TRY(request.generate.prompt, IdsOf(call.prompt));
  request.generate.max_tokens = 1;
  request.generate.sampling = call.sampling;
  if (const auto checked = engine::CheckRequest(request.generate, model_.shape()); !checked) {
    return About(FieldAtFault(request.generate.sampling, model_.shape().vocab, "prompt"),
                 checked.error());
  }
  auto answer = std::make_shared<NextAnswer>(std::move(call), options_.id, vocabulary(), drawable_);
  answer->requests.push_back(std::move(request));
  return std::shared_ptr<Answer>(std::move(answer));
}

ApiResult<std::string> ModelService::Tokenize(std::string_view body) const {
  KV_TRY(const JsonValue json, ParseBody(body));
  const FieldReader fields(json);
  KV_TRY(fields.Only({"text", "add_bos", "model"}));
  KV_TRY(const auto text, fields.Text("text"));
  KV_TRY(const auto add_bos, fields.Bool("add_bos"));
  if (!text) return ApiError(400, "'text' is missing", "text", "missing_parameter");
  auto encoded = tokenizer_.Encode(*text);
  if (!encoded) return About("text", encoded.error());
  std::vector<TokenId> ids = std::move(encoded.value());
  if (add_bos.value_or(false) && vocabulary().bos()) ids.insert(ids.begin(), *vocabulary().bos());
  JsonWriter out;
  out.BeginObject().Member("count", ids.size()).Key("tokens").BeginArray();
  for (const TokenId id : ids) out.Uint(id);
  out.EndArray().Key("pieces").BeginArray();
  for (const TokenId id : ids) out.String(ShownToken(vocabulary(), id));
  out.EndArray().EndObject();
  return out.Take();
}

ApiResult<std::string> ModelService::Detokenize(std::string_view body) const {
  KV_TRY(const JsonValue json, ParseBody(body));
  const FieldReader fields(json);
  KV_TRY(fields.Only({"tokens", "model"}));
  const JsonValue* tokens = fields.Find("tokens");
  if (tokens == nullptr || !tokens->is_array()) {
    return ApiError(400, "'tokens' must be an array of token ids", "tokens", "invalid_type");
  }
  std::vector<TokenId> ids;
  for (const JsonValue& token : tokens->items) {
    KV_TRY(const std::uint64_t id,
           WholeOf(fmt::format("tokens[{}]", ids.size()), token, {0, vocabulary().size() - 1}));
    ids.push_back(static_cast<TokenId>(id));
  }
  KV_TRY(const std::string text, tokenizer::Decode(vocabulary(), ids));
  JsonWriter out;
  out.BeginObject().Member("text", text).EndObject();
  return out.Take();
}

std::string ModelService::ModelJson() const {
  const model::ModelShape& shape = model_.shape();
  JsonWriter json;
  json.BeginObject().Member("id", options_.id).Member("object", "model");
  json.Member("created", options_.created).Member("owned_by", "kvasir");
  json.Member("system_fingerprint", fingerprint_).Member("context_length", shape.context);
  json.Member("vocab_size", shape.vocab).Member("parameters", shape.parameters);
  json.Member("chat_template", ChatFormatName(chat_.format())).EndObject();
  return json.Take();
}

std::string ModelService::Models() const {
  JsonWriter json;
  json.BeginObject().Member("object", "list").Key("data").BeginArray();
  json.Raw(ModelJson()).EndArray().EndObject();
  return json.Take();
}

ApiResult<std::string> ModelService::ModelNamed(std::string_view id) const {
  KV_TRY(CheckModel(id));
  return ModelJson();
}

}  // namespace kvasir::server
