// The one integer type for a token of a vocabulary.
#ifndef KVASIR_BASE_TOKEN_ID_H_
#define KVASIR_BASE_TOKEN_ID_H_

#include <cstdint>

namespace kvasir::base {

using TokenId = std::uint32_t;

}  // namespace kvasir::base

#endif  // KVASIR_BASE_TOKEN_ID_H_
