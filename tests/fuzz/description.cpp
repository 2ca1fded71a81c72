// A workload description. Python writes these; here what is read is priced on a device, and the
// step is predicted.

#include <stdexcept>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "sim/predict/predict.hpp"
#include "tests/fuzz/checks.hpp"
#include "tests/fuzz/targets.hpp"

namespace ddpsim::fuzz {

void description(std::string_view input) {
  const MemoryFile file("/no-such-folder/file.yaml", std::string(input));
  try {
    if (!is_workload_profile(file.path())) return;
    const Scenario scenario = read_profile_as_scenario(
        file.path(), {{"cluster", "{device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}"}});
    Training training = scenario.training;
    training.strategy = scenario.compare.front();
    const Duration step = predict(model_of(scenario), training).metrics.step;
    require(step > Duration::zero() && step < std::chrono::hours{24}, "an impossible step");
  } catch (const InputError& problem) {
    check_refusal(problem.what(), file.path().string());
  } catch (const std::invalid_argument& problem) {  // a law refuses it
    check_line(problem.what());
  }
}

}  // namespace ddpsim::fuzz
