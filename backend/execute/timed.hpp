#pragma once

#include <variant>

#include "backend/backend.hpp"
#include "backend/cpu/busy.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// Does a task take what the processor gave it (RunOptions::by_processor)? Where other threads may
/// compute for a task, this one's processor says nothing of it.
inline bool by_processor(const RunOptions& options, const program::Action& action) {
  const auto* code = std::get_if<program::Plugin>(&action);
  const bool is_users = code != nullptr && code->what == program::Plugin::What::gradient;
  return options.by_processor && !is_users && !std::holds_alternative<program::Wait>(action) &&
         !std::holds_alternative<program::Chunked>(action) &&
         !std::holds_alternative<program::Call>(action) &&
         !std::holds_alternative<program::Pause>(action) &&
         program::communicator_of(action) == nobody;
}

/// Makes `call` from its start to its end by the clock `now`, or as long as the processor was its
/// own.
template <typename Now, typename Call>
void timed(TaskTimes& times, bool by_processor, Now now, Call call) {
  times.start = now();
  const Duration before = by_processor ? processor_time() : Duration::zero();
  call();
  times.end = by_processor ? times.start + (processor_time() - before) : now();
}

}  // namespace ddpsim::execute
