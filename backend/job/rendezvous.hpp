#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gloo/rendezvous/store.h>

namespace ddpsim {

/// Where the ranks of a job find each other: one of Gloo's stores, checked before use, and left as
/// it was found.
class Rendezvous {
 public:
  /// "file:DIR" (made if it is not there) or "redis://host[:port]". `job` keeps jobs on one store
  /// apart; empty is a job of its own name. Throws DeviceError if the store cannot be used: a
  /// directory that cannot be written, a port where no Redis answers.
  static std::unique_ptr<Rendezvous> open(const std::string& where, const std::string& job,
                                          std::chrono::milliseconds timeout);
  /// For a job whose ranks are on one host and were told of no place: a folder among this user's
  /// temporary files, closed to others. Throws DeviceError if what is there is not that.
  static std::unique_ptr<Rendezvous> open_own(const std::string& job);
  /// A folder that is there, of this user and closed to others, which the last rank to leave
  /// removes. Throws DeviceError if it is not that.
  static std::unique_ptr<Rendezvous> open_closed(const std::filesystem::path& folder);
  /// For ranks that are threads of one process: `store` is shared by them.
  static std::unique_ptr<Rendezvous> in_process(std::shared_ptr<gloo::rendezvous::Store> store);

  virtual ~Rendezvous() = default;

  /// Everyone introduces themselves: waits for all ranks and checks that they are of this version
  /// and were asked for the same. Throws DeviceError, naming the rank that is missing or differs.
  void meet(int rank, int ranks, const std::string& agreement, std::chrono::milliseconds timeout);

  virtual gloo::rendezvous::Store& store() = 0;
  /// Removes what this rank wrote. All ranks must have read it, or given up.
  virtual void leave() = 0;
  virtual std::string description() const = 0;
  /// All ranks are threads of this process.
  virtual bool in_one_process() const { return false; }

 protected:
  /// Has `key` been set already?
  virtual bool has(const std::string& key) = 0;
};

}  // namespace ddpsim
