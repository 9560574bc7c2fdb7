#include "formats/llama2c_model.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/checked.h"

namespace kvasir::formats {
namespace {

using base::Result;
using base::Success;
using tensor::Shape;

constexpr std::size_t kHeaderBytes = 7 * sizeof(std::int32_t);
constexpr std::uint32_t kVersionedMagic = 0x616B3432;  // "ak42", as an int32.

// A group of tensors, one a layer or one in all, as they follow one another in the file.
struct Group {
  std::string_view name;
  std::uint64_t count;
  Shape shape;
  bool skipped = false;
};

std::vector<Group> Groups(const Llama2cConfig& c) {
  std::vector<Group> groups = {
      {"token_embedding_table", 1, Shape{c.vocab, c.dim}},
      {"rms_att_weight", c.layers, Shape{c.dim}},
      {"wq", c.layers, Shape{c.dim, c.dim}},
      {"wk", c.layers, Shape{c.kv_dim(), c.dim}},
      {"wv", c.layers, Shape{c.kv_dim(), c.dim}},
      {"wo", c.layers, Shape{c.dim, c.dim}},
      {"rms_ffn_weight", c.layers, Shape{c.dim}},
      {"w1", c.layers, Shape{c.hidden_dim, c.dim}},
      {"w2", c.layers, Shape{c.dim, c.hidden_dim}},
      {"w3", c.layers, Shape{c.hidden_dim, c.dim}},
      {"rms_final_weight", 1, Shape{c.dim}},
      {"freq_cis_real", 1, Shape{c.context, c.head_dim() / 2}, true},
      {"freq_cis_imag", 1, Shape{c.context, c.head_dim() / 2}, true},
  };
  if (!c.shared_classifier) groups.push_back({"wcls", 1, Shape{c.vocab, c.dim}});
  return groups;
}

// Bytes of a whole group, or nothing if they exceed 64 bits.
std::optional<std::uint64_t> GroupBytes(const Group& group) {
  const auto elements = group.shape.ElementCount();
  if (!elements) return std::nullopt;
  return base::CheckedProduct({group.count, *elements, sizeof(float)});
}

}  // namespace

Result<Llama2cModel> Llama2cModel::Open(base::Env& env, const std::string& path) {
  KV_TRY(auto mapping, env.Map(path));
  KV_TRY(Llama2cModel model, Parse(mapping->bytes(), path));
  model.mapping_ = std::move(mapping);
  return model;
}

Result<Llama2cModel> Llama2cModel::Parse(std::span<const std::byte> bytes, std::string name) {
  Llama2cModel model;
  model.name_ = std::move(name);
  ByteCursor in(bytes, model.name_);
  KV_TRY(model.ReadHeader(in));
  KV_TRY(model.CheckSize(bytes.size()));
  KV_TRY(model.ReadTensors(in));
  return model;
}

Result<void> Llama2cModel::ReadHeader(ByteCursor& in) {
  constexpr std::array<std::string_view, 7> kNames = {
      "dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"};
  std::array<std::uint64_t, 7> values{};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    KV_TRY(const auto value, in.Read<std::int32_t>(kNames[i]));
    if (i == 0 && static_cast<std::uint32_t>(value) == kVersionedMagic) {
      return BadFile(in.file(), 0,
                     "a llama2.c model of version 1 or later; read is the legacy version 0");
    }
    const bool may_be_negative = kNames[i] == "vocab_size";
    if (value == 0 || (value < 0 && !may_be_negative)) {
      return BadFile(in.file(), i * sizeof(value),
                     "not a llama2.c model: {} is {}, must be at least 1", kNames[i], value);
    }
    if (may_be_negative) config_.shared_classifier = value > 0;
    values[i] = static_cast<std::uint64_t>(value < 0 ? -std::int64_t{value} : value);
  }
  config_.dim = values[0];
  config_.hidden_dim = values[1];
  config_.layers = values[2];
  config_.heads = values[3];
  config_.kv_heads = values[4];
  config_.vocab = values[5];
  config_.context = values[6];
  if (config_.dim % config_.heads != 0 || config_.head_dim() % 2 != 0) {
    return BadFile(in.file(), 0, "dim {} and n_heads {} do not make heads of an even size",
                   config_.dim, config_.heads);
  }
  if (config_.heads % config_.kv_heads != 0) {
    return BadFile(in.file(), 0, "n_kv_heads {} does not divide n_heads {}", config_.kv_heads,
                   config_.heads);
  }
  return Success();
}

Result<void> Llama2cModel::CheckSize(std::uint64_t bytes) const {
  std::optional<std::uint64_t> needed = kHeaderBytes;
  for (const Group& group : Groups(config_)) {
    const auto more = GroupBytes(group);
    needed = needed && more ? base::CheckedAdd(*needed, *more) : std::nullopt;
  }
  if (needed == bytes) return Success();
  return BadFile(name_, kHeaderBytes, "the file has {} bytes, its header asks for {}", bytes,
                 needed ? std::to_string(*needed) : "2^64 or more");
}

Result<void> Llama2cModel::ReadTensors(ByteCursor& in) {
  for (const Group& group : Groups(config_)) {
    const std::uint64_t each = *GroupBytes(group) / group.count;
    for (std::uint64_t layer = 0; layer < group.count; ++layer) {
      KV_TRY(const auto data, in.Take(each, group.name));
      if (!group.skipped) tensors_.push_back({group.name, layer, group.shape, data});
    }
  }
  return Success();
}

const Llama2cTensor* Llama2cModel::Find(std::string_view tensor_name, std::uint64_t layer) const {
  for (const Llama2cTensor& tensor : tensors_) {
    if (tensor.layer == layer && tensor.name == tensor_name) return &tensor;
  }
  return nullptr;
}

}  // namespace kvasir::formats
