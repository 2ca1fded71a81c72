#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "backend/measure/check_gradients.hpp"
#include "backend/run/job.hpp"
#include "model/parallel/order/build_job.hpp"
#include "model/program/variants.hpp"
#include "model/workload/architecture.hpp"

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

  program::Job step(const Training& training) const {
    return build_job(StepWorks(workload, cluster, optimizer), training);
  }
  program::Job step(Strategy strategy) const {
    Training training;
    training.strategy = strategy;
    training.bucket_cap = Bytes{8 << 10};
    training.first_bucket_cap = Bytes{2 << 10};
    return step(training);
  }
};

/// What the gradients of a step have to be, of which this is what each rank computes alone.
inline GradientReference reference_of(Backend& rank, const SmallJob& job, const program::Job& none,
                                      int micro_batches = 1) {
  return reference_gradients(rank, job.workload, without_updates(none), micro_batches);
}

/// The step, which in the end tells parameters where it is asked for gradients.
inline program::Job telling_parameters(program::Job job) {
  for (program::BufferId id = 0; id < job.buffers.size(); ++id)
    if (const program::Buffer& buffer = job.buffers[id]; buffer.start == program::Start::parameters)
      job.gradients[at(buffer.index)] = {id, program::nowhere, 0, buffer.elements};
  return job;
}

inline JobOptions job_of(int ranks, const std::string& backend = "threads") {
  JobOptions options;
  options.backend = backend;
  options.ranks = ranks;
  options.timeout = std::chrono::seconds{20};
  return options;
}

using KeptParameters = std::vector<std::vector<float>>;  // [parameter]

/// What ranks keep of each parameter after so many steps: all of it, or their parts put together.
inline KeptParameters parameters_after(const SmallJob& small, const Training& training, int steps) {
  const int ranks = small.cluster.ranks();
  const program::Job step = telling_parameters(small.step(training));
  std::vector<KeptParameters> kept(at(ranks));
  REQUIRE(run_job(job_of(ranks), [&](Backend& rank) {
            rank.load(small.workload, small.optimizer);
            for (int each = 0; each < steps; ++each) rank.run(step);
            if (steps == 0) rank.run(without_updates(step));
            for (int p = 0; p < static_cast<int>(small.workload.parameters.size()); ++p)
              kept[at(rank.rank())].push_back(rank.gradient(p));
            return 0;
          }) == 0);
  KeptParameters all(small.workload.parameters.size());
  for (std::size_t p = 0; p < all.size(); ++p) {
    const bool in_parts =
        !step.parts.empty() && step.parts[p].of != nobody && !step.parts[p].is_kept_whole;
    if (!in_parts) {
      for (const KeptParameters& each : kept) REQUIRE(each[p] == kept.front()[p]);
      all[p] = kept.front()[p];
      continue;
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const program::GradientRange mine = program::gradient_of_rank(step, rank, p);
      const std::vector<float>& part = kept[at(rank)][p];
      const auto begin = part.begin() + mine.at, end = begin + mine.count;
      all[p].insert(all[p].end(), begin, end);
      // Behind it is padding; in a flat parameter there may be others.
      if (!training.is_fsdp1())
        REQUIRE(std::all_of(end, part.end(), [](float each) { return each == 0; }));
    }
    REQUIRE(all[p].size() == static_cast<std::size_t>(step.parts[p].whole));
  }
  return all;
}

/// Parameters of two trainings, to the bit where sums have one order: of two ranks, whose halves
/// are exact.
inline void check_alike(const KeptParameters& found, const KeptParameters& expected, int ranks) {
  if (ranks < 3) {
    CHECK((found == expected));
    return;
  }
  for (std::size_t p = 0; p < found.size(); ++p)
    for (std::size_t i = 0; i < found[p].size(); ++i)
      if (found[p][i] != Approx(expected[p][i]).epsilon(1e-4).margin(1e-6)) {
        CAPTURE(p, i, found[p][i], expected[p][i]);
        FAIL_CHECK("another parameter");
        break;
      }
}

/// Runs a step of the training: does each rank have the mean of what it keeps of the gradients? So
/// that this can fail, half of the mean must not pass for it.
inline void check_means(const SmallJob& job, const Training& training,
                        const std::string& backend = "threads") {
  Training none = training;
  none.strategy = Strategy::none;
  const int ranks = job.cluster.ranks();
  const program::Job step = job.step(training);
  const int checked = run_job(job_of(ranks, backend), [&](Backend& rank) {
    rank.load(job.workload, job.optimizer);
    const GradientReference reference =
        reference_of(rank, job, job.step(none), training.micro_batches);
    rank.run(without_updates(step));
    ExpectedGradients expected;
    expected.in_parts = &step;
    const GradientCheck check = check_gradients(rank, job.workload, reference, expected);
    if (!check.identical) return 4;
    if (!check.good()) return 5;
    expected.divisor = 2 * ranks;
    return check_gradients(rank, job.workload, reference, expected).good() ? 6 : 0;
  });
  CHECK(checked == 0);
}

}  // namespace ddpsim
