// What a model writes while it is trained, drawn as `generate` draws.
#ifndef KVASIR_CLI_TRAIN_SAMPLES_H_
#define KVASIR_CLI_TRAIN_SAMPLES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "engine/request.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace kvasir::cli {

struct SampleSettings {
  std::string prompt = {};  // UTF-8
  std::uint64_t tokens = 128;
  float temperature = 0.8f;
  std::uint64_t seed = 1;
  std::uint64_t count = 1;
};

// The continuations, with their tokens, that `generate -p PROMPT -n TOKENS --temperature T --seed S
// --count N` writes with this model. Errors as Generator::Run, and for a prompt that is not UTF-8.
base::Result<std::vector<engine::ChoiceResult>> DrawSamples(const model::Model& model,
                                                            const tokenizer::Tokenizer& tokenizer,
                                                            base::ThreadTeam& team,
                                                            const SampleSettings& settings);

struct Sample {
  std::uint64_t step = 0;  // Steps done by the model that wrote it.
  std::string prompt;
  std::string text;  // Without the prompt.
  friend bool operator==(const Sample&, const Sample&) = default;
};

// The samples of a run in a file, a JSON object a line. Single-threaded.
class SampleLog {
 public:
  // Begins the file anew with what it holds up to this step: nothing of a run from the start. kIo,
  // or kBadData for a file with samples to keep that is no such list.
  static base::Result<SampleLog> Open(base::Env& env, const std::string& path,
                                      std::uint64_t steps_done);
  // kIo if it cannot be written; it is then in samples() all the same.
  base::Result<void> Add(Sample sample);
  std::span<const Sample> samples() const { return samples_; }

 private:
  explicit SampleLog(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::vector<Sample> samples_;  // By step.
};

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_SAMPLES_H_
