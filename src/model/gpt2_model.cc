#include "model/gpt2_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/norm.h"

namespace kvasir::model {

using base::ErrorCode;
using base::MakeError;
using base::Member;

Gpt2Model::Gpt2Model(const Gpt2Config& config) : config_(config), layers_(config.layers) {
  shape_ = {
      "gpt2",           config.layers,       config.heads,   config.heads, config.head_dim(),
      config.embedding, config.feed_forward, config.context, config.vocab, ParameterCount(config)};
}

base::Result<std::unique_ptr<Gpt2Model>> Gpt2Model::Make(const Gpt2Config& config,
                                                         const TensorSource& source) {
  std::unique_ptr<Gpt2Model> model(new Gpt2Model(config));
  KV_TRY(model->Load(source));
  return model;
}

Gpt2Model::Slot Gpt2Model::SlotOf(std::string_view name) {
  if (name == "token_embd.weight") return {.plain = &token_embedding_};
  if (name == "position_embd.weight") return {.plain = &position_embedding_};
  if (name == "output_norm.weight") return {.plain = &output_norm_.gain};
  if (name == "output_norm.bias") return {.plain = &output_norm_.bias};
  if (name == "output.weight") return {.packed = &head_};
  KV_CHECK(name.starts_with("blk."));
  std::size_t index = 0;
  const auto end = std::from_chars(name.data() + 4, name.data() + name.size(), index).ptr;
  Layer& layer = layers_[index];
  const std::string_view part = name.substr(static_cast<std::size_t>(end - name.data()) + 1);
  if (part == "attn_norm.weight") return {.plain = &layer.attention_norm.gain};
  if (part == "attn_norm.bias") return {.plain = &layer.attention_norm.bias};
  if (part == "attn_qkv.weight") return {.packed = &layer.qkv.weight};
  if (part == "attn_qkv.bias") return {.plain = &layer.qkv.bias};
  if (part == "attn_output.weight") return {.packed = &layer.output.weight};
  if (part == "attn_output.bias") return {.plain = &layer.output.bias};
  if (part == "ffn_norm.weight") return {.plain = &layer.mlp_norm.gain};
  if (part == "ffn_norm.bias") return {.plain = &layer.mlp_norm.bias};
  if (part == "ffn_up.weight") return {.packed = &layer.up.weight};
  if (part == "ffn_up.bias") return {.plain = &layer.up.bias};
  if (part == "ffn_down.weight") return {.packed = &layer.down.weight};
  KV_CHECK(part == "ffn_down.bias");
  return {.plain = &layer.down.bias};
}

base::Result<void> Gpt2Model::Load(const TensorSource& source) {
  for (const TensorSpec& spec : Gpt2Tensors(config_)) {
    KV_TRY(const std::span<const float> values, source(spec));
    KV_CHECK(values.size() == spec.shape.ElementCount().value());
    const Slot slot = SlotOf(spec.name);
    if (slot.packed) {
      *slot.packed = kernels::PackWeights(values.data(), spec.shape[0], spec.shape[1]);
    } else {
      *slot.plain = base::AlignedArray<float>(values.size());
      std::copy(values.begin(), values.end(), slot.plain->data());
    }
  }
  if (config_.tied_head) {
    head_ = kernels::PackWeights(token_embedding_.data(), config_.vocab, config_.embedding);
  }
  return base::Success();
}

std::vector<float> Gpt2Model::TensorValues(const TensorSpec& spec) const {
  const Slot slot = const_cast<Gpt2Model*>(this)->SlotOf(spec.name);
  std::vector<float> values(spec.shape.ElementCount().value());
  if (slot.packed) {
    const std::size_t columns = spec.shape[1];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t row = i / columns;
      values[i] = slot.packed->panel(row / 16)[i % columns * 16 + row % 16];
    }
  } else {
    std::copy_n(slot.plain->data(), values.size(), values.begin());
  }
  return values;
}

base::Result<void> Gpt2Model::CheckItems(std::span<const BatchItem> items) const {
  for (const BatchItem& item : items) {
    KV_CHECK(!item.tokens.empty() && item.logit_rows <= item.tokens.size());
    const std::size_t length = item.sequence->length();
    if (item.tokens.size() > config_.context - std::min<std::size_t>(length, config_.context)) {
      return MakeError(ErrorCode::kUsage,
                       "{} tokens after {} do not fit the model's context of {} tokens",
                       item.tokens.size(), length, config_.context);
    }
    for (TokenId token : item.tokens) {
      if (token >= config_.vocab) {
        return MakeError(ErrorCode::kUsage, "token id {} is not below the vocabulary size {}",
                         token, config_.vocab);
      }
    }
  }
  return base::Success();
}

