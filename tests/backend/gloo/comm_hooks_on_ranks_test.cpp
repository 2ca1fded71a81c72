// Comm hooks in jobs on real ranks: what they leave is what one thread computes.

#include <mutex>

#include <catch2/catch.hpp>

#include "tests/backend/host_hooks.hpp"

namespace ddpsim {

TEST_CASE("a comm hook leaves on real ranks what it leaves in one thread, step after step",
          "[backend][gloo][comm_hooks]") {
  const int ranks = GENERATE(2, 3);
  const SmallJob job(ranks);
  std::vector<HookCase> cases = gpu_hooks();
  cases.push_back({{}, 1e-6});  // which GPUs have not
  cases.back().hook.kind = CommHookKind::steps;
  cases.back().hook.steps.emplace_back().kind = OwnStep::Kind::topk;
  cases.back().hook.steps.back().share = 0.25;
  cases.back().hook.steps.emplace_back().kind = OwnStep::Kind::all_gather;
  // Buckets of vectors alone are among the small ones, of which PowerSGD has nothing to draw.
  for (const Bytes cap : {Bytes{1}, Bytes{8 << 10}}) {
    int turn = cap == Bytes{1} ? 0 : 1;
    for (const HookCase& each : cases) {
      if ((turn++ + ranks) % 2 == 0) continue;  // on the other number of ranks
      Training training;
      training.bucket_cap = cap;
      training.first_bucket_cap = cap;
      training.comm_hook = each.hook;
      std::mutex mutex;
      double worst = 0;
      CAPTURE(ranks, cap.count, label(each.hook));
      CHECK(run_job(job_of(ranks), [&](Backend& rank) {
              rank.load(job.workload, job.optimizer);
              const double mine = worst_hook_error(rank, job, training, 4);
              const std::lock_guard lock(mutex);
              worst = std::max(worst, mine);
              return 0;
            }) == 0);
      CHECK(worst <= each.tolerance);
    }
  }
}

}  // namespace ddpsim
