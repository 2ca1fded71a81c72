// Strategies are told of kernels, if they listen.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/model/parallel/schedule_story.hpp"

namespace ddpsim::timed {
namespace {

class Listener : public StrategyTasks {
 public:
  explicit Listener(bool listens) : listens_(listens) {}

  bool listens_to_kernels() const override { return listens_; }
  void before_layer(StepBuilder&, program::Pass, std::size_t layer) override {
    told.push_back(fmt::format("layer {}", layer));
  }
  void before_kernel(StepBuilder& step, const PassKernel& kernel) override {
    tell(step, "before", kernel);
  }
  void after_kernel(StepBuilder& step, const PassKernel& kernel) override {
    tell(step, "after", kernel);
  }
  void gradient_ready(StepBuilder&, std::int32_t parameter) override {
    told.push_back(fmt::format("gradient {}", parameter));
  }

  Story told;

 private:
  void tell(const StepBuilder& step, const char* when, const PassKernel& kernel) {
    const bool is_forward = kernel.pass == program::Pass::forward;
    std::string line =
        fmt::format("{} {} {}: {}.{} uses", when, is_forward ? "forward" : "backward",
                    kernel.number, kernel.layer, kernel.kernel);
    for (std::size_t p = 0; p < step.works.uses.size(); ++p) {
      const ParameterUse& use = step.works.uses[p];
      const KernelRange& range = is_forward ? use.forward : use.backward;
      if (range.first <= kernel.number && kernel.number <= range.last)
        line += fmt::format(" {}", p);
    }
    told.push_back(line);
  }

  bool listens_;
};

Story told(bool listens) {
  Workload workload = two_layers();
  workload.parameters[2].backward = KernelRange{0, 0};
  Listener listener(listens);
  build_job(works_of(workload, two_ranks()), training_of(Strategy::none), listener);
  return listener.told;
}

}  // namespace

TEST_CASE("a strategy that listens is told of each kernel, and which parameters it uses",
          "[model][kernel_events]") {
  CHECK(told(true) ==
        Story{"layer 0", "before forward 0: 0.0 uses 0", "after forward 0: 0.0 uses 0", "layer 1",
              "before forward 1: 1.0 uses 1 2", "after forward 1: 1.0 uses 1 2", "layer 1",
              "before backward 0: 1.0 uses 1 2", "gradient 2", "gradient 1",
              "after backward 0: 1.0 uses 1 2", "before backward 1: 1.1 uses 1",
              "after backward 1: 1.1 uses 1", "layer 0", "before backward 2: 0.0 uses 0",
              "gradient 0", "after backward 2: 0.0 uses 0"});
}

TEST_CASE("a strategy that does not listen is told of layers alone", "[model][kernel_events]") {
  CHECK(told(false) == Story{"layer 0", "layer 1", "layer 1", "gradient 2", "gradient 1", "layer 0",
                             "gradient 0"});
}

}  // namespace ddpsim::timed
