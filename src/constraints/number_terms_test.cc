#include "constraints/number_terms.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "constraints/decimal.h"
#include "constraints/language_test_util.h"

namespace kvasir::constraints {
namespace {

NumberSet Above(const char* min) {
  NumberSet set;
  set.min = NumberBound{Decimal::Parse(min).value(), false};
  return set;
}

// Texts that are taken for one are followed alike: the terms against the judge on random numbers.
TEST(NumberTerms, AgreesWithTheJudge) {
  const std::uint64_t seed = 5;
  std::mt19937_64 random(seed);
  std::vector<NumberSet> sets = {NumberSet(), Above("0"), Above("-3"), Above("12.5")};
  sets.push_back(sets[2]);
  sets.back().max = NumberBound{Decimal::Parse("120").value(), true};
  for (const char* unit : {"1", "0.01", "100", "3"}) {
    NumberSet& set = sets.emplace_back();
    set.multiple_of = Decimal::Parse(unit);
    sets.push_back(set);
    sets.back().min = NumberBound{{0, 0}, false};
  }
  for (const NumberSet& set : sets) {
    for (const NumberSpelling spelling : {NumberSpelling::kAny, NumberSpelling::kPlain}) {
      const NumberJudge judge(set, spelling);
      Grammar grammar;
      const auto source = std::make_shared<NumberTerms>(set, spelling);
      const std::uint32_t id = grammar.pool->AddSource(source);
      source->set_source(id);
      grammar.start = grammar.pool->Lazy(id, 0);
      Recognizer terms(std::move(grammar));
      for (int trial = 0; trial < 300; ++trial) {
        std::string text;
        for (int i = 0; i < 9; ++i) {
          const char c = "-0010205.eE+9"[random() % 13];
          const NumberPrefix judged = judge.Judge(text + c);
          ASSERT_EQ(AcceptsPrefix(terms, text + c), judged.possible) << text << c << " " << seed;
          ASSERT_EQ(Accepts(terms, text + c), judged.accepted) << text << c << " " << seed;
          if (judged.possible) text += c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::constraints
