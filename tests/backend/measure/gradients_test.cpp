#include <algorithm>
#include <atomic>
#include <mutex>

#include <catch2/catch.hpp>

#include "backend/measure/check_gradients.hpp"
#include "model/parallel/check_for_ranks.hpp"
#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

/// The gradients of every parameter after a step, by rank.
std::vector<std::vector<std::vector<float>>> gradients_after(const SmallJob& job,
                                                             const Training& training, int ranks,
                                                             const std::string& backend) {
  std::vector<std::vector<std::vector<float>>> all(static_cast<std::size_t>(ranks));
  const program::Job step = job.step(training);
  REQUIRE(run_job(job_of(ranks, backend), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            rank.run(step);
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

/// The step without the all-reduces of these parameters' gradients, of a strategy that sends each
/// by itself.
program::Job without_reducing(program::Job job, const std::vector<std::int32_t>& parameters) {
  for (program::Deed& deed : job.own.deeds) {
    const auto* reduced = std::get_if<program::Collective>(&deed.action);
    if (reduced == nullptr || deed.origin.group == nobody) continue;
    const std::int32_t sent =
        job.groups[static_cast<std::size_t>(deed.origin.group)].parameters.front();
    if (std::ranges::find(parameters, sent) != parameters.end())
      deed.action = program::Touch{reduced->to};
  }
  return job;
}

}  // namespace

TEST_CASE("R24, R27: every strategy ends with the mean of the local gradients on every rank",
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
                reference_of(rank, job, job.step(none), micro_batches);
            rank.run(job.step(training));
            return check_gradients(rank, job.workload, reference).good() ? 0 : 5;
          });
          CHECK(code == 0);
        }
}

TEST_CASE("R4: a sparse gradient is gathered, and ends as the mean of all rows of all ranks",
          "[backend][gradients]") {
  const int ranks = GENERATE(1, 2, 3);
  const std::string backend = ranks == 2 ? GENERATE("threads", "gloo") : "threads";
  SmallJob job(ranks);
  job.workload.parameters[0].sparse = true;
  job.workload.parameters[0].sparse_rows = 7;
  CAPTURE(ranks, backend);
  for (const int micro_batches : {1, 2})
    for (const bool view : {false, true})
      for (const Strategy strategy :
           {Strategy::naive, Strategy::flat, Strategy::overlap, Strategy::bucketed}) {
        CAPTURE(micro_batches, view, name_of(strategy));
        Training training = training_of(strategy);
        training.micro_batches = micro_batches;
        training.no_sync = true;
        training.gradient_as_bucket_view = view;
        Training none = training;
        none.strategy = Strategy::none;
        const program::Job step = job.step(training);
        Sent expected;
        for (const program::Task& task : step.programs.front().tasks)
          if (const Work& work = step.works[task.work]; is_collective(work.operation)) {
            ++expected.collectives;
            expected.payload += work.payload;
          }
        const int code = run_job(job_of(ranks, backend), [&](Backend& rank) {
          rank.load(job.workload, job.optimizer);
          const GradientReference reference =
              reference_of(rank, job, job.step(none), micro_batches);
          std::size_t zeros = 0, uneven = 0;  // elements of the sparse gradient
          for (const double value : reference.mean[0]) zeros += value == 0 ? 1 : 0;
          for (const float value : rank.gradient(0)) uneven += value == 0 ? 1 : 0;
          const std::size_t width = reference.mean[0].size() / 64;
          if (uneven != (64 - 7) * width) return 6;
          if (zeros > uneven || zeros < (64 - 7 * static_cast<std::size_t>(ranks)) * width)
            return 7;
          for (int round = 0; round < 2; ++round) {
            const RankRun run = rank.run(step);
            if (!check_gradients(rank, job.workload, reference).good()) return 5;
            if (run.sent != expected) return 8;
          }
          return 0;
        });
        CHECK(code == 0);
      }
}

TEST_CASE("R25: gradients that are copied and divided together end as the same mean",
          "[backend][gradients]") {
  const SmallJob job(2);
  for (const int micro_batches : {1, 2})
    for (const bool view : {false, true}) {
      CAPTURE(micro_batches, view);
      Training training = training_of(Strategy::bucketed);
      training.micro_batches = micro_batches;
      training.gradient_as_bucket_view = view;
      const auto apart = gradients_after(job, training, 2, "threads");
      training.batched_grad_copy = true;
      CHECK(gradients_after(job, training, 2, "threads") == apart);
      CHECK(apart[0] == apart[1]);
    }
}

TEST_CASE("gradients in buckets of one's own, shared or not, end as the same mean",
          "[backend][gradients]") {
  const SmallJob job(2);
  const std::string backend = GENERATE("threads", "gloo");
  for (const int micro_batches : {1, 2})
    for (const Bytes cap : {Bytes{1}, 25 * MiB}) {
      CAPTURE(backend, micro_batches, cap.count);
      Training training = training_of(Strategy::bucketed);
      training.micro_batches = micro_batches;
      training.bucket_cap = cap;
      training.first_bucket_cap.reset();
      const auto of_ddp = gradients_after(job, training, 2, backend);
      for (const bool wait_for_all : {false, true})
        for (const bool copied : {false, true}) {
          training.copied_buckets = copied;
          training.flattened_buckets = !copied;
          training.wait_for_all = wait_for_all;
          CHECK(gradients_after(job, training, 2, backend) == of_ddp);
        }
      CHECK(of_ddp[0] == of_ddp[1]);
    }
}

