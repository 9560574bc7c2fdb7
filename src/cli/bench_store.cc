// Kind "store" of kvasir bench: a prompt computed, computed while its blocks are stored, and
// restored after a restart.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/philox.h"
#include "cli/bench.h"
#include "engine/generator.h"
#include "eval/engine_speed.h"
#include "store/store_address.h"

namespace kvasir::cli {
namespace {

using base::ErrorCode;
using base::MakeError;

// A directory of its own for the time of a measurement.
class Folder {
 public:
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  base::Result<std::string> Make() {
    path_ = (std::filesystem::temp_directory_path() / "kvasir-bench-XXXXXX").string();
    if (mkdtemp(path_.data()) != nullptr) return path_;
    path_.clear();
    return MakeError(ErrorCode::kIo, "cannot make a directory in '{}'",
                     std::filesystem::temp_directory_path().string());
  }

 private:
  std::string path_;
};

// The file's bytes leave memory, as after the machine's restart.
void ForgetPages(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)fdatasync(file);
  (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  (void)close(file);
}

struct Timed {
  double ms = 0;
  std::uint64_t cached = 0;
  engine::GeneratedToken token;
};

class StoreBench {
 public:
  StoreBench(const Bench& bench, const tokenizer::Vocabulary& vocabulary,
             store::StoreSettings settings)
      : bench_(bench), vocabulary_(vocabulary), settings_(std::move(settings)) {
    // Nothing that was stored before is of this run.
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    weights_ = {static_cast<std::uint64_t>(now), static_cast<std::uint64_t>(getpid())};
  }

  base::Result<nlohmann::ordered_json> Measure(std::uint64_t tokens) {
    std::vector<double> plain;
    std::vector<double> storing;
    std::vector<double> restored;
    kvcache::BlockStoreStats stats;
    const std::uint64_t complete = tokens / 16 * 16;
    for (std::uint64_t i = 0; i < bench_.flags.repetitions; ++i) {
      const engine::GenerateRequest request = Ask(tokens, i);
      KV_TRY(auto blocks, store::OpenStore(settings_));
      // As of a server that runs: its queue's memory has been used.
      KV_TRY(Run(Ask(tokens, ~i), blocks.get()));
      (void)blocks->Flush(std::chrono::seconds(60));
      std::optional<Timed> without;
      if (i % 2 == 0) {
        KV_TRY(without, Run(request, nullptr));
      }
      KV_TRY(const Timed with, Run(request, blocks.get()));
      if (!without) {
        KV_TRY(without, Run(request, nullptr));
      }
      if (!blocks->Flush(std::chrono::seconds(60)) || blocks->stats().dropped > 0) {
        return MakeError(ErrorCode::kIo, "{} did not take {} blocks", blocks->name(),
                         blocks->stats().dropped);
      }
      blocks.reset();
      if (const auto* lmdb = std::get_if<store::LmdbOptions>(&settings_.address)) {
        ForgetPages(lmdb->directory + "/data.mdb");
      }
      KV_TRY(blocks, store::OpenStore(settings_));
      KV_TRY(const Timed after, Run(request, blocks.get()));
      stats = blocks->stats();
      KV_TRY(Check(*without, with, 0));
      KV_TRY(Check(*without, after, complete));
      plain.push_back(without->ms);
      storing.push_back(with.ms / without->ms);
      restored.push_back(after.ms);
    }
    const double prefill_ms = Median(plain);
    const double restore_ms = Median(restored);
    return nlohmann::ordered_json{
        {"tokens", tokens},
        {"MB", static_cast<double>(stats.read_bytes) / 1e6},
        {"prefill_ms", prefill_ms},
        {"restore_ms", restore_ms},
        {"restore_share", restore_ms / prefill_ms},
        {"restore_MB_per_s", static_cast<double>(stats.read_bytes) / 1e3 / restore_ms},
        {"storing_share", Median(storing)}};
  }

