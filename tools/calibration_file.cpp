#include "tools/calibration_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/calibration_fit.hpp"

namespace ddpsim {
namespace {

/// The length of the UTF-8 character that begins at `at`, 0 if none does: a lead byte, the
/// continuation bytes it asks for, no longer form than needed, no surrogate, nothing past U+10FFFF.
std::size_t utf8_length(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t ahead) {
    return at + ahead < text.size() ? static_cast<unsigned char>(text[at + ahead]) : 0U;
  };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80                    ? 1
                             : lead >= 0xc2 && lead <= 0xdf ? 2
                             : (lead & 0xf0) == 0xe0        ? 3
                             : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                            : 0;
  for (std::size_t ahead = 1; ahead < length; ++ahead)
    if ((byte(ahead) & 0xc0) != 0x80) return 0;
  const bool wrong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
                     (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f);
  return wrong ? 0 : length;
}

/// Any text on one line, in double quotes.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::string character = text.substr(at, std::max<std::size_t>(length, 1));
    const auto first = static_cast<unsigned char>(character[0]);
    // U+0080 to U+009F are control characters, U+2028 and U+2029 line breaks to some.
    const auto second = static_cast<unsigned char>(length > 1 ? character[1] : 0);
    if (length == 0)
      result += "\xef\xbf\xbd";
    else if (first == '"' || first == '\\')
      result.append("\\").append(character);
    else if (first < 0x20 || first == 0x7f)
      result += fmt::format("\\x{:02x}", first);
    else if (first == 0xc2 && second < 0xa0)
      result += fmt::format("\\x{:02x}", second);
    else if (character == "\xe2\x80\xa8" || character == "\xe2\x80\xa9")
      result += character == "\xe2\x80\xa8" ? "\\u2028" : "\\u2029";
    else
      result += character;
    at += character.size();
  }
  result += '"';
  return result;
}

/// To the picosecond, in the largest unit it fills: "830 us", "1.234567890001 s".
std::string exact(Duration time) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 4> units{
      {{1'000'000'000'000, "s"}, {1'000'000'000, "ms"}, {1'000'000, "us"}, {1'000, "ns"}}};
  const std::int64_t ticks = time.count();
  for (const auto& [unit, name] : units) {
    if (ticks < unit) continue;
    std::string digits =
        fmt::format("{}", unit + ticks % unit).substr(1);  // the leading zeros stay
    digits.erase(digits.find_last_not_of('0') + 1);
    return fmt::format("{}{}{} {}", ticks / unit, digits.empty() ? "" : ".", digits, name);
  }
  return fmt::format("{} ps", ticks);
}

/// To the byte, in the largest unit that divides it.
std::string exact(Bytes size) {
  for (const auto& [unit, name] : {std::pair{GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}})
    if (size >= unit && size.count % unit.count == 0)
      return fmt::format("{} {}", size.count / unit.count, name);
  return fmt::format("{} B", size.count);
}

std::string text_of(const Spread& spread) {
  return fmt::format("time: {}, low: {}, high: {}, repeats: {}, outliers: {}", exact(spread.median),
                     exact(spread.low), exact(spread.high), spread.repeats, spread.outliers);
}

std::string text_of(const TaskCost& task) {
  std::string gemm;
  if (task.gemm)
    gemm = fmt::format("gemm: [{}, {}, {}, {}], ", task.gemm->m, task.gemm->n, task.gemm->k,
                       task.gemm->batch);
  return fmt::format("operation: {}, {}traffic: {}, type: {}, {}", name_of(task.operation), gemm,
                     exact(task.traffic), name_of(task.type), text_of(task.time));
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
    return std::tuple(task.operation, task.gemm, task.traffic, task.type);
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
      "# traffic: bytes read and written together; gemm: [m, n, k, batch]. KiB is 1024 bytes.\n"
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
