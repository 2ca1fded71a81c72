#include "tests/golden/answers.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <zlib.h>

#include "backend/version.hpp"
#include "python/bindings/questions.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/memory_file.hpp"

namespace ddpsim::golden {
namespace {

constexpr std::size_t most_tuned = 70;  ///< parameters of a workload that is tuned: more take long

const std::filesystem::path scenarios = DDPSIM_SCENARIOS;

bool is_shipped(const Case& one) {
  return one.family.starts_with("shipped/");
}

std::filesystem::path path_of(const Case& one) {
  if (!is_shipped(one)) return scenarios / "examples/golden.yaml";
  return scenarios / one.family.substr(std::string_view("shipped/").size()) / one.member;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

/// Without what another machine or release has otherwise.
std::string anywhere(std::string text) {
  replace_all(text, scenarios.parent_path().string() + "/", "");
  replace_all(text, fmt::format("\"version\":\"{}\"", version), "\"version\":\"\"");
  // The checksum of a row holds the file's name in the row's error too.
  constexpr std::string_view checksum = "\"row_crc32\":\"";
  for (std::size_t at = 0; (at = text.find(checksum, at)) != std::string::npos;)
    text.replace(at += checksum.size(), 8, "00000000");
  return text;
}

std::string answer(const std::function<std::string()>& question) {
  try {
    return anywhere(question());
  } catch (const InputError& refusal) {
    return anywhere(fmt::format("refused: {}", refusal.what()));
  } catch (const std::invalid_argument& refusal) {  // of a law
    return anywhere(fmt::format("refused: {}", refusal.what()));
  }
}

void silent(const std::string&, double) {}

/// What is asked of a case, by its seed; of a shipped scenario by its name.
Answers ask(const Question& question, const Draw& draw, bool measured) {
  Answers answers;
  RunRequest request;
  request.why = draw.chance("why", 40);
  if (draw.chance("steps", 15)) request.steps = static_cast<int>(draw.between("count", 1, 12));
  request.run_ahead = request.steps && draw.chance("run_ahead", 50);
  request.ddp_statistics = draw.chance("ddp_statistics", 20);
  if (draw.chance("scaling", 10)) request.scaling = 16;
  const RunExtras extras{draw.chance("trace", 10), draw.chance("hooks", 15),
                         draw.chance("page", 4)};
  answers["run"] = answer([&] { return run_answer(question, request, extras); });
  if (answers["run"].starts_with("refused: ")) return answers;
  std::optional<int> steps;
  if (draw.chance("schedule steps", 15)) steps = 6;
  const bool tasks = draw.chance("tasks", 30);
  answers["schedule"] = answer([&] { return schedule_answer(question, tasks, steps); });
  if (draw.chance("tune", 30) && read(question).workload.parameters.size() <= most_tuned) {
    TuneRequest tuning;
    tuning.threads = "1";
    tuning.objective = draw.any_of("objective", {"step", "step", "exposed", "memory"});
    answers["tune"] = answer([&] { return tune_answer(question, tuning, silent); });
  }
  if (draw.chance("sweep", 10)) {
    const Words axes{"training.bucket_cap=1MiB,25MiB,100MiB", "workload.batch=1,8",
                     "cluster.nodes=1,2,4", "training.gradient_as_bucket_view=false,true",
                     "cluster.skew=0,0.05"};
    const std::vector<std::string> axis{draw.any_of("axis", axes)};
    answers["sweep"] = answer([&] { return sweep_answer(question, axis, 1, "", silent); });
  }
  if (measured)
    answers["score"] = answer([&] { return score_answer({question.file}, {}, "", false, silent); });
  return answers;
}

/// The first value of a key in JSON of one line; "" if it has none.
std::string first_value(const std::string& json, const std::string& key) {
  const std::string quoted = "\"" + key + "\":";
  const std::size_t at = json.find(quoted);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + quoted.size();
  std::string value = json.substr(begin, json.find_first_of(",}", begin) - begin);
  std::erase(value, '"');
  return value;
}

std::string figures(const std::string& run) {
  if (run.starts_with("refused: ")) return run;
  const auto of = [&](const char* key) { return first_value(run, key); };
  return fmt::format("{} x {} {}, {}\tstep {} ms, exposed {} ms, peak {} B", of("nodes"),
                     of("ranks_per_node"), of("device"), of("strategy"), of("step_ms"),
                     of("exposed_ms"), of("peak_bytes"));
}

std::string checksum(const std::string& text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  return fmt::format("{:08x}", crc32_z(0, bytes, text.size()));
}

}  // namespace

DrawnScenario scenario_of(const Case& one) {
  if (is_shipped(one)) {
    std::ifstream file(path_of(one));
    std::ostringstream content;
    content << file.rdbuf();
    if (!file) throw std::runtime_error("cannot read " + path_of(one).string());
    return {content.str(), {}};
  }
  for (const Family& family : all_families())
    if (family.name == one.family) return drawn_scenario(family, std::stoull(one.member));
  throw std::runtime_error(fmt::format("no family {}", one.family));
}

Answers answers_to(const Case& one) {
  const DrawnScenario scenario = scenario_of(one);
  std::vector<std::unique_ptr<MemoryFile>> files;
  if (!is_shipped(one)) files.push_back(std::make_unique<MemoryFile>(path_of(one), scenario.text));
  for (const auto& [name, content] : scenario.files)
    files.push_back(std::make_unique<MemoryFile>(path_of(one).parent_path() / name, content));
  const bool measured = scenario.text.find("\nmeasured:") != std::string::npos;
  const std::uint64_t seed = is_shipped(one) ? Draw(0).number(one.member)
                                             : Draw(std::stoull(one.member)).number(one.family);
  return ask({path_of(one).string(), {}, false}, Draw(seed), measured);
}

std::string line_of(const Case& one, const Answers& answers) {
  std::string line = fmt::format("{}\t{}\t{}", one.family, one.member, figures(answers.at("run")));
  if (answers.at("run").starts_with("refused: ")) return line;
  for (const auto& [command, text] : answers)
    line += fmt::format("\t{} {}", command, text.starts_with("refused: ") ? text : checksum(text));
  return line;
}

}  // namespace ddpsim::golden
