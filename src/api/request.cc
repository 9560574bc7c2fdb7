#include "kvasir/request.h"

#include "engine/request.h"

namespace kvasir {

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return engine::FinishReasonName(engine::FinishReason::kStop);
    case FinishReason::kLength:
      return engine::FinishReasonName(engine::FinishReason::kLength);
    case FinishReason::kConstraint:
      return engine::FinishReasonName(engine::FinishReason::kConstraint);
    case FinishReason::kCancelled:
      return engine::FinishReasonName(engine::FinishReason::kCancelled);
  }
  return {};
}

}  // namespace kvasir
