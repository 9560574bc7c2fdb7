#include "model/deepseek_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/activation.h"
#include "kernels/latent_attention.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "model/step_rows.h"

namespace kvasir::model {

using base::Member;

DeepseekModel::DeepseekModel(const DeepseekConfig& config)
    : config_(config), frequencies_(RopeFrequencies(config.rope)), layers_(config.layers) {
  shape_.architecture = "deepseek2";
  shape_.layers = config.layers;
  shape_.heads = config.heads;
  shape_.embedding = config.embedding;
  shape_.feed_forward = config.feed_forward;
  shape_.context = config.context;
  shape_.vocab = config.vocab;
  shape_.parameters = ParameterCount(config);
  shape_.latent_dim = config.latent_dim;
  shape_.rope_dim = config.rope.dimensions;
  const std::uint64_t width = config.embedding;
  const std::uint64_t rank = config.query_rank;
  const std::uint64_t query =
      rank == 0 ? width * config.q_width() : rank * (width + config.q_width());
  const std::uint64_t absorbed =
      config.heads * config.latent_dim * (config.nope_dim + config.value_dim);
  const std::uint64_t unread_table = config.tied_head ? 0 : config.vocab * width;
  shape_.work = {
      .weights = shape_.parameters - unread_table + width,
      .before_attention = query + width * config.entry_dim(),
      .after_attention = absorbed + config.value_width() * width + 3 * width * config.feed_forward,
      .per_visible = config.heads * (config.entry_dim() + config.latent_dim)};
}

base::Result<std::unique_ptr<DeepseekModel>> DeepseekModel::Make(const DeepseekConfig& config,
                                                                 const TensorSource& source) {
  std::unique_ptr<DeepseekModel> model(new DeepseekModel(config));
  KV_TRY(model->Load(source));
  return model;
}

WeightSlot DeepseekModel::SlotOf(Layer& layer, std::string_view part) {
  if (part == "attn_norm.weight") return {.plain = &layer.attention_norm};
  if (part == "attn_q.weight" || part == "attn_q_b.weight") return {.packed = &layer.q};
  if (part == "attn_q_a.weight") return {.packed = &layer.q_down};
  if (part == "attn_q_a_norm.weight") return {.plain = &layer.q_norm};
  if (part == "attn_kv_a_mqa.weight") return {.packed = &layer.kv_down};
  if (part == "attn_kv_a_norm.weight") return {.plain = &layer.latent_norm};
  if (part == "attn_output.weight") return {.packed = &layer.output};
  if (part == "ffn_norm.weight") return {.plain = &layer.mlp_norm};
  if (part == "ffn_gate.weight") return {.packed = &layer.gate};
  if (part == "ffn_up.weight") return {.packed = &layer.up};
  KV_CHECK(part == "ffn_down.weight");
  return {.packed = &layer.down};
}

// W_uk and W_uv of every head: in attn_kv_b head by head, nope_dim rows of W_uk and value_dim rows
// of W_uv; in attn_k_b the heads' W_uk transposed, in attn_v_b the heads' W_uv.
void DeepseekModel::FillUp(Layer& layer, std::string_view part, const float* values) const {
  const DeepseekConfig& c = config_;
  layer.absorb.resize(c.heads);
  layer.expand.resize(c.heads);
  for (std::size_t head = 0; head < c.heads; ++head) {
    kernels::PackedMatrix& absorb = layer.absorb[head];
    if (part == "attn_v_b.weight") {
      layer.expand[head] = kernels::PackWeights(values + head * c.value_dim * c.latent_dim,
                                                c.value_dim, c.latent_dim);
    } else if (part == "attn_k_b.weight") {
      absorb =
          kernels::PackWeights(values + head * c.latent_dim * c.nope_dim, c.latent_dim, c.nope_dim);
    } else {
      const float* rows = values + head * (c.nope_dim + c.value_dim) * c.latent_dim;
      absorb = kernels::PackedMatrix(c.latent_dim, c.nope_dim);
      kernels::PackPanels({.data = rows, .n_stride = 1, .k_stride = c.latent_dim}, absorb,
                          {0, absorb.panel_count()});
      layer.expand[head] =
          kernels::PackWeights(rows + c.nope_dim * c.latent_dim, c.value_dim, c.latent_dim);
    }
  }
}

// The heads' W_uk transposed, or W_uv, may come in blocks, a head after the other. Where both stand
// in one tensor, its blocks run across the products' k of W_uk: it is used as f32.
base::Result<void> DeepseekModel::LoadUp(Layer& layer, std::string_view part,
                                         const TensorSpec& spec, const TensorSource& source) const {
  if (part != "attn_kv_b.weight") {
    KV_TRY(const auto blocks, source.BlocksOf(spec));
    if (blocks) {
      auto& heads = part == "attn_v_b.weight" ? layer.expand : layer.absorb;
      heads.resize(config_.heads);
      const std::size_t bytes = blocks->bytes.size() / config_.heads;  // Of a head.
      for (std::size_t head = 0; head < config_.heads; ++head) {
        heads[head] = kernels::PackedMatrix(spec.shape[1], spec.shape[2], blocks->dtype);
        kernels::PackBlocks(blocks->bytes.subspan(head * bytes, bytes), 0, heads[head]);
      }
      return base::Success();
    }
  }
  KV_TRY(const std::span<const float> values, source(spec));
  FillUp(layer, part, values.data());
  return base::Success();
}

base::Result<void> DeepseekModel::LoadTensor(const TensorSpec& spec, const TensorSource& source) {
  const std::string_view name = spec.name;
  if (name == "token_embd.weight") return tokens_.Slot().Load(spec, source);
  if (name == "output_norm.weight") return WeightSlot{.plain = &output_norm_}.Load(spec, source);
  if (name == "output.weight") return WeightSlot{.packed = &head_}.Load(spec, source);
  const auto [block, part] = SplitBlockName(name);
  Layer& layer = layers_[block];
  if (part == "attn_kv_b.weight" || part == "attn_k_b.weight" || part == "attn_v_b.weight") {
    return LoadUp(layer, part, spec, source);
  }
  return SlotOf(layer, part).Load(spec, source);
}

std::uint64_t DeepseekModel::SavedBytes() const {
  std::uint64_t saved = Head().saved_bytes() + tokens_.saved_row_bytes();
  for (const Layer& layer : layers_) {
    for (const kernels::PackedMatrix* matrix :
         {&layer.q_down, &layer.q, &layer.kv_down, &layer.output, &layer.gate, &layer.up,
          &layer.down}) {
      saved += matrix->saved_bytes();
    }
    for (const auto& head : layer.absorb) saved += head.saved_bytes();
    for (const auto& head : layer.expand) saved += head.saved_bytes();
  }
  return saved;
}

base::Result<void> DeepseekModel::Load(const TensorSource& source) {
  for (const TensorSpec& spec : DeepseekTensors(config_)) {
    KV_TRY(LoadTensor(spec, source));
  }
  if (config_.tied_head) tokens_.MakeHead(config_.vocab, config_.embedding);
  shape_.work.saved_weight_bytes = SavedBytes();
  return base::Success();
}

// One step: all rows go through the layers together, phase by phase. Every member of the team runs
// Run(); a barrier ends each phase.
class DeepseekModel::Step {
 public:
  Step(const DeepseekModel& model, std::span<const BatchItem> items, Scratch& scratch,
       float* logits)
      : model_(model), c_(model.config_), rows_(items), tap_(scratch.tap()), logits_(logits) {
    const std::size_t rows = rows_.count();
    x_ = scratch.Get(0, rows * c_.embedding);
    normed_ = scratch.Get(1, rows * c_.embedding);
    q_down_ = scratch.Get(2, rows * c_.query_rank);
    q_ = scratch.Get(3, rows * c_.q_width());
    entries_ = scratch.Get(4, rows * c_.entry_dim());
    absorbed_ = scratch.Get(5, rows * c_.heads * c_.entry_dim());
    summed_ = scratch.Get(6, rows * c_.heads * c_.latent_dim);
    attended_ = scratch.Get(7, rows * c_.value_width());
    gate_ = scratch.Get(8, rows * c_.feed_forward);
    up_ = scratch.Get(9, rows * c_.feed_forward);
    turns_ = scratch.Get(10, rows * c_.rope.dimensions);
    last_ = scratch.Get(11, rows_.wanted() * c_.embedding);
    last_q_ = scratch.Get(12, rows_.wanted() * c_.q_width());
  }

