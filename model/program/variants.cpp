#include "model/program/variants.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace ddpsim::program {
namespace {

/// The number of a piece of work in a job's list, to which the work is added if it is new.
std::uint32_t number_of(Job& job, const Work& work) {
  const auto found = std::ranges::find(job.works, work);
  const auto number = static_cast<std::uint32_t>(found - job.works.begin());
  if (found == job.works.end()) job.works.push_back(work);
  return number;
}

/// Copies a program task by task, with some tasks left out and others added.
class Rewriter {
 public:
  explicit Rewriter(const Program& program)
      : program_(program), places_(program.tasks.size()), kept_(program.tasks.size(), false) {
    result_.rounds = program.rounds;
  }

  /// Leaves the task out: tasks that wait for it will wait for what this task waits for.
  void leave_out(std::size_t index) {
    for (const std::uint32_t earlier : program_.waits_for(index))
      places_[index].insert(places_[index].end(), places_[earlier].begin(), places_[earlier].end());
    begin_of_.push_back(static_cast<std::uint32_t>(result_.tasks.size()));
  }

  Task& keep(std::size_t index) {
    const std::size_t begin = result_.after.size();
    for (const std::uint32_t earlier : program_.waits_for(index))
      for (const std::uint32_t place : places_[earlier]) depend_once(begin, place);
    places_[index] = {static_cast<std::uint32_t>(result_.tasks.size())};
    kept_[index] = true;
    begin_of_.push_back(places_[index].front());
    return append(program_.tasks[index]);
  }

  /// A task that waits for nothing but its stream.
  Task& append(Task task) {
    task.after_end = static_cast<std::uint32_t>(result_.after.size());
    return result_.tasks.emplace_back(task);
  }

  /// Marks of parts of the step are gone: they are of the step as it was.
  Program result() {
    for (Hold hold : program_.holds) {
      hold.before = hold.before < begin_of_.size()
                        ? begin_of_[hold.before]
                        : static_cast<std::uint32_t>(result_.tasks.size());
      result_.holds.push_back(hold);
    }
    for (const Mark& mark : program_.marks)
      if (mark.kind == Mark::Kind::ready && kept_[mark.task] && !places_[mark.of].empty())
        result_.marks.push_back(
            {Mark::Kind::ready, places_[mark.task].front(), places_[mark.of].back()});
    return std::move(result_);
  }

 private:
  void depend_once(std::size_t begin, std::uint32_t place) {
    const auto first = result_.after.begin() + static_cast<std::ptrdiff_t>(begin);
    if (std::find(first, result_.after.end(), place) == result_.after.end())
      result_.after.push_back(place);
  }

  const Program& program_;
  Program result_;
  /// [task] its index in the result; for one that was left out, the indices of the tasks it waited
  /// for.
  std::vector<std::vector<std::uint32_t>> places_;
  std::vector<bool> kept_;               ///< [task]
  std::vector<std::uint32_t> begin_of_;  ///< [task] the first of the result at or behind it
};

bool communicates(const Job& job, const Task& task) {
  return communicator_of(job.deed_of(task).action) != nobody;
}

bool waits(const Job& job, const Task& task) {
  return job.works[task.work].operation == Operation::wait;
}

bool computes_on_host(const Job& job) {
  return std::ranges::any_of(job.programs, [&](const Program& program) {
    return std::ranges::any_of(program.tasks, [&](const Task& task) {
      return task.stream == 0 && job.works[task.work].computes();
    });
  });
}

/// Those on which something is communicated.
std::set<std::uint8_t> communicating_streams(const Job& job) {
  std::set<std::uint8_t> streams;
  for (const Program& program : job.programs)
    for (const Task& task : program.tasks)
      if (communicates(job, task)) streams.insert(task.stream);
  return streams;
}

/// What takes the place of communication in a job that is changed.
class Meetings {
 public:
  /// `changed` begins as a copy of `job`.
  Meetings(const Job& job, Job& changed)
      : job_(job), changed_(changed), of_all_(deeds_of_all(job)) {}

  bool is_of_all(const Task& task) const { return of_all_[task.deed]; }

  /// The ranks meet here, before what follows.
  Task meet(std::int16_t micro_batch) {
    if (!meets_) {
      meets_ = true;
      Work work;
      work.operation = Operation::meet;
      meet_.work = number_of(changed_, work);
      meet_.deed = add({Meet{}, {}});
    }
    Task task = meet_;
    task.micro_batch = micro_batch;
    return task;
  }

  /// In the place of a task.
  std::uint32_t pause(const Task& task) {
    const auto [found, is_new] = pauses_.try_emplace(task.deed, 0);
    if (is_new) found->second = add({Pause{}, job_.deed_of(task).origin});
    return found->second;
  }

 private:
  std::uint32_t add(const Deed& deed) {
    changed_.own.deeds.push_back(deed);
    return static_cast<std::uint32_t>(changed_.known_deeds() + changed_.own.deeds.size() - 1);
  }

