#include "model/llama_model.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "model/step_cache.h"
#include "model/step_rows.h"

namespace kvasir::model {

using base::Member;

LlamaModel::LlamaModel(const LlamaConfig& config)
    : config_(config), frequencies_(RopeFrequencies(config.rope)), layers_(config.layers) {
  shape_.architecture = ArchitectureName(config.family);
  shape_.layers = config.layers;
  shape_.heads = config.heads;
  shape_.kv_heads = config.kv_heads;
  shape_.head_dim = config.head_dim;
  shape_.embedding = config.embedding;
  shape_.feed_forward = config.feed_forward;
  shape_.context = config.context;
  shape_.vocab = config.vocab;
  shape_.rotary = true;
  shape_.windows.assign(config.windows.begin(), config.windows.end());
  shape_.parameters = ParameterCount(config);
  const std::uint64_t width = config.embedding;
  const std::uint64_t unread_table = config.tied_head ? 0 : config.vocab * width;
  shape_.work = {.weights = shape_.parameters - unread_table + width,
                 .before_attention = width * config.qkv_width(),
                 .after_attention = width * config.q_width() + 3 * width * config.feed_forward,
                 .per_visible = 2 * config.q_width()};
}

base::Result<std::unique_ptr<LlamaModel>> LlamaModel::Make(const LlamaConfig& config,
                                                           const TensorSource& source) {
  std::unique_ptr<LlamaModel> model(new LlamaModel(config));
  KV_TRY(model->Load(source));
  return model;
}

WeightSlot LlamaModel::SlotOf(std::string_view name) {
  if (name == "token_embd.weight") return tokens_.Slot();
  if (name == "output_norm.weight") return {.plain = &output_norm_};
  if (name == "output.weight") return {.packed = &head_};
  const auto [block, part] = SplitBlockName(name);
  Layer& layer = layers_[block];
  if (part == "attn_norm.weight") return {.plain = &layer.attention_norm};
  if (part == "attn_q_norm.weight") return {.plain = &layer.q_norm};
  if (part == "attn_k_norm.weight") return {.plain = &layer.k_norm};
  if (part == "attn_output.weight") return {.packed = &layer.output};
  if (part == "ffn_norm.weight") return {.plain = &layer.mlp_norm};
  if (part == "ffn_gate.weight") return {.packed = &layer.gate};
  if (part == "ffn_up.weight") return {.packed = &layer.up};
  if (part == "ffn_down.weight") return {.packed = &layer.down};
  // attn_q, attn_k and attn_v, weight or bias, share one product.
  KV_CHECK(part.starts_with("attn_"));
  const char letter = part[5];
  WeightSlot slot;
  slot.first_row = letter == 'q'   ? 0
                   : letter == 'k' ? config_.q_width()
                                   : config_.q_width() + config_.kv_width();
  slot.total_rows = config_.qkv_width();
  if (part.ends_with(".bias")) {
    slot.plain = &layer.qkv_bias;
  } else {
    slot.packed = &layer.qkv;
  }
  return slot;
}

base::Result<void> LlamaModel::Load(const TensorSource& source) {
  for (const TensorSpec& spec : LlamaTensors(config_)) {
    KV_TRY(SlotOf(spec.name).Load(spec, source));
  }
  if (config_.tied_head) tokens_.MakeHead(config_.vocab, config_.embedding);
  std::uint64_t saved = Head().saved_bytes() + tokens_.saved_row_bytes();
  for (const Layer& layer : layers_) {
    saved += layer.qkv.saved_bytes() + layer.output.saved_bytes() + layer.gate.saved_bytes() +
             layer.up.saved_bytes() + layer.down.saved_bytes();
  }
  shape_.work.saved_weight_bytes = saved;
  return base::Success();
}

std::vector<float> LlamaModel::TensorValues(const TensorSpec& spec) const {
  return const_cast<LlamaModel*>(this)->SlotOf(spec.name).Values(spec);
}

// One step: all rows go through its layers together, phase by phase. Every member of the team runs
// Run(); a barrier ends each phase.
class LlamaModel::Step {
 public:
  Step(const LlamaModel& model, std::span<const BatchItem> items, const StepLayers& layers,
       Scratch& scratch, float* logits)
      : model_(model),
        c_(model.config_),
        layers_(layers),
        rows_(items),
        cache_(rows_, model.shape_, {model.frequencies_, c_.rope.pairing}, scratch, 10),
        tap_(scratch.tap()),
        logits_(logits) {
    // Rows that come from layers below stand where those have left them.
    x_ = scratch.Get(layers.begin == 0 ? 0 : 6, rows_.count() * c_.embedding);
    normed_ = scratch.Get(1, rows_.count() * c_.embedding);
    qkv_ = scratch.Get(2, rows_.count() * c_.qkv_width());
    attended_ = scratch.Get(3, rows_.count() * c_.q_width());
    gate_ = scratch.Get(4, rows_.count() * c_.feed_forward);
    up_ = scratch.Get(5, rows_.count() * c_.feed_forward);
    last_ = scratch.Get(layers.begin == 0 ? 6 : 8, rows_.wanted() * c_.embedding);
    unturned_ = scratch.Get(9, rows_.count() * c_.kv_width());
    turns_ = scratch.Get(7, rows_.count() * c_.rope.dimensions);
  }

