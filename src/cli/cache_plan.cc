#include "cli/cache_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "cli/json_output.h"
#include "cli/number_flags.h"
#include "cli/terminal_text.h"
#include "kernels/kv_type.h"
#include "kvcache/policy_plan.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using kvcache::CacheFit;
using kvcache::PlanDType;
using kvcache::PlanRequests;
using nlohmann::ordered_json;

// The types whose trade-off is shown; bf16 takes what f16 takes.
constexpr PlanDType kShownTypes[] = {PlanDType::kF32, PlanDType::kF16, PlanDType::kInt8,
                                     PlanDType::kInt4};
constexpr std::uint64_t kShownBatches[] = {1, 8, 32};
constexpr std::size_t kColumns = 100;

double MsToRead(std::uint64_t bytes, double gb_per_s) {
  return static_cast<double>(bytes) / gb_per_s / 1e6;
}

// Digits in groups of three.
std::string Grouped(std::uint64_t number) {
  std::string digits = fmt::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

// Three digits and a binary unit.
std::string Readable(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::string Duration(double ms) {
  if (ms < 0.0995) return fmt::format("{:.3f} ms", ms);
  if (ms < 999.5) return fmt::format("{:.3g} ms", ms);
  return ms < 99950 ? fmt::format("{:.3g} s", ms / 1e3) : fmt::format("{:.0f} s", ms / 1e3);
}

std::string PolicyText(const kvcache::PlanPolicy& policy) {
  std::string text = policy.hidden ? "store=hidden" : "";
  if (policy.window != 0) {
    text += fmt::format("{}window={}", text.empty() ? "" : ",", policy.window);
    if (policy.sinks != 0) text += fmt::format(",sinks={}", policy.sinks);
  } else if (!policy.hidden) {
    text = "full";
  }
  text += policy.value_dtype ? fmt::format(",k={},v={}", PlanDTypeName(policy.dtype),
                                           PlanDTypeName(*policy.value_dtype))
                             : fmt::format(",dtype={}", PlanDTypeName(policy.dtype));
  if (policy.key_group != 0) text += fmt::format(",group={}", policy.key_group);
  return text;
}

std::string PolicyText(const CacheQuestion& question) {
  return question.kv ? question.kv->Canonical() : PolicyText(question.policy);
}

kvcache::CacheGeometryOptions GeometryOf(const CacheQuestion& question) {
  const kvcache::PlanShape& shape = question.model.shape;
  // As the running cache: raised to whole groups of keys.
  std::uint64_t block_tokens = question.workload.block_tokens;
  const std::uint64_t step = question.kv ? kvcache::BlockStep(*question.kv) : kernels::kLanes;
  if (block_tokens % kernels::kLanes == 0) block_tokens = (block_tokens + step - 1) / step * step;
  return {.layers = shape.layers,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .block_tokens = block_tokens,
          .latent_dim = shape.latent_dim,
          .rope_dim = shape.rope_dim,
          .hidden_dim = shape.embedding,
          .policy = question.kv};
}

base::Result<CacheAnswer> AnswerByHead(const CacheQuestion& question) {
  CacheAnswer answer;
  const kvcache::CacheGeometryOptions options = GeometryOf(question);
  KV_TRY(answer.plan, PlanPolicyCache(options, question.workload));
  if (question.memory_bytes) {
    KV_TRY(answer.fit, FitPolicyCache(options, question.workload, *question.memory_bytes));
  }
  answer.ms_per_step = MsToRead(answer.plan.bytes_read_per_step, question.gb_per_s);
  return answer;
}

std::vector<TradeoffCell> Tradeoff(const CacheQuestion& question) {
  std::uint64_t longest = 1;
  for (const PlanRequests& request : question.workload.requests) {
    longest = std::max(longest, request.tokens);
  }
  std::vector<std::uint64_t> lengths;
  for (const std::uint64_t divisor : {16, 4, 1}) {
    const std::uint64_t length = std::max<std::uint64_t>(longest / divisor, 1);
    if (lengths.empty() || lengths.back() != length) lengths.push_back(length);
  }
  std::vector<TradeoffCell> cells;
  for (const std::uint64_t batch : kShownBatches) {
    for (const std::uint64_t tokens : lengths) {
      for (const PlanDType dtype : kShownTypes) {
        kvcache::PlanPolicy policy = question.policy;
        policy.dtype = dtype;
        policy.value_dtype.reset();
        policy.key_group = 0;
        if (policy.hidden && dtype != PlanDType::kF32) continue;
        TradeoffCell cell = {batch, tokens, dtype, {}, {}};
        const auto plan = PlanCache(question.model.shape, policy,
                                    {.requests = {{batch, tokens}},
                                     .shared_prefix = 0,
                                     .block_tokens = question.workload.block_tokens});
        if (plan) {
          cell.bytes = plan.value().bytes_total;
          cell.ms_per_step = MsToRead(plan.value().bytes_read_per_step, question.gb_per_s);
        }
        cells.push_back(cell);
      }
    }
  }
  return cells;
}

ordered_json ShapeToJson(const CacheQuestion& question) {
  const kvcache::PlanShape& shape = question.model.shape;
  ordered_json json = {{"layers", shape.layers}};
  if (shape.latent_dim != 0) {
    json["latent_dim"] = shape.latent_dim;
    json["rope_dim"] = shape.rope_dim;
  } else {
    json["kv_heads"] = shape.kv_heads;
    json["head_dim"] = shape.head_dim;
  }
  if (shape.embedding != 0) json["embedding"] = shape.embedding;
  json["context"] = question.model.context;
  return json;
}

ordered_json FitToJson(std::uint64_t memory_bytes, const CacheFit& fit) {
  const auto number = [](std::uint64_t value) {  // null: any number
    return value == CacheFit::kEndless ? ordered_json() : ordered_json(value);
  };
  ordered_json json = {{"bytes", memory_bytes}, {"times", number(fit.times)}};
  if (fit.longest) json["longest_context"] = number(*fit.longest);
  return json;
}

// "8 requests of 512 tokens + …"
std::string RequestsText(const kvcache::PlanWorkload& workload) {
  std::string text;
  for (const PlanRequests& request : workload.requests) {
    text += fmt::format("{}{} × {} tokens", text.empty() ? "" : " + ", Grouped(request.count),
                        Grouped(request.tokens));
  }
  if (workload.shared_prefix != 0) {
    text += fmt::format(", the first {} shared by all", Grouped(workload.shared_prefix));
  }
  return text;
}

void PrintLine(std::string_view name, const std::string& text) {
  fmt::print("{}{}\n", PadRight(name, 18), text);
}

void PrintFit(const CacheQuestion& question, const CacheFit& fit) {
  std::string text =
      fit.times == CacheFit::kEndless
          ? "any number of them"
          : fmt::format("{} {}", Grouped(fit.times), fit.times == 1 ? "time" : "times");
  if (question.workload.requests.size() == 1 && question.workload.requests.front().count == 1) {
    text = fit.times == CacheFit::kEndless
               ? "any number of these requests"
               : fmt::format("{} of these requests", Grouped(fit.times));
  }
  if (fit.longest == CacheFit::kEndless) {
    text += "; at this count, requests of any length";
  } else if (fit.longest) {
    text += fmt::format("; at this count, up to {} tokens each", Grouped(*fit.longest));
  }
  PrintLine(fmt::format("fits {}", Readable(*question.memory_bytes)), text);
}

void PrintTradeoff(const CacheQuestion& question, const CacheAnswer& answer) {
  fmt::print("\n{}\n{:>7} {:>11}",
             Wrap(fmt::format("Batch, length and type: memory, and the time a step takes to read "
                              "it at {:.1f} GB/s ({}). A step gives each sequence one token, and "
                              "reads the weights as well.",
                              question.gb_per_s, question.measured ? "measured here" : "as given"),
                  kColumns, ""),
             "batch", "tokens each");
  const auto& cells = answer.tradeoff;
  for (const PlanDType dtype : kShownTypes) {
    if (!question.policy.hidden || dtype == PlanDType::kF32) {
      fmt::print("  {:>22}", PlanDTypeName(dtype));
    }
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i == 0 || cells[i].tokens != cells[i - 1].tokens || cells[i].batch != cells[i - 1].batch) {
      fmt::print("\n{:>7} {:>11}", cells[i].batch, Grouped(cells[i].tokens));
    }
    fmt::print("  {:>22}", cells[i].bytes ? fmt::format("{} {:>11}", Readable(*cells[i].bytes),
                                                        Duration(*cells[i].ms_per_step))
                                          : "over 2^64 bytes");
  }
  fmt::print("\n");
}

}  // namespace

