// The JSON numbers of a set, as terms.
#ifndef KVASIR_CONSTRAINTS_NUMBER_TERMS_H_
#define KVASIR_CONSTRAINTS_NUMBER_TERMS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "constraints/number_set.h"
#include "constraints/term.h"

namespace kvasir::constraints {

// The numbers of one set; the state is an index of a text read so far, 0 the empty one. Texts that
// the same texts can follow are one state.
class NumberTerms final : public LazyTerms {
 public:
  NumberTerms(const NumberSet& set, NumberSpelling spelling)
      : judge_(set, spelling), texts_{""}, ids_{{"", 0}} {}
  TermId Expand(TermPool& pool, std::uint32_t state) override;
  // Set by whoever adds the source to a pool.
  void set_source(std::uint32_t source) { source_ = source; }

 private:
  const NumberJudge judge_;
  std::vector<std::string> texts_;
  std::map<std::string, std::uint32_t> ids_;
  std::uint32_t source_ = 0;
};

// All JSON numbers.
TermId AnyNumberTerm(TermPool& pool, NumberSpelling spelling);

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_NUMBER_TERMS_H_
