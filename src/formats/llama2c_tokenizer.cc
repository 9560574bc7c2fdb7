#include "formats/llama2c_tokenizer.h"

#include <cstdint>

#include "formats/byte_cursor.h"

namespace kvasir::formats {

using base::Result;

Result<Llama2cTokenizer> ReadLlama2cTokenizer(base::Env& env, const std::string& path) {
  KV_TRY(const auto file, env.Map(path));
  return ParseLlama2cTokenizer(file->bytes(), path);
}

Result<Llama2cTokenizer> ParseLlama2cTokenizer(std::span<const std::byte> bytes,
                                               std::string_view name) {
  ByteCursor in(bytes, name);
  KV_TRY(const auto longest, in.Read<std::int32_t>("the length of the longest token"));
  if (longest < 1) {
    return BadFile(name, 0,
                   "not a llama2.c tokenizer: its longest token has {} bytes, must have at least 1",
                   longest);
  }
  Llama2cTokenizer tokenizer;
  while (in.left() > 0) {
    KV_TRY(const float score, in.Read<float>("a token's score"));
    const std::uint64_t at = in.offset();
    KV_TRY(const auto length, in.Read<std::int32_t>("a token's length"));
    if (length < 0 || length > longest) {
      return BadFile(name, at, "token {} has {} bytes, must have 0 to {}, those of the longest",
                     tokenizer.pieces.size(), length, longest);
    }
    KV_TRY(const auto piece, in.Take(static_cast<std::uint64_t>(length), "a token"));
    tokenizer.scores.push_back(score);
    tokenizer.pieces.emplace_back(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  if (tokenizer.pieces.empty()) return BadFile(name, in.offset(), "the file holds no token");
  return tokenizer;
}

}  // namespace kvasir::formats
