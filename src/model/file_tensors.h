// The tensors of a GGUF file, checked against what an architecture asks for.
#ifndef KVASIR_MODEL_FILE_TENSORS_H_
#define KVASIR_MODEL_FILE_TENSORS_H_

#include <span>

#include "base/result.h"
#include "formats/gguf_reader.h"
#include "model/tensor_spec.h"

namespace kvasir::model {

// kBadData naming the first tensor that is not there, has another shape, or a type we do not read.
// Allocates nothing.
base::Result<void> CheckTensors(const formats::GgufFile& file, std::span<const TensorSpec> specs);

// kBadData naming a tensor that is none of these (rope_freqs.weight apart, which RopeSettings
// takes): leaving it out would compute another model than the file's.
base::Result<void> RefuseOtherTensors(const formats::GgufFile& file,
                                      std::span<const TensorSpec> specs);

// Gives each tensor as f32 (tensor/convert.h), and those of Q8_0 and Q4_0 in their blocks too;
// kBadData for a number that is not finite. Requires that CheckTensors passed; the file must
// outlive the source.
TensorSource FileSource(const formats::GgufFile& file);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_FILE_TENSORS_H_
