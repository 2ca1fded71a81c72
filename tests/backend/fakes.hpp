#pragma once

#include <set>

#include <catch2/catch.hpp>
#include <gloo/rendezvous/hash_store.h>

#include "backend/job/rendezvous.hpp"
#include "backend/job/start_ranks.hpp"
#include "backend/nccl/nccl_backend.hpp"
#include "tests/backend/jobs.hpp"
#include "tests/backend/nccl/fake_gpu.hpp"

namespace ddpsim {

/// `body` as each of `ranks` threads, with a backend on the fake GPU that `make` gives it.
template <typename Make, typename Body>
int on_fakes(int ranks, GpuLink link, std::chrono::milliseconds timeout, Make make, Body body) {
  const auto store = std::make_shared<gloo::rendezvous::HashStore>();
  return run_threads(ranks, [&](int rank) {
    const auto rendezvous = Rendezvous::in_process(store);
    rendezvous->meet(rank, ranks, "", timeout);
    const auto backend = make_nccl_backend(make(rank), link, *rendezvous, rank, ranks, "", timeout);
    return body(*backend);
  });
}

inline SmallJob gpu_job(int ranks) {
  SmallJob job(ranks);
  job.cluster.device.synchronous = false;
  job.cluster.device.multiprocessors = 10;
  return job;
}

/// What a GPU could know of the order of calls: streams are in order, and a wait puts a record
/// before what follows. `before(a, b)`: call a has ended before call b begins, whatever the GPU
/// does.
class Order {
 public:
  /// `host`: what the host has seen to be done is before all it gives later.
  explicit Order(const std::vector<GpuCall>& calls, bool host = false) : ancestors_(calls.size()) {
    std::map<Stream, std::size_t> last;
    std::map<int, std::size_t> recorded;
    std::vector<std::size_t> seen;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const GpuCall& call = calls[i];
      const auto inherit = [&](std::size_t from) {
        ancestors_[i].insert(ancestors_[from].begin(), ancestors_[from].end());
        ancestors_[i].insert(from);
      };
      if (const auto found = last.find(call.stream); found != last.end()) inherit(found->second);
      if (call.kind == GpuCall::Kind::wait)
        if (const auto found = recorded.find(call.event); found != recorded.end())
          inherit(found->second);
      if (call.kind == GpuCall::Kind::seen) {
        if (const auto found = recorded.find(call.event); host && found != recorded.end())
          seen.push_back(found->second);
        continue;
      }
      for (const std::size_t each : seen) inherit(each);
      if (call.kind == GpuCall::Kind::record) recorded[call.event] = i;
      last[call.stream] = i;
    }
  }
  bool before(std::size_t a, std::size_t b) const { return ancestors_[b].count(a) > 0; }

 private:
  std::vector<std::set<std::size_t>> ancestors_;
};

/// The calls of one step on one rank.
inline std::vector<GpuCall> calls_of(const SmallJob& job, const Schedule& schedule,
                                     GpuLink link = {}) {
  std::vector<GpuCall> calls;
  REQUIRE(on_fakes(
              1, link, std::chrono::seconds{5},
              [&](int) {
                auto gpu = std::make_unique<FakeGpu>();
                gpu->log = &calls;
                return gpu;
              },
              [&](Backend& backend) {
                backend.load(job.workload, job.optimizer);
                calls.clear();
                backend.run(schedule);
                return 0;
              }) == 0);
  return calls;
}

/// Calls of each task, in the order of the schedule: those between the task's ranges. The end of a
/// task is recorded in event 6 + 2 i.
inline std::vector<std::vector<std::size_t>> calls_by_task(const Schedule& schedule,
                                                           const std::vector<GpuCall>& calls) {
  std::vector<std::vector<std::size_t>> by_task(schedule.tasks.size());
  std::vector<std::size_t> pending;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind == GpuCall::Kind::seen || calls[i].range.empty() || calls[i].range == "step")
      continue;
    pending.push_back(i);
    const bool ends = calls[i].kind == GpuCall::Kind::record && calls[i].event % 2 == 0;
    if (!ends) continue;
    const auto task = static_cast<std::size_t>((calls[i].event - 6) / 2);
    REQUIRE(task < by_task.size());
    by_task[task] = std::move(pending);
    pending.clear();
  }
  return by_task;
}

}  // namespace ddpsim
