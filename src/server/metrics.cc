#include "server/metrics.h"

#include <fmt/format.h>

#include <iterator>

namespace kvasir::server {
namespace {

constexpr double kMicro = 1e-6;

class Writer {
 public:
  void Head(std::string_view name, std::string_view help, std::string_view type) {
    fmt::format_to(std::back_inserter(text_), "# HELP kvasir_{} {}\n# TYPE kvasir_{} {}\n", name,
                   help, name, type);
  }
  template <typename Number>
  void Line(std::string_view name, std::string_view labels, Number value) {
    fmt::format_to(std::back_inserter(text_), "kvasir_{}{} {}\n", name, labels, value);
  }
  void Gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    Head(name, help, "gauge");
    Line(name, "", value);
  }
  void Counter(std::string_view name, std::string_view help, std::uint64_t value) {
    Head(name, help, "counter");
    Line(name, "", value);
  }
  // Seconds, as Prometheus wants them.
  void Durations(std::string_view name, std::string_view help, const engine::Histogram& us) {
    Head(name, help, "histogram");
    const std::string bucket = fmt::format("{}_bucket", name);
    for (std::size_t i = 0; i < engine::Histogram::kBounds.size(); ++i) {
      const double bound = static_cast<double>(engine::Histogram::kBounds[i]) * kMicro;
      Line(bucket, fmt::format("{{le=\"{:g}\"}}", bound), us.CountUpTo(i));
    }
    Line(bucket, "{le=\"+Inf\"}", us.count());
    Line(fmt::format("{}_sum", name), "", static_cast<double>(us.sum_us()) * kMicro);
    Line(fmt::format("{}_count", name), "", us.count());
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

void WriteServer(Writer& out, const ServerCounts& server) {
  out.Head("http_requests_total", "Requests answered, by endpoint and status.", "counter");
  for (const auto& [key, count] : server.requests) {
    out.Line("http_requests_total",
             fmt::format("{{endpoint=\"{}\",status=\"{}\"}}", key.first, key.second), count);
  }
  out.Gauge("connections_open", "Connections open now.", server.open_connections);
  out.Counter("connections_accepted_total", "Connections accepted.", server.accepted_connections);
  out.Counter("connections_refused_total", "Connections over the limit.",
              server.refused_connections);
  out.Counter("clients_vanished_total", "Clients that left before their answer's end.",
              server.vanished_clients);
  out.Counter("clients_slow_total", "Clients that sent or read too slowly.", server.slow_clients);
  out.Durations("answer_seconds", "From a request to the end of its answer.", server.answer_us);
}

void WriteCache(Writer& out, const kvcache::BlockPoolStats& cache) {
  out.Gauge("cache_budget_bytes", "Most bytes of keys and values.", cache.budget_bytes);
  out.Gauge("cache_live_bytes", "Bytes of blocks in use.", cache.live_bytes);
  out.Gauge("cache_shared_bytes", "Of these, in use by several sequences.", cache.shared_bytes);
  out.Gauge("cache_idle_bytes", "Bytes kept of texts that have ended.", cache.idle_bytes);
  out.Gauge("cache_saved_bytes", "Bytes that sharing saves.", cache.saved_bytes());
}

void WriteStore(Writer& out, const kvcache::BlockStoreStats& store) {
  out.Gauge("store_up", "0 while the store is left alone after a fault.", store.open ? 1 : 0);
  out.Gauge("store_queued_bytes", "Bytes waiting to be written to the store.", store.queued_bytes);
  out.Counter("store_hit_blocks_total", "Blocks read from the store.", store.hits);
  out.Counter("store_missed_blocks_total", "Blocks asked for that were not there.", store.misses);
  out.Counter("store_refused_blocks_total", "Blocks there but not believed.", store.refused);
  out.Counter("store_read_bytes_total", "Bytes of blocks read.", store.read_bytes);
  out.Counter("store_written_blocks_total", "Blocks written.", store.written);
  out.Counter("store_written_bytes_total", "Bytes of blocks written.", store.written_bytes);
  out.Counter("store_dropped_blocks_total", "Blocks not written: full queue, or a fault.",
              store.dropped);
  out.Counter("store_evicted_blocks_total", "Blocks given up for room by this process.",
              store.evicted);
  out.Counter("store_faults_total", "Operations that failed or took too long.", store.faults);
  out.Counter("store_late_reads_total", "Reads that came when nobody waited.", store.late);
}

void WriteEngine(Writer& out, const engine::Metrics& engine) {
  out.Gauge("requests_waiting", "Requests not started yet.", engine.waiting.requests);
  out.Gauge("prompt_tokens_waiting", "Tokens of their prompts.", engine.waiting.prompt_tokens);
  out.Gauge("requests_active", "Requests not ended, waiting ones too.", engine.requests);
  out.Gauge("sequences_running", "Sequences in the batch.", engine.running);
  out.Gauge("sequences_preempted", "Sequences that gave way and will go on.", engine.preempted);
  out.Gauge("clients_active", "Clients with a request.", engine.clients);
  out.Counter("requests_accepted_total", "Requests that the engine took.", engine.accepted);
  out.Counter("requests_refused_total", "Requests refused for a full queue.", engine.refused);
  out.Counter("requests_failed_total", "Requests that ended with an error.", engine.failed);
  out.Head("choices_finished_total", "Choices that ended, by reason.", "counter");
  for (std::size_t i = 0; i < engine.finished.size(); ++i) {
    out.Line("choices_finished_total",
             fmt::format("{{reason=\"{}\"}}",
                         engine::FinishReasonName(static_cast<engine::FinishReason>(i))),
             engine.finished[i]);
  }
  out.Counter("prompt_tokens_total", "Tokens of prompts started.", engine.prompt_tokens);
  out.Counter("cached_tokens_total", "Of these, found in the cache.", engine.cached_tokens);
  out.Counter("restored_tokens_total", "Positions taken from the store.", engine.restored_tokens);
  out.Counter("generated_tokens_total", "Tokens generated.", engine.generated_tokens);
  out.Counter("computed_positions_total", "Positions that the model computed.",
              engine.computed_positions);
  out.Counter("preemptions_total", "Sequences that gave way to others.", engine.preemptions);
  out.Durations("step_seconds", "Duration of a step.", engine.step_us);
  out.Durations("first_token_seconds", "From a request to its first token.", engine.first_token_us);
  out.Durations("inter_token_seconds", "Between the tokens of a choice.", engine.inter_token_us);
}

}  // namespace

std::string MetricsText(const ServerCounts& server, const engine::Metrics& engine) {
  Writer out;
  WriteServer(out, server);
  WriteEngine(out, engine);
  WriteCache(out, engine.cache);
  if (engine.store) WriteStore(out, *engine.store);
  return out.Take();
}

}  // namespace kvasir::server
