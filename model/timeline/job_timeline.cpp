#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

RankOfJob::RankOfJob(const program::Job& of, const JobTimeline& timeline, std::size_t rank)
    : job(of),
      program(of.programs[of.program_of.at(rank)]),
      times(timeline.classes[timeline.class_of.at(rank)]),
      details(timeline.details.empty()
                  ? nullptr
                  : &timeline.details[timeline.details_of[timeline.class_of[rank]]]) {}

Operation operation_of(const program::Job& job, const program::Task& task) {
  const auto& [action, origin] = job.deed_of(task);
  const Operation operation = job.works[task.work].operation;
  if (operation == Operation::copy_in && std::holds_alternative<program::TakeRows>(action))
    return Operation::divide;
  if (origin.hook == nobody) return operation;
  return origin.pass == program::Pass::forward ? Operation::module_hook : Operation::gradient_hook;
}

std::vector<std::size_t> first_ranks(const JobTimeline& timeline) {
  std::vector<std::size_t> first(timeline.classes.size());
  for (std::size_t rank = timeline.class_of.size(); rank-- > 0;)
    first[timeline.class_of[rank]] = rank;
  return first;
}

}  // namespace ddpsim
