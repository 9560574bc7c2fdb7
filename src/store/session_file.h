// Session files: one text with its blocks and settings, to go on from.
#ifndef KVASIR_STORE_SESSION_FILE_H_
#define KVASIR_STORE_SESSION_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/token_id.h"
#include "kvcache/block_store.h"
#include "store/key_value.h"

namespace kvasir::store {

// Version 1; docs/formats/session.md. A change of any field raises the version, and files of other
// versions are refused.
inline constexpr std::uint32_t kSessionVersion = 1;

// Blocks in memory, as they are stored. Single-threaded.
class SessionBlocks : public kvcache::BlockStore {
 public:
  void Put(const kvcache::BlockIdentity& identity, std::span<const std::byte> block) override;
  // Answers at once.
  std::shared_ptr<kvcache::StoreRead> Read(std::vector<kvcache::BlockIdentity> wanted,
                                           bool probe) override;
  std::chrono::microseconds patience() const override { return std::chrono::seconds(1); }
  kvcache::BlockStoreStats stats() const override { return {.written = values_.size()}; }

  using Value = std::pair<BlockKey, std::vector<std::byte>>;
  std::span<const Value> values() const { return values_; }
  void Add(Value value) { values_.push_back(std::move(value)); }

 private:
  const std::vector<std::byte>* Find(const kvcache::BlockIdentity& identity) const;

  std::vector<Value> values_;
};

// What a session's bits are a function of, besides its text.
struct SessionModel {
  base::Hash128 weights;           // Of the model file's bytes.
  std::uint32_t contract = 0;      // Version of the numerics contract.
  std::uint32_t block_tokens = 0;  // Of its blocks.
  std::string policy;              // Of the cache, canonical.
};

struct Session {
  std::vector<base::TokenId> tokens;  // The prompt's, then those generated.
  std::uint64_t prompt_tokens = 0;    // 1 … tokens.size()
  std::string settings;               // Of whoever wrote it: what else the text's end depends on.
  SessionBlocks blocks = {};
};

// Replaces the file as a whole. kIo.
base::Result<void> WriteSession(base::Env& env, const std::string& path, const SessionModel& model,
                                const Session& session);

// kIo, or kBadData saying why it is refused: no session, another version, truncated, altered in any
// byte, or of another model, contract, policy or block size. Allocates no more than the file holds.
base::Result<Session> ReadSession(base::Env& env, const std::string& path,
                                  const SessionModel& model);

}  // namespace kvasir::store

#endif  // KVASIR_STORE_SESSION_FILE_H_
