#include "tools/report/calibration_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/cost/calibration_fit.hpp"
#include "tools/report/yaml_text.hpp"

namespace ddpsim {
namespace {

std::string text_of(const Spread& spread) {
  return fmt::format("time: {}, low: {}, high: {}, repeats: {}, outliers: {}", exact(spread.median),
                     exact(spread.low), exact(spread.high), spread.repeats, spread.outliers);
}

std::string text_of(const TaskCost& task) {
  std::string gemm;
  if (task.gemm)
    gemm = fmt::format("gemm: [{}, {}, {}, {}], ", task.gemm->m, task.gemm->n, task.gemm->k,
                       task.gemm->batch);
  return fmt::format("operation: {}, {}traffic: {}, type: {}, {}{}", name_of(task.operation), gemm,
                     exact(task.traffic), name_of(task.type), task.aside ? "aside: true, " : "",
                     text_of(task.time));
}

/// What the law has of its three terms, and how near it comes.
std::string text_of(const CostLaw& law, const char* constant) {
  std::string terms;
  if (law.constant > Duration::zero())
    terms += fmt::format("{}: {}, ", constant, to_string(law.constant));
  if (std::isfinite(law.arithmetic.flops_per_second))
    terms += fmt::format("arithmetic: {}, ", to_string(law.arithmetic));
  if (std::isfinite(law.bandwidth.bytes_per_second))
    terms += fmt::format("bandwidth: {}, ", to_string(law.bandwidth));
  return fmt::format("{{{}error: {:.1f} %, points: {}}}", terms, 100 * law.residual, law.points);
}

std::string fits_of(const Calibration& calibration) {
  std::string lines;
  for (const DType type : all_dtypes)
    if (const auto law = fit_gemm(calibration.tasks, type))
      lines += fmt::format("  gemm {}: {}\n", name_of(type), text_of(*law, "constant"));
  if (const auto law = fit_streaming(calibration.tasks))
    lines += fmt::format("  streaming: {}\n", text_of(*law, "constant"));
  if (const auto law = fit_all_reduce(calibration.all_reduce))
    lines += fmt::format("  all_reduce: {}\n", text_of(*law, "latency"));
  if (const auto law = fit_interference(calibration))
    lines += fmt::format(
        "  interference: {{multiprocessors_taken: {:.4g}, taken_per_channel: {:.4g}, "
        "memory_per_link_byte: {:.4g}, bandwidth_lost: {:.4g}, points: {}}}\n",
        law->multiprocessors_taken, law->taken_per_channel, law->memory_per_link_byte,
        law->bandwidth_lost, law->points);
  return lines;
}

template <typename Entries, typename Less>
Entries sorted(Entries entries, Less less) {
  std::stable_sort(entries.begin(), entries.end(), less);
  return entries;
}

}  // namespace

std::string calibration_yaml(const Calibration& given) {
  Calibration calibration = given;
  const auto key = [](const TaskCost& task) {
    return std::tuple(task.operation, task.gemm, task.traffic, task.type, task.aside);
  };
  const auto by_size = [](const auto& a, const auto& b) { return a.size < b.size; };
  calibration.tasks = sorted(calibration.tasks,
                             [&](const TaskCost& a, const TaskCost& b) { return key(a) < key(b); });
  calibration.all_reduce = sorted(calibration.all_reduce, by_size);
  calibration.interference = sorted(calibration.interference, [](const auto& a, const auto& b) {
    return std::pair(a.channels, a.size) < std::pair(b.channels, b.size);
  });

  std::string text =
      "# What ddpsim measured of a machine: what kernels, copies and all-reduces take, alone.\n"
      "# A scenario uses it with `cluster: {calibration: THIS FILE}`.\n"
      "# Of repeated measurements, time is the median, low and high the 10th and 90th percentile;\n"
      "# outliers lie beyond three times the quartile distance. An all-reduce counts from the\n"
      "# last rank's arrival. A slowdown is a factor on the time alone, while both are active.\n"
      "# traffic: bytes read and written together; gemm: [m, n, k, batch]; aside: of a comm hook,\n"
      "# beside the backward pass. KiB is 1024 bytes.\n"
      "format: ddpsim.calibration/1\n";
  const auto provenance = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}: {}\n", name, quoted(value));
  };
  provenance("backend", calibration.backend);
  provenance("machine", calibration.machine);
  provenance("cpu", calibration.cpu);
  provenance("link", calibration.link);
  provenance("versions", calibration.versions);
  provenance("date", calibration.date);
  provenance("workload", calibration.workload);
  text +=
      fmt::format("complete: {}{}\n", calibration.complete,
                  calibration.complete ? "" : "  # interrupted: what is here was measured in full");
  text += fmt::format("ranks: {}\nsynchronous: {}{}\n", calibration.ranks, calibration.synchronous,
                      calibration.synchronous ? "  # kernels run on the host thread" : "");
  text += fmt::format(
      "launch: {{kernel: {}, collective: {}, hook: {}, handover: {}, wait: {}}}  # host time of "
      "each\n",
      exact(calibration.launch.kernel), exact(calibration.launch.collective),
      exact(calibration.launch.hook), exact(calibration.launch.handover),
      exact(calibration.launch.wait));
  text +=
      fmt::format("slowest_rank: {}  # its computation over a typical one's, in the median step\n",
                  calibration.slowest_rank);
  if (calibration.backward_beside_hook != 1)
    text += fmt::format(
        "backward_beside_hook: {}  # how much longer backward computes where a comm hook computes "
        "aside\n",
        calibration.backward_beside_hook);
  if (!calibration.tasks.empty()) text += "tasks:\n";
  for (const TaskCost& task : calibration.tasks) text += fmt::format("  - {{{}}}\n", text_of(task));
  if (!calibration.factors.empty())
    text +=
        "# How much longer an operation's tasks take together than their medians added up.\n"
        "factors:\n";
  for (const OperationFactor& factor : calibration.factors)
    text += fmt::format("  - {{operation: {}, over_medians: {}}}\n", name_of(factor.operation),
                        factor.over_medians);
  if (!calibration.all_reduce.empty()) text += "all_reduce:\n";
  for (const AllReduceCost& point : calibration.all_reduce)
    text += fmt::format("  - {{bytes: {}, {}}}\n", exact(point.size), text_of(point.time));
  if (!calibration.interference.empty()) text += "interference:\n";
  for (const MeasuredInterference& point : calibration.interference)
    text += fmt::format(
        "  - {{bytes: {}, compute_slowdown: {}, {}communication_slowdown: {}{}}}\n",
        exact(point.size), point.compute_slowdown,
        point.memory_slowdown ? fmt::format("memory_slowdown: {}, ", *point.memory_slowdown) : "",
        point.communication_slowdown,
        point.channels > 0 ? fmt::format(", channels: {}", point.channels) : "");
  if (const std::string fits = fits_of(calibration); !fits.empty())
    text +=
        "# Laws through the points above, for people: what reads this file computes them anew.\n"
        "# time = constant + flops / arithmetic + bytes / bandwidth; error: median, relative\n"
        "fits:\n" +
        fits;
  return text;
}

}  // namespace ddpsim
