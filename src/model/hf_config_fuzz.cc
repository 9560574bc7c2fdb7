// Any text as a config.json: refused in one line, or a config that passes its check.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvasir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = formats::JsonDocument::Parse(text, "fuzz");
  if (!json) {
    KV_CHECK(json.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const auto config = model::ReadHfConfig(json.value());
  if (!config) {
    KV_CHECK(config.error().message.find('\n') == std::string::npos);
    return 0;
  }
  std::visit([](const auto& c) { KV_CHECK(model::CheckConfig(c).has_value()); },
             config.value().model);
  return 0;
}
