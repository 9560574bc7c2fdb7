#include "eval/model_work.h"

#include "base/check.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::eval {
namespace {

struct LayerCounts {
  double qkv;   // Multiply-adds a row.
  double rest;  // Likewise: attention's output and the MLP.
};

LayerCounts CountLayer(const model::ModelShape& shape) {
  const double width = static_cast<double>(shape.embedding);
  const double kv_width = static_cast<double>(shape.kv_heads * shape.head_dim);
  return {width * (width + 2 * kv_width),
          width * width + 2 * width * static_cast<double>(shape.feed_forward)};
}

}  // namespace

std::uint64_t WeightBytesPerStep(const model::ModelShape& shape) {
  const std::uint64_t width = shape.embedding;
  const std::uint64_t kv_width = shape.kv_heads * shape.head_dim;
  const std::uint64_t matrices =
      2 * width * width + 2 * width * kv_width + 2 * width * shape.feed_forward;
  // Biases of q, k, v, output, up and down; gains and biases of two norms.
  const std::uint64_t vectors = 7 * width + 2 * kv_width + shape.feed_forward;
  const std::uint64_t outside = 2 * width + shape.vocab * width;  // Last norm, head.
  const std::uint64_t embedding_rows = 2 * width;
  return (shape.layers * (matrices + vectors) + outside + embedding_rows) * sizeof(float);
}

std::uint64_t KvBytesAt(const model::ModelShape& shape, std::uint64_t position) {
  const auto geometry = kvcache::CacheGeometry::Make(shape.Cache(kvcache::kDefaultBlockTokens));
  KV_CHECK(geometry.has_value());  // No model has a shape whose cache is refused.
  return (position + 1) * geometry.value().bytes_per_token();
}

double PrefillFlops(const model::ModelShape& shape, std::uint64_t cached, std::uint64_t rows) {
  const LayerCounts layer = CountLayer(shape);
  const double row_count = static_cast<double>(rows);
  // Query and key, weight and value: each a product of head_dim for every head and visible
  // position.
  const double per_visible = 2.0 * static_cast<double>(shape.heads * shape.head_dim);
  const double visible_last = static_cast<double>(cached + rows);
  const double visible = row_count * (visible_last + static_cast<double>(cached) + 1) / 2;
  const double full_layers = static_cast<double>(shape.layers - 1);
  double multiply_adds =
      full_layers * (row_count * (layer.qkv + layer.rest) + visible * per_visible);
  multiply_adds += row_count * layer.qkv + layer.rest + visible_last * per_visible;
  multiply_adds += static_cast<double>(shape.embedding) * static_cast<double>(shape.vocab);
  return 2 * multiply_adds;
}

}  // namespace kvasir::eval
