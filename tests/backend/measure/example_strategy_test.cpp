#include <catch2/catch.hpp>

#include "backend/measure/check_gradients.hpp"
#include "tests/backend/jobs.hpp"
#include "tests/model/program/written_jobs.hpp"

namespace ddpsim {

std::unique_ptr<StrategyTasks> make_halves();  // docs/architecture.md

TEST_CASE("the documents' example of a strategy ends with the mean of the local gradients",
          "[backend][gradients]") {
  const std::string backend = GENERATE("threads", "gloo");
  for (const int micro_batches : {1, 3})
    for (const bool no_sync : {false, true}) {
      CAPTURE(backend, micro_batches, no_sync);
      const SmallJob job(2);
      Training training, alone;
      training.micro_batches = alone.micro_batches = micro_batches;
      training.no_sync = no_sync;
      alone.strategy = Strategy::none;
      const StepWorks works(job.workload, job.cluster, job.optimizer);
      const program::Job step = build_job(works, training, *make_halves());
      CHECK(program::written::wrong_in(step) == "");
      CHECK(step.groups.size() == 2);
      CHECK(run_job(job_of(2, backend), [&](Backend& rank) {
              rank.load(job.workload, job.optimizer);
              const GradientReference reference =
                  reference_of(rank, job, job.step(alone), micro_batches);
              const RankRun run = rank.run(step);
              if (run.sent->collectives != 2 * (no_sync ? 1 : micro_batches)) return 5;
              return check_gradients(rank, job.workload, reference).good() ? 0 : 6;
            }) == 0);
    }
}

}  // namespace ddpsim
