// Random cache policies, for Verify and tests.
#ifndef KVASIR_EVAL_VERIFY_POLICY_H_
#define KVASIR_EVAL_VERIFY_POLICY_H_

#include "eval/random_stream.h"
#include "kvcache/cache_policy.h"

namespace kvasir::eval {

// A policy of one to four rules, over layers and heads, that this model allows. Each legal pair of
// settings comes up; a latent model has one policy only.
kvcache::CachePolicy DrawPolicy(const kvcache::PolicyShape& shape, RandomStream& random);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_VERIFY_POLICY_H_
