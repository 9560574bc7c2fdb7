// Stands in for libFuzzer in builds without clang: runs LLVMFuzzerTestOneInput over every file of
// the given folders, then over mutations of them that --seed determines. A crash is reported with
// the input that caused it, which is also written to ./crash-<program>.
//   <name>_replay [--runs N] [--seed S] FOLDER...
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Present under AddressSanitizer and its kin only, which exit without raising a signal. The name is
// theirs to choose: NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using Input = std::vector<std::uint8_t>;

struct Seed {
  std::string name;
  Input bytes;
};

// No parser has a reason to hold this much for inputs of a few KiB.
constexpr rlim_t kAddressSpaceBytes = rlim_t{4} << 30;
constexpr std::size_t kLongestInputBytes = std::size_t{1} << 20;

// What runs now, for the crash report: written before each run, read in a signal handler.
std::string g_label;
Input g_input;
std::string g_crash_path;

void ReportCrash() {
  const auto write_all = [](int file, const void* data, std::size_t size) {
    const ssize_t written = write(file, data, size);
    (void)written;  // Nothing is left to be done about a failed report.
  };
  write_all(STDERR_FILENO, g_label.data(), g_label.size());
  if (std::FILE* file = std::fopen(g_crash_path.c_str(), "wb")) {
    std::fwrite(g_input.data(), 1, g_input.size(), file);
    std::fclose(file);
  }
}

extern "C" void OnSignal(int signal_number) {
  ReportCrash();
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void WatchForCrashes() {
  for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, OnSignal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(ReportCrash);
    return;  // Sanitizers reserve address space by the terabyte: no limit under them.
  }
  const rlimit limit = {kAddressSpaceBytes, kAddressSpaceBytes};
  setrlimit(RLIMIT_AS, &limit);
}

void RunOne(std::string label, Input input) {
  g_label = "replay: crashed on " + std::move(label) + "\n";
  g_input = std::move(input);
  // A copy of exact size on the heap, so that AddressSanitizer sees a read past its end.
  const std::vector<std::uint8_t> bytes(g_input.begin(), g_input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

// Files of all folders, sorted by name: directory order differs between machines. None, and a line
// on stderr, if one cannot be read.
std::vector<Seed> ReadSeeds(const std::vector<std::string>& folders) {
  std::vector<Seed> seeds;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      seeds.push_back({entry.path().string(), Input(std::istreambuf_iterator<char>(file), {})});
    }
    if (error) {
      std::fprintf(stderr, "replay: cannot read folder %s\n", folder.c_str());
      return {};
    }
  }
  std::sort(seeds.begin(), seeds.end(),
            [](const Seed& a, const Seed& b) { return a.name < b.name; });
  return seeds;
}

// Values at which sizes, counts and offsets tend to go wrong.
constexpr std::array<std::uint64_t, 12> kEdges = {0,
                                                  1,
                                                  0x7f,
                                                  0x80,
                                                  0xff,
                                                  0x7fff,
                                                  0xffff,
                                                  0x7fffffff,
                                                  0x80000000,
                                                  0xffffffff,
                                                  0x7fffffffffffffff,
                                                  0xffffffffffffffff};

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<Seed>& seeds) : random_(seed), seeds_(seeds) {}

  Input Mutate(const Input& original) {
    Input input = original;
    for (std::size_t count = 1 + Below(4); count > 0; --count) MutateOnce(input);
    if (input.size() > kLongestInputBytes) input.resize(kLongestInputBytes);
    return input;
  }

  // Uniform enough in [0, bound); std's distributions differ between libraries.
  std::size_t Below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

 private:
  void MutateOnce(Input& input) {
    if (input.empty()) {
      input.push_back(static_cast<std::uint8_t>(random_()));
      return;
    }
    const std::size_t at = Below(input.size());
    const std::size_t length = 1 + Below(std::min<std::size_t>(input.size() - at, 64));
    const auto begin = input.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    switch (Below(8)) {
      case 0:
        input[at] ^= static_cast<std::uint8_t>(1u << Below(8));
        break;
      case 1:
        input[at] = static_cast<std::uint8_t>(random_());
        break;
      case 2:
        WriteEdge(input, at);
        break;
      case 3:
        input.erase(begin, end);
        break;
      case 4: {
        const Input copy(begin, end);
        input.insert(begin, copy.begin(), copy.end());
        break;
      }
      case 5:
        input.insert(begin, length, static_cast<std::uint8_t>(random_()));
        break;
      case 6:
        input.resize(at);
        break;
      default:
        Splice(input, at);
    }
  }

  // Little-endian 1, 2, 4 or 8 bytes over what is there.
  void WriteEdge(Input& input, std::size_t at) {
    const std::uint64_t value = kEdges[Below(kEdges.size())];
    const std::size_t width = std::size_t{1} << Below(4);
    for (std::size_t i = 0; i < width && at + i < input.size(); ++i) {
      input[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
  }

  // The head of this input, then the tail of another seed.
  void Splice(Input& input, std::size_t at) {
    const Input& other = seeds_[Below(seeds_.size())].bytes;
    if (other.empty()) return;
    input.resize(at);
    input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(Below(other.size())),
                 other.end());
  }

  std::mt19937_64 random_;
  const std::vector<Seed>& seeds_;
};

bool ParseNumber(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t runs = 20000;
  std::uint64_t seed = 1;
  std::vector<std::string> folders;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    std::uint64_t* const target = flag == "--runs" ? &runs : flag == "--seed" ? &seed : nullptr;
    if (target == nullptr) {
      folders.emplace_back(flag);
    } else if (++i >= argc || !ParseNumber(argv[i], *target)) {
      std::fprintf(stderr, "replay: %s needs a number\n", argv[i - 1]);
      return 2;
    }
  }
  if (const char* text = std::getenv("KVASIR_FUZZ_RUNS"); text && !ParseNumber(text, runs)) {
    std::fprintf(stderr, "replay: KVASIR_FUZZ_RUNS is not a number: %s\n", text);
    return 2;
  }
  g_crash_path = "crash-" + std::filesystem::path(argv[0]).filename().string();
  const std::vector<Seed> seeds = ReadSeeds(folders);
  if (seeds.empty()) {
    std::fprintf(stderr, "replay: no seeds; a target needs at least one file to start from\n");
    return 2;
  }
  std::printf("replay: %zu files, %llu mutations, --seed %llu\n", seeds.size(),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  WatchForCrashes();
  for (const Seed& file : seeds) RunOne(file.name, file.bytes);
  Mutator mutator(seed, seeds);
  for (std::uint64_t run = 0; run < runs; ++run) {
    const Seed& file = seeds[mutator.Below(seeds.size())];
    RunOne("mutation " + std::to_string(run) + " of " + file.name + " with --seed " +
               std::to_string(seed),
           mutator.Mutate(file.bytes));
  }
  std::printf("replay: no crash\n");
  return 0;
}
