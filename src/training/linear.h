// One product of the network, y = x · Wᵀ + b, with its gradients.
#ifndef KVASIR_TRAINING_LINEAR_H_
#define KVASIR_TRAINING_LINEAR_H_

#include <cstddef>

#include "kernels/matmul.h"
#include "training/micro_batch.h"
#include "training/parameters.h"

namespace kvasir::training {

// Packs rows x [rows][columns] as the second factor of a sum over rows: out is [columns, rows].
// Ends with a barrier.
void PackRows(Member& member, const float* x, std::size_t rows, std::size_t columns,
              kernels::PackedMatrix& out);

// Owns the packed weights; the numbers themselves stay where they were bound. Single-threaded but
// for methods that take a Member, which every member of a region calls.
class Linear {
 public:
  Linear(std::size_t outputs, std::size_t inputs)
      : forward_(outputs, inputs), backward_(inputs, outputs) {}

  // weight [outputs][inputs]; bias [outputs] or absent.
  void Bind(const Parameter& weight, const Parameter& bias) {
    weight_ = weight;
    bias_ = bias;
  }
  // This member's share; no barrier.
  void Pack(const Member& member);

  std::size_t outputs() const { return forward_.n(); }
  std::size_t inputs() const { return forward_.k(); }

  // out [rows][outputs] = x · Wᵀ + b of x [rows][inputs].
  kernels::MatmulArgs Product(const float* x, float* out) const;
  // dx [rows][inputs] = dy · W of dy [rows][outputs], whose rows lie dy_stride apart.
  kernels::MatmulArgs InputGrad(const float* dy, std::size_t dy_stride, float* dx) const;
  // dW += dyᵀ · x, db += Σ dy: chains over the rows, carried on from what is there. packed_x holds
  // x by PackRows. This member's share; no barrier.
  void AddGradients(const Member& member, const float* dy, std::size_t dy_stride, std::size_t rows,
                    const kernels::PackedMatrix& packed_x) const;

 private:
  kernels::PackedMatrix forward_;   // [outputs, inputs]
  kernels::PackedMatrix backward_;  // [inputs, outputs]: its transpose
  Parameter weight_, bias_;
};

}  // namespace kvasir::training

#endif  // KVASIR_TRAINING_LINEAR_H_
