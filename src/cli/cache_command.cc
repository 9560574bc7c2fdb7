// kvasir cache plan: the bytes of a KV cache, computed without running it.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "cli/cache_compare_command.h"
#include "cli/cache_plan.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "eval/model_summary.h"
#include "eval/speed.h"
#include "kvcache/cache_presets.h"
#include "model/any_model_file.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using kvcache::PlanDType;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kDefaultContext = 2048;  // Of sizes given as flags.

struct CachePlanFlags {
  std::string model;
  std::string preset;
  std::optional<std::uint64_t> layers, kv_heads, head_dim, latent_dim, rope_dim, embedding;
  std::string kv;
  std::string dtype;
  std::string value_dtype;
  std::uint64_t key_group = 0;
  std::uint64_t window = 0;
  std::uint64_t sinks = 0;
  std::string store = "kv";
  std::optional<std::uint64_t> context, batch;
  std::string requests;
  std::uint64_t shared_prefix = 0;
  std::uint64_t block_tokens = kvcache::kDefaultBlockTokens;
  std::optional<std::uint64_t> memory;
  double gb_per_s = 0;  // 0: measured.
  bool json = false;

  bool HasSizes() const {
    return layers || kv_heads || head_dim || latent_dim || rope_dim || embedding;
  }
};

base::Result<PlannedModel> ModelOfFile(const std::string& path) {
  auto file = model::OpenAnyModelFile(base::Env::Default(), path);
  if (!file) {
    if (file.error().code != ErrorCode::kIo) return file.error();
    return base::WithHint(file.error(),
                          "name a model with -m FILE or --preset, or its sizes with --layers …");
  }
  const eval::ModelSummary summary = eval::Summarize(file.value());
  if (!summary.cache) {
    return MakeError(ErrorCode::kBadData, "{}: the file does not tell the sizes of a cache", path);
  }
  PlannedModel model = {.name = path,
                        .shape = {.layers = summary.cache->layers,
                                  .kv_heads = summary.cache->kv_heads,
                                  .head_dim = summary.cache->head_dim,
                                  .latent_dim = summary.cache->latent_dim,
                                  .rope_dim = summary.cache->rope_dim,
                                  .embedding = summary.embedding.value_or(0)},
                        .context = summary.context.value_or(kDefaultContext),
                        .windows = summary.windows,
                        .rotary = summary.architecture.value_or("gpt2") != "gpt2",
                        .source = {},
                        .note = {}};
  // A file's fault is not the command line's.
  const auto plan = PlanCache(model.shape, {}, {.requests = {{.count = 1, .tokens = 1}}});
  if (!plan) return MakeError(ErrorCode::kBadData, "{}: {}", path, plan.error().message);
  return model;
}

base::Result<PlannedModel> ModelBeforeSizes(const CachePlanFlags& flags) {
  if (!flags.preset.empty()) {
    if (!flags.model.empty()) {
      return MakeError(ErrorCode::kUsage, "--preset {} beside -m {}: only one of them",
                       flags.preset, OneLine(flags.model));
    }
    const kvcache::CachePreset* preset = kvcache::FindCachePreset(flags.preset);
    KV_CHECK(preset != nullptr);  // The flag's check lets no other through.
    return PlannedModel{.name = std::string(preset->name),
                        .shape = preset->shape,
                        .dtype = PlanDType::kF16,
                        .context = preset->context,
                        .source = preset->source,
                        .note = preset->note};
  }
  if (!flags.model.empty() || !flags.HasSizes()) {
    ModelFlags found;
    found.model = flags.model;
    return ModelOfFile(ModelPath(found));
  }
  PlannedModel model;
  model.context = kDefaultContext;
  return model;
}

