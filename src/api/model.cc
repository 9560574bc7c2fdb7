#include "kvasir/model.h"

#include <utility>

#include "api/fp_scope.h"
#include "api/model_impl.h"
#include "api/public_error.h"
#include "base/env.h"
#include "engine/prompt.h"
#include "kernels/targets.h"
#include "kvcache/cache_geometry.h"
#include "model/default_model.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/token_text.h"

namespace kvasir {
namespace {

base::Result<Model> Read(const std::string& path) {
  KV_TRY(kernels::CheckProcessor());
  auto loaded = model::LoadModel(base::Env::Default(), path);
  if (!loaded) {
    if (loaded.error().code != base::ErrorCode::kIo) return loaded.error();
    return base::WithHint(loaded.error(), "name a model file, or set KVASIR_MODEL to one");
  }
  KV_TRY(const auto geometry, kvcache::CacheGeometry::Make(loaded.value().model->shape().Cache(
                                  kvcache::kDefaultBlockTokens)));
  auto impl = std::make_shared<Model::Impl>(std::move(loaded.value()), path);
  impl->info.cache_bytes_per_token = geometry.bytes_per_token();
  return Model(std::move(impl));
}

}  // namespace

Model::Impl::Impl(model::LoadedModel read, std::string path) : loaded(std::move(read)) {
  const model::ModelShape& shape = loaded.model->shape();
  info.path = std::move(path);
  info.name = loaded.name;
  info.architecture = shape.architecture;
  info.layers = shape.layers;
  info.heads = shape.heads;
  info.kv_heads = shape.kv_heads;
  info.head_dim = shape.head_dim;
  info.embedding = shape.embedding;
  info.context = shape.context;
  info.vocabulary = shape.vocab;
  info.parameters = shape.parameters;
}

Result<Model> Model::Load(const std::string& path) {
  const api::FpScope scope;
  return api::PublicResult([&] { return Read(path.empty() ? model::DefaultModelPath() : path); });
}

const ModelInfo& Model::info() const { return impl_->info; }

Result<std::vector<TokenId>> Model::Tokenize(std::string_view text) const {
  return api::PublicResult([&] { return impl_->loaded.tokenizer->Encode(text); });
}

Result<std::vector<TokenId>> Model::PromptTokens(std::string_view text) const {
  return api::PublicResult([&] { return engine::PromptTokens(*impl_->loaded.tokenizer, text); });
}

Result<std::string> Model::Detokenize(const std::vector<TokenId>& tokens) const {
  return api::PublicResult([&] { return tokenizer::Decode(impl_->vocabulary(), tokens); });
}

std::string Model::TokenText(TokenId token) const {
  if (token >= impl_->vocabulary().size()) return {};
  return tokenizer::TokenText(impl_->vocabulary(), token);
}

}  // namespace kvasir