  void Run(Member& member) const {
    Embed(member);
    for (std::size_t i = 0; i < c_.layers; ++i) {
      const bool last = i + 1 == c_.layers;
      RunLayer(member, i, last);
    }
    if (rows_.wanted() == 0) return;
    NormRows(member, model_.output_norm_, last_, rows_.wanted(), normed_);
    member.Barrier();
    rows_.ShowFinal(tap_, member, c_.layers, normed_, c_.embedding);
    kernels::MatmulShare(Product(normed_, c_.embedding, model_.Head(), {}, logits_, c_.vocab),
                         rows_.wanted(), member);
  }

 private:
  // x[row] = token embedding; and the turn of the row's position, which all layers share.
  void Embed(Member& member) const {
    const std::size_t width = c_.embedding;
    rows_.VisitShare(member, [&](const RowSlice& slice, base::IndexRange rows) {
      for (std::size_t row = rows.begin; row < rows.end; ++row) {
        model_.tokens_.CopyRow(slice.TokenOf(row), width, x_ + row * width);
        kernels::RopeTurn(model_.frequencies_.data(), model_.frequencies_.size(),
                          slice.PositionOf(row), turns_ + row * c_.rope.dimensions);
      }
    });
    member.Barrier();
  }

  // out may be in.
  void NormRows(Member& member, const Gain& gain, const float* in, std::size_t rows,
                float* out) const {
    const std::size_t width = gain.size();
    const base::IndexRange share = member.Share(rows);
    for (std::size_t row = share.begin; row < share.end; ++row) {
      kernels::RmsNorm(in + row * width, gain.data(), width, c_.norm_eps, out + row * width);
    }
  }

