#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/program/action.hpp"
#include "model/program/work.hpp"

namespace ddpsim::program {

/// What a task communicates, or computes for. What a network itself sends is part of its passes; a
/// comm hook computes beside what it sends, which are gradients.
enum class Purpose : std::uint8_t { gradients, buffers, parameters, note, network, hook };

/// Where a task comes from: for people, metrics, the tuner and functions from Job to Job; never for
/// an executor or the engine.
struct Origin {
  Pass pass = Pass::none;
  Purpose purpose = Purpose::gradients;
  /// Index into Job::labels: what people call it where its work's operation does not say it all, as
  /// of a comm hook's tasks; 0: they call it what its work is.
  std::int16_t label = 0;
  std::int32_t layer = nobody, kernel = nobody, parameter = nobody;
  std::int32_t group = nobody;  ///< a bucket or a unit: index into Job::groups
  std::int32_t hook = nobody;   ///< of the user's hooks, in the order given

  bool operator==(const Origin&) const = default;
};

struct Deed {
  Action action;
  Origin origin{};
};

/// Deeds, and the slices that their operands are.
struct Actions {
  std::vector<Deed> deeds;
  std::vector<Slice> slices;

  Operands add(std::span<const Slice> operands);
  std::span<const Slice> of(const Operands& operands) const {
    return {slices.data() + operands.begin, operands.count};
  }
};

/// An ordered queue of tasks. What a task occupies follows from its action (a kernel the device, a
/// collective the network), not from its stream: an all-reduce may stand on the compute stream, a
/// hook's kernel on the threads that communicate.
struct Stream {
  std::string name{};      ///< stream 0 is the host's own thread
  bool beside = false;     ///< its kernels run at full speed beside the device's others
  bool halts = false;      ///< and these stand still meanwhile
  std::uint8_t lanes = 1;  ///< tasks at a time, begun in order: Gloo's two threads
};

/// For every rank the group it is in (one at most), so that ranks of different groups share a
/// program. Collectives of a group begin in the order of issue, whichever streams they stand on.
struct Communicator {
  std::string name{};                               ///< "world", "shard", "replicate"
  std::uint8_t at_once = 1;                         ///< collectives under way together
  std::vector<std::vector<std::int32_t>> groups{};  ///< ranks in the order of their places
};

/// With Program::after all that the engine reads. The host walks the tasks in order: it enqueues
/// those of other streams, and does those of its own once what they wait for has ended.
struct Task {
  std::uint32_t work = 0;  ///< index into Job::works
  std::uint32_t deed = 0;  ///< index into the deeds that are known, and behind these the job's own
  /// Its slice of Program::after ends here, and begins where that of the task before it ends.
  std::uint32_t after_end = 0;
  std::int16_t micro_batch = 0;  ///< so that micro-batches share deeds
  std::uint8_t stream = 0;
  std::uint8_t communicator = 0;
};
static_assert(sizeof(Task) == 16);

/// Before the `before`-th task is issued a buffer of life `held` comes or goes, in this order, out
/// of the pool of a stream; again and again, if need be.
struct Hold {
  std::uint32_t before = 0;
  BufferId buffer = no_buffer;
  std::uint8_t pool = 0;  ///< a stream: memory that goes is free for what comes to it later
  bool begins = false;
};

/// Parameters whose gradients, or which themselves, are communicated together: a bucket or a unit.
struct ParameterGroup {
  std::vector<std::int32_t> parameters;  ///< in the order they lie in it
  Bytes size;
  std::string name{};  ///< of a unit, its module's; empty: a bucket, which has a number
};

/// Two tasks that people want to see together.
struct Mark {
  enum class Kind : std::uint8_t {
    ready,  ///< a collective, and the task that made its input ready
    logged  ///< the first and the last of an iteration that DDP's logger counts
  };
  Kind kind = Kind::ready;
  std::uint32_t task = 0, of = 0;
};

/// What a kind of rank does.
struct Program {
  std::vector<Task> tasks;           ///< in the order the host issues them
  std::vector<std::uint32_t> after;  ///< earlier tasks; tasks hold slices of it
  std::vector<Hold> holds;           ///< lives of buffers, in order
  std::vector<Mark> marks;
  int rounds = 1;  ///< the tasks are done so often, one round behind the other

