#include "python/bindings/request.hpp"

#include <map>

#include "scenarios/reader/explain/reference.hpp"
#include "scenarios/reader/explain/schema.hpp"
#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "sim/tune/parallel.hpp"

namespace ddpsim {
namespace {

std::string run(const Request& of, const Tell& tell) {
  RunRequest request;
  request.steps = of.number("steps");
  request.scaling = of.number("scaling");
  request.seeds = of.number("seeds");
  request.run_ahead = of.flag("run_ahead");
  request.ddp_statistics = of.flag("ddp_statistics");
  request.why = of.flag("why");
  return run_answer(of.question(), request, {of.flag("trace"), of.flag("hooks"), of.flag("page")},
                    tell);
}

std::string vary(const Request& of, const Tell&) {
  return vary_answer(of.question(), of.texts("axes"), of.text("best"));
}

std::string schedule(const Request& of, const Tell&) {
  return schedule_answer(of.question(), of.flag("tasks"), of.number("steps"));
}

std::string tune(const Request& of, const Tell& tell) {
  const TuneRequest request{of.text("objective"), of.text("within"),      of.text("largest_bucket"),
                            of.text("noise"),     of.text("uncertainty"), of.text("threads")};
  return tune_answer(of.question(), request, tell);
}

std::string plan(const Request& of, const Tell& tell) {
  const PlanWords words{of.text("gpus"), of.text("batches"), of.text("strategies"),
                        of.text("best")};
  return plan_answer(of.question(), words, tell);
}

std::string score(const Request& of, const Tell& tell) {
  return score_answer(of.texts("files"), of.set(), of.text("calibrate_on"), of.flag("laws_only"),
                      tell);
}

std::string sweep(const Request& of, const Tell& tell) {
  return sweep_answer(of.question(), of.texts("axes"), of.number("jobs").value_or(0),
                      of.text("best"), tell);
}

std::string refuse_wrong_best(const Request& of, const Tell&) {
  check_best(of.text("best"));
  return "";
}

std::string cores(const Request&, const Tell&) {
  return std::to_string(allowed_cores());
}

std::string list(const Request& of, const Tell&) {
  return list_answer(of.text("kind"));
}

std::string explain(const Request& of, const Tell&) {
  return explanation(of.text("key"));
}

std::string load(const Request& of, const Tell&) {
  return load_answer(of.texts("files").at(0), of.set());
}

std::string schema(const Request& of, const Tell&) {
  const std::string format = of.text("format");
  std::string known;
  for (const Format& each : all_formats()) {
    if (each.name == format) return json_schema(each);
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw InputError("unknown format \"" + format + "\"; known: " + known);
}

using Answer = std::string (*)(const Request&, const Tell&);
const std::map<std::string, Answer> answers{{"run", run},
                                            {"vary", vary},
                                            {"schedule", schedule},
                                            {"tune", tune},
                                            {"plan", plan},
                                            {"score", score},
                                            {"sweep", sweep},
                                            {"list", list},
                                            {"explain", explain},
                                            {"load", load},
                                            {"schema", schema},
                                            {"check_best", refuse_wrong_best},
                                            {"allowed_cores", cores}};

}  // namespace

Request::Request(const std::string& json) : json_(nlohmann::json::parse(json)) {
  if (!json_.contains("memory")) return;
  for (const auto& [path, text] : json_.at("memory").items())
    memory_.push_back(std::make_unique<MemoryFile>(path, text.get<std::string>()));
}

Question Request::question() const {
  return {texts("files").at(0), set(), flag("laws_only")};
}

std::vector<Setting> Request::set() const {
  std::vector<Setting> settings;
  for (auto& [key, value] : json_.at("set").get<std::vector<std::pair<std::string, std::string>>>())
    settings.emplace_back(key, value);
  return settings;
}

std::vector<std::string> Request::texts(const char* name) const {
  return json_.at(name).get<std::vector<std::string>>();
}

std::optional<int> Request::number(const char* name) const {
  const nlohmann::json& found = json_.at(name);
  return found.is_null() ? std::nullopt : std::optional(found.get<int>());
}

std::string answer_request(const Request& request, const Tell& tell) {
  return answers.at(request.text("command"))(request, tell);
}

}  // namespace ddpsim
