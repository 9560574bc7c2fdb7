#include "model/hf_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "formats/printable.h"
#include "model/model_file.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;
using base::Result;
using formats::SafetensorsSet;
using formats::SafetensorsTensor;

struct Name {
  std::string_view gguf;  // Without "blk.N."
  std::string_view hf;    // Without "h.N." or "layers.N."
  HfOrder order = HfOrder::kSame;
};
constexpr std::array<Name, 12> kGpt2Layer = {
    {{"attn_norm.weight", "ln_1.weight"},
     {"attn_norm.bias", "ln_1.bias"},
     {"attn_qkv.weight", "attn.c_attn.weight", HfOrder::kTransposed},
     {"attn_qkv.bias", "attn.c_attn.bias"},
     {"attn_output.weight", "attn.c_proj.weight", HfOrder::kTransposed},
     {"attn_output.bias", "attn.c_proj.bias"},
     {"ffn_norm.weight", "ln_2.weight"},
     {"ffn_norm.bias", "ln_2.bias"},
     {"ffn_up.weight", "mlp.c_fc.weight", HfOrder::kTransposed},
     {"ffn_up.bias", "mlp.c_fc.bias"},
     {"ffn_down.weight", "mlp.c_proj.weight", HfOrder::kTransposed},
     {"ffn_down.bias", "mlp.c_proj.bias"}}};
constexpr std::array<Name, 14> kLlamaLayer = {
    {{"attn_norm.weight", "input_layernorm.weight"},
     {"attn_q.weight", "self_attn.q_proj.weight", HfOrder::kHalves},
     {"attn_k.weight", "self_attn.k_proj.weight", HfOrder::kHalves},
     {"attn_v.weight", "self_attn.v_proj.weight"},
     {"attn_q.bias", "self_attn.q_proj.bias"},
     {"attn_k.bias", "self_attn.k_proj.bias"},
     {"attn_v.bias", "self_attn.v_proj.bias"},
     {"attn_q_norm.weight", "self_attn.q_norm.weight"},
     {"attn_k_norm.weight", "self_attn.k_norm.weight"},
     {"attn_output.weight", "self_attn.o_proj.weight"},
     {"ffn_norm.weight", "post_attention_layernorm.weight"},
     {"ffn_gate.weight", "mlp.gate_proj.weight"},
     {"ffn_up.weight", "mlp.up_proj.weight"},
     {"ffn_down.weight", "mlp.down_proj.weight"}}};
constexpr std::array<Name, 4> kGpt2Rest = {{{"token_embd.weight", "wte.weight"},
                                            {"position_embd.weight", "wpe.weight"},
                                            {"output_norm.weight", "ln_f.weight"},
                                            {"output_norm.bias", "ln_f.bias"}}};
constexpr std::array<Name, 2> kLlamaRest = {
    {{"token_embd.weight", "embed_tokens.weight"}, {"output_norm.weight", "norm.weight"}}};

const Name& Find(std::span<const Name> names, std::string_view gguf) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const Name& n) { return n.gguf == gguf; });
  KV_CHECK(found != names.end());
  return *found;
}

// Tables that older files hold, which follow from the config: the causal mask and what it is filled
// with, and RoPE's frequencies.
bool IsTable(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

// Where a head's channel i of GGUF's order lies in halves.
std::uint64_t HalfOf(std::uint64_t i, std::uint64_t head_dim) {
  return i / 2 + (i % 2) * (head_dim / 2);
}

// The tensors of one folder, by their full names.
class Names {
 public:
  Names(const SafetensorsSet& set, const HfModelConfig& config) : set_(set) {
    // A model without its head is saved without the prefix.
    const std::string first = HfTensors(config).front().name;
    const std::string_view prefix = HfPrefix(config);
    if (set.Find(first) == nullptr) prefix_ = prefix;
  }

  std::string Full(std::string_view name) const {
    return name == kHfHeadName ? std::string(name) : prefix_ + std::string(name);
  }

  // Requires that Check passed.
  const SafetensorsTensor& Get(const HfTensor& wanted) const {
    return *set_.Find(Full(wanted.name));
  }

  // Against what the config asks for.
  Result<void> Check(const HfTensor& wanted) const {
    const std::string name = Full(wanted.name);
    const SafetensorsTensor* tensor = set_.Find(name);
    if (tensor == nullptr) {
      return MakeError(ErrorCode::kBadData, "{}: tensor '{}' is missing", set_.name(), name);
    }
    tensor::Shape shape = wanted.spec.shape;
    if (wanted.order == HfOrder::kTransposed) shape = {shape[1], shape[0]};
    if (tensor->shape != shape) {
      return MakeError(ErrorCode::kBadData, "{}: tensor '{}' has shape {}; config.json asks for {}",
                       set_.name(), name, tensor->shape.ToString(), shape.ToString());
    }
    if (!tensor->dtype) {
      return MakeError(ErrorCode::kBadData, "{}: tensor '{}' is {}; read are F32, F16 and BF16",
                       set_.name(), name, tensor->type);
    }
    return base::Success();
  }

  // A head beside an embedding that is it must be that embedding.
  Result<void> CheckTiedHead(const SafetensorsTensor& embedding) const {
    const SafetensorsTensor* head = set_.Find(kHfHeadName);
    if (head == nullptr) return base::Success();
    if (head->type == embedding.type && head->shape == embedding.shape &&
        std::equal(head->data.begin(), head->data.end(), embedding.data.begin(),
                   embedding.data.end())) {
      return base::Success();
    }
    return MakeError(ErrorCode::kBadData,
                     "{}: tensor '{}' differs from the embedding, but tie_word_embeddings of "
                     "config.json is true",
                     set_.name(), kHfHeadName);
  }

  Result<void> RefuseOthers(const std::vector<HfTensor>& wanted) const {
    std::unordered_set<std::string> known = {std::string(kHfHeadName)};
    for (const HfTensor& tensor : wanted) known.insert(Full(tensor.name));
    for (const auto& file : set_.files()) {
      for (const SafetensorsTensor& tensor : file.tensors()) {
        if (known.contains(tensor.name) || IsTable(tensor.name)) continue;
        return MakeError(ErrorCode::kBadData,
                         "{}: tensor {} is not one that this architecture uses here", file.name(),
                         formats::Quoted(tensor.name));
      }
    }
    return base::Success();
  }

 private:
  const SafetensorsSet& set_;
  std::string prefix_;
};

std::uint64_t HeadDim(const HfModelConfig& config) {
  const auto* gpt2 = std::get_if<Gpt2Config>(&config);
  return gpt2 ? gpt2->head_dim() : std::get<LlamaConfig>(config).head_dim;
}

}  // namespace

