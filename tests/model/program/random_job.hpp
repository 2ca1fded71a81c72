#pragma once

#include "model/program/job.hpp"
#include "tests/model/parallel/random_trainings.hpp"

namespace ddpsim::program {

/// A job that is no strategy's: ranks in a grid of stages, a program for each stage; collectives
/// among all, within a stage and between the stages, messages from a stage to the next, and local
/// actions between them, on several streams and of buffers of every life. All ranks communicate in
/// one order. What must wait for what mostly does; sometimes a dependency, a place or the order is
/// wrong. At most 64 tasks a program.
Job random_job(drawn::Draw& draw);

}  // namespace ddpsim::program
