// `ddpsim doctor`: what it says of this machine, and of machines that lack something.
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// The object of that part or ability.
Json entry(const Json& list, const std::string& key, const std::string& name) {
  for (const Json& each : list)
    if (each.at(key) == name) return each;
  FAIL("no " << name << " in " << list.dump());
  return {};
}
Json part(const Outcome& outcome, const std::string& name) {
  return entry(outcome.json().at("checks"), "part", name);
}
Json ability(const Outcome& outcome, const std::string& name) {
  return entry(outcome.json().at("abilities"), "ability", name);
}

Outcome doctor(const Environment& environment = {}, const std::string& seconds = "0",
               int code = 0) {
  const Outcome outcome =
      execute({DDPSIM_PROGRAM, "doctor", "--seconds", seconds, "--json", "-"}, {}, environment);
  INFO(outcome.err);
  REQUIRE(outcome.code == code);
  return outcome;
}

std::string script(const Scratch& scratch, const std::string& name, const std::string& lines) {
  const std::filesystem::path file = scratch.write(name, "#!/bin/sh\n" + lines + "\n");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file.string();
}

TEST_CASE("doctor finds what the tests use", "[tools][doctor]") {
  const Outcome outcome = doctor();
  CHECK(part(outcome, "catalogue").at("health") == "good");
  CHECK_THAT(part(outcome, "catalogue").at("found").get<std::string>(),
             Catch::Contains(" models, ") && Catch::Contains(" clusters"));
  CHECK(part(outcome, "gloo").at("health") == "good");
  CHECK_THAT(part(outcome, "gloo").at("found").get<std::string>(), Catch::Contains(" GB/s"));
  CHECK_THAT(part(outcome, "processors").at("found").get<std::string>(),
             Catch::Contains(fmt::format("{} cores", std::thread::hardware_concurrency())) ||
                 Catch::Contains("of which this process may use"));
  CHECK_THAT(part(outcome, "memory").at("found").get<std::string>(),
             Catch::Contains(" GiB free") || Catch::Contains(" of it free"));
  CHECK(ability(outcome, "predict, tune, sweep, explore").at("possible") == "yes");
  CHECK(ability(outcome, "calibrate and validate on processors").at("possible") == "yes");
  CHECK(outcome.json().at("pace").is_null());
  // It agrees with `backends`.
  const bool gpus =
      entry(ddpsim({"backends", "--json", "-"}).json(), "backend", "nccl").at("status") == "ready";
  CHECK((part(outcome, "GPUs").at("health") != "missing") == gpus);
  if (!gpus) CHECK(ability(outcome, "calibrate and validate on GPUs").at("possible") == "no");
}

TEST_CASE("doctor watches the pace of every processor", "[tools][doctor]") {
  const Outcome outcome = doctor({}, "1");
  const Json pace = outcome.json().at("pace");
  CHECK(pace.at("low_ms") > 0.0);
  CHECK(pace.at("high_ms") >= pace.at("low_ms"));
  CHECK(pace.at("stolen_share") >= 0.0);
  const Json check = part(outcome, "pace");
  if (pace.at("one_pace") == false) CHECK(check.at("health") == "doubtful");
  // As many digits as people are shown.
  CHECK_THAT(check.at("found").get<std::string>(),
             Catch::Contains(fmt::format("{:.3f} to {:.3f} ms", pace.at("low_ms").get<double>(),
                                         pace.at("high_ms").get<double>())));
}

TEST_CASE("doctor says what describe would need of Python", "[tools][doctor]") {
  const Scratch scratch;
  const std::string what = "describe and profile PyTorch models";
  const auto with = [&](const std::string& answer) {
    const std::string python = script(scratch, "python", "printf '" + answer + "\\n'");
    return doctor({{"DDPSIM_PYTHON", python}});
  };
  const Outcome complete = with("3.12.1\\n2.13.0\\nyes");
  CHECK(part(complete, "Python").at("health") == "good");
  CHECK_THAT(part(complete, "Python").at("found").get<std::string>(),
             Catch::Contains("3.12.1, PyTorch 2.13.0, the package ddpsim"));
  CHECK(ability(complete, what).at("possible") == "yes");
  CHECK(ability(complete, what).at("because").is_null());

  for (const char* answer : {"3.12.1\\n\\nyes", "3.12.1\\n1.13.1\\nyes", "3.12.1\\n2.13.0\\nno"}) {
    CAPTURE(answer);
    const Outcome incomplete = with(answer);
    CHECK(part(incomplete, "Python").at("health") == "missing");
    CHECK_THAT(part(incomplete, "Python").at("advice").get<std::string>(),
               Catch::Contains(" -m pip install "));
    CHECK(ability(incomplete, what).at("possible") == "no");
  }
  CHECK_THAT(part(with("nonsense"), "Python").at("found").get<std::string>(),
             Catch::Contains("is no Python: it does not answer as one does"));
  const Outcome none = doctor({{"DDPSIM_PYTHON", ""}, {"VIRTUAL_ENV", ""}, {"PATH", "/nowhere"}});
  CHECK_THAT(part(none, "Python").at("found").get<std::string>(),
             Catch::Contains("there is no python3 on PATH"));
  CHECK(ability(none, "predict, tune, sweep, explore").at("possible") == "yes");
}

