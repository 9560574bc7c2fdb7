#include "training/network.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/softmax.h"

namespace kvasir::training {
namespace {

constexpr std::uint32_t kKvBlockTokens = 64;

std::uint32_t DropBound(float probability) {
  return static_cast<std::uint32_t>(probability * 65536.0f + 0.5f);
}

kernels::MatmulArgs Product(const float* in, std::size_t in_stride,
                            const kernels::PackedMatrix& weight, const float* bias, float* out) {
  kernels::MatmulArgs args;
  args.a = in;
  args.a_row_stride = in_stride;
  args.w = &weight;
  args.bias = bias;
  args.out = out;
  args.out_stride = weight.n();
  return args;
}

}  // namespace

Network::Network(const model::Gpt2Config& config, const ParameterLayout& layout,
                 const NetworkSize& size)
    : config_(config), layout_(layout), layers_(config.layers) {
  const std::size_t max_rows = size.sequences * config.context;
  for (Layer& layer : layers_) AllocateLayer(layer, max_rows);
  head_ = {{config.vocab, config.embedding}, {config.embedding, config.vocab}};
  for (std::size_t i = 0; i <= config.layers; ++i) {
    residual_.emplace_back(max_rows * config.embedding);
  }
  normed_ = base::AlignedArray<float>(max_rows * config.embedding);
  stats_.resize(max_rows);
  logits_ = base::AlignedArray<float>(std::min(max_rows, kHeadRows) * LogitStride());
  AllocateGradients(max_rows);
  AllocateWorkspaces(size);
  const std::size_t blocks =
      size.sequences * ((config.context + kKvBlockTokens - 1) / kKvBlockTokens);
  const std::size_t block_floats = kKvBlockTokens * config.embedding * 2;
  kv_ = base::AlignedArray<float>(blocks * block_floats);
  for (std::size_t i = 0; i < blocks; ++i) {
    kv_blocks_.push_back(reinterpret_cast<std::byte*>(kv_.data() + i * block_floats));
  }
}

void Network::AllocateLayer(Layer& layer, std::size_t max_rows) {
  const std::size_t width = config_.embedding;
  const std::size_t middle = config_.feed_forward;
  const auto linear = [](std::size_t outputs, std::size_t inputs) {
    return Linear{{outputs, inputs}, {inputs, outputs}};
  };
  const auto rows = [&](std::size_t columns) {
    return base::AlignedArray<float>(max_rows * columns);
  };
  layer.qkv = linear(3 * width, width);
  layer.output = linear(width, width);
  layer.up = linear(middle, width);
  layer.down = linear(width, middle);
  layer.normed1 = rows(width);
  layer.qkv_rows = rows(3 * width);
  layer.attended = rows(width);
  layer.middle_residual = rows(width);
  layer.normed2 = rows(width);
  layer.up_rows = rows(middle);
  layer.active = rows(middle);
  layer.stats1.resize(max_rows);
  layer.stats2.resize(max_rows);
}

void Network::AllocateGradients(std::size_t max_rows) {
  const std::size_t width = config_.embedding;
  const auto rows = [&](std::size_t columns) {
    return base::AlignedArray<float>(max_rows * columns);
  };
  temp_ = rows(width);
  dx_ = rows(width);
  dbranch_ = rows(width);
  dnormed_ = rows(width);
  dattended_ = rows(width);
  dqkv_ = rows(3 * width);
  dmiddle_ = rows(config_.feed_forward);
  packed_a_ = kernels::PackedMatrix(std::max(width, config_.feed_forward), max_rows);
  packed_b_ = kernels::PackedMatrix(width, max_rows);
}

void Network::AllocateWorkspaces(const NetworkSize& size) {
  const std::size_t length = config_.context;
  const std::size_t dim = config_.head_dim();
  work_.resize(std::min(size.members, size.sequences * config_.heads));
  for (Workspace& work : work_) {
    work.p = base::AlignedArray<float>(length * length);
    work.ds = base::AlignedArray<float>(length * length);
    work.keys = kernels::PackedMatrix(length, dim);
    work.values = kernels::PackedMatrix(length, dim);
    work.keys_t = kernels::PackedMatrix(dim, length);
    work.queries_t = kernels::PackedMatrix(dim, length);
    work.grads_t = kernels::PackedMatrix(dim, length);
  }
}

void Network::Bind(const float* parameters, float* gradient) {
  weights_ = TensorsIn(layout_, config_, parameters);
  grads_ = TensorsIn(layout_, config_, gradient);
}

void Network::PackLinear(Member& member, Linear& linear, const float* weights) {
  const std::size_t inputs = linear.forward.k();
  kernels::PackPanels({weights, inputs, 1}, linear.forward,
                      member.Share(linear.forward.panel_count()));
  kernels::PackPanels({weights, 1, inputs}, linear.backward,
                      member.Share(linear.backward.panel_count()));
}

void Network::Pack(Member& member) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerTensors<const float>& w = weights_.layers[i];
    PackLinear(member, layers_[i].qkv, w.qkv_weight);
    PackLinear(member, layers_[i].output, w.output_weight);
    PackLinear(member, layers_[i].up, w.up_weight);
    PackLinear(member, layers_[i].down, w.down_weight);
  }
  PackLinear(member, head_, weights_.head);
  member.Barrier();
}

