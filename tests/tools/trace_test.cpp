// What --trace writes: the shape of PyTorch's profiler, held by its own rules (spans nest, launches
// lead to kernels) and against the figures that `run --json` gives.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Row = std::pair<int, int>;  // pid, tid

/// An event with its times as whole picoseconds, which floating point would not keep.
struct Event {
  Json json;
  std::int64_t start = 0, duration = 0;

  Row row() const { return {json["pid"].get<int>(), json.value("tid", 0)}; }
  std::int64_t end() const { return start + duration; }
  std::string name() const { return json["name"]; }
  std::string category() const { return json.value("cat", ""); }
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

std::vector<Event> of_category(const std::vector<Event>& events, const std::string& category) {
  std::vector<Event> some;
  std::copy_if(events.begin(), events.end(), std::back_inserter(some), [&](const Event& event) {
    return event.json["ph"] == "X" && event.category() == category;
  });
  return some;
}

bool is_collective(const Event& event) {
  return event.name().starts_with("ncclDevKernel_") || event.name().starts_with("gloo:");
}

struct Traced {
  std::vector<Event> events;
  Json header;  ///< what stands before the events
  Json run;

  const Json& ranks() const { return header["ddpsim"]["ranks"]; }
};

Traced parsed(const std::string& text) {
  Traced trace;
  trace.events = events_of(text);
  const std::string events = "\"traceEvents\": [";
  const std::size_t at = text.find(events);
  REQUIRE(at != std::string::npos);
  trace.header = Json::parse(text.substr(0, at + events.size()) + "]}");
  return trace;
}

/// A scenario's trace and figures.
Traced traced(const std::string& file, const std::vector<std::string>& flags = {}) {
  const Scratch scratch;
  std::vector<std::string> arguments{"run", file,      "--json",
                                     "-",   "--trace", scratch.path("t.json").string()};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  Traced trace = parsed(content_of(scratch.path("t.json")));
  trace.run = outcome.json();
  return trace;
}

/// The text of a compressed file, by the program whose format it is.
std::string unpacked(const std::filesystem::path& file) {
  const Outcome outcome = execute({"gzip", "-dc", file.string()});
  REQUIRE(outcome.code == 0);
  return outcome.out;
}

struct Shipped {
  std::string name;
  std::vector<std::string> flags;
};

const std::vector<Shipped> some_scenarios{
    {"examples/first.yaml", {}},
    {"examples/own-profile.yaml", {}},
    {"examples/own-profile.yaml",
     {"--set", "training.micro_batches=3", "--set", "training.no_sync=false"}},
    {"examples/cpu-cluster.yaml", {}}};
/// Whose kernels run on a device, with NCCL.
const std::vector<std::string> gpu_scenarios{"examples/first.yaml", "examples/own-profile.yaml"};

TEST_CASE("spans of a row of a trace lie in each other or apart", "[tools][trace]") {
  for (const auto& [name, flags] : some_scenarios) {
    std::map<Row, std::vector<Event>> rows;
    const Traced trace = traced(shipped(name), flags);
    for (const Event& span : of_phase(trace.events, "X")) {
      REQUIRE(span.start >= 0);
      REQUIRE(span.duration >= 0);
      rows[span.row()].push_back(span);
    }
    CHECK(rows.size() >= 4);
    for (auto& [row, spans] : rows) {
      // As readers sort them: by start, the longer first, else as they stand.
      std::stable_sort(spans.begin(), spans.end(), [](const Event& a, const Event& b) {
        return std::pair(a.start, -a.duration) < std::pair(b.start, -b.duration);
      });
      std::vector<const Event*> around;
      for (const Event& span : spans) {
        while (!around.empty() && around.back()->end() < span.start) around.pop_back();
        if (!around.empty() && around.back()->end() < span.end())
          FAIL_CHECK(name << ": " << around.back()->json.dump() << " " << span.json.dump());
        around.push_back(&span);
      }
    }
  }
}

TEST_CASE("a stream of a trace runs one kernel at a time", "[tools][trace]") {
  for (const std::string& name : gpu_scenarios) {
    std::map<Row, std::vector<Event>> streams;
    const Traced trace = traced(shipped(name));
    for (const char* category : {"kernel", "gpu_memcpy"})
      for (const Event& span : of_category(trace.events, category)) {
        streams[span.row()].push_back(span);
        CHECK(span.json["args"]["stream"] == span.row().second);
        CHECK(span.json["args"]["device"] == span.row().first);
      }
    CHECK(streams.size() >= 2 * trace.ranks().size() - 2);  // `none` has no collectives
    for (auto& [row, spans] : streams) {
      std::stable_sort(spans.begin(), spans.end(),
                       [](const Event& a, const Event& b) { return a.start < b.start; });
      for (std::size_t i = 1; i < spans.size(); ++i) {
        if (spans[i - 1].end() > spans[i].start) FAIL_CHECK(name << ": " << spans[i].json.dump());
        // Nor do two overlap to a reader that adds floating-point microseconds.
        const double end =
            spans[i - 1].json["ts"].get<double>() + spans[i - 1].json["dur"].get<double>();
        if (end > spans[i].json["ts"]) FAIL_CHECK(name << ": " << spans[i].json.dump());
      }
    }
  }
}

TEST_CASE("every process and row of a trace has its name", "[tools][trace]") {
  for (const auto& [name, flags] : some_scenarios) {
    CAPTURE(name, flags);
    const Traced trace = traced(shipped(name), flags);
    std::map<int, std::string> processes, labels;
    std::map<Row, std::string> rows;
    for (const Event& event : of_phase(trace.events, "M")) {
      const Json& given = event.json["args"];
      if (event.name() == "process_name")
        CHECK(processes.emplace(event.json["pid"], given["name"]).second);
      if (event.name() == "process_labels")
        CHECK(labels.emplace(event.json["pid"], given["labels"]).second);
      if (event.name() == "thread_name") CHECK(rows.emplace(event.row(), given["name"]).second);
    }
    const bool device = trace.header["deviceProperties"].size() == 1;
    CHECK(processes.size() == (device ? 2 : 1) * trace.ranks().size());
    for (const Json& rank : trace.ranks()) {
      const int process = rank["process"];
      CHECK(processes.at(process) == rank["name"]);
      CHECK(labels.at(process) == "CPU");
      CHECK_THAT(rows.at({process, process}), Catch::Contains("pt_main_thread"));
      CHECK_THAT(rows.at({process, process + 1}), Catch::Contains("pt_autograd_0"));
    }
    for (const Event& event : trace.events)
      if (event.json["ph"] != "M" && event.json["ph"] != "C" && rows.count(event.row()) == 0)
        FAIL_CHECK(event.json.dump());
  }
}

TEST_CASE("every gradient is accumulated once, under every strategy", "[tools][trace]") {
  const Traced trace = traced(shipped("examples/own-profile.yaml"));
  std::map<int, std::multiset<std::string>> gradients;  // by process
  for (const Event& event : of_category(trace.events, "cpu_op"))
    if (event.name() == "torch::autograd::AccumulateGrad")
      gradients[event.json["pid"]].insert(event.json["args"]["parameter"]);
  CHECK(gradients.size() == trace.ranks().size());
  for (const auto& [process, names] : gradients)
    CHECK(names == std::multiset<std::string>{"0.bias", "0.weight", "2.bias", "2.weight", "4.bias",
                                              "4.weight"});
}

TEST_CASE("every kernel of a trace is launched, and an arrow leads to it", "[tools][trace]") {
  for (const std::string& name : gpu_scenarios) {
    CAPTURE(name);
    const Traced trace = traced(shipped(name));
    std::map<std::int64_t, Event> launches, from, to;
    for (const Event& launch : of_category(trace.events, "cuda_runtime"))
      if (launch.json["args"].contains("correlation"))
        CHECK(launches.emplace(launch.json["args"]["correlation"], launch).second);
    for (const Event& event : of_phase(trace.events, "s"))
      CHECK(from.emplace(event.json["id"], event).second);
    for (const Event& event : of_phase(trace.events, "f"))
      CHECK(to.emplace(event.json["id"], event).second);
    REQUIRE(from.size() == to.size());
    std::size_t kernels = 0;
    for (const char* category : {"kernel", "gpu_memcpy"})
      for (const Event& kernel : of_category(trace.events, category)) {
        ++kernels;
        const std::int64_t id = kernel.json["args"]["correlation"];
        CAPTURE(kernel.json.dump());
        REQUIRE(launches.contains(id));
        REQUIRE(from.contains(id));
        const Event& launch = launches.at(id);
        CHECK(launch.start <= kernel.start);
        CHECK(from.at(id).category() == "ac2g");
        CHECK(std::pair(from.at(id).row(), from.at(id).start) ==
              std::pair(launch.row(), launch.start));
        CHECK(std::pair(to.at(id).row(), to.at(id).start) == std::pair(kernel.row(), kernel.start));
      }
    CHECK(kernels > 0);
    // The other arrows lead from the last gradient of a bucket to its all-reduce.
    std::set<std::pair<Row, std::int64_t>> all_reduces;
    for (const Event& kernel : of_category(trace.events, "kernel"))
      if (is_collective(kernel)) all_reduces.emplace(kernel.row(), kernel.start);
    for (const auto& [id, arrow] : to) {
      if (arrow.category() == "ac2g") continue;
      CHECK(all_reduces.count({arrow.row(), arrow.start}) == 1);
      CHECK(from.at(id).start < arrow.start);
    }
    CHECK(to.size() > kernels);
  }
}

TEST_CASE("a trace tells what the JSON tells", "[tools][trace]") {
  for (const auto& [name, flags] : some_scenarios) {
    CAPTURE(name, flags);
    const Traced trace = traced(shipped(name), flags);
    const std::size_t each = trace.ranks().size() / trace.run["results"].size();
    REQUIRE(each * trace.run["results"].size() == trace.ranks().size());
    const bool device = trace.header["deviceProperties"].size() == 1;
    const std::vector<Event> spans = of_phase(trace.events, "X");
    for (std::size_t i = 0; i < trace.ranks().size(); ++i) {
      const Json& result = trace.run["results"][i / each];
      const int host = trace.ranks()[i]["process"];
      const int process = device ? static_cast<int>(i) : host;
      CAPTURE(result["strategy"], i);
      CHECK(trace.ranks()[i]["step_ms"].get<double>() == result["step_ms"].get<double>());
      std::int64_t last = 0, step = -1, count = 0, communication = 0;
      for (const Event& span : spans) {
        if (span.json["pid"] == host && span.name() == "ProfilerStep#2") step = span.end();
        if (span.json["pid"] != process) continue;
        last = std::max(last, span.end());
        if (!is_collective(span)) continue;
        ++count;
        communication += span.duration;
        CHECK(span.json["args"]["Group size"] == trace.run["ranks"]);
      }
      CHECK(count == result["collectives"]);
      CHECK(static_cast<double>(communication) * 1e-9 ==
            Approx(result["communication_ms"].get<double>()).margin(1e-6));
      CHECK(last <= step);
      // The last rank is the slowest, and ends the step.
      if ((i + 1) % each == 0)
        CHECK(static_cast<double>(step) * 1e-9 ==
              Approx(result["step_ms"].get<double>()).margin(1e-6));
      else
        CHECK(static_cast<double>(step) * 1e-9 < result["step_ms"].get<double>() + 1e-6);
    }
  }
}

TEST_CASE("counters tell what is on the links", "[tools][trace]") {
  // Two ranks send each byte of an all-reduce once: 2 (2 - 1) / 2.
  const Traced trace = traced(shipped("examples/own-profile.yaml"));
  REQUIRE(trace.run["ranks"] == 2);
  for (std::size_t i = 0; i < trace.ranks().size(); ++i) {
    const Json& result = trace.run["results"][i / 2];
    CAPTURE(result["strategy"]);
    std::map<std::string, std::vector<std::pair<std::int64_t, double>>> values;
    for (const Event& event : of_phase(trace.events, "C"))
      if (event.json["pid"] == i && event.name() != "memory")
        values[event.name()].emplace_back(event.start, *event.json["args"].begin());
    if (result["collectives"] == 0) {
      CHECK(values.empty());
      continue;
    }
    double sent = 0;
    const auto& rates = values.at("link use");
    CHECK(rates.front() == std::pair(std::int64_t{0}, 0.0));
    for (std::size_t k = 1; k < rates.size(); ++k)
      sent += rates[k - 1].second * static_cast<double>(rates[k].first - rates[k - 1].first) * 1e-3;
    CHECK(sent == Approx(result["wire_bytes"].get<double>()).epsilon(1e-6));
    CHECK(values.at("bytes in flight").back().second == 0);
    for (const auto& [at, bytes] : values.at("bytes in flight")) CHECK(bytes >= 0);
  }
}

TEST_CASE("the counter of memory rises to the peak that run tells, when run tells it",
          "[tools][trace][memory]") {
  const Traced trace = traced(first_example);
  const std::size_t each = trace.ranks().size() / trace.run["results"].size();
  for (std::size_t i = 0; i < trace.ranks().size(); i += each) {
    const Json& memory = trace.run["results"][i / each]["memory"];
    double peak = 0, latest = 0;
    std::int64_t at = 0;
    for (const Event& event : of_phase(trace.events, "C")) {
      if (event.json["pid"] != i || event.name() != "memory") continue;
      double sum = 0;
      for (const auto& [kind, bytes] : event.json["args"].items()) sum += bytes.get<double>();
      CHECK(static_cast<double>(event.start) >= latest);
      latest = static_cast<double>(event.start);
      if (sum <= peak) continue;
      peak = sum;
      at = event.start;
    }
    CHECK(peak == memory["peak_bytes"].get<double>());
    CHECK(static_cast<double>(at) * 1e-9 == Approx(memory["at_ms"].get<double>()));
  }
}

TEST_CASE("a trace is JSON with one event on each line", "[tools][trace]") {
  for (const auto& [name, flags] : some_scenarios) {
    CAPTURE(name, flags);
    const Scratch scratch;
    const std::string file = scratch.path("t.json").string();
    std::vector<std::string> command{"run", shipped(name), "-q", "--trace", file};
    command.insert(command.end(), flags.begin(), flags.end());
    REQUIRE(ddpsim(command).code == 0);
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
  int found = 0;
  for (const Event& event : of_category(traced(file.string()).events, "cpu_op")) {
    if (event.name() != "torch::autograd::AccumulateGrad") continue;
    ++found;
    CHECK(event.json["args"]["parameter"] == "a\"b\\c\n\t\u2028é");
  }
  CHECK(found > 0);
}

TEST_CASE("schedule writes the trace of its one strategy", "[tools][trace]") {
  const Scratch scratch;
  const std::string file = scratch.path("t.json").string();
  REQUIRE(ddpsim({"schedule", shipped("examples/own-profile.yaml"), "--trace", file}).code == 0);
  const Traced trace = parsed(content_of(file));
  REQUIRE(trace.ranks().size() == 2);
  for (const Json& rank : trace.ranks())
    CHECK_THAT(rank["name"].get<std::string>(), Catch::StartsWith("bucketed"));
}

TEST_CASE("a trace shows the ranks that differ, or all", "[tools][trace]") {
  const std::vector<std::string> large{"--set", "cluster.nodes=4", "--set",
                                       "cluster.inter_node=ib-ndr"};
  // 32 ranks with a skew: 0 to 30 are alike, 31 stands for the slowest.
  const Traced few = traced(first_example, large);
  REQUIRE(few.run["ranks"] == 32);
  REQUIRE(few.ranks().size() == 2 * 4);
  CHECK(few.ranks()[0]["name"] == "naive: rank 0 (and all up to 30)");
  CHECK(few.ranks()[1]["name"] == "naive: rank 31 (the slowest of 32)");
  CHECK(few.ranks()[1]["rank"] == 31);
  // A small workload, of which five strategies are compared.
  const Traced all =
      traced(shipped("examples/own-profile.yaml"),
             {"--set", "cluster.nodes=16", "--set", "cluster.inter_node=ib-ndr", "--all-ranks"});
  REQUIRE(all.ranks().size() == 32 * 5);
  std::set<std::string> names;
  for (const Json& rank : all.ranks()) CHECK(names.insert(rank["name"]).second);
  CHECK(names.contains("naive: rank 17"));
  // Without a skew one rank stands for all.
  const Traced one = traced(first_example, {"--set", "cluster.skew=0 %"});
  REQUIRE(one.ranks().size() == 4);
  CHECK(one.ranks()[0]["name"] == "naive: rank 0 (and all up to 7)");
}

TEST_CASE("a trace is compressed by its name", "[tools][trace]") {
  const Scratch scratch;
  const std::string plain = scratch.path("t.json").string(),
                    packed = scratch.path("t.json.gz").string();
  for (const std::string& file : {plain, packed})
    REQUIRE(ddpsim({"run", first_example, "-q", "--trace", file}).code == 0);
  CHECK(unpacked(packed) == content_of(plain));
  CHECK(10 * std::filesystem::file_size(packed) < std::filesystem::file_size(plain));
}

TEST_CASE("a folder gets a trace for each strategy and rank", "[tools][trace]") {
  const Scratch scratch;
  const std::filesystem::path folder = scratch.path("new/traces");
  const std::vector<std::string> command{"run", shipped("examples/own-profile.yaml"), "-q",
                                         "--trace", folder.string() + "/"};
  REQUIRE(ddpsim(command).code == 0);
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files.insert(std::filesystem::relative(entry.path(), folder).string());
  std::set<std::string> expected;
  for (const char* step : {"none", "naive", "flat", "overlap", "bucketed-explicit"})
    for (const char* rank : {"0", "1"})
      expected.insert(std::string(step) + "/rank" + rank + ".json.gz");
  CHECK(files == expected);
  for (const int rank : {0, 1}) {
    const Traced trace = parsed(
        unpacked(folder / "bucketed-explicit" / ("rank" + std::to_string(rank) + ".json.gz")));
    CHECK(trace.header["distributedInfo"] ==
          Json({{"backend", "nccl"}, {"rank", rank}, {"world_size", 2}}));
    CHECK(trace.header["deviceProperties"][0]["name"] == "rtx-pro-6000");
    CHECK(trace.header["schemaVersion"] == 1);
  }
  // Again: the same files. With those of another job beside them a reader would mix the two.
  CHECK(ddpsim(command).code == 0);
  std::ofstream(folder / "flat/rank7.json.gz") << "old";
  const Outcome refused = ddpsim(command);
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("there is rank7.json.gz already"));
  CHECK(lines_of(refused.err).size() == 1);
}

TEST_CASE("places where traces cannot go are refused before the work", "[tools][trace]") {
  const Scratch scratch;
  scratch.write("file", "");
  const auto refused = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> command{"run", first_example, "-q"};
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome outcome = ddpsim(command, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    return outcome.err;
  };
  CHECK_THAT(refused({"--trace", "file/traces/"}), Catch::Contains("file is no folder"));
  CHECK_THAT(refused({"--all-ranks"}), Catch::Contains("--all-ranks goes with --trace alone"));
  CHECK_THAT(refused({"--all-ranks", "--trace", "t.json", "--set", "cluster.nodes=1000", "--set",
                      "cluster.inter_node=ib-ndr"}),
             Catch::Contains("without --all-ranks it holds the ranks that differ"));
}

TEST_CASE("a predicted trace, imported, gives back its step", "[tools][trace]") {
  const Scratch scratch;
  const std::string folder = scratch.path("traces/").string();
  const Json run = ddpsim({"run", first_example, "--trace", folder, "--json", "-"}).json();
  const std::map<std::string, std::string> folders{{"naive", "naive"},
                                                   {"flat", "flat"},
                                                   {"overlap", "overlap"},
                                                   {"bucketed", "bucketed-1+25-MiB"}};
  for (const Json& result : run["results"]) {
    const std::string strategy = result["strategy"];
    CAPTURE(strategy);
    // The slowest rank is the one whose step is the job's.
    const Outcome outcome =
        ddpsim({"import", "torch-trace", folder + folders.at(strategy) + "/rank7.json.gz", "-o",
                scratch.path("p.yaml").string(), "--json", "-"});
    REQUIRE(outcome.code == 0);
    const Json found = outcome.json();
    CHECK(found["strategy"] == strategy);
    REQUIRE(found["steps"].size() == 1);
    CHECK(found["steps"][0]["step_ms"].get<double>() ==
          Approx(result["step_ms"].get<double>()).margin(1e-6));
    CHECK(found["steps"][0]["collectives_ms"].get<double>() ==
          Approx(result["communication_ms"].get<double>()).margin(1e-5));
    // Nothing runs beside the backward pass, whose figures are those of the rank that is 0.7 %
    // quicker.
    if (strategy == "naive" || strategy == "flat")
      CHECK(found["steps"][0]["backward_ms"].get<double>() ==
            Approx(result["backward_ms"].get<double>()).epsilon(0.01));
    REQUIRE(found["buckets"].size() == result["buckets"].size());
    for (std::size_t b = 0; b < found["buckets"].size(); ++b) {
      const Json &traced = found["buckets"][b], &bucket = result["buckets"][b];
      CHECK(4 * traced["elements"].get<std::int64_t>() == bucket["bytes"]);
      CHECK(traced["start_ms"].get<double>() ==
            Approx(bucket["start_ms"].get<double>()).margin(1e-6));
    }
  }
}

}  // namespace
}  // namespace ddpsim