TEST_CASE("a Python that never answers, or never stops, does not stop doctor", "[tools][doctor]") {
  const Scratch scratch;
  const std::string silent = script(scratch, "silent", "exec sleep 100");
  const std::string lingering = script(scratch, "lingering", "exec >&-\nexec sleep 100");
  const std::string endless = script(scratch, "endless", "exec yes");
  // Doctor waits for the time that each has; all three at once.
  std::vector<std::pair<std::string, std::future<Outcome>>> looks;
  for (const std::string& python : {silent, lingering, endless})
    looks.emplace_back(python, std::async(std::launch::async, [python] {
                         return doctor({{"DDPSIM_PYTHON", python}});
                       }));
  const auto begin = std::chrono::steady_clock::now();
  for (auto& [python, outcome] : looks) {
    CAPTURE(python);
    const Json check = part(outcome.get(), "Python");
    CHECK(check.at("health") == "missing");
    CHECK_THAT(check.at("found").get<std::string>(),
               Catch::Contains(python == endless ? "is no Python: it does not answer as one does"
                                                 : "does not answer within"));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("doctor goes on where the catalogue cannot be read, and ends with exit code 4",
          "[tools][doctor]") {
  const Scratch scratch;
  const Outcome outcome = doctor({{"DDPSIM_CATALOGUE", scratch.folder().string()}}, "0", 4);
  CHECK(part(outcome, "catalogue").at("health") == "missing");
  for (const char* what : {"predict, tune, sweep, explore", "calibrate and validate on processors"})
    CHECK(ability(outcome, what).at("possible") == "no");
  CHECK_THAT(outcome.err, Catch::Contains("ddpsim: there is no catalogue, which run and tune "
                                          "need: ") &&
                              Catch::Contains("no catalogue of "));
}

TEST_CASE("doctor names a file of the catalogue that is wrong, and where", "[tools][doctor]") {
  const Scratch scratch;
  std::filesystem::copy(shipped("catalogue"), scratch.path("catalogue"),
                        std::filesystem::copy_options::recursive);
  const std::string devices = "catalogue/devices/";
  const Environment environment{{"DDPSIM_CATALOGUE", scratch.path("catalogue").string()}};
  CHECK(part(doctor(environment), "catalogue").at("health") == "good");
  scratch.write(devices + "t4.yaml", "compute_capability: 7.5\nmultiprocessors: many\n");
  // Something is found to be wrong (1); nothing keeps run and tune from working (4).
  const Outcome outcome = doctor(environment, "0", 1);
  const Json found = part(outcome, "catalogue");
  CHECK(found.at("health") == "doubtful");
  const std::string wrong = scratch.path(devices + "t4.yaml").string() + ":2:18: ";
  CHECK_THAT(found.at("found").get<std::string>(),
             Catch::Contains(" models, ") && Catch::Contains("1 of ") &&
                 Catch::Contains(" entries cannot be read: " + wrong));
  const Json predicts = ability(outcome, "predict, tune, sweep, explore");
  CHECK(predicts.at("possible") == "in part");
  // The part says which; what needs it says no more than that.
  CHECK_THAT(predicts.at("because").get<std::string>(),
             Catch::Matches("catalogue: 1 of [0-9]+ entries cannot be read"));
  const std::string told = outcome.json().dump();
  CHECK(told.find(wrong) == told.rfind(wrong));
  CHECK(ability(outcome, "calibrate and validate on processors").at("possible") == "in part");
  CHECK_THAT(outcome.err, Catch::Contains("ddpsim: the catalogue is whole only in part: ") &&
                              Catch::Contains(wrong));
  // A cluster that names what is wrong is wrong too, and the file is named once.
  scratch.write(devices + "gb200.yaml", "not: [closed\n");
  const std::string both = part(doctor(environment, "0", 1), "catalogue").at("found");
  CHECK_THAT(both,
             Catch::Contains("3 of ") && Catch::Contains(wrong) && Catch::Contains("gb200.yaml:"));
  CHECK(both.find("gb200.yaml:") == both.rfind("gb200.yaml:"));
}

TEST_CASE("doctor names the missing accuracy.csv of a catalogue", "[tools][doctor]") {
  const Scratch scratch;
  std::filesystem::copy(shipped("catalogue"), scratch.path("catalogue"),
                        std::filesystem::copy_options::recursive);
  std::filesystem::remove(scratch.path("catalogue/accuracy.csv"));
  const Outcome outcome =
      doctor({{"DDPSIM_CATALOGUE", scratch.path("catalogue").string()}}, "0", 1);
  const Json found = part(outcome, "catalogue");
  CHECK(found.at("health") == "doubtful");
  const std::string missing = scratch.path("catalogue/accuracy.csv").string() + ": no such file";
  CHECK_THAT(found.at("found").get<std::string>(),
             Catch::EndsWith(" clusters; no step has a band: " + missing));
  CHECK_THAT(found.at("advice").get<std::string>(),
             Catch::StartsWith("copy accuracy.csv from the installed catalogue"));
  const Json predicts = ability(outcome, "predict, tune, sweep, explore");
  CHECK(predicts.at("possible") == "in part");
  CHECK(predicts.at("because") == "catalogue: no step has a band");
  CHECK_THAT(outcome.err, Catch::Contains(missing));
}

TEST_CASE("doctor prints tables, and refuses what it does not take", "[tools][doctor]") {
  const Outcome outcome = ddpsim({"doctor", "--seconds", "0"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("what to do") && Catch::Contains("because") &&
                              Catch::Contains("predict, tune, sweep, explore"));
  CHECK(ddpsim({"doctor", "-q", "--seconds", "0"}).out.empty());
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"doctor", "me"}, {"doctor", "--seconds", "-1"}, {"doctor", "--seconds", "long"}}) {
    const Outcome refused = ddpsim(wrong);
    CHECK(refused.code == 2);
    CHECK(lines_of(refused.err).size() == 1);
  }
}

}  // namespace
}  // namespace ddpsim
