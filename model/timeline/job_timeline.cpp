#include "model/timeline/job_timeline.hpp"

namespace ddpsim {

RankOfJob::RankOfJob(const program::Job& of, const JobTimeline& timeline, std::size_t rank)
    : job(of),
      program(of.programs[of.program_of.at(rank)]),
      times(timeline.classes[timeline.class_of.at(rank)]),
      details(timeline.details.empty()
                  ? nullptr
                  : &timeline.details[timeline.details_of[timeline.class_of[rank]]]) {}

}  // namespace ddpsim
