#include "tokenizer/stream_decoder.h"

#include "base/utf8.h"

namespace kvasir::tokenizer {

std::string StreamDecoder::Append(std::string_view bytes) {
  if (drops_space_ && !bytes.empty()) {
    drops_space_ = false;
    if (bytes.front() == ' ') bytes.remove_prefix(1);
  }
  pending_ += bytes;
  std::string out;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(at);
    const base::Utf8Step step = base::DecodeUtf8(rest);
    if (step.status == base::Utf8Status::kTruncated) break;
    out += step.status == base::Utf8Status::kOk ? rest.substr(0, step.bytes) : base::kReplacement;
    at += step.bytes;
  }
  pending_.erase(0, at);
  return out;
}

std::string StreamDecoder::Flush() {
  std::string out(pending_.empty() ? std::string_view() : base::kReplacement);
  pending_.clear();
  return out;
}

base::Result<std::string> Decode(const Vocabulary& vocabulary, std::span<const TokenId> ids) {
  KV_TRY(vocabulary.CheckIds(ids));
  StreamDecoder decoder(vocabulary, StreamDecoder::From::kStart);
  std::string text;
  for (const TokenId id : ids) text += decoder.Append(id);
  text += decoder.Flush();
  return text;
}

}  // namespace kvasir::tokenizer
