#include "constraints/verse_lexicon.h"

#include <algorithm>

#include "base/check.h"
#include "constraints/han_character.h"

namespace kvasir::constraints {

using base::TokenId;
using base::TokenMask;

VerseLexicon::VerseLexicon(const tokenizer::Vocabulary& vocabulary, const TokenMask& free_tokens,
                           const ToneTable& table, bool known_tones_only)
    : characters_(vocabulary.size(), 0),
      sounds_(vocabulary.size()),
      members_(table.groups()),
      member_characters_(table.groups(), 0) {
  by_tone_.fill(TokenMask(vocabulary.size()));
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (!free_tokens.Test(id)) continue;
    const std::uint32_t character = SingleHanCharacter(vocabulary.Bytes(id)).value();
    const Sound sound = table.Find(character);
    if (known_tones_only && !sound.known()) continue;
    characters_[id] = character;
    sounds_[id] = sound;
    tokens_.emplace_back(character, id);
    for (std::size_t need = 0; need < by_tone_.size(); ++need) {
      if (((need & 1) != 0 && !sound.level) || ((need & 2) != 0 && !sound.oblique)) continue;
      by_tone_[need].Allow(id);
      ++counts_[need];
    }
  }
  std::sort(tokens_.begin(), tokens_.end());
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const auto [character, id] = tokens_[i];
    const bool first = i == 0 || tokens_[i - 1].first != character;
    for (std::size_t g = 0; g < members_.size(); ++g) {
      if ((sounds_[id].groups >> g & 1) == 0) continue;
      members_[g].push_back(id);
      member_characters_[g] += first ? 1 : 0;
    }
  }
  for (std::vector<TokenId>& members : members_) std::sort(members.begin(), members.end());
}

void VerseLexicon::Ban(std::uint32_t character, TokenMask& mask) const {
  const std::pair<std::uint32_t, TokenId> lowest{character, 0};
  for (auto it = std::lower_bound(tokens_.begin(), tokens_.end(), lowest);
       it != tokens_.end() && it->first == character; ++it) {
    mask.Ban(it->second);
  }
}

}  // namespace kvasir::constraints
