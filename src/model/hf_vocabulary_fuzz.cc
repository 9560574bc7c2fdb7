// Any text as a tokenizer.json: refused in one line, or a vocabulary. If that is whole, a tokenizer
// that gives texts back; if tokenizer.json can say it, the file written for it is read as one that
// cuts them alike.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "model/hf_vocabulary.h"
#include "model/hf_writer.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::model {
namespace {

constexpr std::uint64_t kRows = 300;

std::unique_ptr<tokenizer::Tokenizer> MakeTokenizer(const tokenizer::VocabularySpec& spec) {
  auto vocabulary = tokenizer::Vocabulary::Make(spec);
  if (!vocabulary) return nullptr;
  auto made = tokenizer::MakeTokenizer(std::move(vocabulary.value()));
  return made ? std::move(made.value()) : nullptr;
}

void CheckText(std::string_view text) {
  const auto file = formats::ParseTokenizerJson(text, "fuzz");
  if (!file) return;  // tokenizer_json_fuzz.cc looks at it.
  const auto spec = VocabularyOfJson(file.value(), kRows);
  if (!spec) {
    KV_CHECK(spec.error().message.find('\n') == std::string::npos);
    return;
  }
  const auto first = MakeTokenizer(spec.value());
  if (first == nullptr) return;
  const auto written = HfTokenizerText(spec.value());
  if (!written) return;
  const auto again = formats::ParseTokenizerJson(written.value(), "again");
  KV_CHECK(again.has_value());
  const auto read = VocabularyOfJson(again.value(), kRows);
  KV_CHECK(read.has_value());
  const auto second = MakeTokenizer(read.value());
  KV_CHECK(second != nullptr);
  for (const std::string_view sample : {"abc ab  a", " d ee.", "é", "", "aaaaaaaab"}) {
    const auto ids = first->Encode(sample);
    const auto others = second->Encode(sample);
    KV_CHECK(ids.has_value() == others.has_value());
    if (ids) KV_CHECK(ids.value() == others.value());
  }
}

}  // namespace
}  // namespace kvasir::model

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvasir::model::CheckText({reinterpret_cast<const char*>(data), size});
  return 0;
}
