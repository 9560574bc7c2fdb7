#include "model/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "formats/printable.h"
#include "model/hf_keys.h"
#include "model/hf_rope.h"
#include "model/in_file.h"

namespace kvasir::model {
namespace {

using base::Result;
using formats::JsonNode;
using Names = std::span<const std::string_view>;

constexpr std::string_view kUntrained = "kvasir_untrained_token_ids";

// Of every configuration: how a model is stored, trained, or drawn from by transformers' own
// generate; nothing that is computed here depends on them.
constexpr std::string_view kHarmless[] = {"_name_or_path",
                                          "_attn_implementation",
                                          "attn_implementation",
                                          "transformers_version",
                                          "torch_dtype",
                                          "dtype",
                                          "use_cache",
                                          "use_bfloat16",
                                          "initializer_range",
                                          "attention_dropout",
                                          "gradient_checkpointing",
                                          "return_dict",
                                          "output_hidden_states",
                                          "output_attentions",
                                          "torchscript",
                                          "chunk_size_feed_forward",
                                          "is_decoder",
                                          "finetuning_task",
                                          "id2label",
                                          "label2id",
                                          "task_specific_params",
                                          "problem_type",
                                          "tokenizer_class",
                                          "prefix",
                                          "sep_token_id",
                                          "decoder_start_token_id",
                                          "max_length",
                                          "min_length",
                                          "do_sample",
                                          "early_stopping",
                                          "num_beams",
                                          "num_beam_groups",
                                          "diversity_penalty",
                                          "temperature",
                                          "top_k",
                                          "top_p",
                                          "typical_p",
                                          "repetition_penalty",
                                          "length_penalty",
                                          "no_repeat_ngram_size",
                                          "encoder_no_repeat_ngram_size",
                                          "bad_words_ids",
                                          "num_return_sequences",
                                          "output_scores",
                                          "return_dict_in_generate",
                                          "forced_bos_token_id",
                                          "forced_eos_token_id",
                                          "remove_invalid_values",
                                          "exponential_decay_length_penalty",
                                          "suppress_tokens",
                                          "begin_suppress_tokens",
                                          "tf_legacy_loss",
                                          "pretraining_tp",
                                          "resid_pdrop",
                                          "embd_pdrop",
                                          "attn_pdrop",
                                          "reorder_and_upcast_attn",
                                          "summary_activation",
                                          "summary_first_dropout",
                                          "summary_proj_to_labels",
                                          "summary_type",
                                          "summary_use_proj"};

constexpr NeutralSetting kNeutral[] = {{"is_encoder_decoder", "false"},
                                       {"tie_encoder_decoder", "false"},
                                       {"add_cross_attention", "false"},
                                       {"scale_attn_weights", "true"},
                                       {"scale_attn_by_inverse_layer_idx", "false"},
                                       {"hidden_act", "'silu'"},
                                       {"attention_bias", "false"},
                                       {"mlp_bias", "false"},
                                       {"rope_interleaved", "false"},
                                       {"use_mrope", "false"},
                                       {"partial_rotary_factor", "1"}};

constexpr std::string_view kReadByAll[] = {"architectures",       "model_type",   "vocab_size",
                                           "bos_token_id",        "eos_token_id", "pad_token_id",
                                           "tie_word_embeddings", kUntrained};
constexpr std::string_view kReadForGpt2[] = {"n_embd",
                                             "n_layer",
                                             "n_head",
                                             "n_positions",
                                             "n_ctx",
                                             "n_inner",
                                             "activation_function",
                                             "layer_norm_epsilon"};
constexpr std::string_view kReadForLlama[] = {
    "hidden_size",         "intermediate_size", "num_hidden_layers",       "num_attention_heads",
    "num_key_value_heads", "head_dim",          "max_position_embeddings", "rms_norm_eps",
    "rope_theta",          "rope_scaling",      "rope_parameters"};
constexpr std::string_view kReadForQwen[] = {"use_sliding_window", "sliding_window",
                                             "max_window_layers", "layer_types"};

std::vector<std::string_view> Joined(std::initializer_list<Names> lists) {
  std::vector<std::string_view> all;
  for (const Names list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// One id, or several in an array.
Result<std::vector<base::TokenId>> ReadIds(const HfKeys& keys, std::string_view key) {
  std::vector<base::TokenId> ids;
  const auto node = keys.Find(key);
  if (!node) return ids;
  const auto add = [&](const JsonNode& id) -> Result<void> {
    const auto value = id.AsUint();
    if (!value || *value > std::numeric_limits<std::int32_t>::max()) {
      return keys.Wrong(key, "holds {}, which is no token id", id.Text());
    }
    ids.push_back(static_cast<base::TokenId>(*value));
    return base::Success();
  };
  if (!node->is_array()) {
    KV_TRY(add(*node));
  }
  for (const formats::JsonItem& item : node->items()) {
    KV_TRY(add(item.value));
  }
  return ids;
}

Result<std::optional<base::TokenId>> ReadId(const HfKeys& keys, std::string_view key) {
  KV_TRY(const auto ids, ReadIds(keys, key));
  if (ids.size() > 1) return keys.Wrong(key, "holds {} ids; at most one is allowed", ids.size());
  return ids.empty() ? std::optional<base::TokenId>() : ids.front();
}

Result<Gpt2Config> ReadGpt2Config(const HfKeys& keys) {
  KV_TRY(keys.RefuseOthers(Joined({kReadByAll, kReadForGpt2}), kHarmless, kNeutral));
  // Both names mean GELU by tanh.
  KV_TRY(const auto activation, keys.OptionalString("activation_function"));
  const std::string_view gelu = activation.value_or("gelu_new");
  if (gelu != "gelu_new" && gelu != "gelu_pytorch_tanh") {
    return keys.Wrong("activation_function",
                      "is {}; supported are 'gelu_new' and 'gelu_pytorch_tanh'",
                      formats::Quoted(gelu));
  }
  Gpt2Config config;
  KV_TRY(config.layers, keys.Uint("n_layer"));
  KV_TRY(config.heads, keys.Uint("n_head"));
  KV_TRY(config.embedding, keys.Uint("n_embd"));
  KV_TRY(config.vocab, keys.Uint("vocab_size"));
  KV_TRY(const auto positions, keys.OptionalUint("n_positions"));
  KV_TRY(const auto older, keys.OptionalUint("n_ctx"));
  if (!positions && !older) return keys.Wrong("n_positions", "is missing");
  config.context = positions ? *positions : *older;
  KV_TRY(const auto inner, keys.OptionalUint("n_inner"));
  // Before a product of it.
  if (config.embedding > (std::uint64_t{1} << 32)) {
    return keys.Wrong("n_embd", "is {}; that is too large", config.embedding);
  }
  config.feed_forward = inner.value_or(4 * config.embedding);
  KV_TRY(const double eps, keys.Between("layer_norm_epsilon", 1e-5, 0, 1));
  config.norm_eps = static_cast<float>(eps);
  KV_TRY(config.tied_head, keys.Bool("tie_word_embeddings", true));
  KV_TRY(CheckConfig(config));
  return config;
}

// Which layers have the window, as layer_types says.
Result<std::vector<bool>> ReadLayerTypes(const HfKeys& keys, const JsonNode& types,
                                         std::uint64_t layers) {
  std::vector<bool> sliding;
  for (const formats::JsonItem& item : types.items()) {
    const auto type = item.value.AsString();
    if (type != "full_attention" && type != "sliding_attention") {
      return keys.Wrong("layer_types",
                        "holds {}; allowed are 'full_attention' and 'sliding_attention'",
                        item.value.Text());
    }
    sliding.push_back(type == "sliding_attention");
  }
  if (!types.is_array() || sliding.size() != layers) {
    return keys.Wrong("layer_types", "is for {} layers; there are {}", sliding.size(), layers);
  }
  return sliding;
}

// Windows by layer, empty if there is none: in layers from max_window_layers on, or as layer_types
// says.
Result<std::vector<std::uint64_t>> ReadWindows(const HfKeys& keys, std::uint64_t layers) {
  KV_TRY(const bool used, keys.Bool("use_sliding_window", false));
  KV_TRY(const auto window, keys.OptionalUint("sliding_window"));
  KV_TRY(const auto first, keys.OptionalUint("max_window_layers"));
  std::vector<bool> sliding(layers, false);
  if (const auto types = keys.Find("layer_types")) {
    KV_TRY(sliding, ReadLayerTypes(keys, *types, layers));
  } else if (used) {
    for (std::size_t i = first.value_or(28); i < layers; ++i) sliding[i] = true;
  }
  std::vector<std::uint64_t> windows;
  if (std::find(sliding.begin(), sliding.end(), true) == sliding.end()) return windows;
  if (!used) return keys.Wrong("use_sliding_window", "is false, and layer_types has such layers");
  if (window.value_or(0) == 0) {
    return keys.Wrong("sliding_window", "is missing or 0, and layers use it");
  }
  for (const bool has : sliding) windows.push_back(has ? *window : 0);
  return windows;
}

Result<LlamaConfig> ReadLlamaConfig(const HfKeys& keys, LlamaFamily family) {
  const bool qwen = family != LlamaFamily::kLlama;
  KV_TRY(keys.RefuseOthers(Joined({kReadByAll, kReadForLlama, qwen ? kReadForQwen : Names()}),
                           kHarmless, kNeutral));
  LlamaConfig config;
  config.family = family;
  KV_TRY(config.layers, keys.Uint("num_hidden_layers"));
  KV_TRY(config.heads, keys.Uint("num_attention_heads"));
  KV_TRY(config.embedding, keys.Uint("hidden_size"));
  KV_TRY(config.feed_forward, keys.Uint("intermediate_size"));
  KV_TRY(config.context, keys.Uint("max_position_embeddings"));
  KV_TRY(config.vocab, keys.Uint("vocab_size"));
  KV_TRY(const auto kv_heads, keys.OptionalUint("num_key_value_heads"));
  config.kv_heads = kv_heads.value_or(config.heads);
  KV_TRY(const auto head_dim, keys.OptionalUint("head_dim"));
  if (head_dim || family == LlamaFamily::kQwen3) {
    config.head_dim = head_dim.value_or(128);  // What Qwen3Config has it as.
  } else if (config.heads == 0 || config.embedding % config.heads != 0) {
    return keys.Wrong("hidden_size", "{} is not a multiple of num_attention_heads {}",
                      config.embedding, config.heads);
  } else {
    config.head_dim = config.embedding / config.heads;
  }
  KV_TRY(const double eps, keys.Between("rms_norm_eps", 1e-6, 0, 1));
  config.norm_eps = static_cast<float>(eps);
  KV_TRY(config.tied_head, keys.Bool("tie_word_embeddings", false));
  config.qkv_bias = family == LlamaFamily::kQwen2;
  config.head_norms = family == LlamaFamily::kQwen3;
  config.rope.pairing = PairingOf(family);
  config.rope.dimensions = config.head_dim;
  // Before the rest, which takes memory by heads and layers.
  KV_TRY(CheckConfig(config));
  KV_TRY(ReadHfRope(keys, config.rope));
  if (qwen) {
    KV_TRY(config.windows, ReadWindows(keys, config.layers));
  }
  KV_TRY(CheckConfig(config));
  return config;
}

Result<std::variant<Gpt2Config, LlamaConfig>> ReadModelConfig(const HfKeys& keys) {
  using Config = std::variant<Gpt2Config, LlamaConfig>;
  KV_TRY(const auto type, keys.OptionalString("model_type"));
  if (type == "gpt2") {
    KV_TRY(const auto config, ReadGpt2Config(keys));
    return Config(config);
  }
  for (const LlamaFamily family : {LlamaFamily::kLlama, LlamaFamily::kQwen2, LlamaFamily::kQwen3}) {
    if (type != ArchitectureName(family)) continue;
    KV_TRY(const auto config, ReadLlamaConfig(keys, family));
    return Config(config);
  }
  return keys.Wrong("model_type", "is {}; supported are gpt2, llama, qwen2 and qwen3",
                    type ? formats::Quoted(*type) : "missing");
}

}  // namespace

std::uint64_t HfConfig::vocab() const {
  return std::visit([](const auto& config) { return config.vocab; }, model);
}

Result<HfConfig> ReadHfConfig(const formats::JsonDocument& file) {
  if (!file.root().is_object()) {
    return base::MakeError(base::ErrorCode::kBadData, "{}: the file is {}, not an object",
                           file.name(), file.root().Text());
  }
  const HfKeys keys(file.name(), file.root());
  HfConfig config;
  auto model = ReadModelConfig(keys);
  if (!model) return InFile(file.name(), model.error());
  config.model = model.value();
  KV_TRY(config.bos, ReadId(keys, "bos_token_id"));
  KV_TRY(config.pad, ReadId(keys, "pad_token_id"));
  KV_TRY(config.ends, ReadIds(keys, "eos_token_id"));
  KV_TRY(config.untrained, ReadIds(keys, kUntrained));
  return config;
}

}  // namespace kvasir::model