std::string_view HfPrefix(const HfModelConfig& config) {
  return std::holds_alternative<Gpt2Config>(config) ? "transformer." : "model.";
}

std::vector<HfTensor> HfTensors(const HfModelConfig& config) {
  const auto* gpt2 = std::get_if<Gpt2Config>(&config);
  const auto* llama = std::get_if<LlamaConfig>(&config);
  const std::vector<TensorSpec> specs = gpt2 ? Gpt2Tensors(*gpt2) : LlamaTensors(*llama);
  const bool halves = llama != nullptr && llama->family == LlamaFamily::kLlama;
  std::vector<HfTensor> tensors;
  for (const TensorSpec& spec : specs) {
    if (spec.name == "output.weight") {
      tensors.push_back({spec, std::string(kHfHeadName), HfOrder::kSame});
    } else if (!spec.name.starts_with("blk.")) {
      const Name& name = gpt2 ? Find(kGpt2Rest, spec.name) : Find(kLlamaRest, spec.name);
      tensors.push_back({spec, std::string(name.hf), name.order});
    } else {
      const auto [block, part] = SplitBlockName(spec.name);
      const Name& name = gpt2 ? Find(kGpt2Layer, part) : Find(kLlamaLayer, part);
      const bool same = name.order == HfOrder::kHalves && !halves;
      tensors.push_back({spec, fmt::format("{}.{}.{}", gpt2 ? "h" : "layers", block, name.hf),
                         same ? HfOrder::kSame : name.order});
    }
  }
  return tensors;
}

std::vector<std::byte> Reordered(const HfTensor& tensor, HfDirection direction, std::size_t width,
                                 std::uint64_t head_dim, std::span<const std::byte> bytes) {
  std::vector<std::byte> out(bytes.size());
  const std::uint64_t rows = tensor.spec.shape[0], columns = tensor.spec.shape[1];  // GGUF's.
  KV_CHECK(bytes.size() == rows * columns * width);
  if (tensor.order == HfOrder::kHalves) {
    KV_CHECK(rows % head_dim == 0);
    const std::size_t row_bytes = columns * width;
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t other = row - row % head_dim + HalfOf(row % head_dim, head_dim);
      const bool to_gguf = direction == HfDirection::kToGguf;
      std::memcpy(out.data() + (to_gguf ? row : other) * row_bytes,
                  bytes.data() + (to_gguf ? other : row) * row_bytes, row_bytes);
    }
    return out;
  }
  KV_CHECK(tensor.order == HfOrder::kTransposed);
  const bool to_gguf = direction == HfDirection::kToGguf;
  const std::uint64_t from_rows = to_gguf ? columns : rows;
  const std::uint64_t from_columns = to_gguf ? rows : columns;
  for (std::uint64_t i = 0; i < from_rows; ++i) {
    for (std::uint64_t j = 0; j < from_columns; ++j) {
      std::memcpy(out.data() + (j * from_rows + i) * width,
                  bytes.data() + (i * from_columns + j) * width, width);
    }
  }
  return out;
}

Result<void> CheckHfTensors(const SafetensorsSet& set, const HfModelConfig& config) {
  const std::vector<HfTensor> wanted = HfTensors(config);
  const Names names(set, config);
  for (const HfTensor& tensor : wanted) {
    KV_TRY(names.Check(tensor));
  }
  KV_TRY(names.RefuseOthers(wanted));
  if (wanted.back().name == kHfHeadName) return base::Success();
  return names.CheckTiedHead(names.Get(wanted.front()));
}

void AddHfTensors(const SafetensorsSet& set, const HfModelConfig& config,
                  formats::GgufWriter& writer) {
  const Names names(set, config);
  for (const HfTensor& tensor : HfTensors(config)) {
    const SafetensorsTensor& found = names.Get(tensor);
    const TensorSpec& spec = tensor.spec;
    const tensor::DType dtype = WrittenType(spec, *found.dtype);
    if (tensor.order != HfOrder::kSame) {
      writer.AddTensor(spec.name, spec.shape, dtype,
                       Reordered(tensor, HfDirection::kToGguf, tensor::BytesPerElement(dtype),
                                 HeadDim(config), found.data));
    } else if (dtype == *found.dtype) {
      writer.AddTensorView(spec.name, spec.shape, dtype, found.data);
    } else {
      std::vector<float> values(spec.shape.ElementCount().value());
      tensor::ConvertToF32(*found.dtype, found.data, values);
      writer.AddTensor(spec.name, spec.shape, dtype, tensor::ConvertFromF32(dtype, values));
    }
  }
}

}  // namespace kvasir::model
