#include "kvasir/version.h"

#include <string_view>

#include "kernels/contract.h"

namespace kvasir {
namespace {

#define KVASIR_TEXT_OF(x) #x
#define KVASIR_DOTTED(a, b, c) KVASIR_TEXT_OF(a) "." KVASIR_TEXT_OF(b) "." KVASIR_TEXT_OF(c)
constexpr const char* kVersion =
    KVASIR_DOTTED(KVASIR_VERSION_MAJOR, KVASIR_VERSION_MINOR, KVASIR_VERSION_PATCH);
static_assert(std::string_view(kVersion) == KVASIR_VERSION,
              "kvasir/version.h and CMakeLists.txt name different versions");

}  // namespace

const char* Version() { return kVersion; }

int NumericsContract() { return kernels::kContractVersion; }

}  // namespace kvasir
