#include "tools/study/machine_checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/device/cuda/gpu_module.hpp"
#include "backend/device_error.hpp"
#include "backend/gloo/host.hpp"
#include "backend/job/module_file.hpp"
#include "backend/measure/steal.hpp"
#include "backend/run/backends.hpp"
#include "backend/run/job.hpp"
#include "backend/thread_limits.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/study/catalogue_check.hpp"
#include "tools/study/python.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// The first line of a file of the system; empty if it cannot be read.
std::string first_line(const fs::path& path) {
  constexpr std::size_t most = 200;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.substr(0, most);
}

std::optional<double> number_in(const fs::path& path) {
  std::istringstream text(first_line(path));
  double number = 0;
  if (text >> number) return number;
  return std::nullopt;
}

/// The names in a folder of the system, sorted; none if there is no such folder.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error))
    names.push_back(each->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string listed(const std::vector<std::string>& texts, const char* between = ", ") {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : between) + text;
  return all;
}

// Processors and memory.

int own_processors() {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof(all), &all) != 0)
    return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return CPU_COUNT(&all);
}

/// Processors' worth of time that a control group lets its processes have (cgroups(7), cpu.max).
std::optional<double> processor_quota() {
  std::istringstream text(first_line("/sys/fs/cgroup/cpu.max"));
  double quota = 0, period = 0;
  if (text >> quota >> period && period > 0) return quota / period;
  return std::nullopt;
}

MachineCheck processors() {
  MachineCheck check{"processors", Health::good, cpu_name()};
  const int own = own_processors();
  const auto online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (own < online) check.found += fmt::format(", of which this process may use {}", own);
  if (const auto quota = processor_quota(); quota && *quota < own) {
    check.health = Health::doubtful;
    check.found += fmt::format("; its control group may use {:.3g} of them at a time", *quota);
    check.advice = "measure where no quota interrupts ranks";
  }
  if (own < 2) {
    check.health = Health::doubtful;
    check.advice = "ranks take turns on one processor: measure on two or more";
  }
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (governor == "powersave" || governor == "conservative") {
    check.health = Health::doubtful;
    check.found += fmt::format("; frequency governor {}", governor);
    check.advice = "cpupower frequency-set -g performance, while something is measured";
  }
  return check;
}

MachineCheck load() {
  double loads[1] = {0};
  if (getloadavg(loads, 1) != 1) return {"load", Health::good, "not known here"};
  MachineCheck check{"load", Health::good,
                     fmt::format("{:.2f} programs at work in the last minute", loads[0])};
  if (loads[0] > 0.5 * own_processors()) {
    check.health = Health::doubtful;
    check.advice = "wait until nothing else runs before you measure";
  }
  return check;
}

MachineCheck memory() {
  constexpr double gib = 1 << 30, kib = 1 << 10;
  double total = 0, available = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double amount = 0;
    if (!(words >> name >> amount)) continue;
    if (name == "MemTotal:") total = amount * kib;
    if (name == "MemAvailable:") available = amount * kib;
  }
  if (const auto limit = number_in("/sys/fs/cgroup/memory.max"); limit && *limit < total) {
    available = std::max(
        0.0, std::min(available, *limit - number_in("/sys/fs/cgroup/memory.current").value_or(0)));
    total = *limit;
  }
  if (total <= 0) return {"memory", Health::doubtful, "not known here"};
  return {"memory", Health::good,
          fmt::format("{:.1f} GiB, {:.1f} GiB of it free", total / gib, available / gib)};
}

MachineCheck pace_check(const Pace& pace, double stolen) {
  MachineCheck check{"pace", Health::good,
                     fmt::format("the same work takes {:.3f} to {:.3f} ms (p10 to p90, every "
                                 "processor at once); {:.0f} % of the time was stolen",
                                 in_ms(pace.low()), in_ms(pace.high()), 100 * stolen)};
  if (pace.even() && stolen <= most_stolen) return check;
  check.health = Health::doubtful;
  if (stolen > most_stolen)
    check.advice = "this machine's host gives its processors to others: measure at another time";
  else if (pace.changes())
    check.advice = "the pace changes: is something else running, or are processors shared?";
  else
    check.advice = "some processors are slower than others: choose alike ones with taskset";
  return check;
}

// What measuring needs.

