// The other processes of a training run that mpirun started.
#ifndef KVASIR_CLI_TRAIN_PEERS_H_
#define KVASIR_CLI_TRAIN_PEERS_H_

#include <memory>

#include "base/result.h"
#include "training/peers.h"

namespace kvasir::cli {

// Null where this process is alone. MPI is in a library beside the program (libkvasir_mpi.so), so
// that no other command loads it. kUsage where mpirun started several of a program that was built
// without it; kIo where MPI does not start. To be called once.
base::Result<std::unique_ptr<training::Peers>> FindPeers();

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_TRAIN_PEERS_H_
