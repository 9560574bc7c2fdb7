// The tokens of a model: what bytes each stands for, and which ids are special.
//
// Source: the tokenizer.ggml.* metadata of the GGUF specification; SentencePiece for byte pieces
// and for U+2581 (▁) in place of a space; GPT-2's encoder for byte-level pieces.
#ifndef KVASIR_TOKENIZER_VOCABULARY_H_
#define KVASIR_TOKENIZER_VOCABULARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/pre_tokenizer.h"

namespace kvasir::tokenizer {

using base::TokenId;

// Numbered as tokenizer.ggml.token_type.
enum class TokenType : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// How kNormal pieces are written, and how text is cut into them.
enum class VocabularyKind {
  kSentencePiece,  // Text with ▁ for a space; merged by score. GGUF's "llama".
  kByteLevel,      // One character a byte (byte_alphabet.h); merged by rank. GGUF's "gpt2".
};

// A vocabulary as a file holds it, not yet checked.
struct VocabularySpec {
  VocabularyKind kind = VocabularyKind::kSentencePiece;
  std::vector<std::string> pieces;         // [tokens], written as the kind says.
  std::vector<float> scores;               // [tokens]
  std::vector<TokenType> types;            // [tokens]; any number may come from a file.
  std::vector<std::string> merges;         // kByteLevel only: "left right", the best first.
  PreTokenizer pre = PreTokenizer::kGpt2;  // kByteLevel only.
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> eot;  // End of a turn, in models of conversations.
  std::optional<TokenId> unk;
  std::optional<TokenId> pad;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;  // kSentencePiece only: text is encoded as if led by a space.
  // Tokens of text that the training text never held: known to the tokenizer, strangers to the
  // model, so they are drawn only where a constraint asks for them. Any order.
  std::vector<TokenId> untrained;
};

// Whether every text token is one character, written as such: a vocabulary of the kind trained
// here.
bool IsCharacterLevel(const VocabularySpec& spec);

// A checked vocabulary. Immutable, copyable, thread-safe. Where a TokenId is asked for it must be
// < size(): ids from outside go through CheckIds first. Invariants:
//   1. pieces are valid UTF-8, scores finite, special and untrained ids < size();
//   2. kNormal and kUserDefined pieces are not empty;
//   3. a kByte piece is <0x00> … <0xFF> (two upper-case digits), each at most once.
class Vocabulary {
 public:
  // kBadData naming the token, its value and what is allowed.
  static base::Result<Vocabulary> Make(VocabularySpec spec);

  std::size_t size() const { return spec_.pieces.size(); }
  TokenType type(TokenId id) const;
  const std::string& piece(TokenId id) const;  // As in the file: "<0x0A>", "</s>", "春".
  float score(TokenId id) const;

  // The bytes a token adds to a text: of kNormal and kUserDefined their text, of kByte one byte, of
  // any other none. A byte token's, and a kByteLevel one's, may be parts of characters. A kNormal
  // piece of a kByteLevel vocabulary that is not written in the byte alphabet stands for itself.
  std::string_view Bytes(TokenId id) const;

  // The lowest id of a kNormal or kUserDefined token that stands for exactly this text. Never a
  // control or byte token, so text typed by a user cannot name one (Case C121).
  std::optional<TokenId> FindPiece(std::string_view text) const;
  std::optional<TokenId> ByteToken(std::uint8_t byte) const { return byte_tokens_[byte]; }

  std::optional<TokenId> bos() const { return spec_.bos; }
  std::optional<TokenId> eos() const { return spec_.eos; }
  std::optional<TokenId> eot() const { return spec_.eot; }
  std::optional<TokenId> unk() const { return spec_.unk; }
  std::optional<TokenId> pad() const { return spec_.pad; }
  bool add_bos() const { return spec_.add_bos; }
  bool add_eos() const { return spec_.add_eos; }
  bool add_space_prefix() const { return spec_.add_space_prefix; }
  const VocabularySpec& spec() const { return spec_; }

  // kUsage naming the first id that is not < size().
  base::Result<void> CheckIds(std::span<const TokenId> ids) const;

 private:
  explicit Vocabulary(VocabularySpec spec);
  base::Result<void> CheckSizesAndSpecials() const;
  base::Result<void> CheckToken(TokenId id);  // Also fills byte_tokens_.
  void AppendText(TokenId id);                // To bytes_.
  void BuildIndex();

  VocabularySpec spec_;
  std::string bytes_;                 // Of all tokens, in order.
  std::vector<std::size_t> offsets_;  // [tokens + 1] into bytes_.
  std::vector<TokenId> by_text_;      // kNormal and kUserDefined, by text, then by id.
  std::array<std::optional<TokenId>, 256> byte_tokens_;
};

}  // namespace kvasir::tokenizer

#endif  // KVASIR_TOKENIZER_VOCABULARY_H_
