// One turn of generate -i: a text and what the model wrote on.
#ifndef KVASIR_CLI_TURN_H_
#define KVASIR_CLI_TURN_H_

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/generate_flags.h"
#include "engine/generator.h"

namespace kvasir::cli {

struct Turn {
  std::string before;                 // The text before the turn, without the person's line.
  std::string after;                  // The text after it.
  std::vector<base::TokenId> tokens;  // Of it, as the model saw them, those written included.
  std::size_t written = 0;            // Of these, by the model.
  bool interrupted = false;
};

// Writes turns with one generator, so that what its cache holds is not computed again.
// Single-threaded; borrows the model.
class TurnWriter {
 public:
  static base::Result<TurnWriter> Make(const OpenModel& open, const ModelFlags& flags);

  // Continues text + line under these flags, printing as it comes. SIGINT ends the turn early.
  base::Result<Turn> Write(const std::string& text, const std::string& line,
                           const GenerateFlags& flags);
  // The k most probable tokens at the place of the turn's last one, a table for people, in which
  // that one is marked; it stands below where it is none of them. kUsage if the turn wrote none.
  base::Result<std::string> Probabilities(const Turn& turn, std::size_t k);

 private:
  TurnWriter(const OpenModel& open, const ModelFlags& flags,
             std::unique_ptr<engine::Generator> generator)
      : open_(open), flags_(flags), generator_(std::move(generator)) {}

  const OpenModel& open_;
  const ModelFlags& flags_;
  std::unique_ptr<engine::Generator> generator_;
};

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TURN_H_
