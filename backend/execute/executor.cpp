#include "backend/execute/executor.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "backend/execute/refusal.hpp"
#include "backend/execute/walk.hpp"
#include "model/program/check.hpp"
#include "model/program/fingerprint.hpp"

namespace ddpsim::execute {

std::string Executor::refusal(const program::Job& job) const {
  return execute::refusal(job, device_, link_, streams_);
}

RankRun Executor::run(const program::Job& job, int ranks, const RunOptions& options) {
  if (job.ranks() != static_cast<std::size_t>(ranks))
    throw std::invalid_argument(
        fmt::format("the job is for {} ranks, and there are {}", job.ranks(), ranks));
  if (const std::uint64_t wanted = program::fingerprint(job); checked_.count(wanted) == 0) {
    program::check(job);
    if (const std::string why = refusal(job); !why.empty()) throw std::invalid_argument(why);
    checked_.insert(wanted);
  }
  memory_.arrange(job, device_);
  return Walk(job, options, memory_, device_, link_, streams_).run();
}

}  // namespace ddpsim::execute
