#include "server/cache_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "server/completion_call.h"
#include "server/json_writer.h"

namespace kvasir::server {
namespace {

using engine::BlockSnapshot;
using kvcache::CacheGeometry;

std::string PartDtype(const kvcache::HeadPolicy& policy) {
  if (policy.store == kvcache::KvStore::kHidden) return "hidden f32";
  const std::string_view k = kernels::KvTypeName(policy.k);
  const std::string_view v = kernels::KvTypeName(policy.v);
  return k == v ? std::string(k) : fmt::format("k={},v={}", k, v);
}

// What is said of every block, whoever holds it.
class BlockWriter {
 public:
  explicit BlockWriter(const CacheGeometry& geometry) : geometry_(geometry) {
    for (std::size_t group = 0; group < geometry.groups().size(); ++group) {
      dtypes_.push_back(BlockDtype(geometry, group));
    }
  }

  std::uint64_t BytesOf(const BlockSnapshot& block) const {
    return geometry_.groups()[block.group].block_bytes;
  }
  // An object; `length` positions of the text are computed.
  void Write(JsonWriter& json, const BlockSnapshot& block, std::uint64_t length) const {
    const std::uint64_t rest = length > block.begin ? length - block.begin : 0;
    json.BeginObject().Member("block", std::uint64_t{block.block});
    json.Member("group", std::uint64_t{block.group}).Member("dtype", dtypes_[block.group]);
    json.Member("begin", block.begin);
    json.Member("tokens", std::min<std::uint64_t>(rest, geometry_.block_tokens()));
    json.Member("holders", std::uint64_t{block.holders}).Member("hits", block.hits).EndObject();
  }

 private:
  const CacheGeometry& geometry_;
  std::vector<std::string> dtypes_;  // [groups]
};

}  // namespace

ApiResult<std::string> ReadCacheCall(std::string_view body) {
  if (body.empty()) return std::string();
  KV_TRY(const JsonValue json, ParseBody(body));
  const FieldReader fields(json);
  KV_TRY(fields.Only({"cache_salt"}));
  return ReadSalt(fields);
}

std::string BlockDtype(const CacheGeometry& geometry, std::size_t group) {
  if (geometry.is_latent()) return "latent f32";
  std::set<std::string> seen;
  std::string text;
  const auto add = [&](const std::string& dtype) {
    if (!seen.insert(dtype).second) return;
    text += text.empty() ? dtype : "+" + dtype;
  };
  for (const kvcache::CachePart& part : geometry.all_parts()) {
    if (part.group && part.group->index() == group) add(PartDtype(part.policy));
    // Keys of the positions that do not fill a group of channels yet.
    if (part.tail_group && part.tail_group->index() == group) add("k=f32");
  }
  return text;
}

std::string CacheJson(const engine::EngineSnapshot& snapshot, const CacheGeometry& geometry,
                      std::string_view policy, std::string_view salt) {
  const BlockWriter writer(geometry);
  std::set<std::uint32_t> distinct;  // Blocks of this tenant.
  std::uint64_t bytes = 0;
  std::uint64_t held_bytes = 0;
  JsonWriter sequences;
  sequences.BeginArray();
  for (const engine::SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.cache_salt != salt) continue;
    sequences.BeginObject().Member("request", static_cast<std::uint64_t>(sequence.request));
    sequences.Member("choice", std::uint64_t{sequence.choice}).Member("stem", sequence.stem);
    sequences.Member("tokens", sequence.length).Key("blocks").BeginArray();
    for (const BlockSnapshot& block : sequence.blocks) {
      writer.Write(sequences, block, sequence.length);
      held_bytes += writer.BytesOf(block);
      if (distinct.insert(block.block).second) bytes += writer.BytesOf(block);
    }
    sequences.EndArray().EndObject();
  }
  sequences.EndArray();
  std::uint64_t kept_bytes = 0;
  for (const BlockSnapshot& block : snapshot.kept) kept_bytes += writer.BytesOf(block);
  JsonWriter json;
  json.BeginObject().Member("object", "cache").Member("policy", policy);
  json.Member("block_tokens", std::uint64_t{geometry.block_tokens()});
  json.Member("block_bytes", geometry.block_bytes());
  json.Member("blocks", std::uint64_t{distinct.size()}).Member("bytes", bytes);
  json.Member("saved_bytes", held_bytes - bytes);
  json.Key("sequences").Raw(sequences.Take());
  json.Member("kept_blocks", std::uint64_t{snapshot.kept.size()});
  json.Member("kept_bytes", kept_bytes).Key("kept").BeginArray();
  for (const BlockSnapshot& block :
       std::span(snapshot.kept).first(std::min(kMaxKeptShown, snapshot.kept.size()))) {
    writer.Write(json, block, block.begin + geometry.block_tokens());
  }
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace kvasir::server
