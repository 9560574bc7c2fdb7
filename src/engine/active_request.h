// ActiveRequest: a request from its acceptance to its end.
#ifndef KVASIR_ENGINE_ACTIVE_REQUEST_H_
#define KVASIR_ENGINE_ACTIVE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/token_mask.h"
#include "engine/engine_request.h"
#include "engine/fair_queue.h"
#include "engine/listener.h"

namespace kvasir::engine {

struct BatchSequence;

// Owned by its Scheduler; its address is stable.
struct ActiveRequest {
  RequestId id;
  EngineRequest request;
  Listener* listener;
  FairQueue::Account* account = nullptr;
  std::uint64_t tenant_salt = 0;
  std::uint64_t submitted_us = 0;
  std::optional<base::TokenMask> own_drawable = {};  // Where it differs from the vocabulary's.
  bool started = false;
  bool told_first_token = false;
  std::uint64_t next_choice = 0;  // The next one to start.
  BatchSequence* stem = nullptr;  // Once computed, while choices are left to start.
  std::vector<bool> finished;     // [choices]
  std::uint64_t unfinished;       // Of them.
  Usage usage = {};
  bool cancelled = false;  // Asked for during a step, not told yet.
  bool ended = false;      // The listener has been told.

  const GenerateRequest& generate() const { return request.generate; }
  // Whether anything more is computed for it.
  bool stopping() const { return cancelled || ended; }
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_ACTIVE_REQUEST_H_
