#include "cli/train_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/character_count.h"
#include "base/utf8.h"
#include "cli/train_texts.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

// Of what is held out where no flag says how much.
constexpr double kDefaultShare = 0.05;
constexpr std::uint64_t kDefaultMostBytes = 128 * 1024;
constexpr std::uint64_t kDefaultLeastBytes = 1024;

// The text tokens of a vocabulary that this text lacks.
std::vector<base::TokenId> Untrained(const tokenizer::VocabularySpec& vocabulary,
                                     std::span<const base::TokenId> text) {
  std::vector<bool> seen(vocabulary.pieces.size());
  for (const base::TokenId id : text) seen[id] = true;
  std::vector<base::TokenId> untrained;
  for (base::TokenId id = 0; id < seen.size(); ++id) {
    const tokenizer::TokenType type = vocabulary.types[id];
    const bool is_text =
        type == tokenizer::TokenType::kNormal || type == tokenizer::TokenType::kUserDefined;
    if (is_text && !seen[id]) untrained.push_back(id);
  }
  return untrained;
}

// Texts of which nothing can be learned are a mistake, most likely of their maker.
base::Result<void> CheckVaried(std::span<const std::string> texts) {
  std::string_view first;
  for (std::string_view rest : texts) {
    while (!rest.empty()) {
      const std::string_view character = rest.substr(0, base::DecodeUtf8(rest).bytes);
      rest.remove_prefix(character.size());
      if (std::string_view(" \t\r\n").find(character) != std::string_view::npos) continue;
      if (first.empty()) first = character;
      if (character != first) return base::Success();
    }
  }
  if (first.empty()) return MakeError(ErrorCode::kBadData, "the text has nothing but blanks");
  return MakeError(ErrorCode::kBadData,
                   "the text is one character, '{}', again and again: there is nothing to learn",
                   first);
}

// Moves what is to be held out of the texts from them.
void HoldOut(const TrainSources& sources, std::span<const std::string> texts, TrainCorpus& corpus) {
  training::SplitOptions options;
  options.share = sources.share.value_or(kDefaultShare);
  options.seed = sources.seed;
  if (!sources.share) options.max_bytes = kDefaultMostBytes;
  training::TextSplit split = training::SplitTexts(texts, options);
  const bool too_small = split.held_out.size() < kDefaultLeastBytes ||
                         base::CountCharacters(split.text) <= sources.context;
  if (!sources.share && too_small) {
    for (const std::string& text : texts) corpus.text_bytes += text;
    return;
  }
  corpus.text_bytes = std::move(split.text);
  corpus.held_out_bytes = std::move(split.held_out);
  split.text.clear();
  split.held_out.clear();
  corpus.split = std::move(split);
}

base::Result<void> Encode(const tokenizer::Tokenizer& tokenizer, TrainCorpus& corpus) {
  KV_TRY(corpus.text, tokenizer.Encode(corpus.text_bytes));
  KV_TRY(corpus.held_out, tokenizer.Encode(corpus.held_out_bytes));
  return base::Success();
}

base::Result<void> Tokenize(const VocabularyChoice& choice, TrainCorpus& corpus) {
  KV_TRY(corpus.vocabulary, MakeVocabulary(choice, corpus.text_bytes, corpus.held_out_bytes));
  KV_TRY(auto vocabulary, tokenizer::Vocabulary::Make(corpus.vocabulary));
  KV_TRY(const auto tokenizer, tokenizer::MakeTokenizer(std::move(vocabulary)));
  KV_TRY(Encode(*tokenizer, corpus));
  corpus.vocabulary.untrained = Untrained(corpus.vocabulary, corpus.text);
  return base::Success();
}

// With the vocabulary of a model: what neither it nor this text has trained stays untrained.
base::Result<void> TokenizeAs(const tokenizer::Tokenizer& tokenizer, TrainCorpus& corpus) {
  corpus.vocabulary = tokenizer.vocabulary().spec();
  KV_TRY(Encode(tokenizer, corpus));
  const std::vector<base::TokenId> unseen = Untrained(corpus.vocabulary, corpus.text);
  std::erase_if(corpus.vocabulary.untrained, [&](base::TokenId id) {
    return !std::binary_search(unseen.begin(), unseen.end(), id);
  });
  return base::Success();
}

}  // namespace

base::Result<TrainCorpus> ReadTrainCorpus(base::Env& env, const TrainSources& sources) {
  TrainCorpus corpus;
  KV_TRY(corpus.files, ExpandTexts(sources.texts));
  std::vector<std::string> texts;
  for (const std::string& path : corpus.files) {
    if (!texts.empty() && !texts.back().ends_with('\n')) texts.back() += '\n';
    KV_TRY(texts.emplace_back(), ReadTextFile(env, path, sources.encoding));
  }
  KV_TRY(CheckVaried(texts));
  if (sources.held_out.empty() && sources.share != 0.0) {
    HoldOut(sources, texts, corpus);
  } else {
    for (const std::string& text : texts) corpus.text_bytes += text;
  }
  if (!sources.held_out.empty()) {
    KV_TRY(corpus.held_out_bytes, ReadTextFile(env, sources.held_out, sources.encoding));
  }
  KV_TRY(sources.tokenizer ? TokenizeAs(*sources.tokenizer, corpus)
                           : Tokenize(sources.vocabulary, corpus));
  if (corpus.held_out.size() >= 2) return corpus;
  if (!sources.held_out.empty()) {
    return MakeError(ErrorCode::kBadData, "'{}' has {} token; held-out text needs at least 2",
                     sources.held_out, corpus.held_out.size());
  }
  if (corpus.split) {
    return MakeError(ErrorCode::kBadData,
                     "--val-share {} of this text is {} tokens; held-out text needs at least 2",
                     *sources.share, corpus.held_out.size());
  }
  return corpus;
}

std::string DescribeHeldOut(const TrainCorpus& corpus) {
  if (!corpus.split) return "nothing is held out, so the last weights are kept";
  const std::uint64_t held_out = base::CountCharacters(corpus.held_out_bytes);
  const std::uint64_t all = held_out + base::CountCharacters(corpus.text_bytes);
  const std::string what =
      corpus.split->unit == training::DocumentUnit::kEnd
          ? "the end of the text is held out"
          : fmt::format("{} of {} {} are held out", corpus.split->held_out_documents,
                        corpus.split->documents, training::DocumentUnitName(corpus.split->unit));
  return fmt::format("{}: {} of {} characters", what, held_out, all);
}

}  // namespace kvasir::cli