  void Run(Member& member) const {
    Embed(member);
    for (std::size_t i = layers_.begin; i < layers_.end; ++i) {
      RunLayer(member, i, i + 1 == layers_.end);
    }
    if (rows_.wanted() == 0 || layers_.end < c_.layers) return;
    NormRows(member, model_.output_norm_, last_, rows_.wanted());
    member.Barrier();
    rows_.ShowFinal(tap_, member, c_.layers, normed_, c_.embedding);
    kernels::MatmulShare(Product(normed_, c_.embedding, model_.Head(), {}, logits_, c_.vocab),
                         rows_.wanted(), member);
  }

 private:
  // x[row] = token embedding, unless it comes from layers below; and the turns of the row's
  // position and of the sinks it sees, which all layers share.
  void Embed(Member& member) const {
    const std::size_t width = c_.embedding;
    rows_.VisitShare(member, [&](const RowSlice& slice, base::IndexRange rows) {
      for (std::size_t row = rows.begin; row < rows.end; ++row) {
        if (layers_.begin == 0) {
          model_.tokens_.CopyRow(slice.TokenOf(row), width, x_ + row * width);
        }
        kernels::RopeTurn(model_.frequencies_.data(), model_.frequencies_.size(),
                          slice.PositionOf(row), turns_ + row * c_.rope.dimensions);
      }
    });
    cache_.TurnSinks(member);
    member.Barrier();
  }

  void NormRows(Member& member, const Gain& gain, const float* in, std::size_t rows) const {
    const base::IndexRange share = member.Share(rows);
    for (std::size_t row = share.begin; row < share.end; ++row) {
      kernels::RmsNorm(in + row * c_.embedding, gain.data(), c_.embedding, c_.norm_eps,
                       normed_ + row * c_.embedding);
    }
  }

  void RunLayer(Member& member, std::size_t index, bool last) const {
    const Layer& layer = model_.layers_[index];
    const std::size_t width = c_.embedding;
    rows_.ShowHidden(tap_, member, index, x_, width);
    NormRows(member, layer.attention_norm, x_, rows_.count());
    member.Barrier();
    kernels::MatmulShare(
        Product(normed_, width, layer.qkv, layer.qkv_bias.span(), qkv_, c_.qkv_width()),
        rows_.count(), member);
    member.Barrier();
    RotateAndStoreRows(member, index);
    RebuildRows(member, index);
    member.Barrier();
    if (cache_.NeedsGroups()) {
      cache_.CompleteGroups(member, index);
      member.Barrier();
    }
    const std::size_t rows = last ? rows_.wanted() : rows_.count();
    float* x = last ? last_ : x_;
    if (rows == 0) return;
    if (last) rows_.CopyWanted(member, x_, width, last_);
    cache_.Attend(member, index, last, Attention(index));
    member.Barrier();
    kernels::MatmulArgs args = Product(attended_, c_.q_width(), layer.output, {}, x, width);
    args.residual = x;
    kernels::MatmulShare(args, rows, member);
    member.Barrier();
    NormRows(member, layer.mlp_norm, x, rows);
    member.Barrier();
    const std::size_t middle = c_.feed_forward;
    kernels::MatmulShare(Product(normed_, width, layer.gate, {}, gate_, middle), rows, member);
    // Of the same shape, so each member's part is the same.
    const kernels::MatmulTileRange tile =
        kernels::MatmulShare(Product(normed_, width, layer.up, {}, up_, middle), rows, member);
    VisitTile(tile, c_.feed_forward, [&](std::size_t first, std::size_t count) {
      kernels::SwiGlu(gate_ + first, up_ + first, count, gate_ + first);  // silu(gate) · up
    });
    member.Barrier();
    args = Product(gate_, middle, layer.down, {}, x, width);
    args.residual = x;
    kernels::MatmulShare(args, rows, member);
    member.Barrier();
  }

