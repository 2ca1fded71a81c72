#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/workload/profile_reader.hpp"
#include "tools/import/imported.hpp"
#include "tools/import/profile_file.hpp"
#include "tools/report/reports/calibration_file.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

Imported workload(const std::string& file, const Yaml& root) {
  const WorkloadProfile profile = read_workload_profile(root);
  const Workload read = workload_of(profile, file);
  Imported imported;
  imported.page.add(Paragraph{fmt::format(
      "{}: a workload profile: {} parameters, {:.4g} M elements, {} of gradients; forward {}, "
      "backward "
      "{}, optimizer {}{}\n",
      file, read.parameters.size(), static_cast<double>(read.elements()) / 1e6,
      to_string(read.gradient_size()), to_string(profile.forward), to_string(profile.backward),
      profile.optimizer ? to_string(*profile.optimizer) : "not said",
      profile.measured ? fmt::format("; {} measured rows", profile.measured->rows.size()) : "")});
  imported.json = {
      {"holds", "ddpsim.workload/1"},         {"parameters", read.parameters.size()},
      {"elements", read.elements()},          {"gradient_bytes", read.gradient_size().count},
      {"forward_ms", in_ms(profile.forward)}, {"backward_ms", in_ms(profile.backward)}};
  if (profile.optimizer) imported.json["optimizer_ms"] = in_ms(*profile.optimizer);
  imported.profile = workload_profile_yaml(profile, "");
  imported.next = "ddpsim tune FILE --device DEVICE --ranks N --link LINK";
  return imported;
}

Imported link(const std::string& file, const Yaml& root) {
  const Link read = read_link(root);
  Imported imported;
  std::string text = fmt::format("{}: a link profile: ", file);
  imported.json = {
      {"holds", "ddpsim.link/1"}, {"ranks", read.table_ranks}, {"points", read.all_reduce.size()}};
  if (read.all_reduce.empty())
    text += "no all-reduce table";
  else
    text +=
        fmt::format("all-reduces of {} to {}, {} points", to_string(read.all_reduce.front().first),
                    to_string(read.all_reduce.back().first), read.all_reduce.size());
  if (read.table_ranks > 0) text += fmt::format(", {} ranks", read.table_ranks);
  if (read.bandwidth.bytes_per_second > 0)
    text += fmt::format("; latency {}, bandwidth {}", to_string(read.latency),
                        to_string(read.bandwidth));
  imported.page.add(Paragraph{text});
  imported.profile = link_profile_yaml(read, "");
  imported.next = next_with_link(read);
  return imported;
}

/// The calibration as all of a cluster, with what it did not measure.
std::string next_with_calibration(const Calibration& calibration) {
  const bool multiplies =
      std::any_of(calibration.tasks.begin(), calibration.tasks.end(),
                  [](const MeasuredWork& task) { return task.gemm.has_value(); });
  std::string more;
  if (!multiplies) more += ", device: DEVICE";
  if (calibration.ranks > 1 && calibration.all_reduce.empty()) more += ", intra_node: LINK";
  return fmt::format("ddpsim run SCENARIO --set 'cluster={{calibration: FILE{}}}'", more);
}

Imported calibration(const std::string& file) {
  const Calibration read = read_calibration(std::filesystem::path(file));
  Imported imported;
  imported.page.add(Paragraph{fmt::format(
      "{}: a calibration of {} ranks: {} tasks, {} all-reduce sizes, {}\n", file, read.ranks,
      read.tasks.size(), read.all_reduce.size(), read.complete ? "complete" : "interrupted")});
  imported.json = {{"holds", "ddpsim.calibration/1"},
                   {"ranks", read.ranks},
                   {"tasks", read.tasks.size()},
                   {"points", read.all_reduce.size()}};
  imported.profile = calibration_yaml(read);
  imported.next = next_with_calibration(read);
  return imported;
}

}  // namespace

Imported import_torch_profile(const ImportRequest& request) {
  const Yaml root = Yaml::load(request.file);
  const Yaml format = YamlMap(root).at("format");
  const std::string name = format.text("a format");
  Imported imported = name == "ddpsim.workload/1"      ? workload(request.file, root)
                      : name == "ddpsim.link/1"        ? link(request.file, root)
                      : name == "ddpsim.calibration/1" ? calibration(request.file)
                                                       : Imported{};
  if (imported.page.blocks.empty())
    format.fail("expected ddpsim.workload/1, ddpsim.link/1 or ddpsim.calibration/1");
  Json json{{"format", "ddpsim.import/1"}, {"kind", "torch-profile"}, {"file", request.file}};
  json.update(imported.json);
  imported.json = std::move(json);
  return imported;
}

}  // namespace ddpsim
