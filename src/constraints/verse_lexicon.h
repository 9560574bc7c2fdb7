// VerseLexicon: the characters of a vocabulary, by tone and rhyme group.
#ifndef KVASIR_CONSTRAINTS_VERSE_LEXICON_H_
#define KVASIR_CONSTRAINTS_VERSE_LEXICON_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/token_id.h"
#include "base/token_mask.h"
#include "constraints/tone_table.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::constraints {

// Immutable, thread-safe; keeps nothing of vocabulary and table. Its tokens are free ones
// (exactly one Han character), all or those whose tone is known.
class VerseLexicon {
 public:
  // free_tokens: CompiledForm's, of this vocabulary.
  VerseLexicon(const tokenizer::Vocabulary& vocabulary, const base::TokenMask& free_tokens,
               const ToneTable& table, bool known_tones_only);

  std::size_t vocab_size() const { return characters_.size(); }
  bool Has(base::TokenId token) const { return characters_[token] != 0; }
  // Of one of its tokens.
  std::uint32_t CharacterOf(base::TokenId token) const { return characters_[token]; }
  const Sound& SoundOf(base::TokenId token) const { return sounds_[token]; }

  // The tokens that can be level (if asked), and that can be oblique (if asked).
  const base::TokenMask& Tokens(bool level, bool oblique) const {
    return by_tone_[(level ? 1 : 0) + (oblique ? 2 : 0)];
  }
  bool HasTokens(bool level, bool oblique) const {
    return counts_[(level ? 1 : 0) + (oblique ? 2 : 0)] > 0;
  }

  // The tokens of a rhyme group, ascending; how many different characters they are.
  std::span<const base::TokenId> Members(std::size_t group) const { return members_[group]; }
  std::size_t MemberCharacters(std::size_t group) const { return member_characters_[group]; }

  // Bans every token of this character.
  void Ban(std::uint32_t character, base::TokenMask& mask) const;

 private:
  std::vector<std::uint32_t> characters_;   // [vocab]; 0: not in the lexicon
  std::vector<Sound> sounds_;               // [vocab]
  std::array<base::TokenMask, 4> by_tone_;  // each [vocab]
  std::array<std::size_t, 4> counts_{};
  std::vector<std::vector<base::TokenId>> members_;              // [table's groups][tokens]
  std::vector<std::size_t> member_characters_;                   // [table's groups]
  std::vector<std::pair<std::uint32_t, base::TokenId>> tokens_;  // ascending
};

}  // namespace kvasir::constraints

#endif  // KVASIR_CONSTRAINTS_VERSE_LEXICON_H_