// The preset's or file's sizes, where flags do not say otherwise.
base::Result<PlannedModel> ModelOf(const CachePlanFlags& flags) {
  KV_TRY(PlannedModel model, ModelBeforeSizes(flags));
  if (!flags.HasSizes()) return model;
  kvcache::PlanShape& shape = model.shape;
  const bool latent = flags.latent_dim || (flags.rope_dim && shape.latent_dim != 0);
  if (latent) shape.kv_heads = shape.head_dim = 0;
  if (!latent && (flags.kv_heads || flags.head_dim)) shape.latent_dim = shape.rope_dim = 0;
  shape.layers = flags.layers.value_or(shape.layers);
  shape.kv_heads = flags.kv_heads.value_or(shape.kv_heads);
  shape.head_dim = flags.head_dim.value_or(shape.head_dim);
  shape.latent_dim = flags.latent_dim.value_or(shape.latent_dim);
  shape.rope_dim = flags.rope_dim.value_or(shape.rope_dim);
  shape.embedding = flags.embedding.value_or(shape.embedding);
  model.source = model.note = {};
  if (!model.name.empty()) model.name += ", with other sizes";
  if (shape.layers == 0 ||
      (shape.latent_dim == 0 && (shape.kv_heads == 0 || shape.head_dim == 0))) {
    return MakeError(ErrorCode::kUsage,
                     "{} missing: a cache's sizes are --layers, --kv-heads and --head-dim, or "
                     "--layers and --latent-dim",
                     shape.layers == 0     ? "--layers is"
                     : shape.kv_heads != 0 ? "--head-dim is"
                     : shape.head_dim != 0 ? "--kv-heads is"
                                           : "--kv-heads and --head-dim are");
  }
  return model;
}

base::Result<kvcache::PlanWorkload> WorkloadOf(const CachePlanFlags& flags,
                                               const PlannedModel& model) {
  kvcache::PlanWorkload workload;
  workload.block_tokens = flags.block_tokens;
  workload.shared_prefix = flags.shared_prefix;
  if (flags.requests.empty()) {
    workload.requests.push_back(
        {.count = flags.batch.value_or(1), .tokens = flags.context.value_or(model.context)});
    return workload;
  }
  if (flags.batch || flags.context) {
    return MakeError(ErrorCode::kUsage, "--requests '{}' beside --{}: the requests say both",
                     OneLine(flags.requests), flags.batch ? "batch" : "context");
  }
  KV_TRY(workload.requests, ParseRequests(flags.requests));
  return workload;
}

// A model's own windows count beside the policy's.
void LimitWindows(CacheQuestion& question) {
  if (question.model.windows.size() != question.kv->layers()) return;  // Other sizes were given.
  question.kv->LimitWindows(question.model.windows);
}

// Takes --kv, which says all that the flags about types, windows and stores say.
base::Result<void> TakePolicy(const CachePlanFlags& flags, CacheQuestion& question) {
  const std::pair<const char*, bool> others[] = {
      {"--dtype", !flags.dtype.empty()},     {"--value-dtype", !flags.value_dtype.empty()},
      {"--key-group", flags.key_group != 0}, {"--window", flags.window != 0},
      {"--sinks", flags.sinks != 0},         {"--store", flags.store != "kv"}};
  for (const auto& [flag, given] : others) {
    if (!given) continue;
    return MakeError(ErrorCode::kUsage, "{} beside --kv: the policy says it all", flag);
  }
  const kvcache::PlanShape& shape = question.model.shape;
  if (shape.layers > kvcache::kMaxLayers || shape.kv_heads > kvcache::kMaxKvHeads) {
    return MakeError(ErrorCode::kUsage,
                     "--kv is for at most {} layers of {} kv heads, but there are {} of {}",
                     kvcache::kMaxLayers, kvcache::kMaxKvHeads, shape.layers, shape.kv_heads);
  }
  auto policy = kvcache::CachePolicy::Parse(flags.kv, {.layers = shape.layers,
                                                       .kv_heads = shape.kv_heads,
                                                       .head_dim = shape.head_dim,
                                                       .rotary = question.model.rotary,
                                                       .latent = shape.latent_dim != 0});
  if (!policy) return MakeError(ErrorCode::kUsage, "--kv: {}", policy.error().message);
  question.kv = std::move(policy.value());
  LimitWindows(question);
  return base::Success();
}

