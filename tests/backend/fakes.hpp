#pragma once

#include <set>

#include <catch2/catch.hpp>
#include <gloo/rendezvous/hash_store.h>

#include "backend/device/cuda/gpu_events.hpp"
#include "backend/job/rendezvous.hpp"
#include "backend/job/start_ranks.hpp"
#include "backend/run/nccl_backend.hpp"
#include "model/program/text.hpp"
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

inline constexpr const char* fake_gpus = "fake GPUs";

/// `body` as each of so many ranks of a backend, of which one is fake GPUs.
template <typename Body>
int run_ranks(int ranks, const std::string& backend, Body body) {
  if (backend != fake_gpus) return run_job(job_of(ranks, backend), body);
  FakeLink link(ranks);
  return on_fakes(
      ranks, {GpuLink::Mode::shared}, std::chrono::seconds{20},
      [&](int) { return std::make_unique<FakeGpu>(&link); }, body);
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
    std::map<GpuStream, std::size_t> last;
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

/// The calls of one run of a job on its first rank; the others are there too.
inline std::vector<GpuCall> calls_of(const SmallJob& job, const program::Job& step,
                                     GpuLink link = {GpuLink::Mode::shared}) {
  const int ranks = link.mode == GpuLink::Mode::loopback ? 1 : static_cast<int>(step.ranks());
  std::vector<GpuCall> calls;
  FakeLink messages(ranks);
  REQUIRE(on_fakes(
              ranks, link, std::chrono::seconds{5},
              [&](int rank) {
                auto gpu = std::make_unique<FakeGpu>(&messages);
                if (rank == 0) gpu->log = &calls;
                return gpu;
              },
              [&](Backend& backend) {
                backend.load(job.workload, job.optimizer);
                if (backend.rank() == 0) calls.clear();
                backend.run(step);
                return 0;
              }) == 0);
  return calls;
}

inline GpuEvents events_of(const program::Job& job) {
  return {static_cast<int>(job.streams.size()),
          static_cast<std::uint32_t>(job.programs.front().tasks.size())};
}

/// Calls of each task of the first program, in its order: those between the task's ranges.
inline std::vector<std::vector<std::size_t>> calls_by_task(const program::Job& job,
                                                           const std::vector<GpuCall>& calls) {
  const GpuEvents events = events_of(job);
  std::vector<std::vector<std::size_t>> by_task(events.tasks);
  std::vector<std::size_t> pending;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind == GpuCall::Kind::seen || calls[i].range.empty() || calls[i].range == "step")
      continue;
    pending.push_back(i);
    const int event = calls[i].event - events.end(0);
    if (calls[i].kind != GpuCall::Kind::record || event < 0 || event % 2 != 0) continue;
    const auto task = static_cast<std::size_t>(event / 2);
    REQUIRE(task < by_task.size());
    by_task[task] = std::move(pending);
    pending.clear();
  }
  return by_task;
}

/// Is every task behind what it waits for, on its own stream, and does no stream wait for more?
/// Returns how many dependencies are between streams.
inline std::size_t check_dependencies(const program::Job& job, const std::vector<GpuCall>& calls) {
  const program::Program& program = job.programs.front();
  const Order order(calls);
  const auto by_task = calls_by_task(job, calls);
  std::size_t waits = 0, crossings = 0;
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    const program::Task& task = program.tasks[t];
    CAPTURE(program::name_of_task(job, program, t));
    REQUIRE(by_task[t].empty() == (task.stream == 0));  // the host's only have a name
    for (const std::size_t call : by_task[t]) CHECK(calls[call].stream == task.stream);
    for (const std::uint32_t earlier : program.waits_for(t)) {
      const program::Task& before = program.tasks[earlier];
      if (task.stream == 0 || before.stream == 0) continue;
      CHECK(order.before(by_task[earlier].back(), by_task[t].back()));
      for (const std::size_t call : by_task[t])
        if (calls[call].kind == GpuCall::Kind::work ||
            calls[call].kind == GpuCall::Kind::collective)
          CHECK(order.before(by_task[earlier].back(), call));
      crossings += before.stream != task.stream ? 1 : 0;
    }
    for (const std::size_t call : by_task[t])
      waits += calls[call].kind == GpuCall::Kind::wait ? 1 : 0;
  }
  CHECK(waits == crossings);
  return crossings;
}

}  // namespace ddpsim
