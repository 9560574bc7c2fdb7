// SequenceLease: a sequence of a manager that ends with its holder.
#ifndef KVASIR_ENGINE_SEQUENCE_LEASE_H_
#define KVASIR_ENGINE_SEQUENCE_LEASE_H_

#include <optional>
#include <utility>

#include "kvcache/sequence_manager.h"

namespace kvasir::engine {

// Owns one sequence of a manager that outlives it; movable (a moved-from lease owns none).
// Single-threaded.
class SequenceLease {
 public:
  SequenceLease(kvcache::SequenceManager& manager, kvcache::SequenceId id)
      : manager_(&manager), id_(id) {}
  ~SequenceLease() { End(); }
  SequenceLease(SequenceLease&& other) noexcept
      : manager_(other.manager_), id_(std::exchange(other.id_, std::nullopt)) {}
  SequenceLease& operator=(SequenceLease&& other) noexcept {
    if (this == &other) return *this;
    End();
    manager_ = other.manager_;
    id_ = std::exchange(other.id_, std::nullopt);
    return *this;
  }
  SequenceLease(const SequenceLease&) = delete;
  SequenceLease& operator=(const SequenceLease&) = delete;

  kvcache::SequenceId id() const { return *id_; }

 private:
  void End() {
    if (id_) manager_->Finish(*id_);
  }

  kvcache::SequenceManager* manager_;
  std::optional<kvcache::SequenceId> id_;
};

}  // namespace kvasir::engine

#endif  // KVASIR_ENGINE_SEQUENCE_LEASE_H_
