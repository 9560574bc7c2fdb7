// The settings of generate -i, changed from turn to turn: /temperature 0.8 is --temperature 0.8.
#ifndef KVASIR_CLI_TURN_SETTINGS_H_
#define KVASIR_CLI_TURN_SETTINGS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/generate_flags.h"

namespace kvasir::cli {

// The flags that the program was called with, and what has been said of them since. A value;
// single-threaded.
class TurnSettings {
 public:
  explicit TurnSettings(GenerateFlags start) : start_(std::move(start)), flags_(start_) {}

  const GenerateFlags& flags() const { return flags_; }

  // "temperature 0.8": that flag has this value from now on; one that may be repeated ("stop") has
  // it too. "temperature": back to what it was at the start. "ignore-eos": a switch turns. kUsage
  // for what is no such flag, or a value that is not allowed; then nothing has changed.
  base::Result<void> Set(std::string_view line);
  // Everything back to the start.
  void Reset();

  // What has been said, a line each, as it would be said again: "/temperature 0.8\n".
  std::string Said() const;
  // One line each: "/temperature FLOAT  divides …\n".
  static std::string Help();

 private:
  struct Saying {
    std::string name;  // Without dashes.
    std::string value;
    bool is_switch = false;
  };

  base::Result<GenerateFlags> Apply(const std::vector<Saying>& said) const;

  GenerateFlags start_;
  GenerateFlags flags_;
  std::vector<Saying> said_;
};

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TURN_SETTINGS_H_
