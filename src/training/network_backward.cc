// The backward pass: every gradient is one chain over the tokens in order.
#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/softmax.h"
#include "training/network.h"

namespace kvasir::training {
namespace {

// out [rows][w.n()] = dy · W, W packed transposed; out may start from nothing.
kernels::MatmulArgs InputGrad(const float* dy, std::size_t dy_stride,
                              const kernels::PackedMatrix& transposed, float* out) {
  kernels::MatmulArgs args;
  args.a = dy;
  args.a_row_stride = dy_stride;
  args.w = &transposed;
  args.out = out;
  args.out_stride = transposed.n();
  return args;
}

// Columns of a row matrix in runs of whole cache lines, so that members never share one.
base::IndexRange ColumnShare(const Member& member, std::size_t columns) {
  const base::IndexRange lines = member.Share((columns + 15) / 16);
  return {std::min(columns, lines.begin * 16), std::min(columns, lines.end * 16)};
}

}  // namespace

void Network::PackRows(Member& member, const float* x, std::size_t rows, std::size_t columns,
                       kernels::PackedMatrix& out) {
  if (member.index() == 0) out.Reshape(columns, rows);
  member.Barrier();
  kernels::PackPanels({x, 1, columns}, out, member.Share(out.panel_count()));
  member.Barrier();
}

void Network::LinearGrad(Member& member, const float* dy, std::size_t rows, std::size_t outputs,
                         const kernels::PackedMatrix& packed_input, float* weight_grad,
                         float* bias_grad, std::size_t dy_stride) {
  kernels::MatmulArgs args;
  args.a = dy;
  args.a_row_stride = 1;  // Row n of dW reads column n of dy.
  args.a_k_stride = dy_stride == 0 ? outputs : dy_stride;
  args.w = &packed_input;
  args.out = weight_grad;
  args.out_stride = packed_input.n();
  args.accumulate = true;
  kernels::MatmulShare(args, outputs, member);
  if (bias_grad) {
    const base::IndexRange columns = ColumnShare(member, outputs);
    kernels::AddColumns(dy, rows, outputs, columns.begin, columns.end, bias_grad);
  }
}

void Network::NormGrad(Member& member, const float* x, const float* dy,
                       const std::vector<kernels::RowStats>& stats, const float* gain,
                       std::size_t rows, float* gain_grad, float* bias_grad) {
  const std::size_t width = config_.embedding;
  const base::IndexRange share = member.Share(rows);
  for (std::size_t r = share.begin; r < share.end; ++r) {
    kernels::LayerNormInputGrad(
        {x + r * width, dy + r * width, gain, stats[r], width, dx_.data() + r * width});
  }
  const base::IndexRange columns = ColumnShare(member, width);
  kernels::LayerNormParameterGrad(x, dy, stats.data(), rows, width, columns.begin, columns.end,
                                  gain_grad, bias_grad);
  member.Barrier();
}

void Network::BackwardHead(Member& member, const MicroBatch& batch, float weight, double* losses) {
  const std::size_t width = config_.embedding;
  const std::size_t vocab = config_.vocab;
  const std::size_t stride = LogitStride();
  for (std::size_t begin = 0; begin < batch.rows(); begin += kHeadRows) {
    const std::size_t rows = std::min(kHeadRows, batch.rows() - begin);
    const float* x = normed_.data() + begin * width;
    kernels::MatmulShare(LogitRows(x), rows, member);
    PackRows(member, x, rows, width, packed_a_);
    const base::IndexRange share = member.Share(rows);
    for (std::size_t r = share.begin; r < share.end; ++r) {
      const std::size_t row = begin + r;
      const TokenId target = batch.text[batch.starts[row / batch.length] + row % batch.length + 1];
      losses[row] = kernels::CrossEntropyGrad(logits_.data() + r * stride, vocab, target, weight);
    }
    member.Barrier();
    kernels::MatmulShare(
        InputGrad(logits_.data(), stride, head_.backward, dnormed_.data() + begin * width), rows,
        member);
    LinearGrad(member, logits_.data(), rows, vocab, packed_a_, grads_.head, nullptr, stride);
    member.Barrier();
  }
  const base::IndexRange all = member.Share(batch.rows() * width);
  std::fill(dx_.data() + all.begin, dx_.data() + all.end, 0.0f);
  member.Barrier();
  NormGrad(member, residual_.back().data(), dnormed_.data(), stats_, weights_.norm_gain,
           batch.rows(), grads_.norm_gain, grads_.norm_bias);
}

void Network::BackwardMlp(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                          std::size_t index) {
  Layer& layer = layers_[index];
  const LayerTensors<float>& grads = grads_.layers[index];
  const std::size_t width = config_.embedding;
  const std::size_t middle = config_.feed_forward;
  const std::size_t rows = batch.rows();
  const base::IndexRange elements = member.Share(rows * width);
  std::copy(dx_.data() + elements.begin, dx_.data() + elements.end,
            dbranch_.data() + elements.begin);
  member.Barrier();
  if (dropout.probability > 0) {
    DropRows(member, batch, dropout, static_cast<std::uint32_t>(2 + 2 * index), dbranch_.data());
  }
  PackRows(member, layer.active.data(), rows, middle, packed_a_);
  PackRows(member, layer.normed2.data(), rows, width, packed_b_);
  LinearGrad(member, dbranch_.data(), rows, width, packed_a_, grads.down_weight, grads.down_bias);
  kernels::MatmulShare(InputGrad(dbranch_.data(), width, layer.down.backward, dmiddle_.data()),
                       rows, member);
  member.Barrier();
  const base::IndexRange hidden = member.Share(rows * middle);
  kernels::GeluGrad(layer.up_rows.data() + hidden.begin, dmiddle_.data() + hidden.begin,
                    hidden.size(), dmiddle_.data() + hidden.begin);
  member.Barrier();
  LinearGrad(member, dmiddle_.data(), rows, middle, packed_b_, grads.up_weight, grads.up_bias);
  kernels::MatmulShare(InputGrad(dmiddle_.data(), middle, layer.up.backward, dnormed_.data()), rows,
                       member);
  member.Barrier();
  NormGrad(member, layer.middle_residual.data(), dnormed_.data(), layer.stats2,
           weights_.layers[index].norm2_gain, rows, grads.norm2_gain, grads.norm2_bias);
}

void Network::AttentionHeadGrad(Workspace& work, const Layer& layer, std::size_t first_row,
                                std::size_t length, std::size_t head) {
  const std::size_t width = config_.embedding;
  const std::size_t stride = 3 * width;
  const std::size_t dim = config_.head_dim();
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  const float* q = layer.qkv_rows.data() + first_row * stride + head * dim;
  const float* k = q + width;
  const float* v = k + width;
  const float* grad = dattended_.data() + first_row * width + head * dim;
  float* dq = dqkv_.data() + first_row * stride + head * dim;
  const auto pack = [](kernels::PackedMatrix& out, std::size_t n, std::size_t count,
                       const kernels::PackSource& source) {
    out.Reshape(n, count);
    kernels::PackPanels(source, out, {0, out.panel_count()});
  };
  const auto product = [&](const float* a, std::size_t row_stride, std::size_t k_stride,
                           const kernels::PackedMatrix& w, float* out, std::size_t out_stride) {
    kernels::MatmulArgs args;
    args.a = a;
    args.a_row_stride = row_stride;
    args.a_k_stride = k_stride;
    args.w = &w;
    args.out = out;
    args.out_stride = out_stride;
    kernels::Matmul(args, {0, length}, {0, w.panel_count()});
  };
  pack(work.keys, length, dim, {k, stride, 1});
  pack(work.values, length, dim, {v, stride, 1});
  pack(work.keys_t, dim, length, {k, 1, stride});
  pack(work.queries_t, dim, length, {q, 1, stride});
  pack(work.grads_t, dim, length, {grad, 1, width});
  product(q, stride, 1, work.keys, work.p.data(), length);       // q · kᵀ
  product(grad, width, 1, work.values, work.ds.data(), length);  // dO · vᵀ
  for (std::size_t i = 0; i < length; ++i) {
    float* p = work.p.data() + i * length;
    kernels::CausalSoftmaxRow(p, i + 1, length, scale);
    kernels::CausalSoftmaxGradRow(p, work.ds.data() + i * length, i + 1, length, scale);
  }
  product(work.ds.data(), length, 1, work.keys_t, dq, stride);              // dS · k
  product(work.ds.data(), 1, length, work.queries_t, dq + width, stride);   // dSᵀ · q
  product(work.p.data(), 1, length, work.grads_t, dq + 2 * width, stride);  // Pᵀ · dO
}

void Network::BackwardAttention(Member& member, const MicroBatch& batch,
                                const DropoutSetting& dropout, std::size_t index) {
  Layer& layer = layers_[index];
  const LayerTensors<float>& grads = grads_.layers[index];
  const std::size_t width = config_.embedding;
  const std::size_t rows = batch.rows();
  const base::IndexRange elements = member.Share(rows * width);
  std::copy(dx_.data() + elements.begin, dx_.data() + elements.end,
            dbranch_.data() + elements.begin);
  member.Barrier();
  if (dropout.probability > 0) {
    DropRows(member, batch, dropout, static_cast<std::uint32_t>(1 + 2 * index), dbranch_.data());
  }
  PackRows(member, layer.attended.data(), rows, width, packed_a_);
  PackRows(member, layer.normed1.data(), rows, width, packed_b_);
  LinearGrad(member, dbranch_.data(), rows, width, packed_a_, grads.output_weight,
             grads.output_bias);
  kernels::MatmulShare(InputGrad(dbranch_.data(), width, layer.output.backward, dattended_.data()),
                       rows, member);
  member.Barrier();
  for (std::size_t unit = member.index(); unit < batch.starts.size() * config_.heads;
       unit += member.count()) {
    AttentionHeadGrad(work_[member.index()], layer, unit / config_.heads * batch.length,
                      batch.length, unit % config_.heads);
  }
  member.Barrier();
  LinearGrad(member, dqkv_.data(), rows, 3 * width, packed_b_, grads.qkv_weight, grads.qkv_bias);
  kernels::MatmulShare(InputGrad(dqkv_.data(), 3 * width, layer.qkv.backward, dnormed_.data()),
                       rows, member);
  member.Barrier();
  NormGrad(member, LayerInput(index), dnormed_.data(), layer.stats1,
           weights_.layers[index].norm1_gain, rows, grads.norm1_gain, grads.norm1_bias);
}

void Network::BackwardEmbedding(Member& member, const MicroBatch& batch,
                                const DropoutSetting& dropout, float* lookup) {
  if (dropout.probability > 0) {
    DropRows(member, batch, dropout, 0, dx_.data());
    member.Barrier();
  }
  // Members own columns, so each element's chain over the rows stays with one of them.
  const std::size_t width = config_.embedding;
  const base::IndexRange columns = ColumnShare(member, width);
  float* tokens = lookup ? lookup : grads_.token_embedding;
  for (std::size_t r = 0; r < batch.rows(); ++r) {
    const std::size_t position = r % batch.length;
    const TokenId id = batch.text[batch.starts[r / batch.length] + position];
    const float* d = dx_.data() + r * width;
    for (std::size_t c = columns.begin; c < columns.end; ++c) {
      tokens[id * width + c] += d[c];
      grads_.position_embedding[position * width + c] += d[c];
    }
  }
  member.Barrier();
}

void Network::Backward(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                       float weight, double* losses, float* lookup) {
  BackwardHead(member, batch, weight, losses);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    BackwardMlp(member, batch, dropout, i);
    BackwardAttention(member, batch, dropout, i);
  }
  BackwardEmbedding(member, batch, dropout, lookup);
}

}  // namespace kvasir::training
