// Learns a byte-level vocabulary from text.
#ifndef KVASIR_TOKENIZER_BYTE_PAIR_TRAINER_H_
#define KVASIR_TOKENIZER_BYTE_PAIR_TRAINER_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

inline constexpr std::size_t kMinBytePairVocabulary = 257;  // The bytes and the end of a text.
inline constexpr std::size_t kMaxBytePairVocabulary = std::size_t{1} << 20;

struct BytePairOptions {
  std::size_t vocabulary = 4096;  // Tokens at most: the bytes, what merges make, the end of a text.
  PreTokenizer pre = PreTokenizer::kGpt2;
};

// Tokens 0 to 255 are the bytes, then come the merges in the order they were learned, and last the
// control token <|endoftext|>, which is both bos and eos. Each merge joins the two neighbouring
// tokens that stand side by side most often inside the words of the texts (every occurrence counts,
// overlapping ones too); of equals the pair of the lower left id, then of the lower right id. A
// pair whose bytes are a token already is passed over, so no two tokens stand for the same text.
// It ends early when no pair occurs twice. The result depends on the texts' words and how often
// each occurs, and on nothing else. Source: Sennrich et al. 2016; GPT-2 (Radford et al. 2019).
//
// kUsage for a vocabulary out of range or a pre-tokenizer that changes text (qwen2); kBadData, with
// the text's number and the offset, for what is not UTF-8, and for no text; kExhausted beyond 2^32
// bytes of different words. Memory: about 24 bytes for each byte of different words. Time: n log n
// in these bytes, whatever the vocabulary. Thread-safe.
base::Result<VocabularySpec> TrainBytePairs(std::span<const std::string_view> texts,
                                            const BytePairOptions& options);

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_BYTE_PAIR_TRAINER_H_
