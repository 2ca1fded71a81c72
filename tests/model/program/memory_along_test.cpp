#include "model/program/memory_along.hpp"

#include <catch2/catch.hpp>

#include "tests/model/program/written_jobs.hpp"

namespace ddpsim::program {
namespace {

/// Host, compute; fp32.
struct WrittenMemory {
  written::JobWriter job{{"host", "compute"}, 1};

  MemoryPeak peak() const { return peak_of(memory_along(job.job, job.job.programs[0])); }
  void computes() { job.add(1, Compute{}); }
};

}  // namespace

TEST_CASE("buffers of the job and of the step are there throughout, views and the host's are not",
          "[model][program][memory]") {
  WrittenMemory memory;
  const BufferId weight = memory.job.buffer("w", 100, Holds::parameter, Life::job);
  memory.job.buffer("b", 10, Holds::bucket, Life::step);
  memory.job.buffer("view", 50, Holds::parameter, Life::step, Start::undefined,
                    {.buffer = weight, .count = 50});
  memory.job.buffer("host", 7, Holds::bucket, Life::step);
  memory.job.job.buffers.back().place = Place::host;
  memory.job.buffer("never comes", 7, Holds::hook, Life::held);
  memory.computes();
  const MemoryAlong along = memory_along(memory.job.job, memory.job.job.programs[0]);
  CHECK(along.changes.empty());
  CHECK(along.begin[Holds::parameter] == Bytes{400});
  CHECK(along.begin[Holds::bucket] == Bytes{40});
  CHECK(along.begin.sum() == Bytes{440});
  CHECK(memory.peak().sum() == Bytes{440});
}

TEST_CASE("the peak is of a moment, each kind's most of its own", "[model][program][memory]") {
  // 4 bytes an element. Activations rise to 30, go to 10 when gradients of 15 come: 30 is the
  // peak, reached before task 1, though 30 and 15 are the most of each.
  WrittenMemory memory;
  const BufferId a = memory.job.buffer("a", 10, Holds::activation, Life::held),
                 b = memory.job.buffer("b", 20, Holds::activation, Life::held),
                 g = memory.job.buffer("g", 15, Holds::gradient, Life::held);
  memory.job.comes(a, 1);
  memory.computes();
  memory.job.comes(b, 1);
  memory.computes();
  memory.job.goes(b, 1);
  memory.job.comes(g, 1);
  memory.computes();
  const MemoryPeak peak = memory.peak();
  CHECK(peak.sum() == Bytes{120});
  CHECK(peak.before == 1);
  CHECK(peak.at_peak[Holds::gradient] == Bytes{});
  CHECK(peak.most[Holds::activation] == Bytes{120});
  CHECK(peak.most[Holds::gradient] == Bytes{60});
}

TEST_CASE("of two equal peaks the first counts, and what comes before it goes adds up",
          "[model][program][memory]") {
  WrittenMemory memory;
  const BufferId a = memory.job.buffer("a", 10, Holds::working, Life::held),
                 b = memory.job.buffer("b", 10, Holds::working, Life::held);
  memory.computes();
  memory.job.comes(a, 1);
  memory.computes();
  memory.job.goes(a, 1);
  memory.job.comes(b, 1);
  memory.computes();
  CHECK(memory.peak().sum() == Bytes{40});
  CHECK(memory.peak().before == 1);
  memory.job.comes(a, 1);  // beside b, behind the last task
  CHECK(memory.peak().sum() == Bytes{80});
  CHECK(memory.peak().before == 3);
}

TEST_CASE("what is reserved is each pool's own peak, in whole segments of 2 MiB",
          "[model][program][memory]") {
  // The kernels' pool: a weight of 3 MiB throughout, and x of 4 MiB that goes before y of 6 MiB
  // comes: 9 MiB at most, so 10. The other pool's z of 5 MiB is there before, so 6; both together
  // are never more than 12 MiB at a time.
  constexpr std::int64_t mib = (1 << 20) / 4;  // elements
  WrittenMemory memory;
  memory.job.job.streams.push_back({.name = "copy in"});
  memory.job.buffer("w", 3 * mib, Holds::parameter, Life::job);
  const BufferId x = memory.job.buffer("x", 4 * mib, Holds::working, Life::held),
                 y = memory.job.buffer("y", 6 * mib, Holds::working, Life::held),
                 z = memory.job.buffer("z", 5 * mib, Holds::gathered, Life::held);
  memory.job.comes(z, 2);
  memory.job.comes(x, 1);
  memory.computes();
  memory.job.goes(z, 2);
  memory.job.goes(x, 1);
  memory.job.comes(y, 1);
  memory.computes();
  const MemoryAlong along = memory_along(memory.job.job, memory.job.job.programs[0]);
  CHECK(along.first_pool == 1);
  CHECK(peak_of(along).sum() == Bytes{12 << 20});
  CHECK(reserved_for(along) == Bytes{16 << 20});
}

}  // namespace ddpsim::program
