// The poem files of the npm package chinese-poetry 2.0.1: dist/quantangshi/poet.PERIOD.N.json, JSON
// arrays of poems, each an object whose "paragraphs" is an array of strings in traditional script.
#ifndef KVASIR_CORPUS_POEM_PACKAGE_H_
#define KVASIR_CORPUS_POEM_PACKAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "corpus/simplifier.h"

namespace kvasir::corpus {

struct PoemFile {
  std::uint64_t number;  // The N of its name.
  std::string path;
};

// The files of a period ("tang", "song") in the unpacked package, in ascending N (1000 before
// 10000: by number, not by name). kBadData if package_dir is no such package, kIo if it cannot be
// listed.
base::Result<std::vector<PoemFile>> ListPoemFiles(const std::string& package_dir,
                                                  std::string_view period);

// The poems of one file in its order, each with its paragraphs joined, simplified. kIo, or kBadData
// naming the file and the offset or poem. Thread-safe.
base::Result<std::vector<std::string>> ReadPoemFile(base::Env& env, const std::string& path,
                                                    const Simplifier& simplifier);

}  // namespace kvasir::corpus

#endif  // KVASIR_CORPUS_POEM_PACKAGE_H_