base::Result<CacheAnswer> AnswerCacheQuestion(const CacheQuestion& question) {
  if (question.kv) return AnswerByHead(question);
  CacheAnswer answer;
  KV_TRY(answer.plan, PlanCache(question.model.shape, question.policy, question.workload));
  if (question.memory_bytes) {
    KV_TRY(answer.fit, FitCache(question.model.shape, question.policy, question.workload,
                                *question.memory_bytes));
  }
  answer.ms_per_step = MsToRead(answer.plan.bytes_read_per_step, question.gb_per_s);
  answer.tradeoff = Tradeoff(question);
  return answer;
}

ordered_json ToJson(const CacheQuestion& question, const CacheAnswer& answer) {
  const kvcache::CachePlan& plan = answer.plan;
  auto requests = ordered_json::array();
  for (const PlanRequests& request : question.workload.requests) {
    requests.push_back({{"count", request.count}, {"tokens", request.tokens}});
  }
  ordered_json json = {
      {"model", question.model.name.empty() ? ordered_json() : ordered_json(question.model.name)},
      {"shape", ShapeToJson(question)},
      {"policy", PolicyText(question)},
      {"dtype", question.kv ? ordered_json() : ordered_json(PlanDTypeName(question.policy.dtype))},
      {"runs", plan.runs},
      {"bytes_per_token", plan.bytes_per_token},
      {"bytes_total", plan.bytes_total},
      {"per_layer", plan.bytes_per_layer},
      {"formula", plan.formula},
      {"requests", std::move(requests)},
      {"shared_prefix", question.workload.shared_prefix},
      {"sequences", plan.sequences},
      {"tokens", plan.tokens},
      {"block_tokens", question.workload.block_tokens},
      {"block_bytes", plan.block_bytes},
      {"blocks", plan.blocks},
      {"bytes_without_sharing", plan.bytes_without_sharing},
      {"bytes_saved", plan.bytes_without_sharing - plan.bytes_total},
      {"bytes_empty", plan.bytes_empty},
      {"bytes_read_per_step", plan.bytes_read_per_step},
      {"gb_per_s", question.gb_per_s},
      {"gb_per_s_measured", question.measured},
      {"ms_per_step", answer.ms_per_step}};
  if (answer.fit) json["memory"] = FitToJson(*question.memory_bytes, *answer.fit);
  auto tradeoff = ordered_json::array();
  for (const TradeoffCell& cell : answer.tradeoff) {
    tradeoff.push_back(
        {{"batch", cell.batch},
         {"tokens", cell.tokens},
         {"dtype", PlanDTypeName(cell.dtype)},
         {"bytes", cell.bytes ? ordered_json(*cell.bytes) : ordered_json()},
         {"ms_per_step", cell.ms_per_step ? ordered_json(*cell.ms_per_step) : ordered_json()}});
  }
  json["tradeoff"] = std::move(tradeoff);
  if (!question.model.source.empty()) json["source"] = question.model.source;
  if (!question.model.note.empty()) json["note"] = question.model.note;
  return json;
}

