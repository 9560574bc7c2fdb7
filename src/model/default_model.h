// The model of whoever names none.
#ifndef KVASIR_MODEL_DEFAULT_MODEL_H_
#define KVASIR_MODEL_DEFAULT_MODEL_H_

#include <string>

namespace kvasir::model {

// $KVASIR_MODEL if it is set and not empty; else the bundled models/tang-lesson.gguf where it is
// installed (base::FindInstalled); else that name in the working folder.
std::string DefaultModelPath();

}  // namespace kvasir::model

#endif  // KVASIR_MODEL_DEFAULT_MODEL_H_
