// Scheduler: what it tells of itself.
#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "engine/scheduler.h"

namespace kvasir::engine {

void Scheduler::FillTrace(StepTrace& trace) const {
  trace.step = counts_.steps;
  trace.sequences = last_step_.sequences;
  trace.tokens = last_step_.tokens;
  trace.work = last_step_.work;
  trace.work_without_cache = last_step_.work_without_cache;
  trace.held_bytes = last_step_.pool.live_bytes;
  trace.shared_bytes = last_step_.pool.shared_bytes;
  trace.idle_bytes = last_step_.pool.idle_bytes;
  const std::uint32_t layers = cache_->geometry().layers();
  trace.held_bytes_per_layer.assign(layers, trace.held_bytes / layers);  // Layers are alike.
  trace.waste_bytes = cache_->report().waste_bytes;
  trace.tables.clear();
  for (const BatchSequence* sequence : batch_.Sequences()) {
    SequenceTrace& table = trace.tables.emplace_back();
    table.request = static_cast<std::uint64_t>(sequence->owner->id);
    table.choice = sequence->choice->index();
    table.stem = sequence->stem;
    const kvcache::CachedSequence& cached = std::as_const(*cache_).cache(sequence->id());
    table.length = cached.length();
    for (const kvcache::BlockId block : cached.blocks()) table.blocks.push_back(block.index());
  }
}

std::vector<SequenceSnapshot> Scheduler::Sequences() const {
  std::vector<SequenceSnapshot> all;
  for (const BatchSequence* sequence : batch_.Sequences()) {
    const kvcache::CachedSequence& cached = std::as_const(*cache_).cache(sequence->id());
    SequenceSnapshot snapshot = {.request = sequence->owner->id,
                                 .client = sequence->owner->request.client,
                                 .cache_salt = sequence->owner->request.cache_salt,
                                 .choice = sequence->choice->index(),
                                 .stem = sequence->stem,
                                 .length = cached.length(),
                                 .blocks = {}};
    for (const kvcache::BlockTable& table : cached.tables()) {
      for (std::size_t entry = 0; entry < table.entries(); ++entry) {
        if (!table.holds(entry)) continue;
        const kvcache::BlockId block = table.blocks()[entry];
        snapshot.blocks.push_back({.block = block.index(),
                                   .group = table.group().index(),
                                   .begin = entry * cache_->geometry().block_tokens(),
                                   .holders = cache_->pool_references(block),
                                   .hits = cache_->hits(block)});
      }
    }
    all.push_back(std::move(snapshot));
  }
  return all;
}

std::vector<BlockSnapshot> Scheduler::KeptBlocks(const std::string& cache_salt) const {
  const std::vector<kvcache::PrefixNodeReport> nodes = cache_->Indexed(TenantOf(cache_salt));
  std::unordered_map<std::uint32_t, std::size_t> of_node;  // By index: place in nodes.
  for (std::size_t i = 0; i < nodes.size(); ++i) of_node[nodes[i].id.index()] = i;
  std::vector<std::optional<std::uint64_t>> begins(nodes.size());
  const auto begin_of = [&](std::size_t i) {
    std::vector<std::size_t> path;  // Up to a node whose place is known.
    while (!begins[i] && nodes[i].parent) {
      path.push_back(i);
      i = of_node.at(nodes[i].parent->index());
    }
    if (!begins[i]) begins[i] = 0;
    std::uint64_t begin = *begins[i];
    for (; !path.empty(); path.pop_back()) {
      begin += cache_->geometry().block_tokens();
      begins[path.back()] = begin;
    }
    return begin;
  };
  std::vector<BlockSnapshot> kept;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t group = 0; group < nodes[i].blocks.size(); ++group) {
      const std::optional<kvcache::BlockId> block = nodes[i].blocks[group];
      if (!block || cache_->pool_references(*block) > 0) continue;
      kept.push_back({.block = block->index(),
                      .group = static_cast<std::uint32_t>(group),
                      .begin = begin_of(i),
                      .holders = 0,
                      .hits = nodes[i].hits});
    }
  }
  std::ranges::sort(kept, {}, [](const BlockSnapshot& block) {
    return std::tuple(block.group, block.begin, block.block);
  });
  return kept;
}

Metrics Scheduler::metrics() const {
  Metrics metrics = counts_;
  metrics.waiting = waiting_.load();
  metrics.refused = waiting_.refused();
  metrics.requests = requests_.size();
  metrics.running = batch_.running();
  metrics.preempted = batch_.preempted();
  metrics.clients = queue_.clients();
  metrics.cache = cache_->pool_stats();
  metrics.preemptions = batch_.preemptions();
  metrics.restored_tokens = cache_->restored_tokens();
  if (cache_->store() != nullptr) metrics.store = cache_->store()->stats();
  return metrics;
}

void Scheduler::CheckInvariants() const {
  cache_->CheckInvariants();
  QueueLoad waiting;
  std::uint64_t sequences = 0;
  for (const auto& [id, request] : requests_) {
    KV_CHECK(!request.stopping() && request.unfinished > 0);
    if (!request.started) {
      ++waiting.requests;
      waiting.prompt_tokens += request.generate().prompt.size();
    }
    sequences += batch_.Of(request).size();
  }
  KV_CHECK(waiting.requests <= waiting_.load().requests);  // Others may have reserved.
  KV_CHECK(waiting.prompt_tokens <= waiting_.load().prompt_tokens);
  const kvcache::ManagerReport cache = cache_->report();
  KV_CHECK(cache.running + cache.preempted == sequences);
  KV_CHECK(!requests_.empty() || cache.pool.live_blocks == 0);
}

}  // namespace kvasir::engine