void PrintText(const CacheQuestion& question, const CacheAnswer& answer) {
  const kvcache::CachePlan& plan = answer.plan;
  fmt::print(
      "{}{}{}\n",
      question.model.name.empty() ? ""
                                  : OneLine(base::ReplaceInvalidUtf8(question.model.name)) + ": ",
      PolicyText(question), plan.runs ? "" : " (by formula: not what this program's cache holds)");
  fmt::print("{}, {} a token\n\n", plan.formula, Readable(plan.bytes_per_token));
  PrintLine("requests", RequestsText(question.workload));
  PrintLine("blocks", fmt::format("{} of {} tokens, {} bytes each", Grouped(plan.blocks),
                                  question.workload.block_tokens, Grouped(plan.block_bytes)));
  PrintLine("total",
            fmt::format("{} bytes, {}", Grouped(plan.bytes_total), Readable(plan.bytes_total)));
  if (question.workload.shared_prefix != 0) {
    PrintLine("without sharing", fmt::format("{} bytes, {}", Grouped(plan.bytes_without_sharing),
                                             Readable(plan.bytes_without_sharing)));
  }
  PrintLine("empty slots", fmt::format("{} bytes of the total", Grouped(plan.bytes_empty)));
  PrintLine("read a step", fmt::format("{} bytes, {}", Grouped(plan.bytes_read_per_step),
                                       Duration(answer.ms_per_step)));
  if (answer.fit) PrintFit(question, *answer.fit);
  if (!answer.tradeoff.empty()) PrintTradeoff(question, answer);
  if (!question.model.source.empty()) {
    fmt::print("\nSizes of {}: {}.\n", question.model.name, question.model.source);
  }
  if (!question.model.note.empty()) {
    fmt::print("\n{}", Wrap(question.model.note, kColumns, ""));
  }
}

base::Result<std::vector<PlanRequests>> ParseRequests(std::string_view text) {
  constexpr std::size_t kMostParts = 1000;
  std::vector<PlanRequests> requests;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t times = part.find('x');
    PlanRequests request = {.count = 1, .tokens = 0};
    if (times != std::string_view::npos) {
      KV_TRY(request.count,
             ParseUint("the count in --requests", part.substr(0, times), {.min = 1}));
    }
    const std::string_view tokens = times == std::string_view::npos ? part : part.substr(times + 1);
    KV_TRY(request.tokens, ParseUint("a length in --requests", tokens, {.min = 1}));
    requests.push_back(request);
    if (requests.size() > kMostParts) {
      return MakeError(ErrorCode::kUsage, "--requests has more than {} parts: at most that many",
                       kMostParts);
    }
    if (comma == std::string_view::npos) return requests;
    rest = rest.substr(comma + 1);
  }
}

}  // namespace kvasir::cli
