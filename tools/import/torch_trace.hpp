#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/parallel/training.hpp"
#include "model/workload/workload.hpp"
#include "scenarios/reader/workload/profile_reader.hpp"
#include "tools/import/trace_events.hpp"

namespace ddpsim {

/// A collective of a step. Times count from the start of the step.
struct FoundCollective {
  CollectiveKind kind = CollectiveKind::unknown;
  std::int64_t elements = -1;  ///< -1: the trace does not say
  std::string type;            ///< as the trace spells it, "Float"; "": not said
  std::string group;           ///< its process group
  int group_ranks = 0;         ///< ranks of that group; 0: not said
  Duration launched{};         ///< the host issued it
  Duration start{}, end{};     ///< it ran
  bool ran = false;            ///< does the trace show that it did?
  bool in_hook = false;        ///< issued by a gradient's hook
  int tensors = 0;  ///< hooks that fired since the one before it was issued, its own included
};

/// The parts of a step, one behind the other. Forward begins with the step.
enum class StepPart : std::uint8_t {
  forward,
  backward,   ///< to the last gradient, with DDP's copies into buckets
  finishing,  ///< to the last all-reduce's end and the last copy out of a bucket
  between,    ///< to the optimizer's begin
  optimizer,
  after  ///< to the step's end
};
inline constexpr std::size_t step_parts = static_cast<std::size_t>(StepPart::after) + 1;

/// Where the time of a part went. All but `waiting` add up to `length`.
struct PartTimes {
  Duration length{};
  Duration computing{};    ///< on the stream that computes most
  Duration elsewhere{};    ///< other streams alone computed or copied
  Duration collectives{};  ///< collectives ran alone
  Duration idle{};         ///< the device had nothing to do: the host was behind
  Duration waiting{};      ///< of the host, for the device
};

/// A training step. What is not in the trace is empty.
struct FoundStep {
  std::string name;
  Duration length{};
  Duration forward{}, backward{};     ///< backward: to the last gradient, without DDP's own copies
  std::optional<Duration> optimizer;  ///< behind the last all-reduce
  /// By how much copying one gradient out of its bucket lengthens the step: what the device does
  /// for it, or the host once the device has done the backward pass, whichever is longer.
  std::optional<Duration> copy_back;
  Duration outside{};  ///< behind backward and what finishes it, but not in the optimizer
  Duration zero_grad{}, loading{};  ///< the host's calls of these
  std::array<PartTimes, step_parts> parts{};
  std::vector<Duration> ready;               ///< of each hook, from the start of backward
  std::vector<std::int32_t> hook_shapes;     ///< of each hook's gradient; -1: not said
  std::vector<FoundCollective> all_reduces;  ///< of gradients, as issued
  std::vector<FoundCollective> others;       ///< every other collective
  std::vector<Shape> copied_back;  ///< in the order of the copies; from their bytes, if not said
  Duration busy{};                 ///< some collective ran
  Duration overlapped{};  ///< while it did, so did a compute kernel (or an operator on a CPU)
};

struct TraceFinding {
  std::vector<FoundStep> steps;             ///< whole ones, alike
  std::vector<std::string> notes;           ///< what was left out or taken for granted
  std::vector<std::string> could_not_tell;  ///< what is missing, and what would show it
  Strategy strategy = Strategy::bucketed;
  bool on_device = false;  ///< kernels ran on a device
  std::string device_name, backend;
  int devices = 0;           ///< that the process could use, of its host; 0: not said
  int rank = -1, ranks = 0;  ///< of the job; -1, 0: not said
  int group_ranks = 0;       ///< ranks that average gradients together; 0: not said
  std::uint64_t events = 0;

  /// Do gradients stay on one rank? Nothing is then sent: NCCL launches no kernel for a group of
  /// one rank, and what Gloo runs crosses no link.
  bool alone() const { return group_ranks == 1; }

  /// The hosts of the job, where each has as many ranks as the process could use devices; 0: not
  /// told, for it may be that each process could use its own device alone.
  int nodes() const {
    const bool told = devices > 1 && ranks % devices == 0 && ranks == group_ranks;
    return told ? ranks / devices : 0;
  }
};

/// What a trace shows of data-parallel training.
///
/// A step is what the profiler's own annotation says, or else what ends with the optimizer, or else
/// what begins with DistributedDataParallel's forward. Work on a device counts for the step that
/// launched it. Where host and device both have a say, an instant is "when the device has done what
/// the host had launched by then, or then if that is later": so times are right whether host or
/// device is behind. Hooks are those of the last backward pass of a step. Steps that differ from
/// most (their first or last part is missing, another number of all-reduces) are left out and
/// named. All-reduces have to run in the trace, unless their group has one rank.
///
/// Throws InputError, naming `file`, if there is no whole step or no all-reduce of gradients.
TraceFinding find_training(const Trace& trace, const std::string& file);

}  // namespace ddpsim