  // Queries and keys: normed by head if the model does, then turned by their position.
  void RotateAndStoreRows(Member& member, std::size_t index) const {
    const Layer& layer = model_.layers_[index];
    rows_.VisitShare(member, [&](const RowSlice& slice, base::IndexRange rows) {
      for (std::size_t row = rows.begin; row < rows.end; ++row) {
        float* q = qkv_ + row * c_.qkv_width();
        float* k = q + c_.q_width();
        if (c_.head_norms) {
          NormHeads(layer.q_norm, c_.heads, q);
          NormHeads(layer.k_norm, c_.kv_heads, k);
        }
        float* unturned = unturned_ + row * c_.kv_width();
        std::copy_n(k, c_.kv_width(), unturned);
        Turn(turns_ + row * c_.rope.dimensions, c_.heads + c_.kv_heads, q);  // Keys follow queries.
        cache_.StoreRow(slice, index, slice.PositionOf(row),
                        {.q = q,
                         .k = k,
                         .v = k + c_.kv_width(),
                         .unturned_k = unturned,
                         .hidden = normed_ + row * c_.embedding});
      }
    });
  }

  // The same of earlier rows, whose normed input alone is kept.
  void RebuildRows(Member& member, std::size_t index) const {
    const Layer& layer = model_.layers_[index];
    float turn[kernels::kMaxHeadDim];
    cache_.Rebuild(member, index, {&layer.qkv, layer.qkv_bias.span(), c_.q_width()},
                   [&](std::size_t position, float* qkv) {
                     float* k = qkv + c_.q_width();
                     if (c_.head_norms) NormHeads(layer.k_norm, c_.kv_heads, k);
                     kernels::RopeTurn(model_.frequencies_.data(), model_.frequencies_.size(),
                                       position, turn);
                     Turn(turn, c_.kv_heads, k);
                   });
  }

  void Turn(const float* turn, std::size_t heads, float* x) const {
    kernels::RopeArgs args;
    args.turn = turn;
    args.pairs = c_.rope.dimensions / 2;
    args.pairing = c_.rope.pairing;
    args.heads = heads;
    args.head_stride = c_.head_dim;
    args.x = x;
    kernels::Rope(args);
  }

  void NormHeads(const Gain& gain, std::size_t heads, float* x) const {
    for (std::size_t head = 0; head < heads; ++head) {
      float* channels = x + head * c_.head_dim;
      kernels::RmsNorm(channels, gain.data(), c_.head_dim, c_.norm_eps, channels);
    }
  }

  AttendArgs Attention(std::size_t layer) const {
    AttendArgs args;
    args.q = qkv_;
    args.q_stride = c_.qkv_width();
    args.scale = 1.0f / std::sqrt(static_cast<float>(c_.head_dim));
    if (!c_.windows.empty() && c_.windows[layer] != 0) args.window = c_.windows[layer];
    args.out = attended_;
    args.out_stride = c_.q_width();
    return args;
  }

  const LlamaModel& model_;
  const LlamaConfig& c_;
  const StepLayers layers_;
  const StepRows rows_;
  const StepCache cache_;
  StepTap* const tap_;
  float* logits_;    // [wanted][vocab]
  float* x_;         // [rows][embedding] residual stream
  float* normed_;    // [rows][embedding]
  float* qkv_;       // [rows][qkv_width]
  float* attended_;  // [rows][q_width]
  float* gate_;      // [rows][feed_forward]
  float* up_;        // [rows][feed_forward]
  float* last_;      // [wanted][embedding] residual stream in the last layer
  float* unturned_;  // [rows][kv_width] keys before they are turned
  float* turns_;     // [rows][2][rope dimensions / 2] cosines and sines
};

base::Result<void> LlamaModel::Forward(std::span<const BatchItem> items, Scratch& scratch,
                                       base::ThreadTeam& team, std::span<float> logits) const {
  return ForwardItems(items, shape_, logits,
                      [&](std::span<const BatchItem> rows, const StepLayers& layers) {
                        const Step step(*this, rows, layers, scratch, logits.data());
                        team.Run([&](Member& member) { step.Run(member); });
                      });
}

}  // namespace kvasir::model
