// A target with a planted fault. If feeding it the magic bytes, or mutating a seed that is one bit
// away from them, does not end in a reported crash, the harness is blind and its green is worth
// nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("mead")) std::abort();
  return 0;
}
