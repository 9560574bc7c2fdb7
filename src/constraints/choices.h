// Choices: one of the given texts.
#ifndef KVASIR_CONSTRAINTS_CHOICES_H_
#define KVASIR_CONSTRAINTS_CHOICES_H_

#include <span>
#include <string>

#include "base/result.h"
#include "constraints/grammar.h"

namespace kvasir::constraints {

// The term of exactly these texts, common beginnings shared. Requires valid UTF-8.
TermId ChoicesTerm(TermPool& pool, std::span<const std::string> texts);

// A grammar of exactly these texts. kUsage if there is none, or if one is not UTF-8.
base::Result<Grammar> CompileChoices(std::span<const std::string> texts);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_CHOICES_H_