/// Bytes per second of all-reduces of 16 MiB between two processes here, in memory that they share
/// with this one.
MachineCheck ranks_here(std::chrono::milliseconds timeout) {
  constexpr std::int64_t size = 16 << 20;
  constexpr int repeats = 7;
  void* shared =
      mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {"gloo", Health::missing, "no memory for two ranks"};
  double& rate = *static_cast<double*>(shared);
  MachineCheck check{"gloo", Health::missing, {}};
  try {
    JobOptions job;
    job.ranks = 2;
    job.timeout = timeout;
    const int code = run_job(job, [&](Backend& backend) {
      std::vector<Duration> times = backend.time_all_reduces(Bytes{size}, repeats, true);
      std::sort(times.begin(), times.end());
      if (backend.rank() == 0) rate = static_cast<double>(size) / in_seconds(times[repeats / 2]);
      return 0;
    });
    if (code == 0) {
      check.health = Health::good;
      check.found =
          fmt::format("two ranks reduce {:.2f} GB/s over TCP on this machine", rate / 1e9);
    } else {
      check.found = "two ranks that averaged a tensor on this machine failed";
      check.advice = "see what they said on stderr";
    }
  } catch (const std::exception& problem) {
    check.found = problem.what();
  }
  munmap(shared, sizeof(double));
  return check;
}

MachineCheck gpus() {
  std::vector<std::string> models;
  const fs::path folder = "/proc/driver/nvidia/gpus";
  for (const std::string& name : names_in(folder)) {
    const std::string model = first_line(folder / name / "information");  // "Model: \t\t NVIDIA .."
    const std::size_t at = model.find_first_not_of(" \t", model.find(':') + 1);
    models.push_back(at == std::string::npos ? name : model.substr(at));
  }
  std::string problem;
  for (const BackendStatus& backend : backends())
    if (backend.name == "nccl") problem = backend.missing();
  MachineCheck check{"GPUs", Health::good, models.empty() ? "none" : listed(models)};
  if (problem.empty()) {
    const int count = look_for_gpus().count;
    if (models.empty()) check.found = fmt::format("{}", count);
    if (count == 1) {
      check.health = Health::doubtful;
      check.advice = "with one GPU, `ddpsim validate --backend nccl --loopback N` stands for N";
    }
    return check;
  }
  check.health = Health::missing;
  check.found += "; " + problem;
  if (!models.empty()) check.advice = "the page docs/gpu.md has what the GPU backend is built from";
  return check;
}

MachineCheck nccl() {
  void* library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr)
    return {"NCCL", Health::missing, "no libnccl.so.2 where libraries are looked for",
            "only GPU ranks need it"};
  using GetVersion = int (*)(int*);
  const auto version = reinterpret_cast<GetVersion>(dlsym(library, "ncclGetVersion"));
  int number = 0;
  if (version == nullptr || version(&number) != 0)
    return {"NCCL", Health::doubtful, "libnccl.so.2 does not tell its version"};
  return {"NCCL", Health::good,
          fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100)};
}

MachineCheck python_check(std::chrono::milliseconds timeout) {
  try {
    let_python_find_package();
    const Python python = look_at_python(python_program(), timeout);
    MachineCheck check{"Python", Health::good,
                       fmt::format("{} {}", python.program.string(), python.version)};
    check.found += python.torch.empty() ? ", no PyTorch" : ", PyTorch " + python.torch;
    check.found += python.has_package ? ", the package ddpsim" : ", no package ddpsim";
    if (python.torch.empty() || python.torch.starts_with("1.")) {
      check.health = Health::missing;
      check.advice = fmt::format(
          "{} -m pip install torch, or let DDPSIM_PYTHON name a Python that "
          "has PyTorch 2",
          python.program.string());
    } else if (!python.has_package) {
      check.health = Health::missing;
      check.advice =
          fmt::format("{} -m pip install . in ddpsim's sources", python.program.string());
    }
    return check;
  } catch (const InputError& problem) {
    return {"Python", Health::missing, problem.what(),
            "install Python with PyTorch 2, or let DDPSIM_PYTHON name one"};
  } catch (const DeviceError& problem) {
    return {"Python", Health::missing, problem.what(), "let this user start more processes"};
  }
}

/// "10 Gbit/s"; empty where the system does not know.
std::string speed_of(const fs::path& interface) {
  const std::optional<double> megabits = number_in(interface / "speed");
  if (!megabits || *megabits <= 0) return "";
  return *megabits >= 1000 ? fmt::format("{:.4g} Gbit/s", *megabits / 1000)
                           : fmt::format("{:.4g} Mbit/s", *megabits);
}

MachineCheck networks() {
  constexpr std::size_t most = 16;
  std::vector<std::string> found;
  for (const std::string& name : names_in("/sys/class/net")) {
    const fs::path interface = fs::path("/sys/class/net") / name;
    if (name == "lo" || first_line(interface / "operstate") == "down") continue;
    const std::string speed = speed_of(interface);
    found.push_back(fmt::format("{} {}", name, speed.empty() ? "(speed not known)" : speed));
  }
  for (const std::string& name : names_in("/sys/class/infiniband"))
    for (const std::string& port : names_in(fs::path("/sys/class/infiniband") / name / "ports"))
      found.push_back(fmt::format(
          "{} port {}: {}", name, port,
          first_line(fs::path("/sys/class/infiniband") / name / "ports" / port / "rate")));
  if (found.empty())
    return {"network", Health::missing, "none but the loopback",
            "ranks on several hosts need one, as --interface"};
  if (found.size() > most) {
    const std::size_t more = found.size() - most;
    found.resize(most);
    found.push_back(fmt::format("and {} more", more));
  }
  return {"network", Health::good, listed(found)};
}

