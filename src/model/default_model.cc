#include "model/default_model.h"

#include <cstdlib>

#include "base/installed_file.h"

namespace kvasir::model {

std::string DefaultModelPath() {
  constexpr const char* kBundledModel = "models/tang-lesson.gguf";
  if (const char* from_environment = std::getenv("KVASIR_MODEL");
      from_environment != nullptr && *from_environment != '\0') {
    return from_environment;
  }
  return base::FindInstalled(kBundledModel).value_or(kBundledModel);
}

}  // namespace kvasir::model
