#include <algorithm>
#include <atomic>
#include <mutex>

#include <catch2/catch.hpp>

#include "backend/check_gradients.hpp"
#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

/// The gradients of every parameter after a step, by rank.
std::vector<std::vector<std::vector<float>>> gradients_after(const SmallJob& job,
                                                             const Training& training, int ranks,
                                                             const std::string& backend) {
  std::vector<std::vector<std::vector<float>>> all(static_cast<std::size_t>(ranks));
  const Schedule schedule = job.schedule(training);
  REQUIRE(run_job(job_of(ranks, backend), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            rank.run(schedule);
            auto& mine = all[static_cast<std::size_t>(rank.rank())];
            for (int p = 0; p < static_cast<int>(job.workload.parameters.size()); ++p)
              mine.push_back(rank.gradient(p));
            return 0;
          }) == 0);
  return all;
}

Training training_of(Strategy strategy) {
  Training training;
  training.strategy = strategy;
  training.bucket_cap = Bytes{8 << 10};
  training.first_bucket_cap = Bytes{2 << 10};
  return training;
}

}  // namespace

TEST_CASE("every strategy ends with the mean of the local gradients on every rank",
          "[backend][gradients]") {
  const int ranks = GENERATE(1, 2, 3);
  const std::string backend = ranks == 3 ? GENERATE("threads", "gloo") : "threads";
  const SmallJob job(ranks);
  CAPTURE(ranks, backend);
  for (const int micro_batches : {1, 3})
    for (const bool no_sync : {false, true})
      for (const bool view : {false, true})
        for (const Strategy strategy :
             {Strategy::naive, Strategy::flat, Strategy::overlap, Strategy::bucketed}) {
          CAPTURE(micro_batches, no_sync, view, name_of(strategy));
          Training training = training_of(strategy);
          training.micro_batches = micro_batches;
          training.no_sync = no_sync;
          training.gradient_as_bucket_view = view;
          Training none = training;
          none.strategy = Strategy::none;
          const int code = run_job(job_of(ranks, backend), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            const GradientReference reference =
                reference_gradients(rank, job.workload, job.schedule(none), micro_batches);
            rank.run(job.schedule(training));
            return check_gradients(rank, job.workload, reference).good() ? 0 : 5;
          });
          CHECK(code == 0);
        }
}

TEST_CASE("two ranks average to the same bits under every strategy", "[backend][gradients]") {
  // The sum of two is the same in any order, and halving is exact.
  const SmallJob job(2);
  const auto naive = gradients_after(job, training_of(Strategy::naive), 2, "threads");
  CHECK(naive[0] == naive[1]);
  const auto local = gradients_after(job, training_of(Strategy::none), 2, "threads");
  CHECK(local[0] != local[1]);
  for (const Strategy strategy : {Strategy::flat, Strategy::overlap, Strategy::bucketed}) {
    CAPTURE(name_of(strategy));
    CHECK(gradients_after(job, training_of(strategy), 2, "threads") == naive);
  }
}

TEST_CASE("no gradient is left out and none is all zeros", "[backend][gradients]") {
  const SmallJob job(1);
  const auto local = gradients_after(job, training_of(Strategy::none), 1, "threads");
  for (const std::vector<float>& gradient : local[0])
    CHECK(std::count(gradient.begin(), gradient.end(), 0.0F) <
          static_cast<long>(gradient.size()) / 4 + 1);
}

TEST_CASE("a step repeats its gradients although parameters are updated", "[backend][gradients]") {
  const SmallJob job(2);
  const Schedule schedule = job.schedule(Strategy::bucketed);
  CHECK(run_job(job_of(2), [&](Backend& rank) {
          rank.load(job.workload, job.optimizer);
          rank.run(schedule);
          const std::vector<float> first = rank.gradient(0);
          rank.run(schedule);
          return rank.gradient(0) == first ? 0 : 5;
        }) == 0);
}

TEST_CASE("wrong gradients are found", "[backend][gradients]") {
  const SmallJob job(2);
  std::atomic<int> found = 0;
  run_job(job_of(2), [&](Backend& rank) {
    rank.load(job.workload, job.optimizer);
    GradientReference reference =
        reference_gradients(rank, job.workload, job.schedule(Strategy::none), 1);
    rank.run(job.schedule(Strategy::naive));
    reference.mean[3][0] += 1e-3;
    const GradientCheck off = check_gradients(rank, job.workload, reference);
    if (off.identical && off.first_wrong == job.workload.parameters[3].name) ++found;
    rank.run(job.schedule(Strategy::none));  // now each rank has its own
    if (!check_gradients(rank, job.workload, reference).identical) ++found;
    return 0;
  });
  CHECK(found == 4);
}

TEST_CASE("hooks fire once for each gradient, in arrival order, with the gradient complete",
          "[backend][gradients]") {
  const SmallJob job(2);
  const StepCosts costs(job.workload, job.cluster, job.optimizer);
  std::mutex mutex;
  std::vector<std::vector<int>> fired(2);
  const auto local = gradients_after(job, training_of(Strategy::none), 2, "threads");
  int complete = 0;
  run_job(job_of(2), [&](Backend& rank) {
    rank.load(job.workload, job.optimizer);
    RunOptions options;
    options.hook = [&](int parameter, int micro_batch) {
      const std::lock_guard lock(mutex);
      const auto r = static_cast<std::size_t>(rank.rank());
      fired[r].push_back(parameter);
      complete += micro_batch == 0 &&
                  rank.gradient(parameter) == local[r][static_cast<std::size_t>(parameter)];
    };
    rank.run(job.schedule(Strategy::bucketed), options);
    return 0;
  });
  CHECK(fired[0] == costs.arrival);
  CHECK(fired[1] == costs.arrival);
  CHECK(complete == 2 * static_cast<int>(costs.arrival.size()));
}

}  // namespace ddpsim
