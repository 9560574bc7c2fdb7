// Text files that are not UTF-8, and files that are no text.
#ifndef KVASIR_CLI_TEXT_ENCODING_H_
#define KVASIR_CLI_TEXT_ENCODING_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"

namespace kvasir::cli {

enum class TextEncoding {
  kAuto,  // UTF-8, or UTF-16 where the file begins with that encoding's byte order mark.
  kUtf8,
  kGb18030,  // GBK and GB2312 with it, which it extends.
  kUtf16,    // By its byte order mark; without one little-endian, as Windows writes it.
  kUtf16Le,
  kUtf16Be,
};

// "auto", "utf-8", "gb18030", "utf-16", "utf-16le", "utf-16be".
const std::vector<std::string>& TextEncodingNames();
// Requires one of them.
TextEncoding FindTextEncoding(std::string_view name);

// The bytes of a text file as UTF-8, without the byte order mark. kBadData, with the offset in the
// file, for what is not of that encoding or holds U+0000, as files that are no text do; for UTF-8
// (of 8 characters beyond ASCII, or more) that was said to be GB18030; hints where the encoding is
// plain. kIo if the C library lacks its tables. Thread-safe.
base::Result<std::string> ToUtf8(std::string_view bytes, TextEncoding encoding);

// The same of a file that must not be empty; its errors name it, and kIo is possible.
base::Result<std::string> ReadTextFile(base::Env& env, const std::string& path,
                                       TextEncoding encoding);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TEXT_ENCODING_H_