// One step: all rows go through the layers together, phase by phase. Every member of the team runs
// Run(); a barrier ends each phase. In the last layer only rows whose logits are wanted go on once
// K and V are stored, since nothing else reads the others.
class Gpt2Model::Step {
 public:
  Step(const Gpt2Model& model, std::span<const BatchItem> items, Scratch& scratch, float* logits)
      : model_(model), c_(model.config_), logits_(logits) {
    for (const BatchItem& item : items) {
      slices_.push_back({&item, rows_, wanted_, item.sequence->length()});
      rows_ += item.tokens.size();
      wanted_ += item.logit_rows;
    }
    x_ = scratch.Get(0, rows_ * c_.embedding);
    normed_ = scratch.Get(1, rows_ * c_.embedding);
    qkv_ = scratch.Get(2, rows_ * 3 * c_.embedding);
    attended_ = scratch.Get(3, rows_ * c_.embedding);
    middle_ = scratch.Get(4, rows_ * c_.feed_forward);
    last_ = scratch.Get(5, wanted_ * c_.embedding);
  }

  void Run(Member& member) const {
    Embed(member);
    for (std::size_t i = 0; i < c_.layers; ++i) {
      const bool last = i + 1 == c_.layers;
      RunLayer(member, i, last);
    }
    if (wanted_ == 0) return;
    NormRows(member, model_.output_norm_, last_, wanted_);
    member.Barrier();
    kernels::MatmulShare(Product({}, normed_, c_.embedding, &model_.head_, logits_, c_.vocab),
                         wanted_, member);
  }

 private:
  using Args = kernels::MatmulArgs;

  static Args Product(std::span<const float> bias, const float* in, std::size_t in_stride,
                      const kernels::PackedMatrix* weight, float* out, std::size_t out_stride) {
    Args args;
    args.a = in;
    args.a_row_stride = in_stride;
    args.w = weight;
    args.bias = bias.empty() ? nullptr : bias.data();
    args.out = out;
    args.out_stride = out_stride;
    return args;
  }

  // x[row] = token embedding + position embedding
  void Embed(Member& member) const {
    const std::size_t width = c_.embedding;
    const base::IndexRange share = member.Share(rows_);
    for (const Slice& slice : slices_) {
      const std::size_t count = slice.item->tokens.size();
      const std::size_t begin = std::max(share.begin, slice.first_row);
      const std::size_t end = std::min(share.end, slice.first_row + count);
      for (std::size_t row = begin; row < end; ++row) {
        const std::size_t i = row - slice.first_row;
        const float* token = model_.token_embedding_.data() + slice.item->tokens[i] * width;
        const float* position =
            model_.position_embedding_.data() + (slice.first_position + i) * width;
        for (std::size_t d = 0; d < width; ++d) x_[row * width + d] = token[d] + position[d];
      }
    }
    member.Barrier();
  }

  void NormRows(Member& member, const Norm& norm, const float* in, std::size_t rows) const {
    const base::IndexRange share = member.Share(rows);
    for (std::size_t row = share.begin; row < share.end; ++row) {
      kernels::LayerNorm(in + row * c_.embedding, norm.gain.data(), norm.bias.data(), c_.embedding,
                         c_.norm_eps, normed_ + row * c_.embedding, nullptr);
    }
  }

  void RunLayer(Member& member, std::size_t index, bool last) const {
    const Layer& layer = model_.layers_[index];
    const std::size_t width = c_.embedding;
    NormRows(member, layer.attention_norm, x_, rows_);
    member.Barrier();
    kernels::MatmulShare(
        Product(layer.qkv.bias.span(), normed_, width, &layer.qkv.weight, qkv_, 3 * width), rows_,
        member);
    member.Barrier();
    StoreRows(member, index);
    member.Barrier();
    const std::size_t rows = last ? wanted_ : rows_;
    float* x = last ? last_ : x_;
    if (rows == 0) return;
    if (last) CopyWanted(member);
    AttendRows(member, index, last);
    member.Barrier();
    Args args = Product(layer.output.bias.span(), attended_, width, &layer.output.weight, x, width);
    args.residual = x;
    kernels::MatmulShare(args, rows, member);
    member.Barrier();
    NormRows(member, layer.mlp_norm, x, rows);
    member.Barrier();
    const kernels::MatmulTileRange tile = kernels::MatmulShare(
        Product(layer.up.bias.span(), normed_, width, &layer.up.weight, middle_, c_.feed_forward),
        rows, member);
    ApplyGelu(tile);
    member.Barrier();
    args = Product(layer.down.bias.span(), middle_, c_.feed_forward, &layer.down.weight, x, width);
    args.residual = x;
    kernels::MatmulShare(args, rows, member);
    member.Barrier();
  }

