// Rotary positions in a config.json: rope_theta and rope_scaling, or rope_parameters with both.
#ifndef KVASIR_MODEL_HF_ROPE_H_
#define KVASIR_MODEL_HF_ROPE_H_

#include <string>

#include "base/result.h"
#include "model/hf_keys.h"
#include "model/rope_settings.h"

namespace kvasir::model {

// Sets base, factor and divisors; rope.dimensions must be set. Read are the types default, linear
// and llama3; any other (dynamic, yarn, longrope, …) is refused by its name, and so is any setting
// of theirs that is not read. The result is to be checked (CheckRope).
base::Result<void> ReadHfRope(const HfKeys& keys, RopeSettings& rope);

// The members of a config.json that ReadHfRope reads back as these settings: `"rope_theta": …` and
// what scaling needs. kBadData for divisors that are not llama3's with the parameters of a
// published model, which config.json has no words for.
base::Result<std::string> HfRopeText(const RopeSettings& rope);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_HF_ROPE_H_
