// More than one collective under way, for real: two of one communicator, as PyTorch's Gloo does,
// and those of several communicators.
#include <algorithm>
#include <atomic>
#include <thread>

#include <catch2/catch.hpp>

#include "backend/execute/stream_threads.hpp"
#include "backend/measure/check_gradients.hpp"
#include "model/parallel/check_for_ranks.hpp"
#include "model/timeline/job_timeline.hpp"
#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

/// Three buckets of some megabytes and a small one, all launched together behind backward.
struct LargeBuckets {
  SmallJob job{2, {700, 1400, 1400, 700}, 2};
  Training training;

  LargeBuckets() {
    training.bucket_cap = Bytes{1};
    training.first_bucket_cap.reset();
    training.static_graph = true;
    training.iteration = 1;
    training.bucket_caps = {Bytes{3 << 20}};
  }

  /// When the gradients' collectives began and ended on rank 0. The gradients have to be right.
  std::vector<TaskTimes> run(const Training& how) const {
    const program::Job step = job.step(how);
    Training none = how;
    none.strategy = Strategy::none;
    std::vector<TaskTimes> times;
    const int code = run_job(job_of(2), [&](Backend& rank) {
      rank.load(job.workload, job.optimizer);
      const GradientReference reference = reference_of(rank, job, job.step(none), 1);
      rank.run(step);
      const RankRun run = rank.run(step);
      const std::vector<program::Task>& tasks = step.programs.front().tasks;
      if (rank.rank() == 0)
        for (std::size_t i = 0; i < tasks.size(); ++i)
          if (is_collective(operation_of(step, tasks[i])) &&
              step.deed_of(tasks[i]).origin.group != nobody)
            times.push_back(run.times[i]);
      return check_gradients(rank, job.workload, reference).good() ? 0 : 5;
    });
    CHECK(code == 0);
    return times;
  }
};

}  // namespace

TEST_CASE("R37: for real, two buckets are under way, and a third starts when one of them ends",
          "[backend][several]") {
  LargeBuckets large;
  const std::vector<TaskTimes> one = large.run(large.training);
  REQUIRE(one.size() >= 3);
  for (std::size_t i = 1; i < one.size(); ++i) CHECK(one[i].start >= one[i - 1].end);
  large.job.cluster.collectives_at_once = 2;
  std::ptrdiff_t overlapping = 0;
  for (int tries = 0; tries < 8 && overlapping == 0; ++tries) {  // where others want the cores
    const std::vector<TaskTimes> two = large.run(large.training);
    REQUIRE(two.size() == one.size());
    for (std::size_t i = 1; i < two.size(); ++i) {
      const auto running =
          std::count_if(two.begin(), two.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const TaskTimes& at) { return at.end > two[i].start; });
      CHECK(running <= 1);  // beside this one
      overlapping += running;
    }
  }
  CHECK(overlapping >= 1);
}

TEST_CASE("R17: for real, collectives of a second group run beside those of the first",
          "[backend][several]") {
  LargeBuckets large;
  large.training.comm_hook.kind = CommHookKind::steps;
  for (const OwnStep::Kind kind :
       {OwnStep::Kind::scale, OwnStep::Kind::reduce_scatter, OwnStep::Kind::all_gather})
    large.training.comm_hook.steps.emplace_back().kind = kind;
  const std::vector<TaskTimes> one = large.run(large.training);
  REQUIRE(one.size() >= 6);
  // Scatter, gather, scatter, gather: one queue.
  for (std::size_t i = 1; i < one.size(); ++i) CHECK(one[i].start >= one[i - 1].end);
  large.training.comm_hook.steps.back().communicator = 1;
  int beside = 0;
  for (int tries = 0; tries < 8 && beside == 0; ++tries) {
    const std::vector<TaskTimes> two = large.run(large.training);
    REQUIRE(two.size() == one.size());
    for (std::size_t i = 0; i + 1 < two.size(); i += 2) {
      CHECK(two[i + 1].start >= two[i].end);  // what is gathered has been scattered
      beside += i + 2 < two.size() && two[i + 2].start < two[i + 1].end ? 1 : 0;
    }
  }
  CHECK(beside >= 1);  // while the next is
}

TEST_CASE("R50: the delayed all-reduce is done for real, and its gradients are the mean",
          "[backend][several]") {
  LargeBuckets large;
  large.training = Training{};
  const std::vector<int> arrival = arrival_order(large.job.workload);
  large.training.delayed = DelayedAllReduce{{arrival[1], arrival[0], arrival[2]}, arrival[4]};
  CHECK(large.run(large.training).size() >= 2);
  // With two at a time the optimizer could read what is being sent.
  large.job.cluster.collectives_at_once = 2;
  CHECK_THROWS_WITH(
      check_for_ranks(large.job.step(large.training), large.training, large.job.workload),
      Catch::Contains("only with one collective at a time"));
}

TEST_CASE("jobs of a queue begin in order, so many at a time", "[backend][several]") {
  StreamThreads threads;
  std::atomic<int> running = 0, most = 0;
  const auto job = [&] {
    const int now = ++running;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    --running;
  };
  for (int i = 0; i < 6; ++i) threads.submit(job);
  threads.wait_for_all();
  CHECK(most == 1);
  threads.arrange(2, 2);
  for (int i = 0; i < 12; ++i) threads.submit(job, static_cast<std::size_t>(i % 2));
  threads.wait_for_all();
  CHECK(most > 1);
  CHECK(most <= 4);
}

TEST_CASE("a job begins once those it waits for have ended, in whichever queue",
          "[backend][several]") {
  StreamThreads threads;
  threads.arrange(2, 2);
  std::atomic<bool> first = false;
  bool seen = false;
  const std::uint64_t ticket = threads.submit([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    first = true;
  });
  threads.wait(threads.submit([&] { seen = first; }, 1, {ticket}));
  CHECK(seen);
}

TEST_CASE("after an exception nothing more runs, and every wait throws it", "[backend][several]") {
  StreamThreads threads;
  threads.arrange(1, 2);
  std::atomic<int> ran = 0;
  const std::uint64_t failed = threads.submit([] { throw std::runtime_error("broken"); });
  CHECK_THROWS_WITH(threads.wait(failed), "broken");
  threads.submit([&] { ++ran; }, 0, {failed});
  CHECK_THROWS_WITH(threads.wait_for_all(), "broken");
  threads.abandon();
  CHECK(ran == 0);
}

}  // namespace ddpsim
