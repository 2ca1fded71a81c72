#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/job/rendezvous.hpp"
#include "backend/job/watchdog.hpp"
#include "model/base/dtype.hpp"

namespace gloo {
class Context;
}

namespace ddpsim {

/// Throws std::invalid_argument, naming those there are, if this host has no such network
/// interface.
void check_interface(const std::string& interface);

/// Where the k-th of n parts of `count` elements begins: parts of ceil(count / n), the last ones
/// shorter or empty.
constexpr std::size_t part_begin(std::size_t count, std::size_t k, std::size_t n) {
  return std::min(count, k * ((count + n - 1) / n));
}

/// The connections of one rank to all others: Gloo over TCP.
///
/// Calls communicate: every rank makes the same ones in the same order. Several threads of a rank
/// may make some at a time, if each of those has a `tag` of its own, the same on all ranks. Every
/// call ends with a DeviceError if another rank is gone, or silent for the timeout (Watchdog).
class Communicator {
 public:
  /// Connects to all ranks. `interface`: a network interface; empty: the loopback address. Leaves
  /// the calling thread in the role of transport.
  Communicator(Rendezvous& rendezvous, int rank, int ranks, const std::string& interface,
               std::chrono::milliseconds timeout);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// For messages between two ranks.
  gloo::Context& context() { return *context_; }

  /// Sum over ranks, in place, the same on all to the bit. Gloo's ring.
  void all_reduce(std::span<float> values, std::uint32_t tag = 0);
  void all_reduce(std::span<double> values);
  /// The all-reduce of 16-bit numbers of `type` (fp16, bf16), which are added in fp32 and rounded
  /// after each addition.
  void all_reduce(DType type, std::span<std::uint16_t> values, std::uint32_t tag = 0);
  /// Everyone's `mine`, all of one size, by rank; if it is empty, each has its own in `all`.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all, std::uint32_t tag = 0);
  /// The root's bytes to all.
  void broadcast(std::span<char> bytes, int root = 0, std::uint32_t tag = 0);
  /// Bytes for another rank, or from it; none: nothing is sent, or nothing received.
  struct Message {
    int rank = 0;
    std::span<std::byte> bytes{};
  };
  /// Sends and receives at once; the two ranks of a message use one `slot`, which lies beyond those
  /// of all other calls (exchange_slot), and of one pair and slot the first sent is the first
  /// received. To itself a rank may send what it receives in the same call.
  void exchange(const Message& sent, const Message& received, std::uint64_t slot);
  /// The slot for a tag.
  static constexpr std::uint64_t exchange_slot(std::uint32_t tag) {
    return std::uint64_t{1} << 39 | tag;
  }
  void barrier();
  /// Everyone's bytes, by rank; sizes may differ.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine);

  /// Makes `call`, which waits for other ranks through `context`, with patience() for each wait.
  /// What goes wrong meanwhile becomes a DeviceError of one line that begins with `what`.
  void guarded(const char* what, const std::function<void()>& call);
  /// How long a single wait may last. The watchdog ends waits that are in vain long before that.
  static constexpr std::chrono::milliseconds patience() { return std::chrono::hours{24 * 7}; }

  /// Ends every call under way on this rank with an error.
  void disconnect();

 private:
  template <typename Value>
  void all_reduce_of(std::span<Value> values, std::uint32_t tag);

  void connect(Rendezvous& rendezvous, const std::string& interface);

  int rank_, ranks_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<gloo::Context> context_;
  std::unique_ptr<Watchdog> watchdog_;  ///< none of a rank alone. Last: it uses the context
};

}  // namespace ddpsim
