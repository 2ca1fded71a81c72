#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/program/job.hpp"
#include "model/timeline/task_times.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// A gradient hook fired: this parameter's gradient of this micro-batch is complete in its buffer.
using GradientHook = std::function<void(int parameter, int micro_batch)>;

/// What only an executor can know, besides the step itself.
struct RunOptions {
  GradientHook hook;  ///< called by every hook task, on the host thread
  /// Tasks that compute take the time the processor gave them: what took its place meanwhile does
  /// not count. On synchronous devices.
  bool by_processor = false;
  /// What this rank's host thread computes takes so many times as long: it is busy for the rest. At
  /// least 1; on synchronous devices.
  double compute = 1;
  /// The host thread sleeps for so long before the task `pause_before`. On synchronous devices.
  Duration pause{};
  std::uint32_t pause_before = 0;  ///< of this rank's program
};

/// What a rank really handed to collectives in a step.
struct Sent {
  int collectives = 0;
  Bytes payload;
  /// 16-bit values that became infinite or NaN though what they were made from was finite.
  std::int64_t overflows = 0;

  bool operator==(const Sent&) const = default;
};

/// A step as one rank saw it.
struct RankRun {
  std::uint64_t fingerprint = 0;  ///< of the job that this rank executed
  std::vector<TaskTimes> times;   ///< [task], on rank 0's clock; see Backend::run
  Duration computed{};            ///< from the start to the end of the last round's last task
  Duration background_begun{};    ///< when the last rank arrived at the first background all-reduce
  /// The share of the time after `background_begun` in which a background all-reduce was under way;
  /// 0: the first one began too late.
  double background_busy = 1;
  std::optional<Sent> sent{};  ///< none: this backend does not count
  int background_ended = 0;  ///< background all-reduces that had ended when this rank had computed
};

/// One rank of a running job on real devices: it executes the very job that is simulated.
///
/// To implementers. An object belongs to one thread, the rank's host thread, which makes every
/// call; threads and streams of its own are its business and have ended when the destructor
/// returns, also after an error. Every rank makes the same calls in the same order, with the same
/// arguments, for nearly every call communicates. A rank that dies, stalls or disagrees ends the
/// call on all others with a DeviceError of one line within the job's timeout; after that the
/// object may only be destroyed. No type of a library (CUDA, NCCL, Gloo, Eigen) crosses this
/// header.
///
/// Synchronous devices (CPUs) run kernels on the host thread, which blocks in `wait` tasks; on
/// asynchronous ones (GPUs) the host thread enqueues in the program's order and every other
/// dependency is an event between streams.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  /// Ranks an all-reduce is made for: ranks(), or those that loopback on one GPU stands for.
  virtual int link_ranks() const { return ranks(); }
  /// Kernels run on the host thread.
  virtual bool synchronous() const = 0;
  /// Device, link and libraries, for provenance.
  virtual std::string device_name() const = 0;
  virtual std::string link_name() const = 0;
  virtual std::string versions() const = 0;

  /// Makes what the steps of `workload` work on: parameters (the same on all ranks), gradients,
  /// optimizer state, operands (different on each rank, and fixed: a step's gradients depend on
  /// rank, parameter and micro-batch alone). Replaces what was loaded before. `workload` must
  /// outlive it.
  /// Throws std::invalid_argument for a number format the device lacks.
  virtual void load(const Workload& workload, Optimizer optimizer) = 0;

  /// One step, or as many as its programs have rounds: then times are of the last. Times are those
  /// of the tasks of this rank's program. All ranks start at the same instant, which is the zero of
  /// the times; returns when everything of this rank has ended. For an all-reduce, `enqueued` is
  /// when the host was done issuing it, `start` when the last rank arrived, `end` when this rank
  /// had the result. Outside the timed part the ranks tell each other when they arrived. Throws
  /// std::invalid_argument for a job that it cannot run.
  virtual RankRun run(const program::Job& job, const RunOptions& options = {}) = 0;
  /// Why it cannot run this job, in one line that names the first task it cannot do; empty: it can.
  virtual std::string refusal(const program::Job& job) const = 0;

  /// From now on all-reduces take at most so many of the device's channels (NCCL's thread blocks);
  /// 0: as many as the library likes. False: the device has none to choose.
  virtual bool use_channels(int) { return false; }

  /// The gradient of one parameter after the last run, copied to the host.
  virtual std::vector<float> gradient(int parameter) const = 0;

  /// `count` all-reduces of `size`, the ranks idle meanwhile (and one before them that does not
  /// count): each from the last rank's arrival to this rank's end. They are issued all at once, or,
  /// if `waiting`, each after the host has waited for the one before; then each counts from the end
  /// of that one.
  virtual std::vector<Duration> time_all_reduces(Bytes size, int count, bool waiting) = 0;

  /// Element-wise sum over ranks, in place, the same on all to the bit.
  virtual void sum(std::span<double> values) = 0;
  /// Everyone's bytes, by rank; sizes may differ.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) = 0;
};

}  // namespace ddpsim
