#include "tokenizer/byte_pair_trainer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace kvasir::tokenizer {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;

using WordCounts = std::unordered_map<std::string_view, std::uint64_t>;

Result<void> CountWords(std::string_view text, PreTokenizer pre, WordCounts& words) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = FirstWordBytes(pre, text.substr(at));
    ++words[text.substr(at, bytes)];
    at += bytes;
  }
  return base::Success();
}

struct Pair {
  TokenId left, right;
  std::uint64_t key() const { return std::uint64_t{left} << 32 | right; }
};

// The different words of the texts as tokens, merged step by step. A token lies in the slots of its
// bytes: its id in the first and in the last of them, kInside between; a slot of kBorder parts the
// words. So from a slot where a token begins, both neighbours are found at once.
//
// Invariants:
//   1. every pair's count is the number of times it stands in the texts;
//   2. its places hold every slot where it begins, and maybe others, where it began once;
//   3. the queue has an entry for every pair that occurs and was not passed over: of its count or,
//      if that fell, of a higher one.
class Words {
 public:
  static Result<Words> Make(const WordCounts& counts);

  // Merges the most frequent pair into the token `merged`, which must be the next id, and returns
  // it; nothing if none occurs twice. A pair for which is_new(pair) is false is passed over for
  // good.
  template <typename IsNew>
  std::optional<Pair> MergeBest(TokenId merged, const IsNew& is_new);

 private:
  static constexpr TokenId kInside = std::numeric_limits<TokenId>::max();
  static constexpr TokenId kBorder = kInside - 1;

  struct Uses {
    std::uint64_t count = 0;
    std::vector<std::uint32_t> places;
  };
  struct Entry {
    std::uint64_t count;
    std::uint64_t key;
    bool operator<(const Entry& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };
  // Words of the same count lie together.
  struct Stretch {
    std::uint32_t begin;
    std::uint64_t count;
  };

  std::uint64_t CountAt(std::uint32_t slot) const;
  void Merge(const Pair& pair, TokenId merged);
  void Change(const Pair& pair, std::uint32_t place, std::uint64_t count, bool add);

  std::vector<TokenId> slots_;
  std::vector<Stretch> stretches_;
  std::vector<std::uint32_t> bytes_;  // Of each token.
  std::unordered_map<std::uint64_t, Uses> pairs_;
  std::priority_queue<Entry> queue_;
};

Result<Words> Words::Make(const WordCounts& counts) {
  std::vector<std::pair<std::string_view, std::uint64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::uint64_t slots = 1;
  for (const auto& [word, count] : sorted) slots += word.size() + 1;
  if (slots > std::numeric_limits<std::uint32_t>::max()) {
    return MakeError(ErrorCode::kExhausted,
                     "the different words of the text are {} bytes long; allowed are {}", slots,
                     std::numeric_limits<std::uint32_t>::max());
  }
  Words words;
  words.bytes_.assign(256, 1);
  words.slots_.reserve(slots);
  words.slots_.push_back(kBorder);
  for (const auto& [word, count] : sorted) {
    const auto begin = static_cast<std::uint32_t>(words.slots_.size());
    if (words.stretches_.empty() || words.stretches_.back().count != count) {
      words.stretches_.push_back({begin, count});
    }
    for (std::size_t i = 0; i < word.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(word[i]);
      if (i > 0) {
        const auto place = static_cast<std::uint32_t>(words.slots_.size() - 1);
        words.Change({words.slots_.back(), byte}, place, count, true);
      }
      words.slots_.push_back(byte);
    }
    words.slots_.push_back(kBorder);
  }
  for (const auto& [key, uses] : words.pairs_) words.queue_.push({uses.count, key});
  return words;
}

std::uint64_t Words::CountAt(std::uint32_t slot) const {
  const auto after =
      std::upper_bound(stretches_.begin(), stretches_.end(), slot,
                       [](std::uint32_t s, const Stretch& stretch) { return s < stretch.begin; });
  return std::prev(after)->count;
}

// One more or one less occurrence, in words of this count.
void Words::Change(const Pair& pair, std::uint32_t place, std::uint64_t count, bool add) {
  Uses& uses = pairs_[pair.key()];
  if (add) {
    uses.count += count;
    uses.places.push_back(place);
  } else {
    KV_DCHECK(uses.count >= count);
    uses.count -= count;
  }
}

void Words::Merge(const Pair& pair, TokenId merged) {
  std::vector<std::uint32_t> places = std::move(pairs_[pair.key()].places);
  std::sort(places.begin(), places.end());  // Of occurrences that overlap the first is merged.
  const std::uint32_t left_bytes = bytes_[pair.left], right_bytes = bytes_[pair.right];
  const std::uint32_t both = left_bytes + right_bytes;
  bytes_.push_back(both);
  std::vector<std::uint64_t> made;
  for (const std::uint32_t at : places) {
    const std::uint32_t middle = at + left_bytes;
    if (slots_[at] != pair.left || slots_[middle] != pair.right) continue;
    const std::uint64_t count = CountAt(at);
    const TokenId before = slots_[at - 1], after = slots_[at + both];
    Change(pair, at, count, false);
    if (before != kBorder) {
      const std::uint32_t place = at - bytes_[before];
      Change({before, pair.left}, place, count, false);
      Change({before, merged}, place, count, true);
      made.push_back(Pair{before, merged}.key());
    }
    if (after != kBorder) {
      Change({pair.right, after}, middle, count, false);
      Change({merged, after}, at, count, true);
      made.push_back(Pair{merged, after}.key());
    }
    slots_[middle - 1] = slots_[middle] = kInside;
    slots_[at] = slots_[at + both - 1] = merged;
  }
  std::sort(made.begin(), made.end());
  made.erase(std::unique(made.begin(), made.end()), made.end());
  for (const std::uint64_t key : made) queue_.push({pairs_[key].count, key});
}

template <typename IsNew>
std::optional<Pair> Words::MergeBest(TokenId merged, const IsNew& is_new) {
  KV_DCHECK(merged == bytes_.size());
  while (!queue_.empty()) {
    const Entry best = queue_.top();
    queue_.pop();
    const std::uint64_t count = pairs_[best.key].count;
    if (count != best.count) {
      if (count > 0) queue_.push({count, best.key});
      continue;
    }
    if (count < 2) return std::nullopt;
    const Pair pair{static_cast<TokenId>(best.key >> 32), static_cast<TokenId>(best.key)};
    if (!is_new(pair)) continue;
    Merge(pair, merged);
    return pair;
  }
  return std::nullopt;
}

void AddToken(VocabularySpec& spec, std::string piece, TokenType type) {
  spec.pieces.push_back(std::move(piece));
  spec.scores.push_back(0);
  spec.types.push_back(type);
}

Result<WordCounts> CountAllWords(std::span<const std::string_view> texts, PreTokenizer pre) {
  WordCounts counts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (const auto invalid = base::FirstInvalidUtf8(texts[i])) {
      return MakeError(ErrorCode::kBadData,
                       "text {} of {} is not UTF-8: byte 0x{:02X} at offset {}", i + 1,
                       texts.size(), static_cast<std::uint8_t>(texts[i][*invalid]), *invalid);
    }
    KV_TRY(CountWords(texts[i], pre, counts));
  }
  if (counts.empty()) {
    return MakeError(ErrorCode::kBadData, "no vocabulary can be made of an empty text");
  }
  return counts;
}

}  // namespace

