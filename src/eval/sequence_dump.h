// What a model computes on the way to its logits, for every position of one sequence.
#ifndef KVASIR_EVAL_SEQUENCE_DUMP_H_
#define KVASIR_EVAL_SEQUENCE_DUMP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "base/token_id.h"
#include "eval/sequence_logits.h"
#include "model/model.h"
#include "tensor/shape.h"

namespace kvasir::eval {

// f32 in C order:
//   logits     [tokens][vocab]
//   hidden     [layers + 1][tokens][embedding]: the residual stream as it enters each layer, before
//              that layer's norm; at last what the head multiplies, after the final norm
//   attention  [layers][heads][tokens][tokens]: row t is what the query at t takes of each position
//              under the model's windows and the cache's policy, 0 where it does not see it. The
//              bits are those of the kernel's own order (R3).
//   k, v       [layers][kv_heads][tokens][head_dim]: as the query at the same position reads them:
//              turned, rounded, rotated, rebuilt, as the policy says. Sinks stand unturned where
//              the model turns keys by their position. Of a cache of latents, kv_heads is 1, k the
//              entry [latent_dim + rope_dim] that all heads share and v its latent.
enum class DumpKind { kLogits, kHidden, kAttention, kKeys, kValues };
// By kind.
inline constexpr std::string_view kDumpNames[] = {"logits", "hidden", "attention", "k", "v"};
std::optional<DumpKind> DumpKindNamed(std::string_view name);

// Numbers of one dump: 4 GiB.
inline constexpr std::uint64_t kMaxDumpBytes = std::uint64_t{4} << 30;

// kUsage, naming the bytes, for more than kMaxDumpBytes. Allocates nothing.
base::Result<tensor::Shape> DumpShape(const model::ModelShape& shape, DumpKind kind,
                                      std::uint64_t tokens);

// The numbers of DumpShape. Runs the forward pass once, as SequenceLogits does; its Errors, and
// DumpShape's. Arrangement changes no bit. Thread-compatible.
base::Result<std::vector<float>> DumpSequence(const model::Model& model, DumpKind kind,
                                              std::span<const base::TokenId> tokens,
                                              const ArrangementOptions& options,
                                              base::ThreadTeam& team);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_SEQUENCE_DUMP_H_
