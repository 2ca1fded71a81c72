#include "scenarios/reader/scenario/scenario_text.hpp"

#include <algorithm>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "scenarios/reader/text/yaml_text.hpp"

namespace ddpsim {
namespace {

/// Mappings this deep and deeper stand on one line.
constexpr int one_line_depth = 2;

void write_scalar(YAML::Emitter& out, const std::string& text) {
  // The emitter itself quotes what needs it, of printable ASCII.
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }))
    out << text;
  else
    write_text(out, text);
}

void write(YAML::Emitter& out, const Yaml& yaml, int depth) {
  if (yaml.is_map()) {
    if (depth >= one_line_depth) out << YAML::Flow;
    out << YAML::BeginMap;
    const YamlMap map(yaml);
    for (const auto& [key, value] : map.entries()) {
      out << YAML::Key;
      write_scalar(out, key);
      out << YAML::Value;
      write(out, value, depth + 1);
    }
    out << YAML::EndMap;
  } else if (yaml.is_list()) {
    const std::vector<Yaml> items = yaml.list("a list");
    const bool lines =
        std::any_of(items.begin(), items.end(), [](const Yaml& each) { return !each.is_scalar(); });
    if (!lines) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const Yaml& each : items) write(out, each, std::max(depth, one_line_depth));
    out << YAML::EndSeq;
  } else if (yaml.is_scalar()) {
    write_scalar(out, yaml.scalar());
  } else {
    out << YAML::Null;
  }
}

}  // namespace

std::string scenario_text(const std::filesystem::path& file, const std::vector<Setting>& settings) {
  const bool model = is_workload_profile(file);
  Yaml root = model ? Yaml::of_nothing(file) : Yaml::load(file);
  if (model) {
    YAML::Emitter name;
    write_text(name, file.filename().string());
    root.apply({{"workload.model", name.c_str()}});
  }
  apply_settings(root, settings);
  YAML::Emitter out;
  write(out, root, 0);
  return std::string(out.c_str()) + "\n";
}

}  // namespace ddpsim
