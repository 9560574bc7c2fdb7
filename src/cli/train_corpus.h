// The texts of a training run as token ids, and the vocabulary they share.
#ifndef KVASIR_CLI_TRAIN_CORPUS_H_
#define KVASIR_CLI_TRAIN_CORPUS_H_

#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/vocabulary.h"

namespace kvasir::cli {

struct TrainCorpus {
  tokenizer::VocabularySpec vocabulary;
  std::vector<base::TokenId> text, held_out;
};

// Reads the files, the texts as one in this order. The vocabulary is taken from all of them, so
// that the held-out text has no unknown character; what occurs there alone is marked as untrained.
// held_out: a path; empty: none. kBadData, naming the file, for one that is empty or not UTF-8, and
// for a held-out text of less than 2 tokens.
base::Result<TrainCorpus> ReadTrainCorpus(base::Env& env, const std::vector<std::string>& texts,
                                          const std::string& held_out);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_CORPUS_H_
