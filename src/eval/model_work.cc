#include "eval/model_work.h"

#include "base/check.h"
#include "kvcache/cache_geometry.h"

namespace kvasir::eval {

std::uint64_t WeightBytesPerStep(const model::ModelShape& shape) {
  return shape.work.weights * sizeof(float) - shape.work.saved_weight_bytes;
}

std::uint64_t KvBytesAt(const model::ModelShape& shape, std::uint64_t position) {
  const auto geometry = kvcache::CacheGeometry::Make(shape.Cache(kvcache::kDefaultBlockTokens));
  KV_CHECK(geometry.has_value());  // No model has a shape whose cache is refused.
  return (position + 1) * geometry.value().bytes_per_token();
}

double PrefillFlops(const model::ModelShape& shape, std::uint64_t cached, std::uint64_t rows) {
  const auto before = static_cast<double>(shape.work.before_attention);
  const auto after = static_cast<double>(shape.work.after_attention);
  const auto per_visible = static_cast<double>(shape.work.per_visible);
  const auto row_count = static_cast<double>(rows);
  const double visible_last = static_cast<double>(cached + rows);
  const double visible = row_count * (visible_last + static_cast<double>(cached) + 1) / 2;
  const double full_layers = static_cast<double>(shape.layers - 1);
  double multiply_adds = full_layers * (row_count * (before + after) + visible * per_visible);
  multiply_adds += row_count * before + after + visible_last * per_visible;
  multiply_adds += static_cast<double>(shape.embedding) * static_cast<double>(shape.vocab);
  return 2 * multiply_adds;
}

}  // namespace kvasir::eval
