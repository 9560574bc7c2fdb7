// From a public Request and CacheSettings to the engine's.
#ifndef KVASIR_API_ENGINE_REQUEST_H_
#define KVASIR_API_ENGINE_REQUEST_H_

#include "api/model_impl.h"
#include "base/result.h"
#include "engine/generator_options.h"
#include "engine/request.h"
#include "kvasir/request.h"
#include "kvasir/session.h"

namespace kvasir::api {

// With the seed given or a random one; the prompt as tokens; count · best_of choices. kUsage for
// what is not allowed, kBadData for a prompt that is not UTF-8. What only the engine can judge it
// judges when it runs.
base::Result<engine::GenerateRequest> EngineRequest(const Model::Impl& model,
                                                    const Request& request);

// kUsage for a policy that the language or the model does not allow, or a block size.
base::Result<engine::GeneratorOptions> EngineOptions(const Model::Impl& model,
                                                     const CacheSettings& settings);

}  // namespace kvasir::api

#endif  // KVASIR_API_ENGINE_REQUEST_H_
