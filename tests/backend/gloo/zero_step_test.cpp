// ZeRO's hooks for real: what becomes of the parameters.

#include <catch2/catch.hpp>

#include "model/parallel/policy/hooked_buckets.hpp"
#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

using ParameterValues = std::vector<std::vector<float>>;  // [parameter]

Training training_of(CommHookKind kind) {
  Training training;
  training.bucket_cap = Bytes{8 << 10};
  training.first_bucket_cap = Bytes{2 << 10};
  training.comm_hook.kind = kind;
  return training;
}

/// Each rank's gradients of a step without communication after `steps` of each training, with a
/// million times the parameter added: what is left of the gradient is a millionth of a parameter,
/// and the same in every training.
std::vector<ParameterValues> parameters_after(const SmallJob& job,
                                              const std::vector<Training>& trainings, int steps) {
  const int ranks = job.cluster.ranks();
  Training alone;
  alone.strategy = Strategy::none;
  UserHook& decay = alone.hooks.emplace_back();
  decay.kind = UserHookKind::decay;
  decay.value = 1e6;
  for (std::int32_t p = 0; p < static_cast<std::int32_t>(job.workload.parameters.size()); ++p)
    decay.groups.push_back({p});
  std::vector<ParameterValues> all(static_cast<std::size_t>(ranks));
  std::vector<program::Job> all_steps;
  for (const Training& each : trainings) all_steps.push_back(job.step(each));
  const program::Job last = job.step(alone);
  REQUIRE(run_job(job_of(ranks), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            for (const program::Job& each : all_steps)
              for (int step = 0; step < steps; ++step) rank.run(each);
            rank.run(last);
            for (int p = 0; p < static_cast<int>(job.workload.parameters.size()); ++p)
              all[static_cast<std::size_t>(rank.rank())].push_back(rank.gradient(p));
            return 0;
          }) == 0);
  return all;
}

}  // namespace

TEST_CASE("R45: what owners update and broadcast is what all would have updated",
          "[backend][zero_step][rules]") {
  const auto kind = GENERATE(CommHookKind::zero_step, CommHookKind::zero_step_interleaved);
  const int ranks = GENERATE(1, 2, 3);
  CAPTURE(name_of(kind), ranks);
  SmallJob job(ranks);
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adamw}) {
    job.optimizer = optimizer;
    for (const bool view : {false, true}) {
      CAPTURE(view);
      Training every = training_of(CommHookKind::allreduce), owned = training_of(kind);
      every.gradient_as_bucket_view = owned.gradient_as_bucket_view = view;
      every.micro_batches = owned.micro_batches = view ? 2 : 1;
      every.no_sync = owned.no_sync = true;
      REQUIRE(job.step(owned).groups.size() > 2);
      const std::vector<ParameterValues> expected = parameters_after(job, {every}, 3);
      CHECK((parameters_after(job, {owned}, 3) == expected));
      CHECK((parameters_after(job, {every}, 0) != expected));
    }
  }
}

TEST_CASE("R45: before ZeRO knows the buckets nobody updates parameters",
          "[backend][zero_step][rules]") {
  const SmallJob job(2);
  const auto kind = GENERATE(CommHookKind::zero_step, CommHookKind::zero_step_interleaved);
  const Training training = training_of(kind);
  const std::vector<ParameterValues> untouched = parameters_after(job, {training}, 0);
  for (const int iteration : {1, 2, 3}) {
    CAPTURE(iteration);
    Training early = training;
    early.iteration = iteration;
    CHECK((parameters_after(job, {early}, 1) == untouched) == (iteration < 3));
  }
}

TEST_CASE("what moves parameters together for ZeRO's hooks leaves them what they are",
          "[backend][zero_step]") {
  const SmallJob job(2);
  Training small = training_of(CommHookKind::zero_step);
  small.iteration = 2;  // in which nothing is updated
  Training large = small;
  large.bucket_cap = Bytes{16 << 10};
  Training averaging = training_of(CommHookKind::post_local_sgd);
  averaging.comm_hook.post_local_sgd.start_iteration = 2;
  averaging.iteration = 3;
  const std::vector<ParameterValues> expected = parameters_after(job, {averaging}, 1);
  CHECK((parameters_after(job, {small, large, averaging}, 1) == expected));
  CHECK((parameters_after(job, {small}, 1) != expected));
}

TEST_CASE("R45: a step for more ranks than there are is refused", "[backend][zero_step]") {
  const SmallJob job(2);
  const auto refused = [&](const program::Job& step, const std::string& why) {
    return run_job(job_of(2), [&](Backend& rank) {
      rank.load(job.workload, job.optimizer);
      try {
        rank.run(step);
      } catch (const std::invalid_argument& problem) {
        return std::string(problem.what()).find(why) != std::string::npos ? 0 : 1;
      }
      return 2;
    });
  };
  program::Job step = SmallJob(3).step(training_of(CommHookKind::zero_step));
  CHECK(refused(step, "the job is for 3 ranks, and there are 2") == 0);
  step.program_of.pop_back();  // it says so, but a third has work in it
  for (program::Communicator& each : step.communicators) each.groups = {{0, 1}};
  CHECK(refused(step, "sends from place 2, of 2") == 0);
}

}  // namespace ddpsim
