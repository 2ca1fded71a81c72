// Files of every kind are YAML, so one in another's place is read, and fails at some key that is
// missing or not known there: true, but no help.
//
//     --link c.yaml     format: ddpsim.calibration/1       says itself that it is a calibration
//     --device l.yaml   kind, latency, bandwidth, source   a link knows four, a device one
//     --device d.yaml   base, memroy                       nobody knows two: the device's error

#include "scenarios/reader/format/file_kind.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "scenarios/reader/format/format.hpp"

namespace ddpsim {
namespace {

struct KnownKind {
  FileKind kind;
  std::string_view name;
  std::string_view format;   ///< its name among all_formats()
  std::string_view mark;     ///< the value of its key `format`; "" if it has no such key
  std::string_view example;  ///< a key with a value
  bool needs_mark = false;   ///< without the mark it is no such file
};
constexpr std::array known_kinds{
    KnownKind{FileKind::scenario, "a scenario", "scenario", "", "workload: {model: resnet50}"},
    KnownKind{FileKind::model, "a model", "model", "", "family: gpt2"},
    KnownKind{FileKind::profile, "a workload profile", "workload", "ddpsim.workload/1",
              "format: ddpsim.workload/1", true},
    KnownKind{FileKind::description, "a workload description", "description", "ddpsim.workload/2",
              "format: ddpsim.workload/2", true},
    KnownKind{FileKind::link, "a link", "link", "ddpsim.link/1", "bandwidth: 400 Gbit/s"},
    KnownKind{FileKind::calibration, "a calibration", "calibration", "ddpsim.calibration/1",
              "format: ddpsim.calibration/1", true},
    KnownKind{FileKind::cluster, "a cluster", "cluster", "", "device: h100-sxm"},
    KnownKind{FileKind::device, "a device", "device", "", "base: h100-sxm"},
    KnownKind{FileKind::host, "a host", "host", "ddpsim.host/1", "format: ddpsim.host/1"},
    KnownKind{FileKind::operations, "a table of operations", "operations", "ddpsim.operations/1",
              "format: ddpsim.operations/1", true}};

const KnownKind& known_kind(FileKind kind) {
  return *std::find_if(known_kinds.begin(), known_kinds.end(),
                       [&](const KnownKind& each) { return each.kind == kind; });
}

bool is_welcome(FileKind kind, FileKind expected) {
  const bool is_workload = kind == FileKind::profile || kind == FileKind::description;
  return kind == expected || (expected == FileKind::model && is_workload);
}

std::size_t keys_known_to(const KnownKind& kind, const YamlMap& map) {
  const MapDescription& known = format_named(kind.format).root();
  return static_cast<std::size_t>(
      std::count_if(map.entries().begin(), map.entries().end(),
                    [&](const auto& entry) { return known.find(entry.first) != nullptr; }));
}

/// The kind that most of the keys belong to, if it is one kind alone.
std::optional<FileKind> kind_by_keys(const YamlMap& map, FileKind expected) {
  const std::size_t all = map.entries().size();
  if (keys_known_to(known_kind(expected), map) == all) return expected;
  std::optional<FileKind> found;
  std::size_t most = all / 2;  // more than half
  for (const KnownKind& kind : known_kinds) {
    if (kind.needs_mark && kind.kind != expected) continue;
    const std::size_t known = keys_known_to(kind, map);
    if (known == most) found.reset();
    if (known <= most) continue;
    most = known;
    found = kind.kind;
  }
  return found;
}

/// How to give a file that was given as something else.
std::string how_to_give(FileKind kind, FileKind expected, const std::string& file) {
  const std::string give =
      expected == FileKind::scenario ? "give it beside a scenario, as " : "give it as ";
  switch (kind) {
    case FileKind::scenario:
      if (expected == FileKind::cluster)
        return "put what its key \"cluster\" holds into a file of its own";
      return fmt::format("a command takes it by itself, such as `ddpsim run {}`", file);
    case FileKind::model:
    case FileKind::profile:
    case FileKind::description:
      return fmt::format("{}--set workload.model={}", give, file);
    case FileKind::link:
      return fmt::format("{}--link {}", give, file);
    case FileKind::calibration:
      // In a cluster's place nothing else says what the cluster is.
      return expected == FileKind::cluster
                 ? fmt::format(
                       "{}--set 'cluster={{calibration: {}}}', or to validate as --calibration {}",
                       give, file, file)
                 : fmt::format("{}--set cluster.calibration={}, or to validate as --calibration {}",
                               give, file, file);
    case FileKind::cluster:
      return fmt::format("{}--cluster {}", give, file);
    case FileKind::device:
      return fmt::format("{}--device {}", give, file);
    case FileKind::host:
      return fmt::format("{}--set cluster.host={}", give, file);
    case FileKind::operations:
      return fmt::format("{}--set cluster.device.operations={}", give, file);
  }
  return "";
}

/// "ddpsim.link" of "ddpsim.link/2".
std::string_view without_version(std::string_view mark) {
  return mark.substr(0, mark.find('/'));
}

}  // namespace

std::string_view example_of(FileKind kind) {
  return known_kind(kind).example;
}

void check_kind(const Yaml& root, FileKind expected, const Yaml* named) {
  const YamlMap map(root);
  const std::string& file = root.file();
  const auto refuse = [&](const std::string& is, const std::string& what_to_do) {
    const std::string problem =
        fmt::format("{} is {}, not {}{}", file, is, known_kind(expected).name, what_to_do);
    if (named != nullptr) named->fail(problem);
    throw InputError(problem);
  };
  std::optional<FileKind> found;
  const auto format = map.find("format");
  if (format && format->scalar().starts_with("ddpsim.")) {
    const std::string& mark = format->scalar();
    for (const KnownKind& kind : known_kinds)
      if (kind.mark == mark) found = kind.kind;
    // The reader says which versions there are, where nobody knows this one.
    const bool is_of_model = expected == FileKind::model;
    const std::string_view usual = known_kind(is_of_model ? FileKind::profile : expected).mark;
    if (!found && !usual.empty() && without_version(mark) == without_version(usual)) return;
    if (!found) refuse("a file of the format " + printable(shown(mark)), "");
  } else {
    found = kind_by_keys(map, expected);
  }
  if (found && !is_welcome(*found, expected))
    refuse(std::string(known_kind(*found).name), ": " + how_to_give(*found, expected, file));
}

}  // namespace ddpsim
