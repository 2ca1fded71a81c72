#pragma once

#include <string>
#include <vector>

#include "backend/measure/check_gradients.hpp"
#include "backend/measure/measure_kernels.hpp"
#include "backend/measure/measure_step.hpp"
#include "backend/run/job.hpp"
#include "model/ddp/build_schedule.hpp"
#include "model/ddp/job_of_step.hpp"
#include "model/schedule/variants.hpp"
#include "model/workload/architecture.hpp"
#include "tests/model/timeline/schedule_times.hpp"

namespace ddpsim {

/// A perceptron and a cluster of CPUs for it.
struct SmallJob {
  Workload workload;
  Optimizer optimizer = Optimizer::sgd;
  Cluster cluster;

  explicit SmallJob(int ranks, std::vector<int> widths = {48, 64, 32, 80}, int batch = 8) {
    WorkloadSize size;
    size.batch = batch;
    workload = build_workload("mlp", MlpShape{std::move(widths)}, size);
    cluster.device.synchronous = true;
    cluster.device.peak.fill(FlopRate{1e11});
    cluster.device.gemm_efficiency.fill(1);
    cluster.device.memory_bandwidth = Bandwidth{1e10};
    cluster.intra_node.bandwidth = Bandwidth{1e9};
    cluster.ranks_per_node = ranks;
  }

  Schedule schedule(Training training) const {
    return build_schedule(StepWorks(workload, cluster, optimizer), training);
  }
  /// The step of a schedule of this job, as a job.
  program::Job step(const Schedule& schedule) const {
    return program::job_of(schedule, StepWorks(workload, cluster, optimizer));
  }
  JobOf steps() const {
    return [this](const Schedule& schedule) { return step(schedule); };
  }
  /// As that rank runs it: times are of the schedule's tasks.
  RankRun run(Backend& rank, const Schedule& schedule, const RunOptions& options = {}) const {
    const program::Job job = step(schedule);
    RankRun run = rank.run(job, options);
    run.times = times_of(schedule, job.programs[job.program_of[at(rank.rank())]], run.times);
    return run;
  }
  /// As all ranks ran it, likewise.
  Timeline measured(Backend& rank, const Schedule& schedule, const RunOptions& options = {},
                    std::optional<Sent>* sent = nullptr) const {
    const program::Job job = step(schedule);
    const JobTimeline of_job = measure_step(rank, job, options, sent);
    Timeline timeline;
    timeline.end = of_job.end;
    for (std::size_t r = 0; r < of_job.classes.size(); ++r)
      timeline.ranks.push_back(
          times_of(schedule, job.programs[job.program_of[r]], of_job.classes[r]));
    return timeline;
  }
  Schedule schedule(Strategy strategy) const {
    Training training;
    training.strategy = strategy;
    training.bucket_cap = Bytes{8 << 10};
    training.first_bucket_cap = Bytes{2 << 10};
    return schedule(training);
  }
};

/// What the gradients of a step have to be, of which this is what each rank computes alone.
inline GradientReference reference_of(Backend& rank, const SmallJob& job, const Schedule& none,
                                      int micro_batches = 1) {
  return reference_gradients(rank, job.workload, job.step(without_updates(none)), micro_batches);
}

inline JobOptions job_of(int ranks, const std::string& backend = "threads") {
  JobOptions options;
  options.backend = backend;
  options.ranks = ranks;
  options.timeout = std::chrono::seconds{20};
  return options;
}

}  // namespace ddpsim