// GB/s at which all physical cores read a buffer that no processor cache holds.
base::Result<double> MeasureBandwidth() {
  constexpr std::size_t kBytes = std::size_t{128} << 20;
  KV_TRY(const auto team, base::ThreadTeam::Make(base::ThreadTeam::PhysicalCores()));
  return eval::MeasureReadRoof(kBytes, /*repetitions=*/3, *team);
}

// Errors of the plan name its settings; a reader knows the flags.
std::string InFlags(std::string message) {
  for (const auto& [setting, flag] : {std::pair("kv_heads", "--kv-heads"),
                                      {"head_dim", "--head-dim"},
                                      {"latent_dim", "--latent-dim"},
                                      {"rope_dim", "--rope-dim"},
                                      {"key_group", "--key-group"},
                                      {"shared_prefix", "--shared-prefix"},
                                      {"block_tokens", "--block-tokens"}}) {
    for (std::size_t at = message.find(setting); at != std::string::npos;
         at = message.find(setting, at + std::string_view(flag).size())) {
      message.replace(at, std::string_view(setting).size(), flag);
    }
  }
  for (const char* setting : {"layers", "embedding", "sinks"}) {
    if (message.starts_with(std::string(setting) + " is ")) message.insert(0, "--");
  }
  return message;
}

base::Result<int> RunCachePlan(const CachePlanFlags& flags) {
  CacheQuestion question;
  KV_TRY(question.model, ModelOf(flags));
  KV_TRY(question.workload, WorkloadOf(flags, question.model));
  question.policy = {.dtype = question.model.dtype,
                     .key_group = flags.key_group,
                     .window = flags.window,
                     .sinks = flags.sinks,
                     .hidden = flags.store == "hidden"};
  if (question.policy.hidden) question.policy.dtype = PlanDType::kF32;
  if (!flags.dtype.empty()) question.policy.dtype = kvcache::FindPlanDType(flags.dtype).value();
  if (!flags.value_dtype.empty()) {
    question.policy.value_dtype = kvcache::FindPlanDType(flags.value_dtype).value();
  }
  if (!flags.kv.empty()) {
    KV_TRY(TakePolicy(flags, question));
  }
  question.memory_bytes = flags.memory;
  question.measured = flags.gb_per_s == 0;
  question.gb_per_s = 1;  // Until the question is known to have an answer.
  auto answer = AnswerCacheQuestion(question);
  if (answer) {
    question.gb_per_s = flags.gb_per_s;
    if (question.measured) {
      KV_TRY(question.gb_per_s, MeasureBandwidth());
    }
    answer = AnswerCacheQuestion(question);
  }
  if (!answer) {
    base::Error error = answer.error();
    error.message = InFlags(std::move(error.message));
    return error;
  }
  if (flags.json) {
    PrintJson(ToJson(question, answer.value()));
  } else {
    PrintText(question, answer.value());
  }
  return 0;
}

void AddSizeFlags(CLI::App* command, CachePlanFlags& flags) {
  std::vector<std::string> presets;
  for (const kvcache::CachePreset& preset : kvcache::CachePresets()) {
    presets.emplace_back(preset.name);
  }
  command
      ->add_option("-m,--model", flags.model,
                   "model file (GGUF); default: $KVASIR_MODEL, else the bundled model")
      ->type_name("FILE");
  command->add_option("--preset", flags.preset, "a published model, in f16 unless --dtype is given")
      ->type_name("NAME")
      ->check(CLI::IsMember(presets));
  AddUint(command, "--layers", flags.layers, {1, kvcache::kMaxPlanLayers},
          "sizes of a model that is none of these, or other sizes than its own");
  AddUint(command, "--kv-heads", flags.kv_heads, {1, kMost}, "heads of keys and values in a layer");
  AddUint(command, "--head-dim", flags.head_dim, {1, kMost}, "numbers in a key, and in a value");
  AddUint(command, "--latent-dim", flags.latent_dim, {1, kMost},
          "multi-head latent attention: numbers in a latent, which all heads share");
  AddUint(command, "--rope-dim", flags.rope_dim, {0, kMost}, "and in the rotated key beside it");
  AddUint(command, "--embedding", flags.embedding, {1, kMost}, "the model's width");
}

