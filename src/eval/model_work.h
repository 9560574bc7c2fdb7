// What a model must read and compute at least: the yardstick of benchmarks.
#ifndef KVASIR_EVAL_MODEL_WORK_H_
#define KVASIR_EVAL_MODEL_WORK_H_

#include <cstdint>

#include "model/model.h"

namespace kvasir::eval {

// Bytes of weights, as they lie in memory, that one step reads, however many rows it has: all but
// the embedding tables, of which it reads one row of each.
std::uint64_t WeightBytesPerStep(const model::ModelShape& shape);

// Bytes of keys and values, or of latents, that the query at this position reads and writes: its
// own and those before, in all layers.
std::uint64_t KvBytesAt(const model::ModelShape& shape, std::uint64_t position);

// Floating-point operations (a multiply-add counts two) of `rows` tokens after `cached` others,
// with logits of the last one alone: matrix products and attention; of the last layer only what
// that one row needs.
double PrefillFlops(const model::ModelShape& shape, std::uint64_t cached, std::uint64_t rows);

}  // namespace kvasir::eval

#endif  // KVASIR_EVAL_MODEL_WORK_H_
