// The processes that train one model together, each computing its part of every batch.
#ifndef KVASIR_TRAINING_PEERS_H_
#define KVASIR_TRAINING_PEERS_H_

#include <cstddef>
#include <span>

#include "base/result.h"

namespace kvasir::training {

// All ranks make the same calls in the same order, Send and Receive of two ranks being one. kIo if
// a peer is lost: the run cannot go on. Single-threaded.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual std::size_t rank() const = 0;   // From 0.
  virtual std::size_t count() const = 0;  // At least 1.

  virtual base::Result<void> Send(std::size_t to, std::span<const std::byte> bytes) = 0;
  virtual base::Result<void> Receive(std::size_t from, std::span<std::byte> bytes) = 0;
  // The bytes of one rank, to all.
  virtual base::Result<void> Broadcast(std::size_t from, std::span<std::byte> bytes) = 0;
  // The last call. A process that ends without it takes the others with it.
  virtual void Finish() = 0;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_PEERS_H_
