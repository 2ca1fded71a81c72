#include "backend/job/allocation.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <istream>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "backend/job/rank_environment.hpp"

namespace ddpsim {
namespace {

/// The value of a variable; "" where it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int count_in(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::max(1, count) : 1;
}

/// A word for each task, the name of its host. That one host has several places is no request for
/// as many processes.
Allocation of_hosts(std::string system, std::istream& hosts) {
  constexpr int most = 1'000'000;
  std::set<std::string> names;
  int tasks = 0;
  for (std::string host; tasks < most && hosts >> host; ++tasks) names.insert(host);
  const int nodes = std::max(1, static_cast<int>(names.size()));
  return {std::move(system), "mpirun", nodes, nodes > 1 ? tasks : 1};
}

std::optional<Allocation> allocation() {
  if (!variable("SLURM_JOB_ID").empty()) {
    const std::string nodes = variable("SLURM_JOB_NUM_NODES");
    return Allocation{"Slurm", "srun", count_in(nodes.empty() ? variable("SLURM_NNODES") : nodes),
                      count_in(variable("SLURM_NTASKS"))};
  }
  if (const std::string path = variable("PBS_NODEFILE"); !path.empty()) {
    std::ifstream hosts(path);
    return of_hosts("PBS", hosts);
  }
  if (const std::string names = variable("LSB_HOSTS"); !names.empty()) {
    std::istringstream hosts(names);
    return of_hosts("LSF", hosts);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Allocation> allocation_left_alone() {
  if (rank_from_environment()) return std::nullopt;
  const auto found = allocation();
  return found && (found->nodes > 1 || found->tasks > 1) ? found : std::nullopt;
}

}  // namespace ddpsim
