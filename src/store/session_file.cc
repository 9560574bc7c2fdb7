#include "store/session_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "store/block_value.h"

namespace kvasir::store {
namespace {

using base::ErrorCode;
using base::Hash128;
using base::MakeError;
using base::Result;
using kvcache::BlockIdentity;
using kvcache::StoredBlock;

constexpr char kMagic[8] = {'k', 'v', 's', 'e', 's', 's', '\r', '\n'};
constexpr std::uint64_t kChecksumSeed = 0x73657373;

// Without gaps, little-endian.
struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t contract;
  std::uint32_t block_tokens;
  std::uint32_t policy_bytes;
  Hash128 weights;
  std::uint64_t settings_bytes;
  std::uint64_t token_count;
  std::uint64_t prompt_tokens;
  std::uint64_t block_count;
};
static_assert(sizeof(Header) == 72);

// Before each block's value.
struct BlockHead {
  Hash128 name;
  std::uint32_t group;
  std::uint32_t zero;
  std::uint64_t value_bytes;
};
static_assert(sizeof(BlockHead) == 32);

// Takes parts of a file from its front; none beyond its end.
class Parts {
 public:
  explicit Parts(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::optional<std::span<const std::byte>> Take(std::uint64_t bytes) {
    if (bytes > rest_.size()) return std::nullopt;
    const auto part = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return part;
  }
  template <typename T>
  bool Read(T& to) {
    const auto part = Take(sizeof(T));
    if (part) std::memcpy(&to, part->data(), sizeof(T));
    return part.has_value();
  }
  bool Read(std::uint64_t bytes, std::string& to) {
    const auto part = Take(bytes);
    if (part) to.assign(reinterpret_cast<const char*>(part->data()), part->size());
    return part.has_value();
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

// Everything after the header but the checksum; false if it does not fill the bytes exactly.
bool ReadBody(const Header& header, Parts& parts, std::string& policy, Session& session) {
  if (!parts.Read(header.policy_bytes, policy) ||
      !parts.Read(header.settings_bytes, session.settings) ||
      header.token_count > parts.left() / sizeof(base::TokenId)) {
    return false;
  }
  const auto tokens = parts.Take(header.token_count * sizeof(base::TokenId));
  session.tokens.resize(header.token_count);
  if (!tokens->empty()) std::memcpy(session.tokens.data(), tokens->data(), tokens->size());
  session.prompt_tokens = header.prompt_tokens;
  for (std::uint64_t i = 0; i < header.block_count; ++i) {
    BlockHead head;
    if (!parts.Read(head)) return false;
    const auto value = parts.Take(head.value_bytes);
    if (!value || head.zero != 0) return false;
    session.blocks.Add({{head.name, head.group}, {value->begin(), value->end()}});
  }
  return parts.left() == 0 && header.prompt_tokens >= 1 &&
         header.prompt_tokens <= header.token_count;
}

// What another program or setting makes of it, in the order of what a person can do about it.
Result<void> CheckModel(const std::string& path, const Header& header, const std::string& policy,
                        const SessionModel& model) {
  if (header.weights != model.weights) {
    return MakeError(ErrorCode::kBadData, "the session '{}' is of another model file", path);
  }
  if (header.contract != model.contract) {
    return MakeError(ErrorCode::kBadData,
                     "the session '{}' was written under numerics contract {}, this program keeps "
                     "contract {}",
                     path, header.contract, model.contract);
  }
  if (policy != model.policy) {
    return MakeError(ErrorCode::kBadData,
                     "the session '{}' was written with --kv \"{}\", not \"{}\"", path, policy,
                     model.policy);
  }
  if (header.block_tokens != model.block_tokens) {
    return MakeError(ErrorCode::kBadData,
                     "the session '{}' was written with --block-tokens {}, not {}", path,
                     header.block_tokens, model.block_tokens);
  }
  return base::Success();
}

template <typename T>
void Append(std::vector<std::byte>& to, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

void SessionBlocks::Put(const BlockIdentity& identity, std::span<const std::byte> block) {
  std::vector<std::byte> value = BeginBlockValue(identity, block);
  FinishBlockValue(Compression::kOff, value);
  values_.push_back({{identity.name, identity.group}, std::move(value)});
}

const std::vector<std::byte>* SessionBlocks::Find(const BlockIdentity& identity) const {
  const BlockKey key = {identity.name, identity.group};
  const auto found = std::ranges::find(values_, key, &Value::first);
  return found == values_.end() ? nullptr : &found->second;
}

std::shared_ptr<kvcache::StoreRead> SessionBlocks::Read(std::vector<BlockIdentity> wanted,
                                                        bool probe) {
  std::vector<StoredBlock> blocks(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::vector<std::byte>* value = Find(wanted[i]);
    blocks[i].found = value != nullptr;
    if (probe || value == nullptr) continue;
    auto block = ReadBlockValue(wanted[i], *value);
    blocks[i].found = block.has_value();
    if (block) blocks[i].bytes = *std::move(block);
  }
  auto read = std::make_shared<kvcache::StoreRead>();
  read->Finish(std::move(blocks));
  return read;
}

Result<void> WriteSession(base::Env& env, const std::string& path, const SessionModel& model,
                          const Session& session) {
  Header header = {.magic = {},
                   .version = kSessionVersion,
                   .contract = model.contract,
                   .block_tokens = model.block_tokens,
                   .policy_bytes = static_cast<std::uint32_t>(model.policy.size()),
                   .weights = model.weights,
                   .settings_bytes = session.settings.size(),
                   .token_count = session.tokens.size(),
                   .prompt_tokens = session.prompt_tokens,
                   .block_count = session.blocks.values().size()};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  std::vector<std::byte> bytes;
  Append(bytes, std::span<const Header>(&header, 1));
  Append(bytes, std::span<const char>(model.policy));
  Append(bytes, std::span<const char>(session.settings));
  Append(bytes, std::span<const base::TokenId>(session.tokens));
  for (const auto& [key, value] : session.blocks.values()) {
    const BlockHead head = {key.name, key.group, 0, value.size()};
    Append(bytes, std::span<const BlockHead>(&head, 1));
    Append(bytes, std::span<const std::byte>(value));
  }
  const Hash128 checksum = base::HashBytes128(bytes, kChecksumSeed);
  Append(bytes, std::span<const Hash128>(&checksum, 1));
  return base::WriteFileAtomic(env, path, std::span<const std::byte>(bytes));
}

Result<Session> ReadSession(base::Env& env, const std::string& path, const SessionModel& model) {
  KV_TRY(const auto file, env.Map(path));
  const std::span<const std::byte> bytes = file->bytes();
  Header header;
  if (bytes.size() < sizeof(kMagic) || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
    return MakeError(ErrorCode::kBadData, "'{}' is not a session file", path);
  }
  if (bytes.size() < sizeof(Header) + sizeof(Hash128)) {
    return MakeError(ErrorCode::kBadData, "the session '{}' is truncated: it has {} bytes", path,
                     bytes.size());
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kSessionVersion) {
    return MakeError(ErrorCode::kBadData,
                     "the session '{}' is of format version {}, this program reads version {}",
                     path, header.version, kSessionVersion);
  }
  const std::span<const std::byte> all = bytes.first(bytes.size() - sizeof(Hash128));
  const Hash128 checksum = base::HashBytes128(all, kChecksumSeed);
  if (std::memcmp(bytes.data() + all.size(), &checksum, sizeof(checksum)) != 0) {
    return MakeError(ErrorCode::kBadData,
                     "the session '{}' is truncated or altered: its checksum does not fit its {} "
                     "bytes",
                     path, bytes.size());
  }
  Session session;
  std::string policy;
  Parts parts(all.subspan(sizeof(Header)));
  if (!ReadBody(header, parts, policy, session)) {
    return MakeError(ErrorCode::kBadData, "the session '{}' does not hold what its header says",
                     path);
  }
  KV_TRY(CheckModel(path, header, policy, model));
  return session;
}

}  // namespace kvasir::store
