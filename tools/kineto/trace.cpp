#include "tools/kineto/trace.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/version.hpp"
#include "model/timeline/busy_overlap.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/kineto/kineto_rank.hpp"
#include "tools/kineto/shown_ranks.hpp"
#include "tools/report/writers/gzip.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

constexpr int first_host_process = 1'000'000;  ///< devices count from 0

void check_size(const Scenario& scenario, const std::vector<NamedStep>& steps, TraceRanks which) {
  std::size_t tasks = 0;
  for (const NamedStep& named : steps)
    tasks += named.step->rank().program.tasks.size() *
             static_cast<std::size_t>(ShownRanks(scenario, *named.step, which).count());
  if (tasks > most_traced_tasks)
    throw std::invalid_argument(
        fmt::format("a trace of {} tasks would take more than {} GB: without --all-ranks it holds "
                    "the ranks that differ; --set compare=[bucketed] leaves strategies out",
                    tasks, tasks / 2'000'000));
}

/// A file's worth of processes.
class TraceFile {
 public:
  TraceFile(const Scenario& scenario, std::string title)
      : scenario_(scenario), title_(std::move(title)) {}

  /// A step of one rank, called `name`.
  void add(const Step& step, int rank, int like, std::string name) {
    const int process = static_cast<int>(processes_.size());
    processes_.push_back(
        {&step, {first_host_process + process, process, rank, like}, std::move(name)});
  }

  /// A large trace is written as it is made: never all of it is in memory.
  void write(const TakePart& take) const {
    take(header());
    TraceEvents events(take);
    std::int64_t correlation = 0;
    for (const Process& process : processes_) add_events(events, process, correlation);
    events.flush();
    take("\n]}\n");
  }

 private:
  /// What the catalogue knows of the device, by the profiler's names.
  std::string device() const {
    const Device& device = scenario_.cluster.device;
    if (device.synchronous) return "";
    return fmt::format(
        "{{\"id\": 0, \"name\": {}, \"totalGlobalMem\": {}, \"computeMajor\": {}, "
        "\"computeMinor\": {}, \"numSms\": {}}}",
        json_quoted(device.name), device.memory.count, device.compute_capability / 10,
        device.compute_capability % 10, device.multiprocessors);
  }

  struct Process {
    const Step* step;
    TracedRank where;
    std::string name;
  };

  std::string header() const {
    std::string ranks;  // what our own header says of each
    for (const auto& [step, where, name] : processes_)
      ranks += fmt::format(
          "{}\n {{\"name\": {}, \"rank\": {}, \"process\": {}, \"step_ms\": {}, "
          "\"busy_overlap\": {}}}",
          ranks.empty() ? "" : ",", json_quoted(name), where.rank, where.host,
          in_ms(step->metrics.step), busy_overlap(step->rank(at(where.like))).ratio());
    const Process& first = processes_.front();
    const bool on_hosts = TracedStep(scenario_, *first.step, first.where).collectives_on_hosts;
    // Holistic Trace Analysis looks for the rank in the text, with a space behind the colon.
    return fmt::format(
        "{{\n\"schemaVersion\": 1,\n\"deviceProperties\": [{}],\n"
        "\"distributedInfo\": {{\"backend\": \"{}\", \"rank\": {}, \"world_size\": {}}},\n"
        "\"ddpsim\": {{\"version\": {}, \"scenario\": {}, \"ranks\": [{}]}},\n"
        "\"traceName\": {},\n\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [\n",
        device(), on_hosts ? "gloo" : "nccl", first.where.rank, scenario_.cluster.ranks(),
        json_quoted(version), json_quoted(scenario_.name), ranks, json_quoted(title_));
  }

  void add_events(TraceEvents& events, const Process& process, std::int64_t& correlation) const {
    const auto& [step, where, name] = process;
    const int order = 2 * where.device;
    events.name_process(where.host, name, "CPU", order);
    if (!scenario_.cluster.device.synchronous)
      events.name_process(
          where.device, name,
          fmt::format("GPU {}", scenario_.cluster.ranks_per_node.place_of(where.rank)), order + 1);
    write_rank(events, TracedStep(scenario_, *step, where), correlation);
  }