  void RunLayer(Member& member, std::size_t index, bool last) const {
    const Layer& layer = model_.layers_[index];
    const std::size_t width = c_.embedding;
    rows_.ShowHidden(tap_, member, index, x_, width);
    NormRows(member, layer.attention_norm, x_, rows_.count(), normed_);
    member.Barrier();
    QueriesAndEntries(member, layer);
    member.Barrier();
    RotateAndStoreRows(member, index);
    member.Barrier();
    const std::size_t rows = last ? rows_.wanted() : rows_.count();
    float* x = last ? last_ : x_;
    if (rows == 0) return;
    if (last) {
      rows_.CopyWanted(member, x_, width, last_);
      rows_.CopyWanted(member, q_, c_.q_width(), last_q_);
      member.Barrier();
    }
    AbsorbRows(member, layer, last ? last_q_ : q_, rows);
    member.Barrier();
    AttendRows(member, index, last);
    member.Barrier();
    ExpandRows(member, layer, rows);
    member.Barrier();
    kernels::MatmulArgs args = Product(attended_, c_.value_width(), layer.output, {}, x, width);
    args.residual = x;
    kernels::MatmulShare(args, rows, member);
    member.Barrier();
    NormRows(member, layer.mlp_norm, x, rows, normed_);
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

  // Of every row the queries of all heads, and the entry to be cached, not yet normed or turned.
  void QueriesAndEntries(Member& member, const Layer& layer) const {
    const std::size_t rows = rows_.count();
    kernels::MatmulShare(
        Product(normed_, c_.embedding, layer.kv_down, {}, entries_, c_.entry_dim()), rows, member);
    const float* in = normed_;
    std::size_t in_width = c_.embedding;
    if (c_.query_rank != 0) {
      kernels::MatmulShare(Product(normed_, in_width, layer.q_down, {}, q_down_, c_.query_rank),
                           rows, member);
      member.Barrier();
      NormRows(member, layer.q_norm, q_down_, rows, q_down_);
      member.Barrier();
      in = q_down_;
      in_width = c_.query_rank;
    }
    kernels::MatmulShare(Product(in, in_width, layer.q, {}, q_, c_.q_width()), rows, member);
  }

  // Norms the latent, turns the shared key and the last channels of every head's query, and stores
  // the entry: all that is ever kept of the row.
  void RotateAndStoreRows(Member& member, std::size_t index) const {
    const Gain& gain = model_.layers_[index].latent_norm;
    rows_.VisitShare(member, [&](const RowSlice& slice, base::IndexRange rows) {
      const kernels::LatentView view = slice.item->sequence->Latents(index);
      for (std::size_t row = rows.begin; row < rows.end; ++row) {
        float* latent = entries_ + row * c_.entry_dim();
        float* key = latent + c_.latent_dim;
        kernels::RmsNorm(latent, gain.data(), c_.latent_dim, c_.norm_eps, latent);
        kernels::RopeArgs turn;
        turn.turn = turns_ + row * c_.rope.dimensions;
        turn.pairs = c_.rope.dimensions / 2;
        turn.pairing = c_.rope.pairing;
        turn.heads = 1;
        turn.head_stride = c_.rope.dimensions;
        turn.x = key;
        kernels::Rope(turn);
        turn.heads = c_.heads;
        turn.head_stride = c_.key_dim();
        turn.x = q_ + row * c_.q_width() + c_.nope_dim;
        kernels::Rope(turn);
        kernels::StoreLatent(view, slice.PositionOf(row), latent, key);
      }
    });
  }

  // Work units of a head and some rows, dealt out in turn: many rows share the reads of the head's
  // matrix, and a head's product is too small to be cut by its columns.
  template <typename Visit>
  void VisitHeads(const Member& member, std::size_t rows, const Visit& visit) const {
    constexpr std::size_t kUnitRows = 64;
    std::size_t unit = 0;
    for (std::size_t begin = 0; begin < rows; begin += kUnitRows) {
      for (std::size_t head = 0; head < c_.heads; ++head) {
        if (unit++ % member.count() != member.index()) continue;
        visit(head, base::IndexRange{begin, std::min(rows, begin + kUnitRows)});
      }
    }
  }

  // absorbed = W_ukᵀ q_nope, then q_rope as it is: a query that fits the cached entry.
  void AbsorbRows(Member& member, const Layer& layer, const float* q, std::size_t rows) const {
    const std::size_t stride = c_.heads * c_.entry_dim();
    VisitHeads(member, rows, [&](std::size_t head, base::IndexRange range) {
      const float* from = q + head * c_.key_dim();
      float* to = absorbed_ + head * c_.entry_dim();
      const kernels::PackedMatrix& absorb = layer.absorb[head];
      kernels::Matmul(Product(from, c_.q_width(), absorb, {}, to, stride), range,
                      {0, absorb.panel_count()});
      for (std::size_t row = range.begin; row < range.end; ++row) {
        std::copy_n(from + row * c_.q_width() + c_.nope_dim, c_.rope.dimensions,
                    to + row * stride + c_.latent_dim);
      }
    });
  }

  // summed = the latents a head attends to. Units of 16 heads, which the kernel takes at once, and
  // up to 16 queries, dealt out in turn: later queries see more.
  void AttendRows(Member& member, std::size_t index, bool last) const {
    constexpr std::size_t kUnit = 16;
    std::size_t unit = 0;
    for (std::size_t i = 0; i < rows_.slices().size(); ++i) {
      const RowSlice& slice = rows_.slices()[i];
      const std::size_t count = last ? slice.item->logit_rows : slice.item->tokens.size();
      const std::size_t first = last ? slice.first_wanted : slice.first_row;
      kernels::LatentAttentionArgs args;
      args.q_stride = c_.heads * c_.entry_dim();
      args.q = absorbed_ + first * args.q_stride;
      args.first_position = slice.first_position + slice.item->tokens.size() - count;
      args.heads = c_.heads;
      args.scale = 1.0f / std::sqrt(static_cast<float>(c_.key_dim()));
      args.latents = slice.item->sequence->Latents(index);
      args.out_stride = c_.heads * c_.latent_dim;
      args.out = summed_ + first * args.out_stride;
      if (tap_ != nullptr && count > 0) {
        tap_->OnLatentAttention(member, {index, i, args.first_position, count}, args);
      }
      for (std::size_t begin = 0; begin < count; begin += kUnit) {
        for (std::size_t head = 0; head < c_.heads; head += kUnit) {
          if (unit++ % member.count() != member.index()) continue;
          kernels::LatentAttention(args, {begin, std::min(count, begin + kUnit)},
                                   {head, std::min<std::size_t>(c_.heads, head + kUnit)});
        }
      }
    }
  }

  // attended = W_uv summed
  void ExpandRows(Member& member, const Layer& layer, std::size_t rows) const {
    VisitHeads(member, rows, [&](std::size_t head, base::IndexRange range) {
      const kernels::PackedMatrix& expand = layer.expand[head];
      kernels::Matmul(Product(summed_ + head * c_.latent_dim, c_.heads * c_.latent_dim, expand, {},
                              attended_ + head * c_.value_dim, c_.value_width()),
                      range, {0, expand.panel_count()});
    });
  }

  const DeepseekModel& model_;
  const DeepseekConfig& c_;
  const StepRows rows_;
  StepTap* const tap_;
  float* logits_;    // [wanted][vocab]
  float* x_;         // [rows][embedding] residual stream
  float* normed_;    // [rows][embedding]
  float* q_down_;    // [rows][query_rank]
  float* q_;         // [rows][heads][nope_dim, then rope dimensions]
  float* entries_;   // [rows][latent_dim, then rope dimensions] what is cached
  float* absorbed_;  // [rows][heads][entry_dim]
  float* summed_;    // [rows][heads][latent_dim]
  float* attended_;  // [rows][heads][value_dim]
  float* gate_;      // [rows][feed_forward]
  float* up_;        // [rows][feed_forward]
  float* turns_;     // [rows][2][rope dimensions / 2] cosines and sines
  float* last_;      // [wanted][embedding] residual stream in the last layer
  float* last_q_;    // [wanted][heads][nope_dim, then rope dimensions] its queries
};

base::Result<void> DeepseekModel::Forward(std::span<const BatchItem> items, Scratch& scratch,
                                          base::ThreadTeam& team, std::span<float> logits) const {
  // A cache of latents stores every layer, so a step has one part.
  return ForwardItems(items, shape_, logits,
                      [&](std::span<const BatchItem> rows, const StepLayers&) {
                        const Step step(*this, rows, scratch, logits.data());
                        team.Run([&](Member& member) { step.Run(member); });
                      });
}

}  // namespace kvasir::model
