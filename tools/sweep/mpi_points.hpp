#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/sweep/mpi_module.hpp"
#include "tools/sweep/point_threads.hpp"

namespace ddpsim {

/// The processes mpirun started to share one grid; a build without MPI has none.
///
/// MPI is loaded and initialised by the constructor and finalised by the destructor, and only if
/// this process has company: a program started by itself never touches MPI.
class MpiJob {
 public:
  /// Throws InputError, on the first of the ranks alone, if mpirun (or srun) started several but
  /// MPI is not built in or knows nothing of them. The others then say nothing and are not
  /// `useful`. Throws DeviceError if the module that knows MPI cannot be loaded.
  MpiJob();
  ~MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  int rank() const;
  int ranks() const;
  int ranks_of_host() const;
  bool useful() const { return useful_; }

  /// What every rank has to say, in order of rank, on rank 0; empty elsewhere. For all ranks to
  /// call.
  std::vector<std::string> gather(const std::string& text) const;
  /// Rank 0's number, everywhere. For all ranks to call.
  int agree(int number) const;
  /// Ends all ranks at once. The reason has been printed.
  [[noreturn]] void abort(int code) const;

  void send(int rank, const std::vector<std::uint8_t>& bytes) const;
  /// False if no message has come.
  bool receive(MpiMessage& message) const;

 private:
  std::unique_ptr<MpiCalls> calls_;  ///< none: alone
  bool useful_ = true;
};

/// What computes a grid tells whoever waits for it, and asks.
struct PointWatch {
  std::function<void(const ComputedPoint&)> computed;  ///< on rank 0: here or elsewhere
  std::function<void()> tick;                          ///< on rank 0, several times a second
  std::function<bool()> stop;                          ///< computes no more than is under way
};

/// Computes `points` (of rank 0; the other ranks' are not looked at) on the threads of all ranks,
/// handed out a few at a time as threads fall idle. Returns when all are done, or `stop` has been
/// said on any rank and what was under way is done.
void compute_points(const MpiJob& job, PointThreads& threads, std::vector<std::size_t> points,
                    const PointWatch& watch);

}  // namespace ddpsim