  const Scenario& scenario_;
  const std::string title_;
  std::vector<Process> processes_;
};

/// The file of all steps. Throws std::invalid_argument if it would be too large.
TraceFile trace_of(const Scenario& scenario, const std::vector<NamedStep>& steps,
                   TraceRanks which) {
  check_size(scenario, steps, which);
  TraceFile file(scenario, "ddpsim: " + scenario.name);
  for (const auto& [name, step] : steps) {
    const ShownRanks ranks(scenario, *step, which);
    for (int i = 0; i < ranks.count(); ++i)
      file.add(*step, ranks.rank(i), ranks.like(i), fmt::format("{}: {}", name, ranks.name(i)));
  }
  return file;
}

void add_file(Outputs& outputs, const std::string& path, TraceFile file) {
  outputs.add_parts(path, [path, file = std::move(file)](const TakePart& take) {
    if (!path.ends_with(".gz")) return file.write(take);
    Gzip packed(take);
    file.write([&](std::string_view part) { packed.add(part); });
    packed.finish();
  });
}

/// "bucketed, 1+25 MiB" as the name of a folder: "bucketed-1+25-MiB".
std::string folder_name(const std::string& label) {
  std::string name;
  for (const char c : label) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '.' || c == '_' || c == '+')
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

bool is_trace_name(const std::string& name) {
  return name.ends_with(".json") || name.ends_with(".gz");
}

/// Throws InputError if a folder holds traces besides those that are going to be written.
void check_folder_of_step(const fs::path& folder, const std::vector<std::string>& names) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (is_trace_name(name) && std::find(names.begin(), names.end(), name) == names.end())
      throw InputError(
          fmt::format("--trace {}: there is {} already, which would be taken for a rank of this "
                      "job; name another folder",
                      folder.string(), name));
  }
}

}  // namespace

std::string chrome_trace(const Scenario& scenario, const std::vector<NamedStep>& steps,
                         TraceRanks which) {
  std::string text;
  trace_of(scenario, steps, which).write([&](std::string_view part) { text += part; });
  return text;
}

bool is_trace_folder(const std::string& place) {
  std::error_code error;
  return place.ends_with('/') || fs::is_directory(place, error);
}

void check_trace_folder(const std::string& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder, error);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, error))
    throw InputError(fmt::format("--trace {}: {} is no folder", folder, there.string()));
  if (access(there.c_str(), W_OK | X_OK) != 0)
    throw DeviceError(
        printable(fmt::format("--trace {}: {} cannot be written to", folder, there.string())));
}

void add_trace(Outputs& outputs, const std::string& place, const Scenario& scenario,
               const std::vector<NamedStep>& steps, TraceRanks which) {
  if (place.empty()) return;
  if (!is_trace_folder(place)) return add_file(outputs, place, trace_of(scenario, steps, which));
  check_size(scenario, steps, which);
  for (const auto& [name, step] : steps) {
    const fs::path folder = fs::path(place) / folder_name(name);
    const ShownRanks ranks(scenario, *step, which);
    std::vector<std::string> names;
    for (int i = 0; i < ranks.count(); ++i)
      names.push_back(fmt::format("rank{}.json.gz", ranks.rank(i)));
    check_folder_of_step(folder, names);
    outputs.add_folder(folder.string());
    for (int i = 0; i < ranks.count(); ++i) {
      const std::string title = fmt::format("{}: {}", name, ranks.name(i));
      TraceFile file(scenario, "ddpsim: " + title);
      file.add(*step, ranks.rank(i), ranks.like(i), title);
      add_file(outputs, (folder / names[at(i)]).string(), std::move(file));
    }
  }
}

}  // namespace ddpsim