  void StoreRows(Member& member, std::size_t layer) const {
    const base::IndexRange share = member.Share(rows_);
    const std::size_t width = c_.embedding;
    for (const Slice& slice : slices_) {
      const kernels::KvView view = slice.item->sequence->View(layer);
      const std::size_t end = std::min(share.end, slice.first_row + slice.item->tokens.size());
      for (std::size_t row = std::max(share.begin, slice.first_row); row < end; ++row) {
        const float* qkv = qkv_ + row * 3 * width;
        kernels::StoreKv(view, slice.first_position + row - slice.first_row, qkv + width,
                         qkv + 2 * width);
      }
    }
  }

  // The residual rows whose logits are wanted move together.
  void CopyWanted(Member& member) const {
    if (member.index() != 0) return;  // A barrier follows before anyone reads them.
    for (const Slice& slice : slices_) {
      const std::size_t skipped = slice.item->tokens.size() - slice.item->logit_rows;
      std::copy_n(x_ + (slice.first_row + skipped) * c_.embedding,
                  slice.item->logit_rows * c_.embedding, last_ + slice.first_wanted * c_.embedding);
    }
  }

  // Work units of a head and up to 16 queries, dealt out in turn: later queries see more keys, so
  // dealing balances what splitting into ranges would not.
  void AttendRows(Member& member, std::size_t layer, bool last) const {
    constexpr std::size_t kUnitQueries = 16;
    const std::size_t width = c_.embedding;
    std::size_t unit = 0;
    for (const Slice& slice : slices_) {
      const std::size_t count = last ? slice.item->logit_rows : slice.item->tokens.size();
      const std::size_t skipped = slice.item->tokens.size() - count;
      kernels::AttentionArgs args;
      args.q = qkv_ + (slice.first_row + skipped) * 3 * width;
      args.q_stride = 3 * width;
      args.first_position = slice.first_position + skipped;
      args.heads = c_.heads;
      args.scale = 1.0f / std::sqrt(static_cast<float>(c_.head_dim()));
      args.kv = slice.item->sequence->View(layer);
      args.out = attended_ + (last ? slice.first_wanted : slice.first_row) * width;
      args.out_stride = width;
      for (std::size_t begin = 0; begin < count; begin += kUnitQueries) {
        for (std::size_t head = 0; head < c_.heads; ++head) {
          if (unit++ % member.count() != member.index()) continue;
          kernels::Attention(args, {begin, std::min(count, begin + kUnitQueries)},
                             {head, head + 1});
        }
      }
    }
  }

  void ApplyGelu(const kernels::MatmulTileRange& tile) const {
    const std::size_t begin = tile.panels.begin * 16;
    const std::size_t end = std::min<std::size_t>(tile.panels.end * 16, c_.feed_forward);
    for (std::size_t row = tile.rows.begin; row < tile.rows.end && begin < end; ++row) {
      float* values = middle_ + row * c_.feed_forward + begin;
      kernels::Gelu(values, end - begin, values);
    }
  }

  const Gpt2Model& model_;
  const Gpt2Config& c_;
  float* logits_;              // [wanted][vocab]
  std::vector<Slice> slices_;  // [items]
  std::size_t rows_ = 0;       // of all items
  std::size_t wanted_ = 0;     // rows whose logits are wanted
  float* x_;                   // [rows][embedding] residual stream
  float* normed_;              // [rows][embedding]
  float* qkv_;                 // [rows][3 · embedding]
  float* attended_;            // [rows][embedding]
  float* middle_;              // [rows][feed_forward]
  float* last_;                // [wanted][embedding] residual stream in the last layer
};

base::Result<void> Gpt2Model::Forward(std::span<const BatchItem> items, Scratch& scratch,
                                      base::ThreadTeam& team, std::span<float> logits) const {
  KV_TRY(CheckItems(items));
  std::size_t wanted = 0;
  for (const BatchItem& item : items) {
    wanted += item.logit_rows;
    KV_TRY(item.sequence->Reserve(item.tokens.size()));
  }
  KV_CHECK(logits.size() == wanted * config_.vocab);
  if (items.empty()) return base::Success();
  const Step step(*this, items, scratch, logits.data());
  team.Run([&](Member& member) { step.Run(member); });
  for (const BatchItem& item : items) item.sequence->Advance(item.tokens.size());
  return base::Success();
}

}  // namespace kvasir::model
