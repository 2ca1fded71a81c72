#include "tools/plan/plan_words.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/nearest.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/grid.hpp"

namespace ddpsim {
namespace {

constexpr int most_planned_gpus = 1'000'000, most_planned_batch = 10'000'000, most_shown = 10'000;
constexpr std::size_t most_sizes = 1000, most_batches = 1000;

std::vector<int> numbers_of(const std::string& flag, const std::string& text, int most,
                            std::size_t most_numbers) {
  std::vector<int> numbers;
  if (text.empty()) return numbers;
  for (const std::string& value : parse_values(flag + " " + text, text)) {
    const int number = count_of(flag, value, 1, most);
    if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
  }
  if (numbers.size() > most_numbers)
    throw InputError(fmt::format("{} {}: {} numbers are too many: at most {}", flag, text,
                                 numbers.size(), most_numbers));
  return numbers;
}

/// Strategies that average gradients, which `none` does not.
std::vector<Strategy> strategies_of(const std::string& text) {
  std::vector<Strategy> strategies;
  if (text.empty()) return strategies;
  std::vector<std::string> known;
  for (const Strategy strategy : all_strategies)
    if (strategy != Strategy::none) known.emplace_back(name_of(strategy));
  for (const std::string& name : parse_values("--strategies " + text, text)) {
    if (std::ranges::find(known, name) == known.end()) {
      const std::string guess = nearest(name, known);
      throw InputError(
          fmt::format("--strategies {}: expected strategies that average gradients "
                      "({}), got \"{}\"{}",
                      text, fmt::join(known, ", "), name,
                      guess.empty() ? "" : "; did you mean \"" + guess + "\"?"));
    }
    strategies.push_back(*strategy_named(name));
  }
  return strategies;
}

}  // namespace

PlanRequest plan_request(const std::string& file, const std::vector<Setting>& set, bool laws_only,
                         const PlanWords& words) {
  for (const Setting& setting : set)
    for (const char* key : {"cluster.nodes", "cluster.ranks"})
      if (!words.gpus.empty() && setting.key == key)
        throw InputError(
            fmt::format("--gpus says how many there are: leave {} out", setting_text(setting)));
  return {.file = file,
          .set = set,
          .laws_only = laws_only,
          .gpus = numbers_of("--gpus", words.gpus, most_planned_gpus, most_sizes),
          .batches = numbers_of("--batches", words.batches, most_planned_batch, most_batches),
          .strategies = strategies_of(words.strategies)};
}

std::size_t most_planned_rows(const PlanWords& words) {
  return static_cast<std::size_t>(count_of("--best", words.best, 1, most_shown));
}

}  // namespace ddpsim
