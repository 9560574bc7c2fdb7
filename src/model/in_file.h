// Which file an Error is about.
#ifndef KVASIR_MODEL_IN_FILE_H_
#define KVASIR_MODEL_IN_FILE_H_

#include <string>
#include <utility>

#include "base/result.h"

namespace kvasir::model {

// The Error with the file's path in front, unless it names it already.
inline base::Error InFile(const std::string& path, base::Error error) {
  if (error.message.find(path) == std::string::npos) {
    error.message = "'" + path + "': " + error.message;
  }
  return error;
}

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_IN_FILE_H_
