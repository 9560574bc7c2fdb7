#include "eval/sequence_dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "kernels/attention.h"
#include "kernels/latent_attention.h"
#include "model/step_tap.h"

namespace kvasir::eval {

using base::Member;
using model::TapRows;

namespace {

tensor::Shape ShapeOf(const model::ModelShape& shape, DumpKind kind, std::uint64_t tokens) {
  const bool latent = shape.latent_dim != 0;
  switch (kind) {
    case DumpKind::kLogits:
      return {tokens, shape.vocab};
    case DumpKind::kHidden:
      return {shape.layers + 1, tokens, shape.embedding};
    case DumpKind::kAttention:
      return {shape.layers, shape.heads, tokens, tokens};
    case DumpKind::kKeys:
      if (latent) return {shape.layers, 1, tokens, shape.latent_dim + shape.rope_dim};
      return {shape.layers, shape.kv_heads, tokens, shape.head_dim};
    case DumpKind::kValues:
      break;
  }
  if (latent) return {shape.layers, 1, tokens, shape.latent_dim};
  return {shape.layers, shape.kv_heads, tokens, shape.head_dim};
}

// Writes what it is shown of one kind into the array; every number has one place, so members of a
// team never meet.
class Recorder : public model::StepTap {
 public:
  Recorder(DumpKind kind, const tensor::Shape& shape, std::span<float> out)
      : kind_(kind), shape_(shape), out_(out) {}

  void OnHidden(const TapRows& rows, const float* x) override {
    if (kind_ != DumpKind::kHidden) return;
    std::copy_n(x, rows.count * shape_[2],
                &out_[(rows.layer * shape_[1] + rows.first_position) * shape_[2]]);
  }

  void OnAttention(const Member& member, const TapRows& rows, std::size_t first_head,
                   const kernels::AttentionArgs& args) override {
    if (kind_ == DumpKind::kAttention) {
      Share(member, rows.count, args.heads, [&](std::size_t query, std::size_t head) {
        kernels::ReferenceAttentionWeights(
            args, query, head, Row(rows.layer, first_head + head, rows.first_position + query));
      });
    } else if (kind_ == DumpKind::kKeys || kind_ == DumpKind::kValues) {
      const std::size_t first_kv_head = first_head / (args.heads / args.kv.kv_heads);
      Share(member, rows.count, args.kv.kv_heads, [&](std::size_t query, std::size_t head) {
        const std::size_t position = rows.first_position + query;
        float k[kernels::kMaxHeadDim], v[kernels::kMaxHeadDim];
        kernels::LoadKv(args.kv, position, head, k, v, /*reader=*/position);
        std::copy_n(kind_ == DumpKind::kKeys ? k : v, shape_[3],
                    Row(rows.layer, first_kv_head + head, position));
      });
    }
  }

  void OnLatentAttention(const Member& member, const TapRows& rows,
                         const kernels::LatentAttentionArgs& args) override {
    if (kind_ == DumpKind::kAttention) {
      Share(member, rows.count, args.heads, [&](std::size_t query, std::size_t head) {
        kernels::ReferenceLatentAttentionWeights(
            args, query, head, Row(rows.layer, head, rows.first_position + query));
      });
    } else if (kind_ == DumpKind::kKeys || kind_ == DumpKind::kValues) {
      Share(member, rows.count, 1, [&](std::size_t query, std::size_t) {
        const std::size_t position = rows.first_position + query;
        std::copy_n(args.latents.Row(position), shape_[3], Row(rows.layer, 0, position));
      });
    }
  }

 private:
  // Of an array of rank 4.
  float* Row(std::size_t layer, std::size_t head, std::size_t position) const {
    return &out_[((layer * shape_[1] + head) * shape_[2] + position) * shape_[3]];
  }

  // Rows dealt out in turn: later queries see more.
  template <typename Visit>
  static void Share(const Member& member, std::size_t queries, std::size_t heads,
                    const Visit& visit) {
    for (std::size_t i = member.index(); i < queries * heads; i += member.count()) {
      visit(i / heads, i % heads);
    }
  }

  const DumpKind kind_;
  const tensor::Shape shape_;
  const std::span<float> out_;
};

}  // namespace

std::optional<DumpKind> DumpKindNamed(std::string_view name) {
  const auto* found = std::ranges::find(kDumpNames, name);
  if (found == std::end(kDumpNames)) return std::nullopt;
  return static_cast<DumpKind>(found - std::begin(kDumpNames));
}

base::Result<tensor::Shape> DumpShape(const model::ModelShape& shape, DumpKind kind,
                                      std::uint64_t tokens) {
  const tensor::Shape dump = ShapeOf(shape, kind, tokens);
  const auto count = dump.ElementCount();
  const auto bytes = base::CheckedMul(count.value_or(UINT64_MAX), sizeof(float));
  if (bytes && *bytes <= kMaxDumpBytes) return dump;
  return base::MakeError(base::ErrorCode::kUsage,
                         "{} of {} tokens would be {} numbers, {} bytes; allowed are {} bytes",
                         kDumpNames[static_cast<std::size_t>(kind)], tokens, dump.ToString(),
                         bytes ? fmt::format("{}", *bytes) : "more than 2^64", kMaxDumpBytes);
}

base::Result<std::vector<float>> DumpSequence(const model::Model& model, DumpKind kind,
                                              std::span<const base::TokenId> tokens,
                                              const ArrangementOptions& options,
                                              base::ThreadTeam& team) {
  KV_TRY(CheckLength(tokens, model.shape().context));
  KV_TRY(const tensor::Shape shape, DumpShape(model.shape(), kind, tokens.size()));
  if (kind == DumpKind::kLogits) return SequenceLogits(model, tokens, options, team);
  std::vector<float> out(shape.ElementCount().value());
  Recorder recorder(kind, shape, out);
  KV_TRY(TapSequence(model, tokens, options, team, recorder));
  return out;
}

}  // namespace kvasir::eval