  const Job& job_;
  Job& changed_;
  std::vector<bool> of_all_;                       ///< [deed] do all ranks do it?
  std::map<std::uint32_t, std::uint32_t> pauses_;  ///< [deed]
  Task meet_;
  bool meets_ = false;
};

template <typename Rewrite>
void rewrite_each(const Job& job, Job& changed, Rewrite rewrite) {
  for (std::size_t kind = 0; kind < job.programs.size(); ++kind) {
    Rewriter rewriter(job.programs[kind]);
    for (std::size_t t = 0; t < job.programs[kind].tasks.size(); ++t)
      rewrite(rewriter, job.programs[kind].tasks[t], t);
    changed.programs[kind] = rewriter.result();
  }
}

/// What collectives that are left out would have written elsewhere than they read is there as
/// zeros, for what follows reads it.
void begin_results_with_zeros(const Job& job, Job& changed) {
  std::set<BufferId> results;
  for (const Program& program : job.programs)
    for (const Task& task : program.tasks)
      if (const auto* collective = std::get_if<Collective>(&job.deed_of(task).action);
          collective != nullptr && collective->to != collective->from)
        results.insert(collective->to.buffer);
  std::erase_if(results, [&](BufferId id) {
    const Buffer& buffer = job.buffers[id];
    return buffer.is_view() || buffer.life == Life::job || buffer.start != Start::undefined;
  });
  for (const BufferId id : results) {
    changed.buffers[id].start = Start::zeros;
    changed.buffers[id].life = Life::step;
  }
  for (Program& program : changed.programs)
    std::erase_if(program.holds, [&](const Hold& hold) { return results.contains(hold.buffer); });
}

}  // namespace

Job without(const Job& job, const std::function<bool(const Task&)>& left_out) {
  Job changed = job;
  rewrite_each(job, changed, [&](Rewriter& rewriter, const Task& task, std::size_t index) {
    if (left_out(task))
      rewriter.leave_out(index);
    else
      rewriter.keep(index);
  });
  return changed;
}

Job without_communication(const Job& job) {
  Job changed = job;
  Meetings meetings(job, changed);
  const bool on_host = computes_on_host(job);
  const std::set<std::uint8_t> communicating = communicating_streams(job);
  rewrite_each(job, changed, [&](Rewriter& rewriter, const Task& task, std::size_t index) {
    const Action& action = job.deed_of(task).action;
    if (communicates(job, task) || std::holds_alternative<Move>(action) ||
        std::holds_alternative<AddRows>(action)) {
      rewriter.leave_out(index);
    } else if (on_host && waits(job, task)) {
      if (meetings.is_of_all(task)) rewriter.append(meetings.meet(task.micro_batch));
      rewriter.leave_out(index);
    } else {
      Task& kept = rewriter.keep(index);
      if (communicating.contains(kept.stream)) kept.stream = 0;
    }
  });
  begin_results_with_zeros(job, changed);
  return changed;
}

Job with_pauses(const Job& job, const std::function<Duration(const Work&)>& lasting) {
  Job changed = job;
  Meetings meetings(job, changed);
  rewrite_each(job, changed, [&](Rewriter& rewriter, const Task& task, std::size_t index) {
    if (communicates(job, task) && job.deed_of(task).origin.label != 0) {
      Work work;
      work.operation = Operation::pause;
      work.host = lasting(job.works[task.work]);
      work.communicator = job.works[task.work].communicator;
      Task& pause = rewriter.keep(index);
      pause.work = number_of(changed, work);
      pause.deed = meetings.pause(task);
    } else if (communicates(job, task) ||
               std::holds_alternative<AddRows>(job.deed_of(task).action)) {
      rewriter.leave_out(index);
    } else {
      if (waits(job, task) && meetings.is_of_all(task))
        rewriter.append(meetings.meet(task.micro_batch));
      rewriter.keep(index);
    }
  });
  begin_results_with_zeros(job, changed);
  return changed;
}

Job without_updates(const Job& job) {
  return without(job, [&](const Task& task) {
    return job.works[task.work].operation == Operation::optimizer;
  });
}

Job repeated(Job job, int rounds) {
  if (rounds < 1) throw std::invalid_argument("a step is done at least once");
  for (Program& program : job.programs) program.rounds *= rounds;
  return job;
}

Job with_background(const Job& job, Bytes size, Duration pause) {
  for (const Program& program : job.programs)
    for (const Task& task : program.tasks)
      if (communicates(job, task))
        throw std::invalid_argument("a step with collectives beside it must have none of its own");
  Job changed = without(job, [&](const Task& task) {
    return std::holds_alternative<Meet>(job.deed_of(task).action);
  });
  Program& beside = changed.beside.emplace();
  const auto stream = static_cast<std::uint8_t>(changed.streams.size());
  changed.streams.push_back({.name = "background", .beside = true});
  const auto add = [&](const Work& work, const Action& action) {
    beside.tasks.push_back(
        {.work = static_cast<std::uint32_t>(changed.works.size()),
         .deed = static_cast<std::uint32_t>(changed.known_deeds() + changed.own.deeds.size()),
         .stream = stream});
    changed.works.push_back(work);
    changed.own.deeds.push_back({action, {}});
  };
  if (pause > Duration::zero()) {
    Work sleeping;
    sleeping.operation = Operation::pause;
    sleeping.host = pause;
    add(sleeping, Pause{});
  }
  Communicator& world = changed.communicators.emplace_back();
  world.name = "world beside";
  for (std::size_t rank = 0; rank < changed.ranks(); ++rank) {
    if (rank == 0) world.groups.emplace_back();
    world.groups.front().push_back(static_cast<std::int32_t>(rank));
  }
  Slice sent;
  sent.buffer = static_cast<BufferId>(changed.buffers.size());
  sent.count = std::max<std::int64_t>(1, size.count / 4);
  changed.buffers.push_back({.holds = Holds::note,
                             .name = static_cast<std::int16_t>(changed.labels.size()),
                             .type = DType::fp32,
                             .elements = sent.count,
                             .life = Life::step,
                             .start = Start::zeros});
  changed.labels.emplace_back("background");
  Work work;
  work.operation = Operation::all_reduce;
  work.payload = size;
  add(work, Collective{.reduction = Reduction::sum,
                       .communicator = static_cast<std::int16_t>(changed.communicators.size() - 1),
                       .from = sent,
                       .to = sent});
  return changed;
}

}  // namespace ddpsim::program
