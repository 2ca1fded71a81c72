#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/job/module_file.hpp"

namespace ddpsim {

/// A message of one rank to another.
struct MpiMessage {
  int rank = 0;  ///< whom it comes from
  std::vector<std::uint8_t> bytes;
};

/// The calls of MPI that a job makes. MPI is finalised by the destructor.
class MpiCalls {
 public:
  virtual ~MpiCalls() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual int ranks_of_host() const = 0;
  /// May one thread of several call MPI?
  virtual bool takes_threads() const = 0;

  /// What every rank has to say, in order of rank, on rank 0; empty elsewhere. For all ranks to
  /// call.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  /// Rank 0's number, everywhere. For all ranks to call.
  virtual int agree(int number) = 0;
  virtual void abort(int code) = 0;
  virtual void send(int rank, const std::vector<std::uint8_t>& bytes) = 0;
  /// False if no message has come.
  virtual bool receive(MpiMessage& message) = 0;
};

/// What the module `mpi` offers: ddpsim_mpi_module() returns one. Only mpi_module.cpp knows MPI.
struct MpiModule {
  ModuleHeader header;
  /// Initialises MPI. For all ranks to call, once.
  std::unique_ptr<MpiCalls> (*start)();
};

}  // namespace ddpsim