Result<VocabularySpec> TrainBytePairs(std::span<const std::string_view> texts,
                                      const BytePairOptions& options) {
  if (options.vocabulary < kMinBytePairVocabulary || options.vocabulary > kMaxBytePairVocabulary) {
    return MakeError(ErrorCode::kUsage,
                     "a vocabulary of {} tokens is not allowed; allowed are {} to {}",
                     options.vocabulary, kMinBytePairVocabulary, kMaxBytePairVocabulary);
  }
  if (options.pre == PreTokenizer::kQwen2) {
    return MakeError(ErrorCode::kUsage, "no vocabulary is trained for {}, which changes the text",
                     PreTokenizerName(options.pre));
  }
  KV_TRY(const WordCounts counts, CountAllWords(texts, options.pre));
  KV_TRY(Words words, Words::Make(counts));

  VocabularySpec spec;
  spec.kind = VocabularyKind::kByteLevel;
  spec.pre = options.pre;
  std::vector<std::string> bytes;  // Of each token.
  std::unordered_set<std::string> known;
  for (int byte = 0; byte < 256; ++byte) {
    bytes.emplace_back(1, static_cast<char>(byte));
    AddToken(spec, PieceOfBytes(bytes.back()), TokenType::kNormal);
  }
  while (spec.pieces.size() + 1 < options.vocabulary) {
    const auto is_new = [&](const Pair& p) {
      return !known.contains(bytes[p.left] + bytes[p.right]);
    };
    const auto pair = words.MergeBest(static_cast<TokenId>(spec.pieces.size()), is_new);
    if (!pair) break;
    spec.merges.push_back(spec.pieces[pair->left] + " " + spec.pieces[pair->right]);
    bytes.push_back(bytes[pair->left] + bytes[pair->right]);
    known.insert(bytes.back());
    AddToken(spec, PieceOfBytes(bytes.back()), TokenType::kNormal);
  }
  spec.bos = spec.eos = static_cast<TokenId>(spec.pieces.size());
  AddToken(spec, "<|endoftext|>", TokenType::kControl);
  return spec;
}

}  // namespace kvasir::tokenizer
