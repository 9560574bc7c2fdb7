#include "training/run.h"

#include "model/model_file.h"

namespace kvasir::training {

std::string CheckpointPath(const std::string& directory) { return directory + "/last.kvckpt"; }

base::Result<RunResult> RunTraining(Trainer& trainer, base::Env& env,
                                    const tokenizer::VocabularySpec& vocabulary,
                                    std::span<const TokenId> held_out, const RunOptions& options,
                                    const std::function<void(const Progress&)>& on_step) {
  const bool checkpoints = !options.checkpoint_directory.empty();
  if (checkpoints) {
    KV_TRY(env.MakeDirectories(options.checkpoint_directory));
  }
  const auto save_model = [&]() {
    return model::SaveGpt2(env, options.output, trainer.config(), vocabulary, trainer.Source(),
                           {options.name, options.dtype});
  };
  const auto save_checkpoint = [&]() -> base::Result<void> {
    if (!checkpoints) return base::Success();
    return trainer.SaveCheckpoint(env, CheckpointPath(options.checkpoint_directory));
  };
  RunResult result;
  const std::uint64_t steps = trainer.options().steps;
  while (trainer.steps_done() < steps && !result.stopped) {
    Progress progress;
    KV_TRY(progress.step, trainer.Step());
    const std::uint64_t done = trainer.steps_done();
    result.stopped = (options.stop && options.stop->load()) || options.stop_at == done;
    const bool last = done == steps || result.stopped;
    base::Result<void> saved = base::Success();
    if (!held_out.empty() && (last || done % options.eval_every == 0)) {
      progress.evaluation = trainer.Evaluate(held_out);
      progress.is_best = progress.evaluation->nll < trainer.best_loss;
      if (progress.is_best) {
        trainer.best_loss = progress.evaluation->nll;
        saved = save_model();
      }
    }
    if (last && held_out.empty()) saved = save_model();
    if (last || done % options.checkpoint_every == 0 || !saved) {
      const base::Result<void> kept = save_checkpoint();
      if (saved && !kept) saved = kept;
    }
    on_step(progress);
    if (!saved) return saved.error();
  }
  result.steps_done = trainer.steps_done();
  if (!held_out.empty()) result.best_loss = trainer.best_loss;
  return result;
}

}  // namespace kvasir::training
