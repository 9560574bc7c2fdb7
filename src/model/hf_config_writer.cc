#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/hf_number.h"
#include "model/hf_rope.h"
#include "model/hf_writer.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using tokenizer::VocabularySpec;

// An object's members, one a line.
class Members {
 public:
  template <typename T>
  void Add(std::string_view name, const T& value) {
    lines_.push_back(fmt::format("  \"{}\": {}", name, value));
  }
  void AddLine(const std::string& line) { lines_.push_back("  " + line); }
  std::string Text() const { return fmt::format("{{\n{}\n}}\n", fmt::join(lines_, ",\n")); }

 private:
  std::vector<std::string> lines_;
};

void AddGpt2(const Gpt2Config& config, Members& out) {
  out.Add("architectures", "[\"GPT2LMHeadModel\"]");
  out.Add("model_type", "\"gpt2\"");
  out.Add("activation_function", "\"gelu_new\"");
  out.Add("n_layer", config.layers);
  out.Add("n_head", config.heads);
  out.Add("n_embd", config.embedding);
  out.Add("n_inner", config.feed_forward);
  out.Add("n_positions", config.context);
  out.Add("n_ctx", config.context);
  out.Add("layer_norm_epsilon", HfNumber(config.norm_eps));
}

Result<void> CheckSayable(const LlamaConfig& c) {
  const std::string_view family = ArchitectureName(c.family);
  if (c.qkv_bias && c.family != LlamaFamily::kQwen2) {
    return MakeError(ErrorCode::kBadData,
                     "its queries, keys and values have biases, and the output has none: "
                     "config.json of {} has no words for it",
                     family);
  }
  if (!c.windows.empty() && c.family == LlamaFamily::kLlama) {
    return MakeError(ErrorCode::kBadData,
                     "{} is set: config.json of {} has no words for sliding windows",
                     c.Key("attention.sliding_window"), family);
  }
  if (c.rope.dimensions != c.head_dim) {
    return MakeError(ErrorCode::kBadData,
                     "{} is {}: config.json of {} has words for that of heads only, {}",
                     c.Key("rope.dimension_count"), c.rope.dimensions, family, c.head_dim);
  }
  return base::Success();
}

void AddWindows(const LlamaConfig& config, Members& out) {
  if (config.windows.empty()) return;
  std::vector<std::string_view> types;
  for (const std::uint64_t window : config.windows) {
    types.push_back(window == 0 ? "\"full_attention\"" : "\"sliding_attention\"");
  }
  out.Add("use_sliding_window", "true");
  out.Add("sliding_window", *std::max_element(config.windows.begin(), config.windows.end()));
  // Where layer_types is not known: from this layer on.
  const auto first = std::find_if(config.windows.begin(), config.windows.end(),
                                  [](std::uint64_t window) { return window != 0; });
  out.Add("max_window_layers", first - config.windows.begin());
  out.Add("layer_types", fmt::format("[{}]", fmt::join(types, ", ")));
}

Result<void> AddLlama(const LlamaConfig& config, Members& out) {
  KV_TRY(CheckSayable(config));
  constexpr std::string_view kClasses[] = {"LlamaForCausalLM", "Qwen2ForCausalLM",
                                           "Qwen3ForCausalLM"};
  out.Add("architectures",
          fmt::format("[\"{}\"]", kClasses[static_cast<std::size_t>(config.family)]));
  out.Add("model_type", fmt::format("\"{}\"", ArchitectureName(config.family)));
  out.Add("hidden_act", "\"silu\"");
  out.Add("hidden_size", config.embedding);
  out.Add("intermediate_size", config.feed_forward);
  out.Add("num_hidden_layers", config.layers);
  out.Add("num_attention_heads", config.heads);
  out.Add("num_key_value_heads", config.kv_heads);
  out.Add("head_dim", config.head_dim);
  out.Add("max_position_embeddings", config.context);
  out.Add("rms_norm_eps", HfNumber(config.norm_eps));
  if (config.family != LlamaFamily::kQwen2) out.Add("attention_bias", "false");
  KV_TRY(const auto rope, HfRopeText(config.rope));
  out.AddLine(rope);
  AddWindows(config, out);
  return base::Success();
}

void AddIds(const VocabularySpec& vocabulary, Members& out) {
  if (vocabulary.bos) out.Add("bos_token_id", *vocabulary.bos);
  std::vector<tokenizer::TokenId> ends;
  for (const auto& end : {vocabulary.eos, vocabulary.eot}) {
    if (end && (ends.empty() || ends.front() != *end)) ends.push_back(*end);
  }
  if (ends.size() == 1) out.Add("eos_token_id", ends.front());
  if (ends.size() > 1) out.Add("eos_token_id", fmt::format("[{}]", fmt::join(ends, ", ")));
  if (vocabulary.pad) out.Add("pad_token_id", *vocabulary.pad);
  if (!vocabulary.untrained.empty()) {
    out.Add("kvasir_untrained_token_ids",
            fmt::format("[{}]", fmt::join(vocabulary.untrained, ", ")));
  }
}

}  // namespace

Result<std::string> HfConfigText(const HfModelConfig& config, const VocabularySpec& vocabulary,
                                 std::string_view torch_dtype) {
  Members out;
  if (const auto* gpt2 = std::get_if<Gpt2Config>(&config)) {
    AddGpt2(*gpt2, out);
  } else {
    KV_TRY(AddLlama(std::get<LlamaConfig>(config), out));
  }
  out.Add("vocab_size", vocabulary.pieces.size());
  out.Add("tie_word_embeddings", std::visit([](const auto& c) { return c.tied_head; }, config));
  out.Add("torch_dtype", fmt::format("\"{}\"", torch_dtype));
  AddIds(vocabulary, out);
  return out.Text();
}

}  // namespace kvasir::model
