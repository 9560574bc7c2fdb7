// Which settings of a model file a reader must know: all that could change the answer.
#ifndef KVASIR_MODEL_KNOWN_KEYS_H_
#define KVASIR_MODEL_KNOWN_KEYS_H_

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/gguf_metadata.h"

namespace kvasir::model {

// The rule of every reader: a key "<architecture>.…" is one that the reader reads, or one known not
// to change what is computed, or one that holds the value at which it changes nothing (a scale of
// 1, a cap of 0). Any other is kBadData naming the key, its value and what is allowed: an answer
// from a file half understood would be wrong without a sign. So is a vocab_size other than `vocab`,
// the number of tokens. The architectures are those of LoadModel; the lists are in known_keys.cc.
base::Result<void> RefuseOtherKeys(const formats::GgufMetadata& metadata,
                                   std::string_view architecture, std::uint64_t vocab);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_KNOWN_KEYS_H_
