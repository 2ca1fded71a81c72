#pragma once

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
    for (const KeptParameters& each : kept)
      all[p].insert(all[p].end(), each[p].begin(), each[p].end());
    const auto whole = static_cast<std::size_t>(step.parts[p].whole);
    REQUIRE(all[p].size() >= whole);
    for (std::size_t i = whole; i < all[p].size(); ++i) REQUIRE(all[p][i] == 0);  // padding
    all[p].resize(whole);
  }
  return all;
}

}  // namespace ddpsim
