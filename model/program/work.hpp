#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/program/message.hpp"
#include "model/program/operation.hpp"
#include "model/workload/caller.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// A piece of work: all that decides how long a task takes on a given machine, and nothing else.
/// Tasks with equal work take the same time. Costs (model/cost/costs.hpp) has an entry for each.
struct Work {
  /// What is computed or sent. Of a user's hook this is the operation of its kernel (`draw` of a
  /// hook that adds noise), which is not the task's.
  Operation operation = Operation::forward;
  /// What a collective or transfer sends; also set for waits for one and kernels that prepare one.
  Message message = Message::gradients;
  Operation awaited = Operation::all_reduce;  ///< of a wait: the collective that it is for

  // A kernel. Without `gemm`, `traffic` and `known_time` the device computes nothing.
  std::optional<Gemm> gemm{};
  Bytes traffic{};            ///< read from and written to device memory, together
  DType type = DType::fp32;   ///< how a GEMM multiplies
  std::int32_t launches = 1;  ///< kernels the host enqueues for it
  std::int32_t tensors = 0;   ///< that a multi-tensor kernel of an optimizer goes over
  Duration call{};            ///< of PyTorch's call besides its launches, where a launch takes 6 us
  std::optional<Duration> known_time{};  ///< from a profile
  std::optional<ClassCost> by_class{};  ///< by the law of its class, on the device it is priced for
  Caller caller = Caller::library;      ///< who enqueues them
  /// A comm hook's, behind a collective: beside the backward pass, with the caches that one leaves.
  bool aside = false;
  bool beside_hook = false;  ///< backward: a comm hook computes aside meanwhile
  /// The part of the whole optimizer (Job::passes) that it runs; zero: a kernel of its own.
  double optimizer_share = 0;

  // The host.
  Duration host{};              ///< its own time, besides enqueueing
  std::int32_t hook_calls = 0;  ///< hooks it calls

  // A collective, a transfer for one, or a kernel that prepares the message of one.
  Bytes payload{};  ///< each rank's input; of a transfer: the bytes copied
  /// Ranks that take part; 0: all ranks.
  std::int32_t group = 0;
  std::int32_t stride = 1;        ///< from one of them to the next; 1: they are next to each other
  std::uint8_t communicator = 0;  ///< in whose queue it stands
  /// Issued in the midst of kernels: its stream takes it up a hand-over later.
  bool handed_over = false;

  /// Does the device (or the host of a synchronous one) compute anything?
  bool computes() const {
    return is_kernel(operation) &&
           (gemm || traffic != Bytes{} || known_time || optimizer_share > 0);
  }

  bool operator==(const Work&) const = default;
};

/// The work of one micro-batch's passes, in order, whether or not the step runs all of it itself (a
/// comm hook may update parameters in place of the optimizer): what totals of a pass are made of.
struct Passes {
  std::vector<std::uint32_t> forward, backward, optimizer;  ///< indices into a list of works
};

/// A kernel of a workload, as work.
Work work_of(Operation operation, const Kernel& kernel, Caller caller);
/// A kernel that reads and writes `traffic` bytes in all.
Work moving(Operation operation, Bytes traffic, Caller caller = Caller::library, int launches = 1);

/// The work as a calibration knows it: what was measured for one is found for the other, whoever
/// enqueues it, however often, and in whichever queue it stands. None: a calibration measures no
/// time of it (collectives have a table of their own; kernels with a known time need none; what
/// prepares buffers or averages models is too small or too rare).
std::optional<Work> measured_as(const Work& work);

/// "all-reduce of 25 MiB", "multiply 64 x 32 x 16 fp32, 12 KiB": for people.
std::string describe(const Work& work);

struct WorkHash {
  std::size_t operator()(const Work& work) const;
};

/// Distinct pieces of work, numbered from 0 in the order in which they were added.
class WorkTable {
 public:
  /// The number of an equal piece of work, which is added if it is new.
  std::uint32_t add(const Work& work);
  /// The number of an equal piece of work, or none.
  std::optional<std::uint32_t> find(const Work& work) const;
  const Work& operator[](std::uint32_t number) const { return works_[number]; }
  std::size_t size() const { return works_.size(); }

 private:
  std::size_t slot_of(const Work& work) const;
  void grow();

  std::vector<Work> works_;
  /// A hash table of numbers, each plus one; 0: the slot is free. Its size is a power of two, at
  /// least twice as many as there are works.
  std::vector<std::uint32_t> slots_;
};

}  // namespace ddpsim
