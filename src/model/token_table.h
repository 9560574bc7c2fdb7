// The embeddings of tokens, and the output head where it is their table.
#ifndef KVASIR_MODEL_TOKEN_TABLE_H_
#define KVASIR_MODEL_TOKEN_TABLE_H_

#include <algorithm>
#include <cstddef>

#include "base/aligned.h"
#include "base/token_id.h"
#include "kernels/packed_matrix.h"
#include "model/weight_slot.h"

namespace kvasir::model {

// A rounded table is kept in its blocks and looked up there: a row is scale · q in f32, which is
// exact. As a head it is used as any rounded matrix (R6). Thread-safe once loaded.
struct TokenTable {
  base::AlignedArray<float> plain;  // [vocab][embedding], or empty where the table is rounded.
  kernels::PackedMatrix packed;     // [vocab, embedding], of a rounded table or a tied head.

  WeightSlot Slot() { return {.plain = &plain, .packed = &packed}; }
  // After loading, if the head is tied.
  void MakeHead(std::size_t vocab, std::size_t embedding) {
    if (plain.size() != 0) packed = kernels::PackWeights(plain.data(), vocab, embedding);
  }
  void CopyRow(base::TokenId token, std::size_t embedding, float* out) const {
    if (plain.size() != 0) {
      std::copy_n(plain.data() + token * embedding, embedding, out);
    } else {
      kernels::UnpackRow(packed, token, out);
    }
  }
  // By how many bytes a row is shorter than in f32.
  std::size_t saved_row_bytes() const {
    return packed.rounded() ? packed.saved_bytes() / packed.n() : 0;
  }
};

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_TOKEN_TABLE_H_
