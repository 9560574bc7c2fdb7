#include "model/gpt2_model.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/norm.h"
#include "model/step_cache.h"
#include "model/step_rows.h"

namespace kvasir::model {

using base::Member;

Gpt2Model::Gpt2Model(const Gpt2Config& config) : config_(config), layers_(config.layers) {
  shape_.architecture = "gpt2";
  shape_.layers = config.layers;
  shape_.heads = shape_.kv_heads = config.heads;
  shape_.head_dim = config.head_dim();
  shape_.embedding = config.embedding;
  shape_.feed_forward = config.feed_forward;
  shape_.context = config.context;
  shape_.vocab = config.vocab;
  shape_.parameters = ParameterCount(config);
  const std::uint64_t width = config.embedding;
  const std::uint64_t unread_tables = (config.tied_head ? 0 : config.vocab) + config.context;
  shape_.work = {.weights = shape_.parameters - unread_tables * width + 2 * width,
                 .before_attention = 3 * width * width,
                 .after_attention = width * width + 2 * width * config.feed_forward,
                 .per_visible = 2 * width};
}

base::Result<std::unique_ptr<Gpt2Model>> Gpt2Model::Make(const Gpt2Config& config,
                                                         const TensorSource& source) {
  std::unique_ptr<Gpt2Model> model(new Gpt2Model(config));
  KV_TRY(model->Load(source));
  return model;
}

WeightSlot Gpt2Model::SlotOf(std::string_view name) {
  if (name == "token_embd.weight") return tokens_.Slot();
  if (name == "position_embd.weight") return {.plain = &position_embedding_};
  if (name == "output_norm.weight") return {.plain = &output_norm_.gain};
  if (name == "output_norm.bias") return {.plain = &output_norm_.bias};
  if (name == "output.weight") return {.packed = &head_};
  const auto [block, part] = SplitBlockName(name);
  Layer& layer = layers_[block];
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
    KV_TRY(SlotOf(spec.name).Load(spec, source));
  }
  if (config_.tied_head) tokens_.MakeHead(config_.vocab, config_.embedding);
  std::uint64_t saved = Head().saved_bytes() + tokens_.saved_row_bytes();
  for (const Layer& layer : layers_) {
    saved += layer.qkv.weight.saved_bytes() + layer.output.weight.saved_bytes() +
             layer.up.weight.saved_bytes() + layer.down.weight.saved_bytes();
  }
  shape_.work.saved_weight_bytes = saved;
  return base::Success();
}

std::vector<float> Gpt2Model::TensorValues(const TensorSpec& spec) const {
  return const_cast<Gpt2Model*>(this)->SlotOf(spec.name).Values(spec);
}

// One step: all rows go through its layers together, phase by phase. Every member of the team runs
// Run(); a barrier ends each phase.
class Gpt2Model::Step {
 public:
  Step(const Gpt2Model& model, std::span<const BatchItem> items, const StepLayers& layers,
       Scratch& scratch, float* logits)
      : model_(model),
        c_(model.config_),
        layers_(layers),
        rows_(items),
        cache_(rows_, model.shape_, {}, scratch, 7),
        tap_(scratch.tap()),
        logits_(logits) {
    // Rows that come from layers below stand where those have left them.
    x_ = scratch.Get(layers.begin == 0 ? 0 : 5, rows_.count() * c_.embedding);
    normed_ = scratch.Get(1, rows_.count() * c_.embedding);
    qkv_ = scratch.Get(2, rows_.count() * 3 * c_.embedding);
    attended_ = scratch.Get(3, rows_.count() * c_.embedding);
    middle_ = scratch.Get(4, rows_.count() * c_.feed_forward);
    last_ = scratch.Get(layers.begin == 0 ? 5 : 6, rows_.wanted() * c_.embedding);
  }

