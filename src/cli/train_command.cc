// kvasir train: a model from a person's own text.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/train_corpus.h"
#include "cli/train_estimate.h"
#include "cli/train_files.h"
#include "cli/train_flags.h"
#include "cli/train_log.h"
#include "cli/train_peers.h"
#include "cli/train_progress.h"
#include "cli/train_report.h"
#include "cli/train_samples.h"
#include "cli/train_start.h"
#include "eval/speed.h"
#include "training/run.h"
#include "training/trained_policy.h"

namespace kvasir::cli {
namespace {

std::atomic<bool> stop_requested{false};

// The first Ctrl-C asks the run to save and end; the second ends it at once.
void OnSignal(int number) {
  if (stop_requested.exchange(true)) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

// Signals that ask to end, but those the caller had ignored (nohup, a shell's background job).
void HandleSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (signal(number, OnSignal) == SIG_IGN) signal(number, SIG_IGN);
  }
}

// Not by {fmt}, which throws where stderr takes no more.
void Tell(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

// A run that is ready to begin. What is declared first is borrowed by what follows.
struct Session {
  TrainFlags flags;
  std::unique_ptr<training::Peers> peers;  // Null: one process alone.
  std::unique_ptr<TrainStart> start;       // Null: from weights drawn by the seed.
  TrainCorpus corpus;
  std::optional<training::ModelConfig> config;
  std::unique_ptr<base::ThreadTeam> team;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<training::Trainer> trainer;
  training::BestModel best;
  std::optional<SampleLog> sample_log;  // Where samples are drawn and reported.
  std::string preset;                   // What it chose; empty without one.

  // Of several processes the first reads and writes files and tells what happens.
  bool first() const { return !peers || peers->rank() == 0; }

  PlannedRun Planned() const {
    return {*config,
            flags.options,
            corpus,
            flags.eval_every,
            team->size(),
            !flags.checkpoint.empty(),
            flags.sample_every.has_value() || flags.Reports(),
            flags.FileType()};
  }
};

// Reads the texts and settles what is to be trained. Touches no file.
base::Result<void> Plan(base::Env& env, Session& session) {
  TrainFlags& flags = session.flags;
  KV_TRY(CheckTrainFlags(flags));
  KV_TRY(session.peers, FindPeers());
  TrainSources sources = flags.Sources();
  if (!flags.init.empty()) {
    KV_TRY(session.start, OpenTrainStart(env, flags.init));
    sources.tokenizer = session.start->loaded.tokenizer.get();
    sources.context = session.start->weights.config.context();
    flags.options.start_weights = session.start->weights.Hash();
  }
  KV_TRY(session.corpus, ReadTrainCorpus(env, sources));
  const TrainCorpus& corpus = session.corpus;
  if (!flags.estimate) {
    TrainPaths paths = flags.Paths();
    paths.texts = corpus.files;  // Those of folders too.
    KV_TRY(CheckDistinct(paths));
  }
  if (session.start) {
    session.config = session.start->weights.config;
  } else {
    if (flags.preset) {
      session.preset = ApplyPreset(flags, corpus.text.size(), corpus.vocabulary.pieces.size());
      KV_TRY(CheckTrainFlags(flags));
    }
    KV_TRY(session.config, MakeModelConfig(flags.shape, corpus.vocabulary.pieces.size()));
  }
  KV_TRY(training::TrainedPolicy(*session.config, flags.options.kv));
  KV_TRY(session.team,
         base::ThreadTeam::Make(flags.threads == 0 ? base::ThreadTeam::PhysicalCores()
                                                   : static_cast<std::size_t>(flags.threads)));
  return CheckPlannedMemory(session.Planned());
}

// Makes the trainer, of the start or of the checkpoint, and checks the files it will write.
base::Result<void> Prepare(base::Env& env, Session& session) {
  const TrainFlags& flags = session.flags;
  if (session.first()) {
    KV_TRY(PrepareTrainFiles(env, flags.Paths(), flags.resume));
  }
  KV_TRY(session.trainer, training::Trainer::Make(*session.config, flags.options,
                                                  session.corpus.text, *session.team));
  if (session.peers) {
    KV_TRY(session.trainer->Join(*session.peers));
  }
  if (session.start) training::TakeWeights(session.start->weights, *session.trainer);
  session.best.held_out = session.corpus.held_out;
  session.best.eval_every = flags.eval_every;
  if (flags.resume) {
    KV_TRY(session.trainer->LoadCheckpoint(env, training::CheckpointPath(flags.checkpoint),
                                           session.best));
    if (session.trainer->steps_done() > flags.options.steps) {
      return base::MakeError(base::ErrorCode::kUsage,
                             "--steps {} is not allowed: the checkpoint has {} steps",
                             flags.options.steps, session.trainer->steps_done());
    }
  }
  if (!flags.sample_every || !session.first()) return base::Success();
  KV_TRY(auto vocabulary, tokenizer::Vocabulary::Make(session.corpus.vocabulary));
  KV_TRY(session.tokenizer, tokenizer::MakeTokenizer(std::move(vocabulary)));
  if (!flags.Reports()) return base::Success();
  KV_TRY(env.MakeDirectories(flags.Paths().report));
  KV_TRY(session.sample_log, SampleLog::Open(env, TrainSamplesPath(flags.Paths().report),
                                             session.trainer->steps_done()));
  return base::Success();
}

// Draws and shows a sample of the trainer's weights. Its fault is told and ends nothing: the run is
// worth more than its samples.
void ShowSample(Session& session, std::uint64_t step, TrainProgress& progress) {
  const auto draw = [&]() -> base::Result<void> {
    KV_TRY(const auto model, session.trainer->config().MakeModel(session.trainer->Source()));
    KV_TRY(const auto choices,
           DrawSamples(*model, *session.tokenizer, *session.team, session.flags.Samples()));
    Sample sample{step, session.flags.sample_prompt, choices.front().text};
    progress.Note(fmt::format("step {}: {}", step, OneLine(sample.prompt + sample.text)));
    return session.sample_log ? session.sample_log->Add(std::move(sample)) : base::Success();
  };
  const base::Result<void> drawn = draw();
  if (!drawn) progress.Note(fmt::format("step {}: no sample: {}", step, drawn.error().message));
}

// The report of a run that has come to its end.
base::Result<TrainFigures> Report(base::Env& env, const Session& session, const TrainedRun& run) {
  const TrainFlags& flags = session.flags;
  KV_TRY(TrainFigures figures,
         MeasureTrained(env, flags.output, session.corpus, run.best_loss, *session.team));
  std::vector<TrainLogLine> log;
  auto read = ReadTrainLog(env, flags.Paths().log);
  if (read) {
    log = std::move(read.value());
  } else {
    Tell("the report has no curves: " + read.error().message);
  }
  std::span<const Sample> samples;
  if (session.sample_log) samples = session.sample_log->samples();
  KV_TRY(WriteTrainReport(env, flags.Paths().report, run, session.corpus, figures, log, samples));
  return figures;
}

TrainedRun Describe(const Session& session, const training::RunResult& result, double seconds,
                    std::uint64_t first_step) {
  const TrainFlags& flags = session.flags;
  TrainedRun run;
  run.name = flags.Name();
  run.output = flags.output;
  run.command = RepeatCommand(flags);
  run.shape = ShapeText(*session.config);
  run.how_ended = result.early ? fmt::format("ended early: no better for {} evaluations",
                                             flags.patience.value_or(0))
                               : "all that were planned";
  run.parameters = session.config->ParameterCount();
  run.vocabulary = session.config->vocab();
  run.steps = result.steps_done;
  run.tokens_per_step = flags.options.batch * session.config->context();
  if (session.best.measured()) {
    run.best_step = session.best.step;
    run.best_loss = session.best.loss;
  }
  run.seconds = seconds;
  run.first_step = first_step;
  return run;
}

nlohmann::ordered_json ToJson(const Session& session, const TrainedRun& run,
                              const training::RunResult& result,
                              const std::optional<TrainFigures>& figures) {
  const TrainFlags& flags = session.flags;
  nlohmann::ordered_json json{{"output", flags.output},        {"seed", flags.options.seed},
                              {"steps", result.steps_done},    {"stopped", result.stopped},
                              {"stopped_early", result.early}, {"vocab", run.vocabulary},
                              {"parameters", run.parameters}};
  if (run.best_loss) {
    json["held_out_nll"] = *run.best_loss;
    json["best_step"] = run.best_step;
  }
  if (!figures) return json;
  if (figures->bits_per_char) {
    json["perplexity"] = *figures->perplexity;
    json["bits_per_char"] = *figures->bits_per_char;
  }
  json["generated_lines"] = figures->generated.lines;
  json["copied_lines"] = figures->generated.copied;
  json["report"] = flags.Paths().report + "/report.md";
  return json;
}

void PrintText(const Session& session, const TrainedRun& run, const training::RunResult& result,
               const std::optional<TrainFigures>& figures) {
  const TrainFlags& flags = session.flags;
  fmt::print("{} {}: {} parameters, vocabulary {}, {} steps",
             result.stopped ? "stopped" : "trained", flags.output, run.parameters, run.vocabulary,
             result.steps_done);
  if (result.early) fmt::print(" (no better for {} evaluations)", flags.patience.value_or(0));
  if (run.best_loss) {
    fmt::print(", best held-out loss {:.5f} nats per token (step {})", *run.best_loss,
               run.best_step);
  } else if (!session.best.held_out.empty()) {
    fmt::print(", not yet measured on held-out text: these are the last weights, not the best");
  }
  fmt::print("\n");
  if (flags.held_out.empty()) fmt::print("{}\n", DescribeHeldOut(session.corpus));
  if (figures && figures->bits_per_char) {
    fmt::print("perplexity {:.2f}, {:.4f} bits per character; ", *figures->perplexity,
               *figures->bits_per_char);
  }
  if (figures) fmt::print("report in {}/report.md\n", flags.Paths().report);
  if (result.stopped && !flags.checkpoint.empty()) fmt::print("go on with --resume\n");
}

// One of the other processes: it computes, and leaves files and words to the first.
base::Result<int> Help(base::Env& env, Session& session) {
  const auto result =
      training::RunTraining(*session.trainer, session.best, env, session.corpus.vocabulary,
                            session.flags.Run(&stop_requested), [](const training::Progress&) {});
  if (!result) return result.error();
  session.peers->Finish();
  return 0;
}

base::Result<int> Train(TrainFlags given) {
  base::Env& env = base::Env::Default();
  Session session;
  session.flags = std::move(given);
  const TrainFlags& flags = session.flags;
  KV_TRY(Plan(env, session));
  if (flags.estimate) {
    if (!session.preset.empty()) Tell(session.preset);
    KV_TRY(PrintEstimate(session.Planned(), *session.team, flags.json));
    return 0;
  }
  KV_TRY(Prepare(env, session));
  HandleSignals();
  if (!session.first()) return Help(env, session);
  KV_TRY(auto progress, TrainProgress::Open(flags.Paths().log, flags.resume, *session.trainer));
  if (!session.preset.empty()) Tell(session.preset);
  const std::uint64_t first_step = session.trainer->steps_done();
  const eval::Stopwatch watch;
  auto result =
      training::RunTraining(*session.trainer, session.best, env, session.corpus.vocabulary,
                            flags.Run(&stop_requested), [&](const training::Progress& p) {
                              progress->Show(p);
                              if (flags.sample_every && p.step.step % *flags.sample_every == 0) {
                                ShowSample(session, p.step.step, *progress);
                              }
                            });
  const auto logged = progress->Finish();
  if (!result) return result.error();
  if (session.peers) session.peers->Finish();
  const TrainedRun run = Describe(session, result.value(), watch.Seconds(), first_step);
  std::optional<TrainFigures> figures;
  base::Result<void> reported = base::Success();
  if (flags.Reports() && !result.value().stopped) {
    auto made = Report(env, session, run);
    if (made) figures = std::move(made.value());
    if (!made) reported = made.error();
  }
  if (flags.json) {
    PrintJson(ToJson(session, run, result.value(), figures));
  } else {
    PrintText(session, run, result.value(), figures);
  }
  if (!logged) return logged.error();
  if (!reported) return reported.error();
  return 0;
}

}  // namespace

void AddTrainCommand(CommandSet& commands) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command =
      commands.Add("train", "Train a model on your own text",
                   "kvasir train books/ -o book.gguf --preset small --checkpoint book.ckpt");
  AddTrainFlags(command, *flags);
  commands.OnRun(command, [flags, command] {
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() > 0) flags->given.insert(option->get_name());
    }
    return Train(*flags);
  });
}

}  // namespace kvasir::cli