TEST_CASE("R36: ranks without inputs send zeros, and all end with the others' mean",
          "[backend][gradients]") {
  const SmallJob job(3);
  const std::string backend = GENERATE("threads", "gloo");
  for (const bool by_all : {true, false})
    for (const bool view : {false, true})
      for (const Strategy strategy : {Strategy::naive, Strategy::flat, Strategy::bucketed}) {
        CAPTURE(backend, by_all, view, name_of(strategy));
        Training training = training_of(strategy);
        training.gradient_as_bucket_view = view;
        training.join = Join{true, by_all, 1};
        Training none = training;
        none.strategy = Strategy::none;
        Training everyone = none;
        everyone.join.reset();
        const int code = run_job(job_of(3, backend), [&](Backend& rank) {
          rank.load(job.workload, job.optimizer);
          // The sum of those that have inputs, by hand.
          std::vector<std::vector<double>> sums;
          rank.run(job.step(everyone));
          for (int p = 0; p < static_cast<int>(job.workload.parameters.size()); ++p) {
            const std::vector<float> mine = rank.gradient(p);
            auto& sum = sums.emplace_back(mine.size(), 0.0);
            if (rank.rank() < 2) std::copy(mine.begin(), mine.end(), sum.begin());
            rank.sum(sum);
          }
          const GradientReference reference = reference_of(rank, job, job.step(none), 1);
          for (std::size_t p = 0; p < sums.size(); ++p)
            for (std::size_t i = 0; i < sums[p].size(); ++i)
              if (std::abs(reference.mean[p][i] - sums[p][i] / 3) > 1e-12) return 6;
          const RankRun run = rank.run(job.step(training));
          ExpectedGradients expected;
          expected.divisor = by_all ? 3 : 2;
          if (!check_gradients(rank, job.workload, reference, expected).good()) return 5;
          if (!by_all && check_gradients(rank, job.workload, reference).good()) return 8;
          return run.sent->collectives == 0 ? 7 : 0;
        });
        CHECK(code == 0);
      }
}

TEST_CASE("ranks without inputs need one with, and one communication a step",
          "[backend][gradients]") {
  const SmallJob job(2);
  const auto refused = [&](int joined, int micro_batches) -> std::string {
    Training training = training_of(Strategy::bucketed);
    training.join = Join{false, true, joined};
    training.micro_batches = micro_batches;
    try {
      check_for_ranks(job.step(training), training, job.workload);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(refused(2, 1), Catch::Contains("joined_ranks is 2, of 2 ranks"));
  CHECK_THAT(refused(1, 2), Catch::Contains("no_sync: true"));
  CHECK(refused(1, 1).empty());
}

TEST_CASE("more rows of a sparse gradient than there are is an error", "[backend][gradients]") {
  SmallJob job(1);
  job.workload.parameters[0].sparse = true;
  job.workload.parameters[0].sparse_rows = 65;
  std::string problem;
  run_job(job_of(1), [&](Backend& rank) {
    try {
      rank.load(job.workload, job.optimizer);
    } catch (const std::invalid_argument& error) {
      problem = error.what();
    }
    return 0;
  });
  CHECK_THAT(problem, Catch::Contains("has 64 rows, and its sparse gradient would send 65"));
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
  const program::Job step = job.step(Strategy::bucketed);
  CHECK(run_job(job_of(2), [&](Backend& rank) {
          rank.load(job.workload, job.optimizer);
          rank.run(step);
          const std::vector<float> first = rank.gradient(0);
          rank.run(step);
          return rank.gradient(0) == first ? 0 : 5;
        }) == 0);
}

TEST_CASE("wrong gradients are found", "[backend][gradients]") {
  const SmallJob job(2);
  std::atomic<int> found = 0;
  run_job(job_of(2), [&](Backend& rank) {
    rank.load(job.workload, job.optimizer);
    GradientReference reference = reference_of(rank, job, job.step(Strategy::none), 1);
    rank.run(job.step(Strategy::naive));
    reference.mean[3][0] += 1e-3;
    reference.mean[4][0] += 1e-3;
    const GradientCheck off = check_gradients(rank, job.workload, reference);
    if (off.identical && off.wrong == 2 && !off.good() &&
        off.first_wrong == job.workload.parameters[3].name)
      ++found;
    rank.run(job.step(Strategy::none));  // now each rank has its own
    const GradientCheck apart = check_gradients(rank, job.workload, reference);
    if (!apart.identical && apart.wrong == 6 && !apart.good() &&
        apart.first_wrong == job.workload.parameters[0].name)
      ++found;
    rank.run(without_reducing(job.step(Strategy::naive), {2, 5}));
    const GradientCheck some = check_gradients(rank, job.workload, reference);
    if (!some.identical && some.wrong == 2 && some.first_wrong == job.workload.parameters[2].name)
      ++found;
    // A comm hook may leave every rank its own.
    ExpectedGradients any;
    any.kept = Kept::nothing;
    if (check_gradients(rank, job.workload, reference, any).good()) ++found;
    return 0;
  });
  CHECK(found == 8);
}

TEST_CASE("hooks fire once for each gradient, in arrival order, with the gradient complete",
          "[backend][gradients]") {
  const SmallJob job(2);
  const StepWorks works(job.workload, job.cluster, job.optimizer);
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
    rank.run(job.step(Strategy::bucketed), options);
    return 0;
  });
  CHECK(fired[0] == works.arrival);
  CHECK(fired[1] == works.arrival);
  CHECK(complete == 2 * static_cast<int>(works.arrival.size()));
}

}  // namespace ddpsim
