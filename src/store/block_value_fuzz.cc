// Any bytes at all as a stored value, and as the payload of one whose header and checksum are
// right: ReadBlockValue must return, not crash, and give blocks of the size it was asked for only.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "store/block_value.h"

namespace {

using namespace kvasir;  // NOLINT: a program of one file

// Where docs/formats/store-value.md puts these; the seed as block_value.cc has it.
constexpr std::size_t kEncodingOffset = 12;
constexpr std::size_t kPayloadBytesOffset = 96;
constexpr std::uint64_t kChecksumSeed = 0x6b76736d;

kvcache::BlockIdentity Identity() {
  return {.fingerprint = {1, 2},
          .layout = {3, 4},
          .name = {5, 6},
          .witness = {7, 8},
          .group = 1,
          .bytes = 640,
          .tokens = {10, 11, 12, 13}};
}

void Read(const kvcache::BlockIdentity& identity, std::span<const std::byte> value) {
  const auto block = store::ReadBlockValue(identity, value);
  KV_CHECK(!block || block->size() == identity.bytes);
}

// A value that holds any payload under any encoding.
std::vector<std::byte> Wrapped(const kvcache::BlockIdentity& identity, std::uint32_t encoding,
                               std::span<const std::byte> payload) {
  const std::vector<std::byte> zeros(identity.bytes);
  std::vector<std::byte> value = store::BeginBlockValue(identity, zeros);
  value.resize(value.size() - zeros.size());
  const std::uint64_t payload_bytes = payload.size();
  std::memcpy(value.data() + kEncodingOffset, &encoding, sizeof(encoding));
  std::memcpy(value.data() + kPayloadBytesOffset, &payload_bytes, sizeof(payload_bytes));
  value.insert(value.end(), payload.begin(), payload.end());
  const base::Hash128 checksum = base::HashBytes128(value, kChecksumSeed);
  const auto bytes = std::as_bytes(std::span(&checksum, 1));
  value.insert(value.end(), bytes.begin(), bytes.end());
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const kvcache::BlockIdentity identity = Identity();
  Read(identity, bytes);
  for (std::uint32_t encoding = 0; encoding < 4; ++encoding) {
    Read(identity, Wrapped(identity, encoding, bytes));
  }
  return 0;
}
