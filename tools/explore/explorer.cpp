#include "tools/explore/explorer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "model/base/printable.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/scenario/scenario_text.hpp"
#include "tools/picture/timeline_picture.hpp"
#include "tools/report/records/step_fields.hpp"
#include "tools/report/reports/cluster_notes.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/run_report.hpp"
#include "tools/report/reports/said_notes.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/study/comparison.hpp"
#include "tools/study/known_accuracy.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_saved = 100;

const char* name_of(Measure measure) {
  switch (measure) {
    case Measure::size:
      return "size";
    case Measure::count:
      return "count";
    case Measure::rate:
      return "rate";
    case Measure::time:
      return "time";
    case Measure::share:
      return "share";
    case Measure::choice:
      return "choice";
  }
  return "";
}

/// What a page asks.
struct Asked {
  Moved moved;
  std::optional<std::vector<std::string>> shown;  ///< strategies in the picture; none: all
};

/// Throws InputError for what is no request.
Asked asked_in(const std::string& text) {
  const InputError malformed(
      "expected {\"moved\": {\"bucket_cap\": \"50 MiB\"}, \"shown\": [\"bucketed\"]}");
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("moved") || !json["moved"].is_object()) throw malformed;
  Asked asked;
  for (const auto& [id, value] : json["moved"].items()) {
    if (!value.is_string()) throw malformed;
    asked.moved[id] = value.get<std::string>();
  }
  for (const auto& [key, value] : json.items()) {
    if (key == "moved") continue;
    if (key != "shown" || !value.is_array()) throw malformed;
    asked.shown.emplace();
    for (const Json& each : value) {
      if (!each.is_string() || !strategy_named(each.get<std::string>())) throw malformed;
      asked.shown->push_back(each.get<std::string>());
    }
  }
  return asked;
}

/// The steps to draw.
std::vector<NamedStep> shown_of(const Comparison& run, const Asked& asked) {
  std::vector<NamedStep> steps = run.named();
  if (asked.shown)
    std::erase_if(steps, [&](const NamedStep& named) {
      return std::find(asked.shown->begin(), asked.shown->end(),
                       name_of(named.step->training.strategy)) == asked.shown->end();
    });
  return steps;
}

/// What `ddpsim run --json` says, but for the buckets: their figures are in the picture.
Json record_of(const Comparison& run, const std::vector<std::string>& notes) {
  RunRequest request;
  request.buckets = false;
  return with_version(json_of(run_record(run, more_of(run, request), notes)));
}

std::string shell_word(const std::string& text) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+%@";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string inner;
  for (const char c : text) inner += c == '\'' ? "'\\''" : std::string(1, c);
  return fmt::format("'{}'", inner);
}

std::string error_answer(const std::exception& problem) {
  return one_line({{"error", printable(problem.what())}});
}

/// The rows of a scenario were measured with the scenario as it was given, and fits are made of
/// them so. In a file that says something else the same rows would fit something else. Buckets are
/// no matter: rows of `bucketed` fit nothing. Throws InputError where it matters.
void check_measured(const std::vector<Setting>& settings) {
  for (const auto& [key, value, written] : settings)
    if (key != "training.bucket_cap" && key != "training.first_bucket_cap" &&
        key != "training.comm_hook")
      throw InputError(
          fmt::format("not saved: the scenario's measured rows were not taken with {}={}: keep the "
                      "command instead",
                      key, value));
}

/// The first NAME-explored.yaml, NAME-explored-2.yaml, ... that is not there yet, as an empty file
/// that nobody else has now. Throws InputError if there can be none.
std::filesystem::path claimed_file(const std::filesystem::path& scenario) {
  for (int number = 1; number <= most_saved; ++number) {
    const std::string tail = number == 1 ? "" : fmt::format("-{}", number);
    const std::filesystem::path path =
        scenario.parent_path() / fmt::format("{}-explored{}.yaml", scenario.stem().string(), tail);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0) {
      close(file);
      return path;
    }
    if (errno != EEXIST)
      throw InputError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  }
  throw InputError(fmt::format("there are {} saved scenarios beside {} already: remove some",
                               most_saved, scenario.string()));
}

}  // namespace

Explorer::Explorer(std::string file, std::vector<Setting> set, bool laws_only)
    : file_(std::move(file)),
      set_(std::move(set)),
      laws_only_(laws_only),
      controls_(file_, set_, [&] {
        Scenario scenario = read_scenario(file_, set_);
        name_ = scenario.name;
        return scenario;
      }()) {
  Comparison(read_scenario(file_, set_), laws_only_);
}

