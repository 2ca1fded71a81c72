#include "tools/report/reports/calibration_file.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/text/seal.hpp"

namespace ddpsim {
namespace {

template <typename Entries, typename Less>
Entries sorted(Entries entries, Less less) {
  std::stable_sort(entries.begin(), entries.end(), less);
  return entries;
}

}  // namespace

std::string calibration_yaml(const Calibration& given) {
  Calibration calibration = given;
  const auto key = [](const MeasuredWork& task) {
    return std::tuple(task.operation, task.gemm, task.traffic, task.type, task.aside);
  };
  const auto by_size = [](const auto& a, const auto& b) { return a.size < b.size; };
  calibration.tasks = sorted(calibration.tasks, [&](const MeasuredWork& a, const MeasuredWork& b) {
    return key(a) < key(b);
  });
  calibration.all_reduce = sorted(calibration.all_reduce, by_size);
  calibration.collectives =
      sorted(calibration.collectives, [](const MeasuredCollective& a, const MeasuredCollective& b) {
        return std::tuple(a.operation, a.ranks, a.size) < std::tuple(b.operation, b.ranks, b.size);
      });
  calibration.interference = sorted(calibration.interference, [](const auto& a, const auto& b) {
    return std::pair(a.channels, a.size) < std::pair(b.channels, b.size);
  });

  return sealed(document(
      calibration_map(), calibration,
      "# What ddpsim measured of a machine: what kernels, copies and all-reduces take, alone.\n"
      "# A scenario uses it with `cluster: {calibration: THIS FILE}`.\n"
      "# Of repeated measurements, time is the median, low and high the 10th and 90th percentile;\n"
      "# outliers lie beyond three times the quartile distance. A collective counts from the\n"
      "# last rank's arrival. A slowdown is a factor on the time alone, while both are active.\n"
      "# traffic: bytes read and written together; gemm: [m, n, k, batch]; aside: of a comm hook,\n"
      "# beside the backward pass. KiB is 1024 bytes.\n"));
}

}  // namespace ddpsim
