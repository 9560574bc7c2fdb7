// SessionFolder: texts whose cached blocks are laid aside in files, by name.
#ifndef KVASIR_SERVER_SESSION_FOLDER_H_
#define KVASIR_SERVER_SESSION_FOLDER_H_

#include <string>
#include <string_view>
#include <utility>

#include "engine/engine.h"
#include "server/api_error.h"
#include "server/model_service.h"
#include "store/session_file.h"

namespace kvasir::server {

// POST /v1/sessions/NAME. Names are 1 to 64 letters, digits, '-', '_' and '.', and begin with none
// of the last; so none leaves the directory. A session belongs to the cache_salt it was saved
// under; for others it is not there. Thread-safe; calls wait for the engine and for the disk.
// Immutable.
class SessionFolder {
 public:
  // The directory must be there, and is for this server alone to write.
  SessionFolder(std::string directory, store::SessionModel model)
      : directory_(std::move(directory)), model_(std::move(model)) {}

  // What a body asks for, answered as JSON:
  //   {"action":"save","prompt":TEXT or IDS,"cache_salt"}  the blocks that the cache has of it
  //   {"action":"load","cache_salt"}                       takes them into the cache again
  //   {"action":"delete","cache_salt"}
  // The reply to the first two has the text's token_ids, with which a completion goes on. 400 for a
  // name or body that is not allowed; 404 if there is none of this name and salt; 409 for a file
  // that is refused, with the reason.
  ApiResult<std::string> Run(std::string_view name, std::string_view body,
                             const ModelService& service, engine::Engine& engine) const;

 private:
  std::string PathOf(std::string_view name) const;
  ApiResult<store::Session> Read(std::string_view name, const std::string& salt) const;

  const std::string directory_;
  const store::SessionModel model_;
};

}  // namespace kvasir::server

#endif  // KVASIR_SERVER_SESSION_FOLDER_H_