void AddPolicyFlags(CLI::App* command, CachePlanFlags& flags) {
  std::vector<std::string> dtypes;
  for (const PlanDType dtype : kvcache::kPlanDTypes) dtypes.emplace_back(PlanDTypeName(dtype));
  command
      ->add_option("--dtype", flags.dtype, "how a number is stored; default f32, of a preset f16")
      ->type_name("T")
      ->check(CLI::IsMember(dtypes));
  command->add_option("--value-dtype", flags.value_dtype, "of V, where it is not that of K")
      ->type_name("T")
      ->check(CLI::IsMember(dtypes));
  AddUint(command, "--key-group", flags.key_group, {16, kMost},
          "int4: round keys by channel over so many positions");
  AddUint(command, "--window", flags.window, {1, kMost}, "only so many last tokens are visible");
  AddUint(command, "--sinks", flags.sinks, {0, kMost}, "and so many first ones");
  command
      ->add_option("--kv", flags.kv,
                   "a policy by layer and head, as of the commands that run a model; instead of "
                   "--dtype and those below it")
      ->type_name("SPEC");
  command->add_option("--store", flags.store, "kv, or hidden: the layer's input; default kv")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"kv", "hidden"}));
}

void AddWorkloadFlags(CLI::App* command, CachePlanFlags& flags) {
  AddUint(command, "--context", flags.context, {1, kMost},
          "tokens of each sequence; default: the model's context");
  AddUint(command, "--batch", flags.batch, {1, kMost}, "sequences at once; default 1");
  command
      ->add_option("--requests", flags.requests,
                   "instead of both: a mix, as 8x512,2x4096 (count x tokens)")
      ->type_name("MIX");
  AddUint(command, "--shared-prefix", flags.shared_prefix, {0, kMost},
          "first tokens that all sequences share, held once");
  AddUint(command, "--block-tokens", flags.block_tokens, {16, kvcache::kMaxBlockTokens},
          "positions in a block: a multiple of 16; default 16");
  AddBytes(command, "--memory", flags.memory, {.min = 1}, "tell what fits, e.g. 16GiB");
  AddFloat(command, "--bandwidth", flags.gb_per_s, {.min = 0, .max = 1e6, .min_open = true},
           "GB/s at which the cache is read; default: measured here");
}

}  // namespace

void AddCacheCommand(CommandSet& commands) {
  CLI::App* cache = commands.Add("cache", "What a KV cache takes, and what its policies cost",
                                 "kvasir cache plan --preset llama3-8b --memory 16GiB");
  cache->require_subcommand(1);
  // What is none of the subcommands ends here, to be named.
  cache
      ->add_option_function<std::string>(
          "COMMAND",
          [](const std::string& text) {
            throw CLI::ValidationError(fmt::format(
                "there is no 'cache {}': it must be cache plan or cache compare", OneLine(text)));
          })
      ->group("");
  auto flags = std::make_shared<CachePlanFlags>();
  CLI::App* plan = cache->add_subcommand(
      "plan", "Bytes of a cache for any model, length and batch, without running it");
  plan->footer(
      "Examples:\n  kvasir cache plan --preset gpt3-175b --batch 8\n"
      "  kvasir cache plan --layers 32 --kv-heads 8 --head-dim 128 --dtype int8 "
      "--requests 8x512,2x4096 --memory 16GiB");
  AddSizeFlags(plan, *flags);
  AddPolicyFlags(plan, *flags);
  AddWorkloadFlags(plan, *flags);
  plan->add_flag("--json", flags->json, "one JSON document");
  commands.OnRun(plan, [flags] { return RunCachePlan(*flags); });
  AddCacheCompare(cache, commands);
}

}  // namespace kvasir::cli
