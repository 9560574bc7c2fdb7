#include "server/session_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/env.h"
#include "server/completion_call.h"
#include "server/field_reader.h"
#include "server/json_writer.h"

namespace kvasir::server {
namespace {

constexpr std::size_t kMostNameBytes = 64;

ApiResult<void> CheckName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (!name.empty() && name.size() <= kMostNameBytes && name[0] != '.' &&
      std::ranges::all_of(name, allowed)) {
    return BOOST_OUTCOME_V2_NAMESPACE::success();
  }
  return ApiError(400,
                  fmt::format("a session's name has 1 to {} letters, digits, '-', '_' and '.', and "
                              "does not begin with '.'",
                              kMostNameBytes),
                  "name", "invalid_name");
}

ApiError NotThere(std::string_view name) {
  return ApiError(404, fmt::format("there is no session '{}'", name), "name", "session_not_found");
}

// What the file keeps besides the text: whose it is.
std::string SettingsOf(const std::string& salt) {
  JsonWriter json;
  json.BeginObject().Key("cache_salt").String(salt).EndObject();
  return json.Take();
}

std::string ReplyJson(std::string_view name, std::string_view action, const store::Session& session,
                      std::uint64_t cached) {
  JsonWriter json;
  json.BeginObject().Key("object").String("session").Key("name").String(name);
  json.Key("action").String(action).Member("tokens", session.tokens.size());
  json.Member("cached_tokens", cached).Key("token_ids").BeginArray();
  for (const base::TokenId id : session.tokens) json.Uint(id);
  json.EndArray().EndObject();
  return json.Take();
}

struct SessionCall {
  std::string action;
  std::string salt;
  std::optional<PromptInput> prompt;  // Of a save.
};

ApiResult<SessionCall> ReadCall(std::string_view body) {
  KV_TRY(const JsonValue json, ParseBody(body));
  const FieldReader fields(json);
  KV_TRY(fields.Only({"action", "prompt", "cache_salt", "model"}));
  KV_TRY(const auto action, fields.Text("action"));
  SessionCall call;
  call.action = action.value_or("");
  if (call.action != "save" && call.action != "load" && call.action != "delete") {
    return ApiError(400, "'action' must be save, load or delete", "action", "invalid_value");
  }
  KV_TRY(call.salt, ReadSalt(fields));
  if (call.action != "save") {
    if (fields.Find("prompt") == nullptr) return call;
    return ApiError(400, "'prompt' goes with save only", "prompt", "invalid_value");
  }
  KV_TRY(auto prompts, ReadPrompts(fields));
  if (prompts.size() != 1) {
    return ApiError(400, "a session is one text: 'prompt' holds several", "prompt",
                    "invalid_value");
  }
  call.prompt = std::move(prompts.front());
  return call;
}

}  // namespace

std::string SessionFolder::PathOf(std::string_view name) const {
  return fmt::format("{}/{}.kvsession", directory_, name);
}

ApiResult<store::Session> SessionFolder::Read(std::string_view name,
                                              const std::string& salt) const {
  base::Env& env = base::Env::Default();
  if (!env.Exists(PathOf(name))) return NotThere(name);
  auto session = store::ReadSession(env, PathOf(name), model_);
  if (!session) {
    if (session.error().code == base::ErrorCode::kIo) return ApiError(session.error());
    std::string reason = session.error().message;  // Without the path.
    const std::string quoted = fmt::format("'{}'", PathOf(name));
    if (const std::size_t at = reason.find(quoted); at != std::string::npos) {
      reason.replace(at, quoted.size(), fmt::format("'{}'", name));
    }
    return ApiError(409, reason, "name", "session_refused");
  }
  if (session.value().settings != SettingsOf(salt)) return NotThere(name);
  return std::move(session.value());
}

ApiResult<std::string> SessionFolder::Run(std::string_view name, std::string_view body,
                                          const ModelService& service,
                                          engine::Engine& engine) const {
  KV_TRY(CheckName(name));
  KV_TRY(const SessionCall call, ReadCall(body));
  base::Env& env = base::Env::Default();
  std::size_t cached = 0;
  if (call.action == "save") {
    store::Session session;
    KV_TRY(session.tokens, service.IdsOf(*call.prompt));
    session.prompt_tokens = session.tokens.size();
    session.settings = SettingsOf(call.salt);
    if (session.tokens.empty()) return ApiError(400, "'prompt' is empty", "prompt");
    // Somebody else's of this name stays.
    if (env.Exists(PathOf(name))) {
      const auto old = Read(name, call.salt);
      if (!old && old.error().status == 404) {
        return ApiError(409, fmt::format("the name '{}' is taken", name), "name", "name_taken");
      }
    }
    engine.Call([&](engine::Scheduler& scheduler) {
      cached = scheduler.ExportBlocks(call.salt, session.tokens, session.blocks);
    });
    if (const auto written = store::WriteSession(env, PathOf(name), model_, session); !written) {
      return ApiError(written.error());
    }
    return ReplyJson(name, call.action, session, cached);
  }
  KV_TRY(store::Session session, Read(name, call.salt));
  if (call.action == "load") {
    engine.Call([&](engine::Scheduler& scheduler) {
      cached = scheduler.ImportBlocks(call.salt, session.tokens, session.blocks);
    });
    return ReplyJson(name, call.action, session, cached);
  }
  if (const auto removed = env.Remove(PathOf(name)); !removed) return ApiError(removed.error());
  JsonWriter json;
  json.BeginObject().Key("object").String("session").Key("name").String(name);
  json.Key("action").String(call.action).EndObject();
  return json.Take();
}

}  // namespace kvasir::server