kernels::KvView Network::View(std::size_t sequence) {
  const std::size_t width = config_.embedding;
  return {kv_blocks_.data() + sequence * blocks_per_sequence_,
          0,
          kKvBlockTokens * width * sizeof(float),
          kKvBlockTokens,
          static_cast<std::uint32_t>(config_.heads),
          static_cast<std::uint32_t>(config_.head_dim())};
}

void Network::CutKv(const MicroBatch& batch) {
  KV_CHECK(batch.rows() <= stats_.size());
  blocks_per_sequence_ = (batch.length + kKvBlockTokens - 1) / kKvBlockTokens;
  KV_CHECK(batch.starts.size() * blocks_per_sequence_ <= kv_blocks_.size());
}

void Network::DropRows(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                       std::uint32_t site, float* rows) {
  const base::IndexRange share = member.Share(batch.starts.size());
  const std::size_t elements = batch.length * config_.embedding;
  for (std::size_t s = share.begin; s < share.end; ++s) {
    const kernels::DropoutKey key{dropout.seed, dropout.step, site,
                                  static_cast<std::uint32_t>(batch.first_sequence + s)};
    kernels::Dropout(key, DropBound(dropout.probability), 1.0f / (1.0f - dropout.probability), 0,
                     elements, rows + s * elements);
  }
}

void Network::ResidualProduct(Member& member, const MicroBatch& batch,
                              const DropoutSetting& dropout, std::uint32_t site, const float* in,
                              const Linear& linear, const float* bias, const float* residual,
                              float* out) {
  const std::size_t width = config_.embedding;
  if (dropout.probability == 0) {
    kernels::MatmulArgs args = Product(in, linear.forward.k(), linear.forward, bias, out);
    args.residual = residual;
    kernels::MatmulShare(args, batch.rows(), member);
    member.Barrier();
    return;
  }
  kernels::MatmulShare(Product(in, linear.forward.k(), linear.forward, bias, temp_.data()),
                       batch.rows(), member);
  member.Barrier();
  DropRows(member, batch, dropout, site, temp_.data());
  member.Barrier();
  const base::IndexRange share = member.Share(batch.rows() * width);
  for (std::size_t i = share.begin; i < share.end; ++i) out[i] = residual[i] + temp_[i];
  member.Barrier();
}

