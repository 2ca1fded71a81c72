#include "model/program/one_queue.hpp"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "model/base/index.hpp"

// Three streams of one device, and what is issued, in order: a reduce-scatter R, a gather G of the
// same communicator on another stream, a kernel K on a third one. G waits for R; K waits for
// neither. In one queue K is behind G, which has not begun, so K waits for R, too: every task adds
// what it waits for to the list of each stream, and the next task of that stream waits for it. Of
// the tasks of one stream the latest stands for all. The cost is a step for each task and pair of
// streams.

namespace ddpsim::program {
namespace {

constexpr std::uint8_t of_host = 0;

/// [stream] the latest task of it; none: no task.
using Latest = std::vector<std::optional<std::uint32_t>>;

class OneQueue {
 public:
  OneQueue(const Job& job, const Program& program)
      : job_(job),
        program_(program),
        in_stream_(job.streams.size()),
        in_communicator_(job.communicators.size()),
        behind_(job.streams.size(), Latest(job.streams.size())) {}

  Program program() {
    Program result = program_;
    result.after.clear();
    for (std::uint32_t index = 0; index < program_.tasks.size(); ++index) {
      std::vector<std::uint32_t> after = waits_of(index);
      result.after.insert(result.after.end(), after.begin(), after.end());
      result.tasks[index].after_end = static_cast<std::uint32_t>(result.after.size());
    }
    return result;
  }

 private:
  /// Is it a task of the queue?
  bool queues(const Task& task) const {
    return task.stream != of_host && job_.streams[task.stream].lanes == 1;
  }

  /// The communicator whose collectives are under way one at a time, if the task is one of it.
  const Communicator* one_at_a_time(const Task& task) const {
    const auto* collective = std::get_if<Collective>(&job_.deed_of(task).action);
    if (collective == nullptr) return nullptr;
    const Communicator& found = job_.communicators[at(collective->communicator)];
    return found.at_once == 1 ? &found : nullptr;
  }

  /// What the task waits for in the queue, which all behind it do from now on.
  std::vector<std::uint32_t> waits_of(std::uint32_t index) {
    const Task& task = program_.tasks[index];
    const auto of_task = program_.waits_for(index);
    std::vector<std::uint32_t> after(of_task.begin(), of_task.end());
    if (!queues(task)) return after;
    for (std::optional<std::uint32_t>& each : behind_[task.stream]) {
      if (each && std::ranges::find(after, *each) == after.end()) after.push_back(*each);
      each.reset();
    }
    for (const std::uint32_t each : of_task) blocks(each);
    if (in_stream_[task.stream]) blocks(*in_stream_[task.stream]);
    in_stream_[task.stream] = index;
    if (const Communicator* communicator = one_at_a_time(task)) {
      const auto number = static_cast<std::size_t>(communicator - job_.communicators.data());
      std::optional<std::uint32_t>& before = in_communicator_[number];
      if (before) blocks(*before);
      before = index;
    }
    std::ranges::sort(after);
    return after;
  }

  /// All that is issued from now on in other streams than its own waits for the task.
  void blocks(std::uint32_t task) {
    const std::uint8_t stream = program_.tasks[task].stream;
    if (stream == of_host) return;
    for (std::size_t other = 0; other < behind_.size(); ++other) {
      if (other == stream) continue;
      std::optional<std::uint32_t>& latest = behind_[other][stream];
      if (!latest || *latest < task) latest = task;
    }
  }

  const Job& job_;
  const Program& program_;
  Latest in_stream_;
  Latest in_communicator_;      ///< [communicator]
  std::vector<Latest> behind_;  ///< [stream][stream] what its next task waits for
};

}  // namespace

Job in_one_queue(const Job& job) {
  Job result = job;
  for (Program& program : result.programs) program = OneQueue(job, program).program();
  return result;
}

}  // namespace ddpsim::program
