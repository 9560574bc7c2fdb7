// The version of the library, and the mark of what it exports.
#ifndef KVASIR_VERSION_H_
#define KVASIR_VERSION_H_

// Until 1.0, a program is compiled against the minor version it is run with, which the shared
// library's name holds (libkvasir.so.0.1): within it, nothing here is removed or changes its
// layout. From C (c_api.h) functions are only added.
#define KVASIR_VERSION_MAJOR 0
#define KVASIR_VERSION_MINOR 1
#define KVASIR_VERSION_PATCH 0

// What the shared library exports; everything else in it is hidden.
#if defined(__GNUC__)
#define KVASIR_API __attribute__((visibility("default")))
#else
#define KVASIR_API
#endif

#ifdef __cplusplus
namespace kvasir {

// "0.1.0": of the library that is linked, not of the header.
KVASIR_API const char* Version();

// The number of the numerics contract: two libraries with the same number give the same bits.
KVASIR_API int NumericsContract();

}  // namespace kvasir
#endif

#endif  // KVASIR_VERSION_H_
