// For tests: made-up poems, and files of them as the package has them.
#ifndef KVASIR_CORPUS_TEST_POEMS_H_
#define KVASIR_CORPUS_TEST_POEMS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace kvasir::corpus {

// Line i of a poem is five times the i-th of four characters.
inline std::string Quatrain(const std::vector<std::string>& characters) {
  std::string poem;
  for (std::size_t line = 0; line < 4; ++line) {
    for (int i = 0; i < 5; ++i) poem += characters[line];
    poem += line % 2 == 0 ? "，" : "。";
  }
  return poem;
}

inline std::string Json(const std::vector<std::string>& poems) {
  std::string json = "[";
  for (const std::string& poem : poems) {
    if (json.size() > 1) json += ",";
    json += R"({"author":"x","paragraphs":[")" + poem + R"("]})";
  }
  return json + "]";
}

}  // namespace kvasir::corpus

#endif  // KVASIR_CORPUS_TEST_POEMS_H_
