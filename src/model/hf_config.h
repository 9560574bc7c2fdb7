// config.json of a model folder, as transformers writes it.
//
// Source: the configuration classes GPT2Config, LlamaConfig, Qwen2Config and Qwen3Config of the
// transformers library: names, and values where a file leaves one out.
#ifndef KVASIR_MODEL_HF_CONFIG_H_
#define KVASIR_MODEL_HF_CONFIG_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "formats/json_document.h"
#include "model/gpt2_config.h"
#include "model/llama_config.h"

namespace kvasir::model {

struct HfConfig {
  std::variant<Gpt2Config, LlamaConfig> model;
  std::optional<base::TokenId> bos;
  std::optional<base::TokenId> pad;
  std::vector<base::TokenId> ends;       // Of a text, or of a turn.
  std::vector<base::TokenId> untrained;  // Our own: kvasir_untrained_token_ids.

  std::uint64_t vocab() const;  // Rows of the embedding: the tokens, and perhaps unused ones.
};

// kBadData naming file, key, value and what is allowed. The config is checked (CheckConfig). The
// rule is that of known_keys.h: a key is one that is read, one known not to change what is
// computed, or one that holds the value at which it changes nothing; any other is refused by its
// name.
base::Result<HfConfig> ReadHfConfig(const formats::JsonDocument& file);

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_HF_CONFIG_H_
