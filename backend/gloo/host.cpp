#include "backend/gloo/host.hpp"

#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

namespace ddpsim {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown CPU";
}

}  // namespace

std::string cpu_name() {
  return fmt::format("{}, {} cores", cpu_model(), sysconf(_SC_NPROCESSORS_ONLN));
}

Bytes host_memory() {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return Bytes{pages / 10 * 9 * page};
}

void check_host_memory(const Workload& workload, int ranks) {
  double needed = 6.0 * static_cast<double>(workload.gradient_size().count) * ranks;
  for (const Parameter& parameter : workload.parameters)  // each gathers the rows of all
    if (parameter.sparse)
      needed +=
          static_cast<double>((parameter.sparse_values() + parameter.sparse_indices()).count) *
          ranks * ranks;
  const auto there = static_cast<double>(host_memory().count);
  if (needed > there)
    throw std::invalid_argument(
        fmt::format("{} needs up to {:.1f} GiB for the ranks of this host, which has {:.1f} GiB",
                    workload.name, needed / (1 << 30), there / (1 << 30)));
}

}  // namespace ddpsim