 private:
  static double Median(std::vector<double> values) {
    std::ranges::nth_element(values,
                             values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
  }
  // A prompt of so many tokens and one more, whose logits are drawn from.
  engine::GenerateRequest Ask(std::uint64_t tokens, std::uint64_t number) const {
    constexpr std::uint32_t kFirst = 259;  // After special and byte tokens.
    engine::GenerateRequest request;
    for (std::uint32_t i = 0; i <= tokens; ++i) {
      const auto words = base::Philox4x32(number, {i, 0, 0, 0});
      request.prompt.push_back(
          kFirst + words[0] % static_cast<std::uint32_t>(bench_.shape().vocab - kFirst));
    }
    request.max_tokens = 1;
    return request;
  }
  base::Result<Timed> Run(const engine::GenerateRequest& request, kvcache::BlockStore* blocks) {
    engine::GeneratorOptions options;
    options.policy = bench_.policy;
    options.store = blocks;
    options.weights = weights_;
    KV_TRY(const auto generator,
           engine::Generator::Make(bench_.model, vocabulary_, bench_.team, options));
    const auto begin = std::chrono::steady_clock::now();
    KV_TRY(const auto report, generator->Run({&request, 1}));
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
    return Timed{ms.count(), report.usage.cached_tokens,
                 report.results.front().choices.front().tokens.front()};
  }
  static base::Result<void> Check(const Timed& plain, const Timed& other, std::uint64_t cached) {
    if (other.cached != cached) {
      return MakeError(ErrorCode::kIo, "{} tokens came from the store, {} should have",
                       other.cached, cached);
    }
    if (plain.token.id == other.token.id && plain.token.logprob == other.token.logprob) {
      return base::Success();
    }
    return MakeError(ErrorCode::kNumeric, "the store changed the answer");
  }

  const Bench& bench_;
  const tokenizer::Vocabulary& vocabulary_;
  const store::StoreSettings settings_;
  base::Hash128 weights_;
};

}  // namespace

base::Result<Rows> RunBenchStore(const Bench& bench) {
  constexpr std::uint64_t kLeastVocabulary = 300;
  if (bench.shape().vocab < kLeastVocabulary) {
    return MakeError(ErrorCode::kUsage,
                     "a vocabulary of {} tokens is too small for this kind: at least {}",
                     bench.shape().vocab, kLeastVocabulary);
  }
  KV_TRY(const auto vocabulary, eval::MakePlainVocabulary(bench.shape().vocab));
  Folder folder;
  std::string address = bench.flags.store;
  if (address.empty()) {
    KV_TRY(address, folder.Make());
  }
  store::StoreSettings settings;
  KV_TRY(settings.address, store::ParseStoreAddress(address));
  settings.queue.patience = std::chrono::seconds(20);
  // The default, unless a prompt is larger than half of it: nothing is to be dropped.
  const std::vector<std::uint64_t> lengths = bench.TokensOr({bench.shape().context - 2});
  const kvcache::CacheGeometryOptions shape = bench.shape().Cache(16, bench.policy);
  for (const std::uint64_t tokens : lengths) {
    KV_TRY(const auto geometry, kvcache::CacheGeometry::Make(shape));
    settings.queue.queue_bytes =
        std::max(settings.queue.queue_bytes, 2 * geometry.HeldBytes(tokens));
  }
  settings.queue.compression =
      bench.flags.compress ? store::Compression::kOn : store::Compression::kOff;
  StoreBench store(bench, vocabulary, settings);
  Rows rows;
  for (const std::uint64_t tokens : lengths) {
    if (tokens < 16 || tokens + 2 > bench.shape().context) {
      return MakeError(ErrorCode::kUsage,
                       "--tokens {}: a block of 16 to the context less 2, {}, can be stored",
                       tokens, bench.shape().context - 2);
    }
    KV_TRY(auto row, store.Measure(tokens));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace kvasir::cli
