#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/backend/hooked_job.hpp"
#include "tests/backend/jobs.hpp"

namespace ddpsim {

/// What a comm hook makes of the gradients of all ranks, on the host, in one thread.
class HostHooks {
 public:
  HostHooks(const SmallJob& job, const CommHook& hook, int ranks)
      : hook_(hook),
        works_(job.workload, job.cluster, job.optimizer),
        ranks_(hook.powersgd.seed, ranks) {}

  /// [rank][parameter] gradients, before and after a step of these buckets in this iteration.
  void step(const std::vector<program::ParameterGroup>& buckets, int iteration,
            std::vector<std::vector<std::vector<float>>>& gradients) {
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const program::ParameterGroup& bucket = buckets[b];
      PerRank values(gradients.size());
      for (std::size_t r = 0; r < values.size(); ++r)
        for (const std::int32_t p : bucket.parameters) {
          const auto& each = gradients[r][static_cast<std::size_t>(p)];
          values[r].insert(values[r].end(), each.begin(), each.end());
        }
      CommBucket seen;
      for (const std::int32_t p : bucket.parameters)
        seen.gradients.push_back(works_.matrices[at(p)]);
      ranks_.run(hook_, seen,
                 {.ranks_per_node = works_.ranks_per_node.largest(),
                  .synchronous = works_.device.synchronous,
                  .iteration = iteration},
                 static_cast<std::int32_t>(b), values);
      for (std::size_t r = 0; r < values.size(); ++r) {
        auto from = values[r].begin();
        for (const std::int32_t p : bucket.parameters) {
          auto& each = gradients[r][static_cast<std::size_t>(p)];
          std::copy_n(from, each.size(), each.begin());
          from += static_cast<std::ptrdiff_t>(each.size());
        }
      }
    }
  }

 private:
  CommHook hook_;
  StepWorks works_;
  HookedRanks ranks_;
};

/// A comm hook, and how far its results may be from the host's, as a share of the largest gradient.
struct HookCase {
  CommHook hook;
  double tolerance = 0;
};

/// Every comm hook that GPUs run, and CPUs too.
inline std::vector<HookCase> gpu_hooks() {
  constexpr double fp32 = 1e-6, fp16 = 0x1p-10, bf16 = 0x1p-7;
  std::vector<HookCase> cases;
  const auto add = [&](CommHookKind kind, double tolerance) -> CommHook& {
    cases.push_back({{}, tolerance});
    cases.back().hook.kind = kind;
    cases.back().hook.powersgd.start_iteration = 2;
    cases.back().hook.powersgd.min_compression_rate = 1;
    return cases.back().hook;
  };
  add(CommHookKind::allreduce, fp32);
  add(CommHookKind::noop, fp32);
  add(CommHookKind::fp16_compress, fp16);
  add(CommHookKind::bf16_compress, bf16);
  add(CommHookKind::allreduce, bf16).wrappers = {DType::bf16, DType::fp16};
  add(CommHookKind::optimizer_overlap, fp32);
  add(CommHookKind::post_local_sgd, fp32);
  // Low rank: rounding grows with the condition of P. Codes that lie between two may differ by one.
  for (const int rank : {1, 2, 4}) {
    add(CommHookKind::powersgd, 1e-4).powersgd.rank = rank;
    add(CommHookKind::batched_powersgd, 1e-4).powersgd.rank = rank;
  }
  CommHook& cold = add(CommHookKind::powersgd, 1e-4);
  cold.powersgd.error_feedback = cold.powersgd.warm_start = false;
  add(CommHookKind::powersgd, 10 * fp16).wrappers = {DType::fp16};
  add(CommHookKind::quantization_pertensor, 1.01 / 128);
  add(CommHookKind::quantization_perchannel, 1.01 / 128);
  using Kind = OwnStep::Kind;
  const auto list = [&](std::vector<Kind> kinds, double tolerance) {
    CommHook& hook = add(CommHookKind::steps, tolerance);
    for (const Kind kind : kinds) {
      hook.steps.emplace_back().kind = kind;
      hook.steps.back().type = DType::bf16;
    }
  };
  list({Kind::scale, Kind::kernel, Kind::reduce_scatter, Kind::all_gather}, fp32);
  list({Kind::scale, Kind::all_gather, Kind::kernel}, fp32);
  list({Kind::broadcast}, fp32);
  list({Kind::cast, Kind::scale, Kind::reduce_scatter, Kind::scale, Kind::all_gather}, 2 * bf16);
  return cases;
}

/// The steps of some iterations on a backend against the host, to be run on every rank: how far the
/// gradients of this rank are from what they have to be, as a share of each parameter's largest.
inline double worst_hook_error(Backend& backend, const SmallJob& job, Training training,
                               int iterations) {
  Training local = training;
  local.strategy = Strategy::none;
  backend.run(job.step(local));
  std::vector<std::vector<std::vector<float>>> given(static_cast<std::size_t>(backend.ranks()));
  for (std::size_t p = 0; p < job.workload.parameters.size(); ++p) {
    const std::vector<float> mine = backend.gradient(static_cast<int>(p));
    const auto all = backend.gather(std::as_bytes(std::span(mine)));
    for (std::size_t r = 0; r < given.size(); ++r) {
      auto& each = given[r].emplace_back(all[r].size() / sizeof(float));
      std::memcpy(each.data(), all[r].data(), all[r].size());
    }
  }
  HostHooks host(job, training.comm_hook, backend.ranks());
  double worst = 0;
  for (int i = 0; i < iterations; ++i) {
    // Across the start of hooks that begin plainly.
    training.iteration = 2 + i;
    const program::Job step = job.step(training);
    backend.run(step);
    auto expected = given;
    host.step(step.groups, training.iteration, expected);
    const auto& mine = expected[static_cast<std::size_t>(backend.rank())];
    for (std::size_t p = 0; p < mine.size(); ++p) {
      double largest = 0, off = 0;
      const std::vector<float> got = backend.gradient(static_cast<int>(p));
      for (std::size_t e = 0; e < got.size(); ++e) {
        largest = std::max(largest, std::abs(static_cast<double>(mine[p][e])));
        const double distance = std::abs(static_cast<double>(got[e]) - mine[p][e]);
        off = std::isnan(distance) ? INFINITY : std::max(off, distance);
      }
      worst = std::max(worst, off / largest);
    }
  }
  return worst;
}

}  // namespace ddpsim
