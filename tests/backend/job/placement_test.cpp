#include "backend/job/placement.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "tests/backend/jobs.hpp"

namespace ddpsim {

TEST_CASE("every gradient is written by exactly one kernel, and none after it is ready",
          "[backend][placement]") {
  WorkloadSize size;
  size.batch = 2;
  size.sequence = 16;
  for (const Workload& workload :
       {SmallJob(2).workload, build_workload("mlp", MlpShape{{7, 7, 7, 7}}, size)}) {
    const auto bindings = bind_gradients(workload);
    std::vector<int> writers(workload.parameters.size(), 0);
    for (std::size_t layer = 0; layer < bindings.size(); ++layer)
      for (std::size_t kernel = 0; kernel < bindings[layer].size(); ++kernel) {
        std::vector<std::int32_t> written = bindings[layer][kernel].fills;
        if (bindings[layer][kernel].result != nobody)
          written.push_back(bindings[layer][kernel].result);
        for (const std::int32_t p : written) {
          const Parameter& parameter = workload.parameters[static_cast<std::size_t>(p)];
          ++writers[static_cast<std::size_t>(p)];
          CHECK(parameter.layer == static_cast<int>(layer));
          CHECK(static_cast<int>(kernel) <= parameter.ready_after);
        }
      }
    CHECK(writers == std::vector<int>(workload.parameters.size(), 1));
  }
}

TEST_CASE("gradients begin at multiples of the alignment and never overlap",
          "[backend][placement]") {
  const Workload workload = SmallJob(2).workload;
  for (const std::int64_t alignment : {4, 16, 256}) {
    const auto offsets = gradient_offsets(workload, alignment);
    REQUIRE(offsets.size() == workload.parameters.size() + 1);
    for (std::size_t p = 0; p < workload.parameters.size(); ++p) {
      CHECK(offsets[p] % alignment == 0);
      CHECK(offsets[p + 1] >= offsets[p] + workload.parameters[p].size().count);
    }
  }
}

TEST_CASE("buckets hold their gradients side by side; views are the bucket's own parts",
          "[backend][placement]") {
  const SmallJob job(2);
  const auto offsets = gradient_offsets(job.workload, 256);
  for (const bool view : {false, true}) {
    Training training;
    training.strategy = Strategy::bucketed;
    training.bucket_cap = Bytes{8 << 10};
    training.first_bucket_cap = Bytes{2 << 10};
    training.gradient_as_bucket_view = view;
    const Schedule schedule = job.schedule(training);
    const Placement placement = place(schedule, job.workload, offsets);
    std::int64_t end = 0;
    for (std::size_t b = 0; b < schedule.buckets.size(); ++b) {
      CHECK(placement.buckets[b].in_buckets);
      CHECK(placement.buckets[b].offset == end);
      for (const std::int32_t p : schedule.buckets[b].parameters) {
        const auto at = static_cast<std::size_t>(p);
        CHECK(placement.slices[at].offset == end);
        CHECK(placement.gradients[at].in_buckets == view);
        CHECK(placement.gradients[at].offset == (view ? end : offsets[at]));
        end += job.workload.parameters[at].size().count;
      }
    }
    CHECK(end == job.workload.gradient_size().count);
  }
  // One parameter reduced in place: the bucket is its gradient.
  const Schedule overlap = job.schedule(Strategy::overlap);
  const Placement placement = place(overlap, job.workload, offsets);
  for (std::size_t b = 0; b < overlap.buckets.size(); ++b) {
    CHECK_FALSE(placement.buckets[b].in_buckets);
    CHECK(placement.buckets[b].offset ==
          offsets[static_cast<std::size_t>(overlap.buckets[b].parameters.front())]);
  }
}

}  // namespace ddpsim