/// The checks that are not good, among these parts; empty: all are there.
std::string missing_of(const std::vector<MachineCheck>& checks,
                       const std::vector<std::string>& parts) {
  std::vector<std::string> missing;
  for (const MachineCheck& check : checks)
    if (check.health == Health::missing && std::ranges::find(parts, check.part) != parts.end())
      missing.push_back(fmt::format("{}: {}", check.part, check.found));
  return listed(missing, "; ");
}

std::string doubts_of(const std::vector<MachineCheck>& checks,
                      const std::vector<std::string>& parts) {
  std::vector<std::string> doubts;
  for (const MachineCheck& check : checks)
    if (check.health != Health::good && std::ranges::find(parts, check.part) != parts.end())
      doubts.push_back(check.advice.empty() ? check.found : check.advice);
  return listed(doubts, "; ");
}

/// "catalogue: 1 of 122 entries cannot be read" of one that can be read but for single files, which
/// its own check names, or "catalogue: no step has a band"; "" of any other.
std::string wrong_entries(const std::vector<MachineCheck>& checks) {
  for (const MachineCheck& check : checks) {
    if (check.part != "catalogue" || check.health != Health::doubtful) continue;
    const std::string wrong = check.found.substr(check.found.find("; ") + 2);
    return fmt::format("{}: {}", check.part, wrong.substr(0, wrong.find(": ")));
  }
  return "";
}

std::vector<Ability> abilities_of(const std::vector<MachineCheck>& checks) {
  const std::string wrong = wrong_entries(checks);
  return {
      {"predict, tune, sweep, explore", missing_of(checks, {"catalogue"}), wrong},
      {"describe and profile PyTorch models", missing_of(checks, {"Python"})},
      {"calibrate and validate on processors", missing_of(checks, {"catalogue", "gloo"}), wrong},
      {"the same on several hosts", missing_of(checks, {"catalogue", "gloo", "network"}), wrong},
      {"calibrate and validate on GPUs", missing_of(checks, {"catalogue", "GPUs", "NCCL"}), wrong},
      {"trust what is timed here now", doubts_of(checks, {"processors", "load", "pace"})}};
}

}  // namespace

const char* name_of(Health health) {
  switch (health) {
    case Health::good:
      return "good";
    case Health::doubtful:
      return "doubtful";
    case Health::missing:
      return "missing";
  }
  return "";
}

Lack what_predictions_lack(const MachineReport& report) {
  for (const MachineCheck& check : report.checks) {
    if (check.part != "catalogue" || check.health == Health::good) continue;
    const bool all = check.health == Health::missing;
    return {all ? Lack::Extent::all : Lack::Extent::some,
            fmt::format("{}: {}; {}",
                        all ? "there is no catalogue, which run and tune need"
                            : "the catalogue is whole only in part",
                        check.found, check.advice)};
  }
  return {};
}

MachineReport check_machine(const CheckLimits& limits,
                            const std::function<void(const std::string&, double)>& begun) {
  MachineReport report;
  std::vector<MachineCheck>& checks = report.checks;
  constexpr double before_pace = 0.3;
  const auto about = [&](const char* what, double done) {
    if (begun) begun(what, done);
  };
  about("processors", 0);
  checks.push_back(processors());
  checks.push_back(load());
  checks.push_back(memory());
  about("catalogue", 0.05);
  checks.push_back(check_catalogue());
  about("two ranks", 0.1);
  checks.push_back(ranks_here(limits.timeout));
  checks.push_back(networks());
  about("GPUs", 0.2);
  checks.push_back(gpus());
  checks.push_back(nccl());
  about("Python", 0.25);
  checks.push_back(python_check(limits.timeout));
  if (limits.pace.count() > 0) try {
      const Steal steal;
      report.pace = measure_pace(limits.pace, [&](double passed) {
        about("pace of the processors", before_pace + (1 - before_pace) * passed);
      });
      report.stolen_share = steal.share();
      checks.insert(checks.begin() + 2, pace_check(*report.pace, *report.stolen_share));
    } catch (const std::system_error& problem) {
      checks.insert(checks.begin() + 2,
                    {"pace", Health::doubtful,
                     fmt::format("no thread could be started ({})", problem.code().message()),
                     what_limits_threads});
    }
  report.abilities = abilities_of(checks);
  return report;
}

}  // namespace ddpsim
