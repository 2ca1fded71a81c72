#include "tools/study/memory_advice.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/parallel/memory/peak_memory.hpp"
#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "sim/predict/planned_step.hpp"

namespace ddpsim {
namespace {

using Settings = std::vector<Setting>;

double in_gib(Bytes size) {
  return static_cast<double>(size.count) / static_cast<double>(GiB.count);
}

/// "naive, flat"
std::string names_of(const std::vector<Strategy>& strategies) {
  std::vector<std::string_view> names;
  for (const Strategy strategy : strategies) names.push_back(name_of(strategy));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The compared strategies that average gradients; `none`, where there are no others.
std::vector<Strategy> those_that_train(const Scenario& scenario) {
  std::vector<Strategy> strategies = scenario.compare;
  std::erase(strategies, Strategy::none);
  return strategies.empty() ? scenario.compare : strategies;
}

/// The memory under the strategy that takes the least.
StepMemory least_memory(const Scenario& scenario) {
  const StepWorks works(scenario.workload, scenario.cluster, scenario.optimizer);
  std::optional<StepMemory> least;
  for (const Strategy strategy : those_that_train(scenario)) {
    Training training = scenario.training;
    training.strategy = strategy;
    const StepMemory memory = step_memory(scenario.workload, scenario.optimizer, training,
                                          plan_step(works, training).job);
    if (!least || memory.peak < least->peak) least = memory;
  }
  return least.value_or(StepMemory{});
}

/// The scenario with more settings; none: it refuses them.
class Changed {
 public:
  Changed(const std::string& file, const Settings& set) : file_(file), set_(set) {}

  /// What a rank takes then, if that fits.
  std::optional<StepMemory> fitting(const Settings& more) const {
    Settings all = set_;
    all.insert(all.end(), more.begin(), more.end());
    try {
      const Scenario scenario = read_scenario(file_, all);
      StepMemory memory = least_memory(scenario);
      if (fits(memory.peak, scenario.cluster.device.memory)) return memory;
    } catch (const InputError&) {
    } catch (const std::invalid_argument&) {  // a law refuses what is asked of it
    }
    return std::nullopt;
  }

 private:
  const std::string& file_;
  const Settings& set_;
};

/// "workload.batch=8 takes 30.2 GiB, and with training.micro_batches=4 it is as many samples";
/// "" if even one sample does not fit.
std::string smaller_batch(const Changed& changed, const Scenario& scenario) {
  const int before = scenario.batch;
  for (int batch = before / 2; batch >= 1; batch /= 2) {
    const Setting smaller{"workload.batch", fmt::format("{}", batch)};
    const auto memory = changed.fitting({smaller});
    if (!memory) continue;
    std::string text =
        fmt::format("workload.batch={} takes {:.4g} GiB", batch, in_gib(memory->peak));
    const int passes = scenario.training.micro_batches * (before / batch);
    const std::string micro_batches = fmt::format("{}", passes);
    const auto split = changed.fitting({smaller, {"training.micro_batches", micro_batches}});
    if (before % batch == 0 && split)
      text += fmt::format(", with training.micro_batches={} {:.4g} GiB for as many samples", passes,
                          in_gib(split->peak));
    return text;
  }
  return "";
}

/// The catalogue's devices that have the memory, those of least memory first.
std::vector<std::string> larger_devices(Bytes peak) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const std::string& name : catalogue_names(device_entries)) {
    const Device device = read_device(Yaml::of_text(name));
    if (!device.synchronous && fits(peak, device.memory))
      found.emplace_back(device.memory.count, name);
  }
  std::sort(found.begin(), found.end());
  constexpr std::size_t most_named = 4;
  std::vector<std::string> names;
  for (const auto& [memory, name] : found)
    if (names.size() < most_named) names.push_back(name);
  if (found.size() > most_named)
    names.push_back(fmt::format("{} more (ddpsim list devices)", found.size() - most_named));
  return names;
}

}  // namespace

std::string memory_advice(const std::string& file, const Settings& set) {
  const Scenario scenario = read_scenario(file, set);
  const Bytes device = scenario.cluster.device.memory;
  const StepMemory memory = least_memory(scenario);
  if (device <= Bytes{} || fits(memory.peak, device)) return "";
  const Changed changed(file, set);
  std::vector<std::string> ways;
  const auto add = [&](std::string way) {
    if (!way.empty()) ways.push_back(std::move(way));
  };
  if (scenario.batch > 1 && !scenario.described) add(smaller_batch(changed, scenario));
  if (const auto plain = changed.fitting({{"workload.optimizer", "sgd-plain"}}))
    add(fmt::format("workload.optimizer=sgd-plain takes {:.4g} GiB", in_gib(plain->peak)));
  if (const auto names = larger_devices(memory.peak); !names.empty())
    add(fmt::format("devices that hold it are {}", fmt::join(names, ", ")));
  const program::MemoryByKind& there = memory.at_peak;
  using program::Holds;
  const Bytes held = there[Holds::parameter] + there[Holds::frozen] + there[Holds::optimizer] +
                     there[Holds::gradient] + there[Holds::bucket];
  std::string text = fmt::format(
      "no strategy that is compared ({}) fits {:.4g} GiB: the least takes {:.4g} GiB, {:.4g} of it "
      "parameters, gradients, buckets and optimizer state (fsdp, zero1 to zero3 and ZeRO's "
      "comm hooks shard these)",
      names_of(those_that_train(scenario)), in_gib(device), in_gib(memory.peak), in_gib(held));
  if (there[Holds::activation] > Bytes{})
    text += fmt::format(
        " and {:.4g} activations (checkpoints keep fewer: workload.activation_checkpointing, or in "
        "a "
        "model that `ddpsim describe` captures)",
        in_gib(there[Holds::activation]));
  return text + (ways.empty() ? "; with these strategies no smaller batch, no optimizer and "
                                "no device of the catalogue fits"
                              : fmt::format("; what fits: {}", fmt::join(ways, "; ")));
}

}  // namespace ddpsim
