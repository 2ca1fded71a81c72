// Whole jobs on real GPUs. Ranks are forked, so nothing here touches CUDA in this process.

#include <catch2/catch.hpp>

#include "backend/measure/check_gradients.hpp"
#include "tests/backend/host_hooks.hpp"

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
              reference_of(backend, job, job.step(none), micro_batches);
          const RankRun run = backend.run(job.step(training));
          for (const TaskTimes& times : run.times)
            if (times.end < times.start) return 6;
          if (!check_gradients(backend, job.workload, reference).good()) return 5;
        }
    return 0;
  });
}

Training hooked(const CommHook& hook) {
  Training training;
  training.bucket_cap = MiB;
  training.first_bucket_cap = Bytes{256 << 10};
  training.comm_hook = hook;
  training.iteration = 3;
  return training;
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

TEST_CASE("comm hooks on two ranks of one GPU leave the gradients that the host's leave",
          "[gpu][jobs][comm_hooks]") {
  JobOptions options = job_of(2, "nccl");
  options.gpus_share = true;
  options.timeout = std::chrono::seconds{60};
  const SmallJob job = gpu_job(2, DType::fp32);
  const std::vector<HookCase> cases = gpu_hooks();
  // The job says which comm hook was the first to be wrong.
  const int code = run_job(options, [&](Backend& backend) {
    backend.load(job.workload, job.optimizer);
    for (std::size_t c = 0; c < cases.size(); ++c) {
      // Sums of a thousand products differ in their order.
      const double tolerance = 4 * cases[c].tolerance + 1e-5;
      if (!(worst_hook_error(backend, job, hooked(cases[c].hook), 4) <= tolerance))
        return 10 + static_cast<int>(c);
    }
    return 0;
  });
  const std::string wrong =
      code < 10 ? "none" : label(cases.at(static_cast<std::size_t>(code - 10)).hook);
  CAPTURE(wrong);
  CHECK(code == 0);
}

TEST_CASE("comm hooks run in loopback in every type, in the order of their tasks",
          "[gpu][jobs][comm_hooks]") {
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16}) {
    CAPTURE(name_of(type));
    JobOptions options = job_of(1, "nccl");
    options.loopback = 8;
    const SmallJob job = gpu_job(8, type);
    CHECK(run_job(options, [&](Backend& backend) {
            backend.load(job.workload, job.optimizer);
            for (const HookCase& each : gpu_hooks()) {
              Training training = hooked(each.hook);
              for (training.iteration = 2; training.iteration < 5; ++training.iteration) {
                const program::Job schedule = job.step(training);
                const program::Program& program = schedule.programs.front();
                const RankRun run = backend.run(schedule);
                for (std::size_t t = 0; t < run.times.size(); ++t) {
                  if (run.times[t].end < run.times[t].start) return 6;
                  if (program.tasks[t].stream == 0) continue;
                  for (const std::uint32_t earlier : program.waits_for(t))
                    if (program.tasks[earlier].stream != 0 &&
                        run.times[t].start + std::chrono::microseconds{2} < run.times[earlier].end)
                      return 7;
                }
              }
              for (std::size_t p = 0; p < job.workload.parameters.size(); ++p)
                for (const float value : backend.gradient(static_cast<int>(p)))
                  if (!std::isfinite(value)) return 8;
            }
            return 0;
          }) == 0);
  }
}

TEST_CASE("a rank that is killed takes the others with it in time", "[gpu][jobs]") {
  JobOptions options = job_of(2, "nccl");
  options.gpus_share = true;
  options.timeout = std::chrono::seconds{5};
  const SmallJob job = gpu_job(2, DType::fp32);
  const auto begin = std::chrono::steady_clock::now();
  const int code = run_job(options, [&](Backend& backend) {
    backend.load(job.workload, job.optimizer);
    backend.run(job.step(Strategy::bucketed));
    if (backend.rank() == 1) std::_Exit(9);
    for (int i = 0; i < 100; ++i) backend.run(job.step(Strategy::bucketed));
    return 0;
  });
  CHECK(code != 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{40});
}

}  // namespace ddpsim
