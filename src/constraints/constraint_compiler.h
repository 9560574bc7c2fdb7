// From what a person asks for to a matcher: the entrance to this folder for whoever has texts.
#ifndef KVASIR_CONSTRAINTS_CONSTRAINT_COMPILER_H_
#define KVASIR_CONSTRAINTS_CONSTRAINT_COMPILER_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "constraints/compiled_constraint.h"
#include "constraints/constraint.h"
#include "constraints/grammar.h"
#include "constraints/json_schema.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

enum class ConstraintKind { kRegex, kJsonSchema, kGrammar, kChoices };

// A value.
struct ConstraintSpec {
  ConstraintKind kind = ConstraintKind::kRegex;
  std::vector<std::string> texts;  // One; of kChoices each of them.
  JsonSchemaOptions json = {};     // For kJsonSchema.
  // What reading texts may keep in memory; above it there is an error (Recognizer::Status).
  std::size_t max_bytes = kDefaultRecognizerBytes;
};

// The texts that a constraint allows. kUsage for what cannot be compiled.
base::Result<Grammar> CompileGrammar(const ConstraintSpec& spec);

// How far a text is one that the grammar allows.
struct TextVerdict {
  bool accepted = false;     // It begins a text of the grammar,
  bool complete = false;     // and is one.
  std::size_t position = 0;  // Bytes that were read before one was refused; all of an accepted one.
};
// kUsage if the recognizer's limit is met.
base::Result<TextVerdict> Judge(Recognizer& recognizer, std::string_view text);

// Compiles for one vocabulary. Keeps what was compiled last, with its states and masks, by its
// content. Thread-safe; the vocabulary is not needed after construction.
class ConstraintCompiler {
 public:
  explicit ConstraintCompiler(const tokenizer::Vocabulary& vocabulary)
      : trie_(std::make_shared<const TokenTrie>(vocabulary)) {}

  // A matcher at the start of a text. kUsage for what cannot be compiled, and for a constraint of
  // which this vocabulary cannot write the beginning.
  base::Result<std::unique_ptr<Matcher>> Make(const ConstraintSpec& spec);

 private:
  static constexpr std::size_t kMostKept = 32;
  struct Kept {
    std::string key;
    std::shared_ptr<CompiledConstraint> constraint;
  };

  const std::shared_ptr<const TokenTrie> trie_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // The last used first; at most kMostKept.
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_CONSTRAINT_COMPILER_H_
