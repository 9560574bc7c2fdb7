// Model: the weights of a language model and its tokenizer.
#ifndef KVASIR_MODEL_H_
#define KVASIR_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "kvasir/version.h"

namespace kvasir {

using TokenId = std::uint32_t;

struct ModelInfo {
  std::string path;
  std::string name;          // The file's own name for it.
  std::string architecture;  // "gpt2", "llama", "qwen2", "qwen3", "deepseek2"
  std::uint64_t layers = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;  // This and head_dim: 0 where the cache holds latents.
  std::uint64_t head_dim = 0;
  std::uint64_t embedding = 0;
  std::uint64_t context = 0;     // Longest text, in tokens.
  std::uint64_t vocabulary = 0;  // Tokens.
  std::uint64_t parameters = 0;
  std::uint64_t cache_bytes_per_token = 0;  // K and V of one position in the full cache, f32.
};

// A handle: copies are cheap and share the weights, which live as long as the last handle or
// Session. Immutable and thread-safe.
class KVASIR_API Model {
 public:
  // Reads a GGUF file. An empty path: $KVASIR_MODEL, else the bundled model where it is installed.
  // kIo, or kBadData naming the file and what is wrong in it; kNumeric on a processor without fused
  // multiply-add.
  static Result<Model> Load(const std::string& path = {});

  const ModelInfo& info() const;

  // The text's own tokens, without a start token. kBadData for what is not UTF-8, kUsage for a
  // character that the vocabulary cannot express.
  Result<std::vector<TokenId>> Tokenize(std::string_view text) const;
  // The tokens that a prompt becomes: with the start token, where the model wants one; an empty
  // prompt without one becomes a newline. At least one token.
  Result<std::vector<TokenId>> PromptTokens(std::string_view text) const;
  // Valid UTF-8; kUsage for an id that is none of the vocabulary's.
  Result<std::string> Detokenize(const std::vector<TokenId>& tokens) const;
  // What a reader sees of one token: its text, or its name in the file ("<0xE6>", "</s>") where it
  // has no whole character of its own. Valid UTF-8; empty for an id that is none.
  std::string TokenText(TokenId token) const;

  struct Impl;
  // For the library's own use.
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace kvasir

#endif  // KVASIR_MODEL_H_