std::string Explorer::controls() const {
  Json controls = Json::array();
  for (const Control& control : controls_.all()) {
    Json options = Json::array();
    for (const Option& option : control.options)
      options.push_back({{"value", option.value}, {"text", option.text}});
    controls.push_back({{"id", control.id},
                        {"label", control.label},
                        {"group", control.group},
                        {"measure", name_of(control.measure)},
                        {"options", std::move(options)},
                        {"unavailable", control.unavailable}});
  }
  return one_line({{"scenario", name_}, {"file", file_}, {"controls", std::move(controls)}});
}

std::vector<Setting> Explorer::moved_only(const std::vector<Setting>& settings) const {
  return {settings.begin() + static_cast<std::ptrdiff_t>(set_.size()), settings.end()};
}

std::string Explorer::command(const std::string& file, const std::vector<Setting>& settings) const {
  std::string line = "ddpsim run " + shell_word(file);
  if (laws_only_) line += " --laws-only";
  for (const auto& [key, value, written] : settings)
    line += " --set " + shell_word(fmt::format("{}={}", key, value));
  return line;
}

std::string Explorer::answer(const std::string& asked) const {
  try {
    const Asked request = asked_in(asked);
    const Moved& moved = request.moved;
    const std::vector<Setting> settings = controls_.settings(moved);
    const Comparison run(read_scenario(file_, settings), laws_only_);
    Json set = Json::array();
    for (const auto& [key, value, written] : moved_only(settings)) set.push_back({key, value});
    Json positions = Json::object();
    for (const auto& [id, position] : controls_.positions(run.scenario, moved))
      positions[id] = {{"option", position.option},
                       {"text", position.text},
                       {"unavailable", position.unavailable}};
    std::vector<std::string> notes = cluster_notes(run.scenario, settings);
    add_each_once(notes, fit_notes(run.priced));
    add_each_once(notes, lost_accuracy_notes());
    for (std::string& line : run_warnings(run)) notes.push_back(std::move(line));
    for (std::string& line : long_run_notes(run)) notes.push_back(std::move(line));
    add_each_once(notes, buffer_notes(run));
    std::string json = one_line({{"record", record_of(run, notes)},
                                 {"settings", std::move(set)},
                                 {"command", command(file_, settings)},
                                 {"positions", std::move(positions)},
                                 {"cluster", cluster_text(run.scenario, run.knowledge)},
                                 {"notes", notes}});
    TimelinePicture picture = timeline_picture(run.scenario, shown_of(run, request));
    json.back() = ',';
    json += fmt::format("\"picture\":{},\"frame\":{}}}", one_line(picture.svg), picture.frame);
    remember(asked, std::move(picture.tasks));
    return json;
  } catch (const InputError& problem) {
    return error_answer(problem);
  } catch (const std::invalid_argument& problem) {  // a law refuses what the scenario asks of it
    return error_answer(problem);
  }
}

void Explorer::remember(const std::string& asked, std::string tasks) const {
  constexpr std::size_t most_kept = 4;
  const std::lock_guard lock(guard_);
  drawn_.emplace_front(asked, std::move(tasks));
  if (drawn_.size() > most_kept) drawn_.pop_back();
}

std::string Explorer::tasks(const std::string& asked) const {
  const auto known = [&]() -> std::optional<std::string> {
    const std::lock_guard lock(guard_);
    for (const auto& [question, tasks] : drawn_)
      if (question == asked) return tasks;
    return std::nullopt;
  };
  if (auto tasks = known()) return *tasks;
  const std::string again = answer(asked);
  if (auto tasks = known()) return *tasks;
  return again;  // an error
}

std::string Explorer::save(const std::string& asked) const {
  try {
    const std::vector<Setting> settings = controls_.settings(asked_in(asked).moved);
    const Comparison run(read_scenario(file_, settings), laws_only_);  // or it is refused
    if (run.scenario.measured) check_measured(settings);
    std::string text = fmt::format("# Saved by ddpsim explore, of {}",
                                   printable(std::filesystem::path(file_).filename().string()));
    for (const auto& [key, value, written] : settings)
      text += printable(fmt::format("\n#   with {}={}", key, value), "\n");
    text += '\n';
    text += scenario_text(file_, settings);
    const std::filesystem::path path = claimed_file(file_);
    try {
      Outputs outputs;
      outputs.add(path.string(), std::move(text));
      outputs.commit();
    } catch (...) {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
      throw;
    }
    return one_line({{"file", path.string()}, {"command", command(path.string(), {})}});
  } catch (const InputError& problem) {
    return error_answer(problem);
  } catch (const std::invalid_argument& problem) {
    return error_answer(problem);
  }
}

}  // namespace ddpsim
