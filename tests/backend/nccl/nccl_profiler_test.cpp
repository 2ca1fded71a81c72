// NCCL's side of the interface, played here: the table is found by its name, and called with its
// layout.

#include "backend/device/cuda/nccl_profiler.hpp"

#include <cstdlib>
#include <cstring>

#include <catch2/catch.hpp>
#include <gloo/rendezvous/hash_store.h>

#include "backend/job/rendezvous.hpp"
#include "backend/run/nccl_backend.hpp"
#include "tests/backend/jobs.hpp"
#include "tests/backend/nccl/fake_gpu.hpp"
#include "tests/model/flat_step.hpp"

namespace ddpsim {
namespace {

struct Table {
  const char* name;
  int (*init)(void**, std::uint64_t, int*, const char*, int, int, int, void (*)());
  int (*start)(void*, void**, void*);
  int (*stop)(void*);
  int (*state)(void*, int, void*);
  int (*finalize)(void*);
};

}  // namespace

extern "C" Table ncclProfiler_v5;

namespace {

/// A description: type, parent, rank, and for a block its channel and, 8 bytes on, the GPU's clock.
void* begin(std::uint64_t type, void* parent, std::uint64_t timer) {
  unsigned char description[160] = {};
  std::memcpy(description, &type, 8);
  std::memcpy(description + 8, &parent, 8);
  std::memcpy(description + 32, &timer, 8);
  void* handle = nullptr;
  CHECK(ncclProfiler_v5.start(nullptr, &handle, description) == 0);
  return handle;
}
void end_block(void* handle, std::uint64_t timer) {
  CHECK(ncclProfiler_v5.state(handle, 22, &timer) == 0);
  CHECK(ncclProfiler_v5.stop(handle) == 0);
}

}  // namespace

TEST_CASE("a collective spans its first thread block to its last", "[backend][nccl_profiler]") {
  void* context = nullptr;
  int mask = 0;
  CHECK(ncclProfiler_v5.init(&context, 7, &mask, "comm", 1, 2, 0, nullptr) == 0);
  CHECK(mask == ((1 << 1) | (1 << 6)));
  void* first = begin(1 << 1, nullptr, 0);
  void* second = begin(1 << 1, nullptr, 0);
  void* a = begin(1 << 6, first, 1000);
  void* b = begin(1 << 6, first, 990);
  void* c = begin(1 << 6, second, 2000);
  end_block(a, 1500);
  CHECK(take_collective_spans().empty());  // one block of the first still runs
  end_block(b, 1400);
  CHECK(take_collective_spans().empty());  // and the second
  end_block(c, 2600);
  CHECK(begin(1 << 3, nullptr, 0) == nullptr);  // nothing else is wanted
  const auto spans = take_collective_spans();
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].start == 990);
  CHECK(spans[0].stop == 1500);
  CHECK(spans[1].start == 2000);
  CHECK(spans[1].stop == 2600);
  CHECK(take_collective_spans().empty());
  CHECK(ncclProfiler_v5.finalize(context) == 0);
}

TEST_CASE("NCCL is told to look in the program itself, unless the user named a profiler",
          "[backend][nccl_profiler]") {
  unsetenv("NCCL_PROFILER_PLUGIN");
  use_nccl_profiler();
  CHECK(std::string(std::getenv("NCCL_PROFILER_PLUGIN")) == "STATIC_PLUGIN");
  setenv("NCCL_PROFILER_PLUGIN", "mine", 1);
  use_nccl_profiler();
  CHECK(std::string(std::getenv("NCCL_PROFILER_PLUGIN")) == "mine");
}

namespace {

/// Its all-reduces are reported as NCCL would: 0.1 ms after the stream came to them, to 0.2 ms
/// before it went on.
class ReportingGpu : public FakeGpu {
 public:
  void all_reduce(const RanksCall& call, bool mean) override {
    const std::uint64_t from = nanoseconds(done_at(call.stream));
    FakeGpu::all_reduce(call, mean);
    void* collective = begin(1 << 1, nullptr, 0);
    void* block = begin(1 << 6, collective, from + 100'000);
    end_block(block, nanoseconds(done_at(call.stream)) - 200'000);
  }
};

}  // namespace

TEST_CASE("with the profiler, collectives start and end where NCCL says", "[backend][nccl]") {
  using namespace std::chrono_literals;
  SmallJob job(1);
  job.cluster.device.synchronous = false;
  job.cluster.device.multiprocessors = 10;
  const program::Job schedule = job.step(Strategy::bucketed);
  const auto lengths_with = [&](bool profile) {
    const auto rendezvous = Rendezvous::in_process(std::make_shared<gloo::rendezvous::HashStore>());
    rendezvous->meet(0, 1, "", 5s);
    auto gpu = std::make_unique<ReportingGpu>();
    gpu->pace = {1ms, 100us, 2ms, 0};
    GpuLink link;
    link.profile = profile;
    const auto backend = make_nccl_backend(std::move(gpu), link, *rendezvous, 0, 1, "", 5s);
    backend->load(job.workload, job.optimizer);
    const RankRun run = backend->run(schedule);
    take_collective_spans();
    std::vector<double> lengths;
    const FlatStep rows = flat(schedule);
    for (std::size_t i = 0; i < rows.tasks.size(); ++i)
      if (rows.tasks[i].operation == Operation::all_reduce)
        lengths.push_back(in_ms(run.times[i].end - run.times[i].start));
    return lengths;
  };
  for (const double length : lengths_with(false)) CHECK(length == Approx(2).margin(0.03));
  for (const double length : lengths_with(true)) CHECK(length == Approx(1.7).margin(0.06));
}

}  // namespace ddpsim
