#include "server/cache_page.h"

#include <algorithm>
#include <set>

#include "server/completion_call.h"
#include "server/json_writer.h"

namespace kvasir::server {

ApiResult<std::string> ReadCacheCall(std::string_view body) {
  if (body.empty()) return std::string();
  KV_TRY(const JsonValue json, ParseBody(body));
  const FieldReader fields(json);
  KV_TRY(fields.Only({"cache_salt"}));
  return ReadSalt(fields);
}

std::string CacheJson(const engine::EngineSnapshot& snapshot, const CacheFacts& facts,
                      std::string_view salt) {
  std::set<std::uint32_t> distinct;  // Blocks of this tenant.
  std::uint64_t held = 0;
  JsonWriter sequences;
  sequences.BeginArray();
  for (const engine::SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.cache_salt != salt) continue;
    sequences.BeginObject().Member("request", static_cast<std::uint64_t>(sequence.request));
    sequences.Member("choice", std::uint64_t{sequence.choice}).Member("stem", sequence.stem);
    sequences.Member("tokens", sequence.length).Key("blocks").BeginArray();
    for (std::size_t i = 0; i < sequence.blocks.size(); ++i) {
      const std::uint64_t begin = i * facts.block_tokens;
      const std::uint64_t rest = sequence.length > begin ? sequence.length - begin : 0;
      sequences.BeginObject().Member("block", std::uint64_t{sequence.blocks[i]});
      sequences.Member("tokens", std::min(rest, facts.block_tokens));
      sequences.Member("holders", std::uint64_t{sequence.references[i]}).EndObject();
      distinct.insert(sequence.blocks[i]);
      ++held;
    }
    sequences.EndArray().EndObject();
  }
  sequences.EndArray();
  JsonWriter json;
  json.BeginObject().Member("object", "cache").Member("policy", facts.policy);
  json.Member("block_tokens", facts.block_tokens).Member("block_bytes", facts.block_bytes);
  json.Member("blocks", std::uint64_t{distinct.size()});
  json.Member("bytes", distinct.size() * facts.block_bytes);
  json.Member("saved_bytes", (held - distinct.size()) * facts.block_bytes);
  json.Key("sequences").Raw(sequences.Take()).EndObject();
  return json.Take();
}

}  // namespace kvasir::server
