#include "model/llama2c_reader.h"

#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/softmax.h"
#include "tensor/convert.h"

namespace kvasir::model {
namespace {

using base::ErrorCode;
using base::MakeError;
using tokenizer::TokenType;

struct Names {
  std::string_view gguf;  // Without "blk.N."
  std::string_view llama2c;
};
constexpr std::array<Names, 12> kNames = {{{"token_embd.weight", "token_embedding_table"},
                                           {"attn_norm.weight", "rms_att_weight"},
                                           {"attn_q.weight", "wq"},
                                           {"attn_k.weight", "wk"},
                                           {"attn_v.weight", "wv"},
                                           {"attn_output.weight", "wo"},
                                           {"ffn_norm.weight", "rms_ffn_weight"},
                                           {"ffn_gate.weight", "w1"},
                                           {"ffn_down.weight", "w2"},
                                           {"ffn_up.weight", "w3"},
                                           {"output_norm.weight", "rms_final_weight"},
                                           {"output.weight", "wcls"}}};

// The file's tensor that stands for GGUF's "blk.3.attn_q.weight".
const formats::Llama2cTensor* FindTensor(const formats::Llama2cModel& file, std::string_view name) {
  std::uint64_t layer = 0;
  if (name.starts_with("blk.")) {
    name.remove_prefix(4);
    const auto read = std::from_chars(name.data(), name.data() + name.size(), layer);
    name.remove_prefix(static_cast<std::size_t>(read.ptr - name.data()) + 1);
  }
  for (const Names& names : kNames) {
    if (names.gguf == name) return file.Find(names.llama2c, layer);
  }
  return nullptr;
}

bool IsBytePiece(std::string_view piece) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return piece.size() == 6 && piece.starts_with("<0x") && is_hex(piece[3]) && is_hex(piece[4]) &&
         piece[5] == '>';
}

// llama2.c holds spaces as such, where the vocabulary of a GGUF file has ▁.
std::string Escaped(std::string_view piece) {
  std::string escaped;
  for (const char c : piece) {
    if (c == ' ') {
      escaped += "\xE2\x96\x81";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

base::Result<LlamaConfig> ConfigOfLlama2c(const formats::Llama2cConfig& given) {
  LlamaConfig config;
  config.family = LlamaFamily::kLlama;
  config.layers = given.layers;
  config.heads = given.heads;
  config.kv_heads = given.kv_heads;
  config.head_dim = given.head_dim();
  config.embedding = given.dim;
  config.feed_forward = given.hidden_dim;
  config.context = given.context;
  config.vocab = given.vocab;
  config.norm_eps = 1e-5f;
  config.tied_head = given.shared_classifier;
  config.rope.pairing = PairingOf(config.family);
  config.rope.dimensions = config.head_dim;
  config.rope.base = 10000;
  KV_TRY(CheckConfig(config));
  return config;
}

TensorSource SourceOfLlama2c(const formats::Llama2cModel& file) {
  auto values = std::make_shared<std::vector<float>>();
  return [values, &file](const TensorSpec& spec) -> base::Result<std::span<const float>> {
    const formats::Llama2cTensor* tensor = FindTensor(file, spec.name);
    KV_CHECK(tensor != nullptr && tensor->shape == spec.shape);
    values->resize(spec.shape.ElementCount().value());
    tensor::ConvertToF32(tensor::DType::kF32, tensor->data, *values);
    if (!kernels::AllFinite(values->data(), values->size())) {
      return MakeError(ErrorCode::kBadData,
                       "'{}': {} of layer {} holds a number that is not finite", file.name(),
                       tensor->name, tensor->layer);
    }
    return std::span<const float>(*values);
  };
}

base::Result<tokenizer::VocabularySpec> VocabularyOfLlama2c(
    const formats::Llama2cTokenizer& tokenizer, std::uint64_t vocab) {
  constexpr std::size_t kSpecials = 3;
  const std::size_t tokens = tokenizer.pieces.size();
  if (tokens != vocab) {
    return MakeError(ErrorCode::kBadData,
                     "the tokenizer has {} tokens, {} than the model's {}; they must be as many",
                     tokens, tokens > vocab ? "more" : "fewer", vocab);
  }
  if (tokens < kSpecials) {
    return MakeError(ErrorCode::kBadData,
                     "the tokenizer has {} tokens; needed are unknown, start and end at least",
                     tokens);
  }
  tokenizer::VocabularySpec spec;
  spec.scores = tokenizer.scores;
  spec.pieces = {"<unk>", "<s>", "</s>"};
  spec.types = {TokenType::kUnknown, TokenType::kControl, TokenType::kControl};
  for (std::size_t id = kSpecials; id < tokens; ++id) {
    const std::string& piece = tokenizer.pieces[id];
    spec.pieces.push_back(Escaped(piece));
    spec.types.push_back(piece.empty()        ? TokenType::kUnused
                         : IsBytePiece(piece) ? TokenType::kByte
                                              : TokenType::kNormal);
  }
  spec.unk = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.eot = 1;
  spec.add_bos = true;
  spec.add_space_prefix = true;
  return spec;
}

}  // namespace kvasir::model
