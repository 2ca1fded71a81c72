// Whole jobs on real GPUs. Ranks are forked, so nothing here touches CUDA in this process.

#include "tests/backend/jobs.hpp"

#include <catch2/catch.hpp>

#include "backend/check_gradients.hpp"

namespace ddpsim {
namespace {

SmallJob gpu_job(int ranks, DType type) {
  SmallJob job(ranks, {512, 1024, 768, 512}, 64);
  job.cluster.device.synchronous = false;
  job.cluster.device.multiprocessors = 100;
  for (Parameter& parameter : job.workload.parameters) parameter.dtype = type;
  for (Layer& layer : job.workload.layers)
    for (auto* pass : {&layer.forward, &layer.backward})
      for (Kernel& kernel : *pass) kernel.type = type;
  return job;
}

int check_all(const JobOptions& options, const SmallJob& job) {
  return run_job(options, [&](Backend& backend) {
    backend.load(job.workload, job.optimizer);
    for (const int micro_batches : {1, 2})
      for (const Strategy strategy :
           {Strategy::naive, Strategy::flat, Strategy::overlap, Strategy::bucketed})
        for (const bool view : {false, true}) {
          Training training;
          training.strategy = strategy;
          training.bucket_cap = MiB;
          training.first_bucket_cap = Bytes{256 << 10};
          training.micro_batches = micro_batches;
          training.gradient_as_bucket_view = view;
          Training none = training;
          none.strategy = Strategy::none;
          const GradientReference reference =
              reference_gradients(backend, job.workload, job.schedule(none), micro_batches);
          const RankRun run = backend.run(job.schedule(training));
          for (const TaskTimes& times : run.times)
            if (times.end < times.start) return 6;
          if (!check_gradients(backend, job.workload, reference).good()) return 5;
        }
    return 0;
  });
}

}  // namespace

TEST_CASE("every strategy runs in loopback and leaves the gradients right", "[gpu][jobs]") {
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16}) {
    JobOptions options = job_of(1, "nccl");
    options.loopback = 8;
    CHECK(check_all(options, gpu_job(8, type)) == 0);
  }
}

TEST_CASE("two ranks on one GPU average their gradients, the same bits on both", "[gpu][jobs]") {
  JobOptions options = job_of(2, "nccl");
  options.gpus_share = true;
  options.timeout = std::chrono::seconds{60};
  CHECK(check_all(options, gpu_job(2, DType::fp32)) == 0);
}

TEST_CASE("a rank that is killed takes the others with it in time", "[gpu][jobs]") {
  JobOptions options = job_of(2, "nccl");
  options.gpus_share = true;
  options.timeout = std::chrono::seconds{5};
  const SmallJob job = gpu_job(2, DType::fp32);
  const auto begin = std::chrono::steady_clock::now();
  const int code = run_job(options, [&](Backend& backend) {
    backend.load(job.workload, job.optimizer);
    backend.run(job.schedule(Strategy::bucketed));
    if (backend.rank() == 1) std::_Exit(9);
    for (int i = 0; i < 100; ++i) backend.run(job.schedule(Strategy::bucketed));
    return 0;
  });
  CHECK(code != 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{40});
}

}  // namespace ddpsim
