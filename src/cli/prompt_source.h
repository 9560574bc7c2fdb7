// Where prompts come from: an argument, a file, or a file of many.
#ifndef KVASIR_CLI_PROMPT_SOURCE_H_
#define KVASIR_CLI_PROMPT_SOURCE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "engine/request.h"

namespace kvasir::cli {

struct PromptFlags {
  std::string prompt;
  std::optional<std::string> prompt_file;
  std::optional<std::string> prompts_file;
};

// -p, --prompt-file, --prompts-file: at most one of them.
void AddPromptFlags(CLI::App* command, PromptFlags& flags);

struct Prompt {
  std::string text;
  std::string source;  // "the prompt", "'file'" or "'file' line 3": for messages
  bool from_file = false;
  // What a line of a --prompts-file sets for itself.
  std::optional<std::uint64_t> seed;
  std::vector<std::function<void(engine::GenerateRequest&)>> overrides;
};

// At least one. kIo, or kBadData naming file, line and field.
//   --prompt-file: the file's text without its last newline.
//   --prompts-file: on each line a JSON object with "prompt" and, if wanted, "seed", "max_tokens",
//   "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "stop" (a text or a list of texts);
//   empty lines are skipped.
base::Result<std::vector<Prompt>> ReadPrompts(const PromptFlags& flags);

// What is not UTF-8 is kUsage in an argument and kBadData in a file.
base::Result<std::vector<base::TokenId>> TokensOfPrompt(const OpenModel& open,
                                                        const Prompt& prompt);

void ApplyOverrides(const Prompt& prompt, engine::GenerateRequest& request);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_PROMPT_SOURCE_H_
