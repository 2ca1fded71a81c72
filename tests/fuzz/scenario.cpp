// A scenario, the files it names, and settings. A line `%% NAME` begins another file of that name
// beside the scenario; behind `%% --set` each line is a setting, KEY=VALUE.

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/scenario/scenario_text.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "sim/predict/predict.hpp"
#include "tests/fuzz/checks.hpp"
#include "tests/fuzz/targets.hpp"

namespace ddpsim::fuzz {
namespace {

using Settings = std::vector<Setting>;

constexpr std::string_view folder = "/no-such-folder/";
constexpr std::size_t most_files = 4, most_predicted = 64;

struct Input {
  std::vector<std::pair<std::string, std::string>> files{{"s.yaml", ""}};  ///< name, content
  Settings settings;
};

Input input_of(std::string_view text) {
  Input input;
  bool settings = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    const std::string_view bare = line.substr(0, line.find('\n'));
    if (bare.starts_with("%% ")) {
      settings = bare == "%% --set";
      const std::string_view name = bare.substr(3);
      const bool plain = name.find_first_of("/\\\0") == std::string_view::npos && name != "." &&
                         name != ".." && !name.empty();
      if (!settings && plain && input.files.size() < most_files) input.files.emplace_back(name, "");
    } else if (settings) {
      const std::size_t equals = bare.find('=');
      if (equals != std::string_view::npos)
        input.settings.emplace_back(std::string(bare.substr(0, equals)),
                                    std::string(bare.substr(equals + 1)));
    } else {
      input.files.back().second += line;
    }
  }
  return input;
}

/// What is read is predicted, or refused by a law in one line.
void check_prediction(const Scenario& scenario) {
  if (scenario.workload.parameters.size() > most_predicted || scenario.compare.empty()) return;
  try {
    Training training = scenario.training;
    training.strategy = scenario.compare.front();
    const Duration step = predict(model_of(scenario), training).metrics.step;
    require(step > Duration::zero() && step < std::chrono::hours{24}, "an impossible step");
  } catch (const std::invalid_argument& problem) {
    check_line(problem.what());
  }
}

/// The scenario written as a file, with its settings, is that scenario and is written alike again.
void check_text(const std::string& file, const Settings& settings) {
  const std::string text = scenario_text(file, settings);
  const MemoryFile again(std::string(folder) + "again.yaml", text);
  try {
    read_scenario(again.path());
  } catch (const InputError& problem) {
    require(false, problem.what(), text);
  }
  require(scenario_text(again.path(), {}) == text, "written otherwise the second time", text);
}

}  // namespace

void scenario(std::string_view text) {
  const Input input = input_of(text);
  std::vector<std::unique_ptr<MemoryFile>> files;
  for (const auto& [name, content] : input.files) try {
      files.push_back(std::make_unique<MemoryFile>(std::string(folder) + name, content));
    } catch (const std::invalid_argument&) {  // two of one name
    }
  const std::string file = files.front()->path().string();
  try {
    const Scenario read = read_scenario(file, input.settings);
    check_prediction(read);
    if (input.settings.empty() || !is_workload_profile(file)) check_text(file, input.settings);
  } catch (const InputError& problem) {
    check_line(problem.what());
    if (files.size() == 1 && input.settings.empty()) check_refusal(problem.what(), file);
  }
}

}  // namespace ddpsim::fuzz
