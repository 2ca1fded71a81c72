// What DeepSpeed's stage 3 has whole, and when, counted by hand.

#include "model/parallel/policy/module_trace.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/model/parallel/schedule_story.hpp"

namespace ddpsim::timed {
namespace {

/// Modules a and b, of a kernel each, in one layer: forward runs a, then b, and backward b, then a.
/// Their parameters, 0 and 1, have 100 and 200 elements.
StepWorks two_modules() {
  using namespace std::chrono_literals;
  Workload workload;
  workload.layers.push_back({"both", {kernel(1ms), kernel(1ms)}, {kernel(1ms), kernel(1ms)}});
  workload.parameters = {parameter("a.weight", {400}, 0, 1), parameter("b.weight", {800}, 0, 0)};
  for (int p = 0; p < 2; ++p) {
    workload.parameters[at(p)].forward = KernelRange{p, p};
    workload.parameters[at(p)].backward = KernelRange{1 - p, 1 - p};
  }
  return works_of(workload, two_ranks());
}

ZeroSettings settings_of(std::int64_t prefetched, std::int64_t reused) {
  ZeroSettings settings;
  settings.variant = ZeroVariant::deepspeed;
  settings.param_persistence_threshold = 0;
  settings.prefetch_bucket_size = prefetched;
  settings.max_reuse_distance = reused;
  return settings;
}

/// What is gathered, gathered ahead and freed around each kernel of a step.
Story around_kernels(ModuleTrace& trace) {
  Story story;
  const auto tell = [&](const char* what, const std::vector<std::int32_t>& parameters) {
    if (!parameters.empty())
      story.push_back(fmt::format("{} {}", what, fmt::join(parameters, " ")));
  };
  trace.begin();
  for (const program::Pass pass : {program::Pass::forward, program::Pass::backward})
    for (const std::int32_t number : {0, 1}) {
      const PassKernel kernel{pass, 0, at(number), number};
      while (const TracedModule* module = trace.begins(kernel)) {
        tell("gather", trace.gathered_for(*module));
        tell("ahead", trace.gathered_ahead(*module));
      }
      story.push_back(
          fmt::format("{} {}", pass == program::Pass::forward ? "forward" : "backward", number));
      while (const TracedModule* module = trace.ends(kernel)) tell("free", trace.released(*module));
    }
  return story;
}

}  // namespace

TEST_CASE("a module is gathered before its kernels and freed behind them",
          "[model][zero][module_trace]") {
  ModuleTrace trace(two_modules(), settings_of(0, 0));
  REQUIRE(trace.modules().size() == 3);  // what contains the others comes first
  CHECK(trace.modules()[0].parameters.empty());
  CHECK(trace.modules()[0].backward == KernelRange{0, 1});
  CHECK(trace.modules()[2].parameters == std::vector<std::int32_t>{1});
  CHECK(around_kernels(trace) == Story{"gather 0", "forward 0", "free 0", "gather 1", "forward 1",
                                       "free 1", "gather 1", "backward 0", "free 1", "gather 0",
                                       "backward 1", "free 0"});
}

TEST_CASE("every module gathers ahead, also one that has no parameters of its own",
          "[model][zero][module_trace]") {
  // With room for one parameter. When b begins, it is there for its own backward pass, which the
  // queue passes by: so it stays, and a is gathered for the one behind that.
  ModuleTrace trace(two_modules(), settings_of(1, 0));
  const Story expected{"ahead 0",   "ahead 1",    "forward 0", "free 0",     "ahead 0",
                       "forward 1", "backward 0", "free 1",    "backward 1", "free 0"};
  CHECK(around_kernels(trace) == expected);
  CHECK(around_kernels(trace) == expected);  // and so in the next step
}

TEST_CASE("what is used again soon stays", "[model][zero][module_trace]") {
  // Behind b's forward pass comes b itself; behind a's 400 elements of b, and then a.
  ModuleTrace near(two_modules(), settings_of(0, 1));
  CHECK(around_kernels(near) == Story{"gather 0", "forward 0", "free 0", "gather 1", "forward 1",
                                      "backward 0", "free 1", "gather 0", "backward 1", "free 0"});
  ModuleTrace far(two_modules(), settings_of(0, 401));
  CHECK(around_kernels(far) == Story{"gather 0", "forward 0", "gather 1", "forward 1", "backward 0",
                                     "free 1", "backward 1", "free 0"});
}

TEST_CASE("gradients are taken module by module", "[model][zero][module_trace]") {
  const ModuleTrace trace(two_modules(), settings_of(0, 0));
  CHECK(trace.turns() == std::vector<std::vector<std::int32_t>>{{1}, {0}});
  CHECK(trace.turn_of(0) == 1);
  CHECK(trace.turn_of(1) == 0);
}

}  // namespace ddpsim::timed
