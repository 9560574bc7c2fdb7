// EngineRequest: a request among those of others.
#ifndef KVASIR_ENGINE_ENGINE_REQUEST_H_
#define KVASIR_ENGINE_ENGINE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>

#include "engine/request.h"

namespace kvasir::engine {

// Counts the requests a Scheduler has accepted, from 1; never reused.
enum class RequestId : std::uint64_t {};

// What is to be generated, and for whom. Only `generate` has a say in the answer.
struct EngineRequest {
  GenerateRequest generate = {};
  // Clients of different keys share the engine evenly; an empty key is a key like any other.
  std::string client = {};
  // Requests of different salts share no cached block: neither learns from the time an answer takes
  // what the other has written. Empty: shared by all requests without one.
  std::string cache_salt = {};
  // On the engine's Clock: what is not finished by then ends with kDeadline. Null: none.
  std::optional<std::uint64_t> deadline_us = std::nullopt;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_ENGINE_REQUEST_H_