  void Run(Member& member) const {
    if (layers_.begin == 0) Embed(member);
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
  // x[row] = token embedding + position embedding
  void Embed(Member& member) const {
    const std::size_t width = c_.embedding;
    rows_.VisitShare(member, [&](const RowSlice& slice, base::IndexRange rows) {
      for (std::size_t row = rows.begin; row < rows.end; ++row) {
        float* x = x_ + row * width;
        model_.tokens_.CopyRow(slice.TokenOf(row), width, x);
        const float* position = model_.position_embedding_.data() + slice.PositionOf(row) * width;
        for (std::size_t d = 0; d < width; ++d) x[d] = x[d] + position[d];
      }
    });
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
    rows_.ShowHidden(tap_, member, index, x_, width);
    NormRows(member, layer.attention_norm, x_, rows_.count());
    member.Barrier();
    kernels::MatmulShare(
        Product(normed_, width, layer.qkv.weight, layer.qkv.bias.span(), qkv_, 3 * width),
        rows_.count(), member);
    member.Barrier();
    StoreRows(member, index);
    member.Barrier();
    if (cache_.NeedsGroups()) {
      cache_.CompleteGroups(member, index);
      member.Barrier();
    }
    const std::size_t rows = last ? rows_.wanted() : rows_.count();
    float* x = last ? last_ : x_;
    if (rows == 0) return;
    if (last) rows_.CopyWanted(member, x_, width, last_);
    cache_.Attend(member, index, last, Attention());
    member.Barrier();
    kernels::MatmulArgs args =
        Product(attended_, width, layer.output.weight, layer.output.bias.span(), x, width);
    args.residual = x;
    kernels::MatmulShare(args, rows, member);
    member.Barrier();
    NormRows(member, layer.mlp_norm, x, rows);
    member.Barrier();
    const kernels::MatmulTileRange tile = kernels::MatmulShare(
        Product(normed_, width, layer.up.weight, layer.up.bias.span(), middle_, c_.feed_forward),
        rows, member);
    VisitTile(tile, c_.feed_forward, [&](std::size_t first, std::size_t count) {
      kernels::Gelu(middle_ + first, count, middle_ + first);
    });
    member.Barrier();
    args = Product(middle_, c_.feed_forward, layer.down.weight, layer.down.bias.span(), x, width);
    args.residual = x;
    kernels::MatmulShare(args, rows, member);
    member.Barrier();
  }

  void StoreRows(Member& member, std::size_t layer) const {
    const std::size_t width = c_.embedding;
    rows_.VisitShare(member, [&](const RowSlice& slice, base::IndexRange rows) {
      for (std::size_t row = rows.begin; row < rows.end; ++row) {
        float* qkv = qkv_ + row * 3 * width;
        cache_.StoreRow(slice, layer, slice.PositionOf(row),
                        {.q = qkv,
                         .k = qkv + width,
                         .v = qkv + 2 * width,
                         .unturned_k = qkv + width,
                         .hidden = normed_ + row * width});
      }
    });
    const Linear& qkv = model_.layers_[layer].qkv;
    cache_.Rebuild(member, layer, {&qkv.weight, qkv.bias.span(), width},
                   [](std::size_t, float*) {});
  }

  AttendArgs Attention() const {
    AttendArgs args;
    args.q = qkv_;
    args.q_stride = 3 * c_.embedding;
    args.scale = 1.0f / std::sqrt(static_cast<float>(c_.head_dim()));
    args.out = attended_;
    args.out_stride = c_.embedding;
    return args;
  }

  const Gpt2Model& model_;
  const Gpt2Config& c_;
  const StepLayers layers_;
  const StepRows rows_;
  const StepCache cache_;
  StepTap* const tap_;
  float* logits_;    // [wanted][vocab]
  float* x_;         // [rows][embedding] residual stream
  float* normed_;    // [rows][embedding]
  float* qkv_;       // [rows][3 · embedding]
  float* attended_;  // [rows][embedding]
  float* middle_;    // [rows][feed_forward]
  float* last_;      // [wanted][embedding] residual stream in the last layer
};

base::Result<void> Gpt2Model::Forward(std::span<const BatchItem> items, Scratch& scratch,
                                      base::ThreadTeam& team, std::span<float> logits) const {
  return ForwardItems(items, shape_, logits,
                      [&](std::span<const BatchItem> rows, const StepLayers& layers) {
                        const Step step(*this, rows, layers, scratch, logits.data());
                        team.Run([&](Member& member) { step.Run(member); });
                      });
}

}  // namespace kvasir::model
