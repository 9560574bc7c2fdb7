// Any bytes as a file of the Llama family: refused in one line, or a model that runs.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "kvcache/block_pool.h"
#include "model/llama_reader.h"

namespace kvasir::model {
namespace {

constexpr std::size_t kVocab = 3;  // Of the seeds' embeddings.

void RunOneStep(const LlamaModel& model) {
  const auto geometry = kvcache::CacheGeometry::Make(model.shape().Cache(16));
  KV_CHECK(geometry.has_value());
  const auto pool =
      kvcache::BlockPool::Make(geometry.value(), {.budget_bytes = geometry.value().block_bytes()});
  KV_CHECK(pool.has_value());
  kvcache::CachedSequence sequence(*pool.value());
  const TokenId tokens[] = {0, 2, 1};
  const BatchItem item{&sequence, tokens, 1};
  Scratch scratch;
  base::ThreadTeam team(1);
  std::vector<float> logits(kVocab);
  const auto done = model.Forward(std::span(&item, 1), scratch, team, logits);
  KV_CHECK(done.has_value() || model.shape().context < 3);
}

}  // namespace
}  // namespace kvasir::model

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvasir::model;
  const auto file = kvasir::formats::GgufFile::Parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) return 0;
  for (LlamaFamily family : {LlamaFamily::kLlama, LlamaFamily::kQwen2, LlamaFamily::kQwen3}) {
    const auto model = ReadLlama(file.value(), family, kVocab);
    if (model) {
      RunOneStep(*model.value());
    } else {
      KV_CHECK(model.error().message.find('\n') == std::string::npos);
    }
  }
  return 0;
}
