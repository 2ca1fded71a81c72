#include "tools/import/profile_file.hpp"

#include <fmt/format.h>

#include "tools/report/yaml_text.hpp"

namespace ddpsim {
namespace {

/// "3, 64, 64"
template <typename Number>
std::string listed(const std::vector<Number>& numbers) {
  std::string text;
  for (const Number number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return text;
}

std::string text_of(const ProfiledParameter& parameter) {
  return fmt::format(
      "  - {{name: {}, shape: [{}], dtype: {}, {}{}{}ready: {}}}\n", quoted(parameter.name),
      listed(parameter.shape), name_of(parameter.dtype), parameter.sparse ? "sparse: true, " : "",
      parameter.sparse_rows > 0 ? fmt::format("rows: {}, ", parameter.sparse_rows) : "",
      parameter.unused ? "unused: true, " : "", exact(parameter.ready));
}

std::string text_of(const MeasuredRow& row) {
  std::string text = fmt::format("strategy: {}", name_of(row.strategy));
  if (row.bucket_cap) text += fmt::format(", bucket_cap: {}", exact(*row.bucket_cap));
  const auto time = [&](const char* key, const std::optional<Duration>& value) {
    if (value) text += fmt::format(", {}: {}", key, exact(*value));
  };
  time("step", row.step);
  time("communication", row.communication);
  time("forward", row.times.forward);
  time("backward", row.times.backward);
  time("optimizer", row.times.optimizer);
  if (!row.note.empty()) text += fmt::format(", note: {}", quoted(row.note));
  if (!row.set.empty()) {
    text += ", set: {";
    for (const auto& [key, value] : row.set)
      text += fmt::format("{}{}: {}", text.back() == '{' ? "" : ", ", quoted(key), quoted(value));
    text += "}";
  }
  return fmt::format("    - {{{}}}\n", text);
}

std::string text_of(const Measured& measured) {
  std::string text = "measured:\n";
  if (!measured.source.empty()) text += fmt::format("  source: {}\n", quoted(measured.source));
  std::string strategies;
  for (const Strategy strategy : measured.calibrate_on)
    strategies += fmt::format("{}{}", strategies.empty() ? "" : ", ", name_of(strategy));
  text += fmt::format("  calibrate_on: [{}]\n  rows:\n", strategies);
  for (const MeasuredRow& row : measured.rows) text += text_of(row);
  return text;
}

}  // namespace

std::string workload_profile_yaml(const WorkloadProfile& profile, const std::string& remarks) {
  std::string text = remarks + "format: ddpsim.workload/1\n";
  if (!profile.source.empty()) text += fmt::format("source: {}\n", quoted(profile.source));
  text +=
      fmt::format("forward: {}\nbackward: {}\n", exact(profile.forward), exact(profile.backward));
  if (profile.optimizer) text += fmt::format("optimizer: {}\n", exact(*profile.optimizer));
  if (profile.step_spread > 0) text += fmt::format("step_spread: {}\n", profile.step_spread);
  text += "parameters:   # registration order; ready: from the start of backward\n";
  for (const ProfiledParameter& parameter : profile.parameters) text += text_of(parameter);
  if (!profile.buffers.empty()) text += "buffers:   # of one type each\n";
  for (const BufferGroup& group : profile.buffers)
    text += fmt::format("  - {{tensors: {}, bytes: {}}}\n", group.tensors, group.size.count);
  if (!profile.arrival.empty()) text += fmt::format("arrival: [{}]\n", listed(profile.arrival));
  if (profile.measured) text += text_of(*profile.measured);
  return text;
}

std::string link_profile_yaml(const Link& link, const std::string& remarks) {
  std::string text = remarks + "format: ddpsim.link/1\n";
  const auto rate = [&](const char* key, Bandwidth value) {
    if (value.bytes_per_second <= 0) return;
    const double gigabytes = value.bytes_per_second / 1e9;
    text += gigabytes * 1e9 == value.bytes_per_second
                ? fmt::format("{}: {} GB/s\n", key, gigabytes)
                : fmt::format("{}: {} B/s\n", key, value.bytes_per_second);
  };
  if (!link.source.empty()) text += fmt::format("source: {}\n", quoted(link.source));
  if (link.kind != LinkKind::plain) text += fmt::format("kind: {}\n", name_of(link.kind));
  if (link.table_ranks > 0) text += fmt::format("ranks: {}\n", link.table_ranks);
  if (link.latency > Duration::zero()) text += fmt::format("latency: {}\n", exact(link.latency));
  rate("bandwidth", link.bandwidth);
  rate("nccl_bandwidth", link.nccl_bandwidth);
  if (link.nvswitch) text += "nvswitch: true\n";
  if (link.nics > 0) text += fmt::format("nics: {}\n", link.nics);
  if (!link.all_reduce.empty()) text += "all_reduce:\n";
  for (const auto& [size, time] : link.all_reduce)
    text += fmt::format("  - {{bytes: {}, time: {}}}\n", size.count, exact(time));
  return text;
}

}  // namespace ddpsim