  std::span<const std::uint32_t> waits_for(std::size_t task) const {
    const std::uint32_t begin = task == 0 ? 0 : tasks[task - 1].after_end;
    return {after.data() + begin, tasks[task].after_end - begin};
  }
};

/// Where a parameter lies in something that ranks share in equal parts: by itself, or among others.
/// A part begins at the rank's place in its group times the elements of a part; the last parts may
/// be shorter than that, or empty, and what is behind the end is of no use.
struct Part {
  std::int16_t of = nobody;  ///< a communicator; nobody: each rank has the whole
  std::int64_t whole = 0;    ///< elements of the parameter
  std::int64_t begin = 0;    ///< of the first of them in what is shared
  /// Each rank keeps all of the parameter: its gradient alone is shared.
  bool is_kept_whole = false;

  bool operator==(const Part&) const = default;
};

/// What all ranks do in a step, and to what; but not how long it takes. `simulate` and a backend
/// take the same object.
struct Job {
  std::vector<Stream> streams{};
  std::vector<Communicator> communicators{};
  std::vector<Buffer> buffers{};
  std::vector<Work> works{};             ///< each distinct piece once
  std::vector<ParameterGroup> groups{};  ///< in the order in which they are first communicated
  std::vector<std::string> labels{};
  std::shared_ptr<const Actions> known{};  ///< of the workload, shared by all its jobs; or null
  Actions own{};
  Passes passes{};                  ///< works of one micro-batch: some prices are shares of these
  std::vector<Program> programs{};  ///< [kind of rank]
  std::vector<std::uint16_t> program_of{};  ///< [rank] its kind
  /// Repeated on a thread of its own until the first rank has ended its program; its last
  /// all-reduce tells whether one has.
  std::optional<Program> beside{};
  /// Whose contents those of buffers of life `job` are that hold a hook's: they stay for jobs with
  /// the same state alone.
  std::string state{};
  /// What computes with what is sent, in words: equal for jobs in which it is set alike; empty:
  /// nothing does.
  std::string hook{};
  std::uint32_t seed = 0;  ///< of the random numbers of that state, the same on all ranks
  /// [parameter] where its gradient lies in the end; empty: it has none.
  std::vector<Slice> gradients{};
  /// [parameter] of which a rank keeps a part, or of its gradient alone. `gradients` then says
  /// where the rank's part of what is shared lies, in which others may lie too. Empty: of none.
  std::vector<Part> parts{};

  std::size_t ranks() const { return program_of.size(); }
  std::size_t known_deeds() const { return known ? known->deeds.size() : 0; }
  /// The list that holds a task's deed, and with it the slices of its operands.
  const Actions& actions_of(const Task& task) const {
    return task.deed < known_deeds() ? *known : own;
  }
  const Deed& deed_of(const Task& task) const {
    return task.deed < known_deeds() ? known->deeds[task.deed]
                                     : own.deeds[task.deed - known_deeds()];
  }
};

/// What a slice holds, in the type of its buffer.
inline Bytes size_of(const Job& job, const Slice& slice) {
  return slice.count * ddpsim::size_of(job.buffers[slice.buffer].type);
}

/// [deed] Do all kinds of rank do it?
std::vector<bool> deeds_of_all(const Job& job);

/// [parameter] The group it is in, of so many parameters; nobody: it is in none.
std::vector<std::int32_t> groups_of_parameters(const Job& job, std::size_t parameters);

/// The rank's place in its group of the communicator, and that group; none: it is in none.
struct Membership {
  const std::vector<std::int32_t>* group = nullptr;
  std::int32_t place = nobody;
};
Membership membership(const Communicator& communicator, std::int32_t rank);

/// The elements of a parameter's gradient that a rank has in the end, and where they begin in its
/// slice of Job::gradients.
struct GradientRange {
  std::int64_t begin = 0, count = 0, at = 0;
  bool operator==(const GradientRange&) const = default;
};
GradientRange gradient_of_rank(const Job& job, std::int32_t rank, std::size_t parameter);

/// A slice where it lies in memory of its own: views are resolved, and `part_of` by the rank's
/// place. Empty slices stay. Throws std::invalid_argument for a view that is beyond what it lies
/// in, or in itself, and for a part of a group that the rank is not in.
Slice placed(const Job& job, const Slice& slice, std::int32_t rank);

}  // namespace ddpsim::program
