#include "training/run.h"

#include <cmath>

namespace kvasir::training {
namespace {

using base::ErrorCode;
using base::MakeError;

base::Result<Evaluation> Measure(Trainer& trainer, BestModel& best, bool& is_best) {
  const Evaluation evaluation = trainer.Evaluate(best.held_out);
  if (!std::isfinite(evaluation.nll)) {
    return MakeError(ErrorCode::kNumeric, "step {}: the held-out loss {} is not finite",
                     trainer.steps_done(), evaluation.nll);
  }
  is_best = best.Offer(trainer.steps_done(), evaluation.nll, trainer.parameters());
  return evaluation;
}

// Of several processes that train together the first writes the files.
bool Writes(const Trainer& trainer) { return !trainer.peers() || trainer.peers()->rank() == 0; }

// What the first process says, to all: none may stop alone.
base::Result<bool> Agreed(const Trainer& trainer, bool stop) {
  std::byte said{stop ? std::uint8_t{1} : std::uint8_t{0}};
  if (trainer.peers()) {
    KV_TRY(trainer.peers()->Broadcast(0, {&said, 1}));
  }
  return said != std::byte{0};
}

// The files of a run.
struct Files {
  base::Env& env;
  const tokenizer::VocabularySpec& vocabulary;
  const RunOptions& options;

  // The best model; as long as none was measured, the trainer's own.
  base::Result<void> SaveModel(const Trainer& trainer, const BestModel& best) const {
    if (!Writes(trainer)) return base::Success();
    return trainer.config().Save(
        env, options.output, vocabulary,
        best.measured() ? trainer.Source(best.parameters.span()) : trainer.Source(),
        {options.name, options.dtype});
  }

  base::Result<void> SaveCheckpoint(const Trainer& trainer, const BestModel& best) const {
    if (options.checkpoint_directory.empty() || !Writes(trainer)) return base::Success();
    return trainer.SaveCheckpoint(env, CheckpointPath(options.checkpoint_directory), best);
  }
};

}  // namespace

std::string CheckpointPath(const std::string& directory) { return directory + "/last.kvckpt"; }

base::Result<RunResult> RunTraining(Trainer& trainer, BestModel& best, base::Env& env,
                                    const tokenizer::VocabularySpec& vocabulary,
                                    const RunOptions& options,
                                    const std::function<void(const Progress&)>& on_step) {
  const std::uint64_t steps = trainer.options().steps;
  if (trainer.steps_done() > steps) {
    return MakeError(ErrorCode::kUsage, "--steps {} is not allowed: {} steps are done", steps,
                     trainer.steps_done());
  }
  const bool measures = !best.held_out.empty();
  if (measures) best.Reserve(trainer.layout().size());
  if (!options.checkpoint_directory.empty() && Writes(trainer)) {
    KV_TRY(env.MakeDirectories(options.checkpoint_directory));
  }
  const Files files{env, vocabulary, options};
  if (trainer.steps_done() == steps && measures) {
    // A resumed run may be told to end where it stands, off the schedule. Measured twice, weights
    // are no better.
    bool is_best = false;
    KV_TRY(Measure(trainer, best, is_best));
  }
  // Told by the best step alone, which a checkpoint holds: a resumed run ends where the unbroken
  // does.
  const auto out_of_patience = [&](std::uint64_t done) {
    return options.patience && best.measured() && done % best.eval_every == 0 &&
           (done - best.step) / best.eval_every >= *options.patience;
  };
  const auto to_stop = [&](std::uint64_t done) {
    return (options.stop && options.stop->load()) || (options.stop_at && done >= *options.stop_at);
  };
  bool stopped = options.stop_at && trainer.steps_done() >= *options.stop_at;
  bool early = out_of_patience(trainer.steps_done());
  while (trainer.steps_done() < steps && !stopped && !early) {
    Progress progress;
    KV_TRY(progress.step, trainer.Step());
    const std::uint64_t done = trainer.steps_done();
    KV_TRY(stopped, Agreed(trainer, to_stop(done)));
    const bool last = done == steps || stopped;
    base::Result<void> saved = base::Success();
    // On schedule only: a run that was stopped and resumed must see what the unbroken one sees.
    if (measures && (done == steps || done % best.eval_every == 0)) {
      KV_TRY(progress.evaluation, Measure(trainer, best, progress.is_best));
      if (progress.is_best && !last) saved = files.SaveModel(trainer, best);
    }
    early = out_of_patience(done);
    on_step(progress);  // Before the checkpoint, so that a log holds every step that this holds.
    if (last || early || done % options.checkpoint_every == 0 || !saved) {
      const base::Result<void> kept = files.SaveCheckpoint(trainer, best);
      if (saved && !kept) saved = kept;
    }
    if (!saved) return saved.error();
  }
  KV_TRY(files.SaveModel(trainer, best));
  RunResult result;
  result.steps_done = trainer.steps_done();
  result.early = early && result.steps_done < steps;
  result.stopped = result.steps_done < steps && !result.early;
  return result;
}

}  // namespace kvasir::training
