// What a kvasir::Model holds.
#ifndef KVASIR_API_MODEL_IMPL_H_
#define KVASIR_API_MODEL_IMPL_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "constraints/constraint_compiler.h"
#include "kvasir/model.h"
#include "model/model_file.h"

namespace kvasir {

// Immutable but for the compiler, which is made when first asked for; thread-safe.
struct Model::Impl {
  model::LoadedModel loaded;
  ModelInfo info;

  const tokenizer::Vocabulary& vocabulary() const { return loaded.tokenizer->vocabulary(); }
  constraints::ConstraintCompiler& compiler() const {
    std::call_once(compiler_made_, [this] { compiler_.emplace(vocabulary()); });
    return *compiler_;
  }

  Impl(model::LoadedModel read, std::string path);

 private:
  mutable std::once_flag compiler_made_;
  mutable std::optional<constraints::ConstraintCompiler> compiler_;
};

}  // namespace kvasir

#endif  // KVASIR_API_MODEL_IMPL_H_
