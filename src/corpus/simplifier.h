// Traditional to simplified Chinese, through OpenCC.
#ifndef KVASIR_CORPUS_SIMPLIFIER_H_
#define KVASIR_CORPUS_SIMPLIFIER_H_

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace opencc {
class SimpleConverter;
}

namespace kvasir::corpus {

// Owns an OpenCC converter with its dictionaries. Move-only; thread-compatible.
class Simplifier {
 public:
  // config: a name OpenCC finds among its own files ("t2s.json"), or a path. kIo naming it if it or
  // a dictionary it names is missing or broken.
  static base::Result<Simplifier> Open(const std::string& config);

  Simplifier(Simplifier&&) noexcept;
  Simplifier& operator=(Simplifier&&) noexcept;
  ~Simplifier();

  // Requires nothing of text; what OpenCC refuses (it wants UTF-8) is kBadData.
  base::Result<std::string> Convert(std::string_view text) const;

 private:
  explicit Simplifier(std::unique_ptr<opencc::SimpleConverter> converter);
  std::unique_ptr<opencc::SimpleConverter> converter_;
};

}  // namespace kvasir::corpus

#endif  // KVASIR_CORPUS_SIMPLIFIER_H_
