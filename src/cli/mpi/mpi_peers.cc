// The processes that mpirun started, as a library that the program loads when it is one of them: a
// program linked with MPI would load it for every command.
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <span>
#include <string>

#include "training/peers.h"

namespace {

using kvasir::base::ErrorCode;
using kvasir::base::MakeError;
using kvasir::base::Result;
using kvasir::base::Success;

constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // MPI counts in int.

Result<void> Checked(int status, const char* what) {
  if (status == MPI_SUCCESS) return Success();
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  return MakeError(ErrorCode::kIo, "MPI cannot {}: {}", what,
                   std::string(text, static_cast<std::size_t>(length)));
}

// Calls transfer(data, count) for parts of at most kMostBytes.
template <typename Byte, typename Transfer>
Result<void> InParts(std::span<Byte> bytes, const char* what, const Transfer& transfer) {
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kMostBytes);
    KV_TRY(Checked(transfer(bytes.data(), static_cast<int>(part)), what));
    bytes = bytes.subspan(part);
  }
  return Success();
}

class MpiPeers : public kvasir::training::Peers {
 public:
  MpiPeers(int rank, int count) : rank_(rank), count_(count) {}
  std::size_t rank() const override { return static_cast<std::size_t>(rank_); }
  std::size_t count() const override { return static_cast<std::size_t>(count_); }

  Result<void> Send(std::size_t to, std::span<const std::byte> bytes) override {
    return InParts(bytes, "send", [to](const std::byte* data, int count) {
      return MPI_Send(data, count, MPI_BYTE, static_cast<int>(to), 0, MPI_COMM_WORLD);
    });
  }
  Result<void> Receive(std::size_t from, std::span<std::byte> bytes) override {
    return InParts(bytes, "receive", [from](std::byte* data, int count) {
      return MPI_Recv(data, count, MPI_BYTE, static_cast<int>(from), 0, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE);
    });
  }
  Result<void> Broadcast(std::size_t from, std::span<std::byte> bytes) override {
    return InParts(bytes, "broadcast", [from](std::byte* data, int count) {
      return MPI_Bcast(data, count, MPI_BYTE, static_cast<int>(from), MPI_COMM_WORLD);
    });
  }
  // mpirun ends all processes when one ends without this.
  void Finish() override { MPI_Finalize(); }

 private:
  const int rank_, count_;
};

}  // namespace

// Made once a process; null if MPI does not start. The caller owns it.
extern "C" __attribute__((visibility("default"))) kvasir::training::Peers* KvasirMpiPeers() {
  int provided = 0;
  // Only the thread that calls trains; the team's members do not call MPI.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
      provided < MPI_THREAD_FUNNELED) {
    return nullptr;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0, count = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  return new MpiPeers(rank, count);
}