void Network::ForwardLayer(Member& member, const MicroBatch& batch, const DropoutSetting& dropout,
                           std::size_t index) {
  Layer& layer = layers_[index];
  const LayerTensors<const float>& w = weights_.layers[index];
  const std::size_t width = config_.embedding;
  const std::size_t rows = batch.rows();
  const base::IndexRange share = member.Share(rows);
  const auto site = static_cast<std::uint32_t>(1 + 2 * index);
  for (std::size_t r = share.begin; r < share.end; ++r) {
    kernels::LayerNorm(LayerInput(index) + r * width, w.norm1_gain, w.norm1_bias, width,
                       config_.norm_eps, layer.normed1.data() + r * width, &layer.stats1[r]);
  }
  member.Barrier();
  kernels::MatmulShare(
      Product(layer.normed1.data(), width, layer.qkv.forward, w.qkv_bias, layer.qkv_rows.data()),
      rows, member);
  member.Barrier();
  for (std::size_t r = share.begin; r < share.end; ++r) {
    const float* qkv = layer.qkv_rows.data() + r * 3 * width;
    kernels::StoreKv(View(r / batch.length), r % batch.length, qkv + width, qkv + 2 * width);
  }
  member.Barrier();
  for (std::size_t unit = member.index(); unit < batch.starts.size() * config_.heads;
       unit += member.count()) {
    const std::size_t sequence = unit / config_.heads;
    const std::size_t head = unit % config_.heads;
    kernels::AttentionArgs args;
    args.q = layer.qkv_rows.data() + sequence * batch.length * 3 * width;
    args.q_stride = 3 * width;
    args.heads = config_.heads;
    args.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim()));
    args.kv = View(sequence);
    args.out = layer.attended.data() + sequence * batch.length * width;
    args.out_stride = width;
    kernels::Attention(args, {0, batch.length}, {head, head + 1});
  }
  member.Barrier();
  ResidualProduct(member, batch, dropout, site, layer.attended.data(), layer.output, w.output_bias,
                  LayerInput(index), layer.middle_residual.data());
  for (std::size_t r = share.begin; r < share.end; ++r) {
    kernels::LayerNorm(layer.middle_residual.data() + r * width, w.norm2_gain, w.norm2_bias, width,
                       config_.norm_eps, layer.normed2.data() + r * width, &layer.stats2[r]);
  }
  member.Barrier();
  kernels::MatmulShare(
      Product(layer.normed2.data(), width, layer.up.forward, w.up_bias, layer.up_rows.data()), rows,
      member);
  member.Barrier();
  const std::size_t middle = config_.feed_forward;
  kernels::Gelu(layer.up_rows.data() + share.begin * middle, share.size() * middle,
                layer.active.data() + share.begin * middle);
  member.Barrier();
  ResidualProduct(member, batch, dropout, site + 1, layer.active.data(), layer.down, w.down_bias,
                  layer.middle_residual.data(), residual_[index + 1].data());
}

void Network::Forward(Member& member, const MicroBatch& batch, const DropoutSetting& dropout) {
  const std::size_t width = config_.embedding;
  const base::IndexRange share = member.Share(batch.rows());
  if (member.index() == 0) CutKv(batch);
  for (std::size_t r = share.begin; r < share.end; ++r) {
    const std::size_t position = r % batch.length;
    const TokenId id = batch.text[batch.starts[r / batch.length] + position];
    const float* token = weights_.token_embedding + id * width;
    const float* place = weights_.position_embedding + position * width;
    float* x = residual_[0].data() + r * width;
    for (std::size_t d = 0; d < width; ++d) x[d] = token[d] + place[d];
  }
  member.Barrier();
  if (dropout.probability > 0) {
    DropRows(member, batch, dropout, 0, residual_[0].data());
    member.Barrier();
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) ForwardLayer(member, batch, dropout, i);
  for (std::size_t r = share.begin; r < share.end; ++r) {
    kernels::LayerNorm(residual_.back().data() + r * width, weights_.norm_gain, weights_.norm_bias,
                       width, config_.norm_eps, normed_.data() + r * width, &stats_[r]);
  }
  member.Barrier();
}

kernels::MatmulArgs Network::LogitRows(const float* normed_rows) {
  kernels::MatmulArgs args =
      Product(normed_rows, config_.embedding, head_.forward, nullptr, logits_.data());
  args.out_stride = LogitStride();
  args.padded_out = true;
  return args;
}

void Network::Logits(Member& member, const MicroBatch& batch, float* logits) {
  kernels::MatmulShare(Product(normed_.data(), config_.embedding, head_.forward, nullptr, logits),
                       batch.rows(), member);
  member.Barrier();
}

void Network::Losses(Member& member, const MicroBatch& batch, double* losses) {
  for (std::size_t begin = 0; begin < batch.rows(); begin += kHeadRows) {
    const std::size_t rows = std::min(kHeadRows, batch.rows() - begin);
    kernels::MatmulShare(LogitRows(normed_.data() + begin * config_.embedding), rows, member);
    member.Barrier();
    const base::IndexRange share = member.Share(rows);
    for (std::size_t r = share.begin; r < share.end; ++r) {
      const std::size_t row = begin + r;
      const TokenId target = batch.text[batch.starts[row / batch.length] + row % batch.length + 1];
      losses[row] =
          kernels::CrossEntropy(logits_.data() + r * LogitStride(), config_.vocab, target);
    }
    member.Barrier();
  }
}

}  // namespace kvasir::training
