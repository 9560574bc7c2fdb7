#include "cli/bench_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/latent_attention.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;
using Names = std::vector<std::string>;

// Of random weights; a model file has a shape of its own.
const Names& ShapeFlags() {
  static const Names kFlags = {"--arch", "--layers", "--heads",   "--kv-heads",
                               "--dim",  "--vocab",  "--context", "--dtype"};
  return kFlags;
}

// All but --json, which every kind takes.
Names FlagsOf(const std::string& kind) {
  if (kind == "masks") return {"--model", "--schemas", "--formats"};
  if (kind == "attention") {
    return {"--layers", "--heads",   "--kv-heads",    "--dim",
            "--vocab",  "--threads", "--repetitions", "--tokens"};
  }
  Names flags = {"--model", "--threads", "--repetitions"};
  flags.insert(flags.end(), ShapeFlags().begin(), ShapeFlags().end());
  if (kind != "train") flags.emplace_back("--tokens");
  if (kind == "batch" || kind == "engine" || kind == "train" || kind == "cache") {
    flags.emplace_back("--sequences");
  }
  if (kind == "decode" || kind == "prefill" || kind == "batch" || kind == "store") {
    flags.emplace_back("--kv");
  }
  if (kind == "store") flags.insert(flags.end(), {"--store", "--store-compress"});
  if (kind == "cache") flags.insert(flags.end(), {"--plot", "--quick"});
  return flags;
}

base::Result<void> CheckGiven(const CLI::App& command, const BenchFlags& flags) {
  const Names taken = FlagsOf(flags.kind);
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == "KIND" || name == "--json" || name == "--help") continue;
    if (std::find(taken.begin(), taken.end(), name) != taken.end()) continue;
    return MakeError(ErrorCode::kUsage, "{} is no flag of bench {}, which takes {}, --json", name,
                     flags.kind, fmt::join(taken, ", "));
  }
  for (const std::string& name : ShapeFlags()) {
    if (flags.model.empty() || command.count(name) == 0) continue;
    return MakeError(ErrorCode::kUsage,
                     "{} is the shape of random weights; '{}' has its own (allowed: one of both)",
                     name, flags.model);
  }
  if (command.count("--formats") > 0 && flags.schemas.empty()) {
    return MakeError(ErrorCode::kUsage, "--formats needs --schemas");
  }
  return base::Success();
}

base::Result<void> CheckShape(const BenchFlags& flags) {
  if (flags.dim % flags.heads != 0) {
    return MakeError(ErrorCode::kUsage, "--dim {} is not a multiple of --heads {}", flags.dim,
                     flags.heads);
  }
  const std::uint64_t channels = flags.dim / flags.heads;  // Of a head.
  const bool compares = flags.kind == "attention";
  const bool pairs = compares || flags.arch == "llama";  // RoPE turns pairs of channels.
  // A latent is 4 heads wide, a rotated key half a head, of whole pairs.
  const std::uint64_t least = compares ? 4 : pairs ? 2 : 1;
  const std::uint64_t most =
      compares ? std::min(kernels::kMaxLatentDim / 4, kernels::kMaxLatentRopeDim * 2)
               : kernels::kMaxHeadDim;
  if (channels < least || channels > most || (pairs && channels % 2 != 0)) {
    return MakeError(ErrorCode::kUsage,
                     "--dim {} over --heads {} are {} channels a head; allowed are {}{} to {}",
                     flags.dim, flags.heads, channels, pairs ? "even numbers from " : "", least,
                     most);
  }
  if (flags.kv_heads == 0) return base::Success();
  if (!pairs) {
    return MakeError(ErrorCode::kUsage, "--kv-heads needs --arch llama; the arch is {}",
                     flags.arch);
  }
  if (flags.heads % flags.kv_heads != 0 || (compares && flags.kv_heads == flags.heads)) {
    return MakeError(ErrorCode::kUsage, "--kv-heads is {}; allowed are divisors of --heads {}{}",
                     flags.kv_heads, flags.heads, compares ? ", below it" : "");
  }
  return base::Success();
}

}  // namespace

base::Result<void> CheckBenchFlags(const CLI::App& command, const BenchFlags& flags) {
  KV_TRY(CheckGiven(command, flags));
  if (!flags.model.empty() || flags.kind == "masks") return base::Success();
  return CheckShape(flags);
}

}  // namespace kvasir::cli
