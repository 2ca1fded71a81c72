#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Thread = std::pair<int, int>;  // pid, tid

/// An event with its times as whole picoseconds, which floating point would not keep.
struct Event {
  Json json;
  std::int64_t start = 0, duration = 0;

  Thread thread() const { return {json["pid"].get<int>(), json["tid"].get<int>()}; }
  std::int64_t end() const { return start + duration; }
};

/// "ts":12.345678 is microseconds with six digits: 12345678 ps. -1 if there is no such key or it is
/// negative.
std::int64_t picoseconds(const std::string& line, const std::string& key) {
  const std::size_t at = line.find("\"" + key + "\":");
  if (at == std::string::npos) return -1;
  const std::size_t begin = at + key.size() + 3, point = line.find('.', begin);
  const std::string whole = line.substr(begin, point - begin), fraction = line.substr(point + 1, 6);
  if ((whole + fraction).find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(whole) * 1'000'000 + std::stoll(fraction);
}

/// The events of a trace, whose writer puts one on a line: see "a trace is JSON".
std::vector<Event> events_of(const std::string& trace) {
  std::vector<Event> events;
  for (std::string line : lines_of(trace)) {
    if (line.rfind("{\"ph\"", 0) != 0) continue;
    if (line.back() == ',') line.pop_back();
    events.push_back({Json::parse(line), picoseconds(line, "ts"), picoseconds(line, "dur")});
  }
  return events;
}

std::vector<Event> of_phase(const std::vector<Event>& events, const std::string& phase) {
  std::vector<Event> some;
  std::copy_if(events.begin(), events.end(), std::back_inserter(some),
               [&](const Event& event) { return event.json["ph"] == phase; });
  return some;
}

struct Traced {
  std::vector<Event> events;
  Json run;
};

/// A scenario's trace and figures.
Traced traced(const std::string& file, const std::vector<std::string>& flags = {}) {
  const Scratch scratch;
  std::vector<std::string> arguments{"run", file,      "--json",
                                     "-",   "--trace", scratch.path("t.json").string()};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return {events_of(content_of(scratch.path("t.json"))), outcome.json()};
}

/// Processes of a strategy: its ranks, up to eight. They follow each other, strategy by strategy.
std::size_t ranks_shown(const Traced& trace) {
  return std::min<std::size_t>(8, trace.run["ranks"].get<std::size_t>());
}

const std::vector<std::string> some_scenarios{"examples/first.yaml", "examples/own-profile.yaml",
                                              "examples/cpu-cluster.yaml",
                                              "seeds/ultra-scale-part4-sync.yaml"};

TEST_CASE("a thread of a trace does one thing at a time", "[tools][trace]") {
  for (const std::string& name : some_scenarios) {
    std::map<Thread, std::vector<Event>> threads;
    const Traced trace = traced(shipped(name));
    for (const Event& span : of_phase(trace.events, "X")) {
      REQUIRE(span.start >= 0);
      REQUIRE(span.duration >= 0);
      threads[span.thread()].push_back(span);
    }
    CHECK(threads.size() >= 4);
    for (auto& [thread, spans] : threads) {
      std::stable_sort(spans.begin(), spans.end(),
                       [](const Event& a, const Event& b) { return a.start < b.start; });
      for (std::size_t i = 1; i < spans.size(); ++i) {
        if (spans[i - 1].end() <= spans[i].start) continue;
        CAPTURE(name, spans[i - 1].json.dump(), spans[i].json.dump());
        CHECK(spans[i - 1].end() <= spans[i].start);
      }
      // Nor to a reader that adds floating-point microseconds.
      for (std::size_t i = 1; i < spans.size(); ++i) {
        const double end =
            spans[i - 1].json["ts"].get<double>() + spans[i - 1].json["dur"].get<double>();
        if (end > spans[i].json["ts"]) FAIL_CHECK(name << ": " << spans[i].json.dump());
      }
    }
  }
}

TEST_CASE("every process and thread of a trace has its name", "[tools][trace]") {
  for (const std::string& name : some_scenarios) {
    CAPTURE(name);
    const Traced trace = traced(shipped(name));
    std::map<int, std::string> processes;
    std::map<Thread, std::string> threads;
    for (const Event& event : of_phase(trace.events, "M")) {
      const std::string what = event.json["name"], called = event.json["args"]["name"];
      if (what == "process_name") CHECK(processes.emplace(event.json["pid"], called).second);
      if (what == "thread_name") CHECK(threads.emplace(event.thread(), called).second);
    }
    const std::size_t ranks = ranks_shown(trace);
    REQUIRE(processes.size() == ranks * trace.run["results"].size());
    CHECK(threads.size() == 3 * processes.size());
    for (const auto& [pid, called] : processes) {
      const std::string strategy =
          trace.run["results"][static_cast<std::size_t>(pid) / ranks]["strategy"];
      CHECK_THAT(called, Catch::StartsWith(strategy));
      CHECK_THAT(called, Catch::Contains(": rank " +
                                         std::to_string(static_cast<std::size_t>(pid) % ranks)));
      CHECK(threads.at({pid, 0}) == "host");
      CHECK(threads.at({pid, 1}) == "compute");
      CHECK(threads.at({pid, 2}) == "communication");
    }
    for (const Event& event : trace.events)
      if (event.json["ph"] != "M" && threads.count(event.thread()) == 0)
        FAIL_CHECK(event.json.dump());
  }
}

TEST_CASE("hooks are instants, one for each parameter of a strategy with hooks", "[tools][trace]") {
  const Traced trace = traced(shipped("examples/own-profile.yaml"));
  std::map<int, std::set<std::string>> hooks;  // by process
  for (const Event& event : of_phase(trace.events, "i")) {
    CHECK(event.json["cat"] == "hook");
    CHECK(event.json["s"] == "t");
    CHECK(event.start >= 0);
    CHECK(hooks[event.json["pid"]].insert(event.json["name"]).second);
  }
  // none, naive, flat, overlap, bucketed: the last two have hooks, for six parameters.
  REQUIRE(hooks.size() == 2 * ranks_shown(trace));
  const std::set<std::string> six{"hook 0.bias",   "hook 0.weight", "hook 2.bias",
                                  "hook 2.weight", "hook 4.bias",   "hook 4.weight"};
  for (const int pid : {6, 7, 8, 9}) CHECK(hooks[pid] == six);
}

TEST_CASE("a flow leads from a span on a stream to an all-reduce that begins later",
          "[tools][trace]") {
  for (const std::string& name : some_scenarios) {
    CAPTURE(name);
    const Traced trace = traced(shipped(name));
    std::set<std::pair<Thread, std::int64_t>> begins, all_reduces;
    for (const Event& span : of_phase(trace.events, "X")) {
      begins.emplace(span.thread(), span.start);
      if (span.json["cat"] == "all-reduce") all_reduces.emplace(span.thread(), span.start);
    }
    std::map<int, Event> from, to;  // by id
    for (const Event& event : of_phase(trace.events, "s"))
      CHECK(from.emplace(event.json["id"], event).second);
    for (const Event& event : of_phase(trace.events, "f"))
      CHECK(to.emplace(event.json["id"], event).second);
    CHECK(!from.empty());
    REQUIRE(from.size() == to.size());
    for (const auto& [id, begin] : from) {
      REQUIRE(to.count(id) == 1);
      const Event& end = to.at(id);
      CAPTURE(begin.json.dump(), end.json.dump());
      REQUIRE(begin.start <= end.start);
      REQUIRE(begin.json["pid"] == end.json["pid"]);
      REQUIRE(begins.count({begin.thread(), begin.start}) == 1);
      REQUIRE(all_reduces.count({end.thread(), end.start}) == 1);
    }
  }
}

TEST_CASE("a trace tells what the JSON tells", "[tools][trace]") {
  for (const std::string& name : some_scenarios) {
    CAPTURE(name);
    const Traced trace = traced(shipped(name));
    const std::vector<Event> spans = of_phase(trace.events, "X");
    for (std::size_t pid = 0; pid < ranks_shown(trace) * trace.run["results"].size(); ++pid) {
      const Json& result = trace.run["results"][pid / ranks_shown(trace)];
      CAPTURE(result["strategy"]);
      std::int64_t last = 0, collectives = 0, communication = 0;
      for (const Event& span : spans) {
        if (span.json["pid"] != pid) continue;
        last = std::max(last, span.end());
        if (span.json["cat"] != "all-reduce" || span.json["tid"] != 2) continue;
        ++collectives;
        communication += span.duration;
      }
      CHECK(collectives == result["collectives"]);
      CHECK(static_cast<double>(communication) * 1e-9 ==
            Approx(result["communication_ms"].get<double>()).margin(1e-6));
      // The last rank is the slowest, and ends the step.
      const double step = result["step_ms"];
      if ((pid + 1) % ranks_shown(trace) == 0)
        CHECK(static_cast<double>(last) * 1e-9 == Approx(step).margin(1e-6));
      else
        CHECK(static_cast<double>(last) * 1e-9 < step + 1e-6);
    }
  }
}

TEST_CASE("a trace is JSON with one event on each line", "[tools][trace]") {
  for (const std::string& name : some_scenarios) {
    CAPTURE(name);
    const Scratch scratch;
    const std::string file = scratch.path("t.json").string();
    REQUIRE(ddpsim({"run", shipped(name), "-q", "--trace", file}).code == 0);
    const std::string text = content_of(file);
    const std::vector<Event> events = events_of(text);
    const Json all = Json::parse(text);
    REQUIRE(all["traceEvents"].size() == events.size());
    for (std::size_t i = 0; i < events.size(); ++i)
      if (all["traceEvents"][i] != events[i].json) FAIL_CHECK(events[i].json.dump());
  }
}

TEST_CASE("names with quotes and control characters leave a trace valid", "[tools][trace]") {
  const Scratch scratch;
  scratch.write("p.yaml",
                "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 2 ms\nparameters:\n"
                "  - {name: \"a\\\"b\\\\c\\n\\t\\u2028é\", shape: [1000], ready: 2 ms}\n");
  const auto file = scratch.write("s.yaml",
                                  "workload: {model: p.yaml}\ncluster: {device: h100-sxm, "
                                  "ranks_per_node: 2, intra_node: nvlink4}\n");
  const auto hooks = of_phase(traced(file.string()).events, "i");
  REQUIRE(!hooks.empty());
  CHECK(hooks[0].json["name"] == "hook a\"b\\c\n\t\u2028é");
}

TEST_CASE("schedule writes the trace of its one strategy", "[tools][trace]") {
  const Scratch scratch;
  const std::string file = scratch.path("t.json").string();
  REQUIRE(ddpsim({"schedule", shipped("examples/own-profile.yaml"), "--trace", file}).code == 0);
  const std::vector<Event> events = events_of(content_of(file));
  std::set<int> pids;
  for (const Event& event : events) pids.insert(event.json["pid"].get<int>());
  CHECK(pids == std::set<int>{0, 1});  // two ranks
  CHECK(of_phase(events, "i").size() == 2 * 6);
}

}  // namespace
}  // namespace ddpsim
