#include "cli/train_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "training/run.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::MakeError;

constexpr int kMaxLinks = 40;  // As many as Linux follows.

struct NamedPath {
  std::string flag;
  std::string path;
};

// The path a file of this name gets, links resolved even where they point at nothing yet.
fs::path Resolved(const std::string& path) {
  std::error_code ignored;
  fs::path at = path;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(at, ignored); ++i) {
    at = at.parent_path() / fs::read_symlink(at, ignored);
  }
  const fs::path whole = fs::weakly_canonical(fs::absolute(at, ignored), ignored);
  return whole.empty() ? at : whole;
}

bool SameFile(const std::string& a, const std::string& b) {
  struct stat of_a {
  }, of_b{};
  if (stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0) {
    // Devices may take several outputs: /dev/null, a terminal.
    return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino && !S_ISCHR(of_a.st_mode);
  }
  return Resolved(a) == Resolved(b);
}

std::string SystemMessage(int error_number) {
  return std::generic_category().message(error_number);
}

// The name WriteFileAtomic writes to before it renames, but for the process's number.
std::string TemporaryPrefix(const std::string& path) { return path + ".tmp"; }

}  // namespace

std::string TrainReportPath(const std::string& folder) { return folder + "/report.md"; }
std::string TrainPlotPath(const std::string& folder) { return folder + "/loss.svg"; }
std::string TrainSamplesPath(const std::string& folder) { return folder + "/samples.jsonl"; }

base::Result<void> CheckDistinct(const TrainPaths& paths) {
  std::vector<NamedPath> files;
  for (const std::string& text : paths.texts) files.push_back({"the text", text});
  if (!paths.held_out.empty()) files.push_back({"--val", paths.held_out});
  if (!paths.init.empty()) files.push_back({"--init", paths.init});
  const std::size_t inputs = files.size();  // Inputs may be the same file.
  files.push_back({"--output", paths.output});
  files.push_back({"--log", paths.log});
  if (!paths.checkpoint.empty()) {
    files.push_back({"--checkpoint", paths.checkpoint});
    files.push_back({"--checkpoint", training::CheckpointPath(paths.checkpoint)});
  }
  if (!paths.report.empty()) {
    files.push_back({"--report", paths.report});
    files.push_back({"--report", TrainReportPath(paths.report)});
    files.push_back({"--report", TrainPlotPath(paths.report)});
    files.push_back({"--report", TrainSamplesPath(paths.report)});
  }
  for (std::size_t i = inputs; i < files.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (!SameFile(files[i].path, files[k].path)) continue;
      return MakeError(ErrorCode::kUsage, "{} '{}' is the same file as {} '{}', which it would {}",
                       files[i].flag, files[i].path, files[k].flag, files[k].path,
                       k < inputs ? "overwrite" : "replace");
    }
  }
  return base::Success();
}

base::Result<void> CheckWritable(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return MakeError(ErrorCode::kIo, "cannot write '{}': {}", path, why);
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return refuse("it is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) return refuse("it is no regular file");
  const std::string probe = TemporaryPrefix(path) + std::to_string(getpid());
  const int file = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return refuse(SystemMessage(errno));
  close(file);
  if (unlink(probe.c_str()) != 0) return refuse(SystemMessage(errno));
  return base::Success();
}

base::Result<void> PrepareTrainFiles(base::Env& env, const TrainPaths& paths, bool resume) {
  if (!paths.checkpoint.empty()) {
    const std::string last = training::CheckpointPath(paths.checkpoint);
    if (!resume && env.Exists(last)) {
      return WithHint(MakeError(ErrorCode::kUsage, "'{}' exists and would be lost", last),
                      "add --resume to go on with that run, or name another directory");
    }
    if (resume && !env.Exists(last)) {
      return MakeError(ErrorCode::kIo, "there is no checkpoint '{}' to resume from", last);
    }
    KV_TRY(env.MakeDirectories(paths.checkpoint));
    KV_TRY(CheckWritable(last));
    RemoveStaleTemporaries(last);
  }
  KV_TRY(CheckWritable(paths.output));
  RemoveStaleTemporaries(paths.output);
  if (paths.report.empty()) return base::Success();
  // The folder is made when there is something to put into it.
  const bool there = fs::is_directory(paths.report);
  return CheckWritable(there ? TrainReportPath(paths.report) : paths.report);
}

void RemoveStaleTemporaries(const std::string& path) {
  const fs::path prefix = TemporaryPrefix(path);
  const std::string start = prefix.filename();
  const fs::path folder = prefix.parent_path().empty() ? "." : prefix.parent_path();
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(start)) continue;
    pid_t process = 0;
    const char* last = name.data() + name.size();
    const auto [rest, parsed] = std::from_chars(name.data() + start.size(), last, process);
    if (parsed != std::errc() || rest != last || process <= 0) continue;
    if (kill(process, 0) == 0 || errno != ESRCH) continue;  // Its writer may be at work.
    std::error_code ignored;
    fs::remove(entry->path(), ignored);
  }
}

}  // namespace kvasir::cli
