// Everything of the library: a model is loaded (model.h), a session is made of it (session.h), and
// requests are answered (request.h). From C: c_api.h.
//
// The promise is the program's: the same model, text, settings and seed give the same bits, with
// the cache or without it, alone or in a batch, on any number of threads.
#ifndef KVASIR_KVASIR_H_
#define KVASIR_KVASIR_H_

#include "kvasir/model.h"    // IWYU pragma: export
#include "kvasir/request.h"  // IWYU pragma: export
#include "kvasir/result.h"   // IWYU pragma: export
#include "kvasir/session.h"  // IWYU pragma: export
#include "kvasir/version.h"  // IWYU pragma: export

#endif  // KVASIR_KVASIR_H_
