#include "api/public_error.h"

namespace kvasir::api {
namespace {

ErrorCode PublicCode(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::kUsage:
      return ErrorCode::kUsage;
    case base::ErrorCode::kBadData:
      return ErrorCode::kBadData;
    case base::ErrorCode::kIo:
      return ErrorCode::kIo;
    case base::ErrorCode::kExhausted:
      return ErrorCode::kExhausted;
    case base::ErrorCode::kNumeric:
      return ErrorCode::kNumeric;
    case base::ErrorCode::kCancelled:
      return ErrorCode::kCancelled;
  }
  return ErrorCode::kBadData;
}

}  // namespace

Error PublicError(const base::Error& error) {
  return {PublicCode(error.code), error.message, error.hint};
}

}  // namespace kvasir::api
