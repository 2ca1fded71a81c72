#pragma once

#include <string>

#include "model/program/job.hpp"

namespace ddpsim::program {

/// "g1", "b0[0:4096]", "o0[part of shard]"
std::string text_of(const Job& job, const Slice& slice);

/// What a person reads of a job: its buffers, its communicators, and each kind of rank's program, a
/// line for each task: number, stream, what is done to which buffers, and what it waits for. Ends
/// with a line feed.
std::string text_of(const Job& job);

/// "task 5 (all_reduce of b0 on nccl)"
std::string name_of_task(const Job& job, const Program& program, std::size_t task);

}  // namespace ddpsim::program
