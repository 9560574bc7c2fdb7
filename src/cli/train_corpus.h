// The texts of a training run as token ids, and the vocabulary they share.
#ifndef KVASIR_CLI_TRAIN_CORPUS_H_
#define KVASIR_CLI_TRAIN_CORPUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "base/token_id.h"
#include "cli/text_encoding.h"
#include "cli/train_vocabulary.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"
#include "training/split.h"

namespace kvasir::cli {

// Where the texts come from, and what is held out of them.
struct TrainSources {
  std::vector<std::string> texts = {};  // Files and folders (train_texts.h).
  std::string held_out = {};            // --val: a path; empty: none.
  // --val-share: of the texts, 0 for none; null without --val: 5 %, at most 128 KiB, where that is
  // 1 KiB at least and leaves more than a context to train on.
  std::optional<double> share = std::nullopt;
  std::uint64_t seed = 1;  // Of what is held out.
  std::uint64_t context = 1;
  TextEncoding encoding = TextEncoding::kAuto;  // Of all files.
  VocabularyChoice vocabulary = {};
  // Of the model to go on from; null: one is made of the texts, as `vocabulary` says.
  const tokenizer::Tokenizer* tokenizer = nullptr;
};

struct TrainCorpus {
  tokenizer::VocabularySpec vocabulary;
  std::vector<base::TokenId> text, held_out;
  std::string text_bytes, held_out_bytes;  // The same as UTF-8.
  std::vector<std::string> files;          // Paths of the texts.
  // How the held-out text was drawn from them; its own texts are then empty. Null: it was not.
  std::optional<training::TextSplit> split;
};

// Reads the files, the texts as one in this order: one that does not end with a newline gets one
// if another follows. Tokens that the text never has, as of characters that occur in the held-out
// text alone, are marked as untrained. kBadData, naming the file, for one that is empty or not text
// of this encoding; for texts without two different characters, blanks apart; and for a held-out
// text of less than 2 tokens.
base::Result<TrainCorpus> ReadTrainCorpus(base::Env& env, const TrainSources& sources);

// A line that tells what was held out of the texts: "5 of 100 paragraphs are held out, …".
std::string DescribeHeldOut(const TrainCorpus& corpus);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_CORPUS_H_
