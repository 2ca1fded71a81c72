#include "tools/study/file_notes.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/named_files.hpp"
#include "scenarios/reader/text/catalogue_folder.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "scenarios/reader/text/seal.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

namespace {

/// The entries of the catalogue that stand at a key; "" at others.
std::string_view entries_at(std::string_view key) {
  if (key == "cluster" || key == "cluster.system") return cluster_entries;
  if (key == "cluster.device") return device_entries;
  if (key == "cluster.intra_node" || key == "cluster.inter_node") return link_entries;
  return key == "workload.model" ? model_entries : "";
}

/// That a setting names the catalogue's entry where a file here is called so too.
std::string beside_file_note(const Setting& setting) {
  std::error_code error;
  const std::string_view kind = entries_at(setting.key);
  if (kind.empty() || !std::filesystem::is_regular_file(setting.value, error) ||
      !is_of_catalogue(setting.value, kind))
    return "";
  return fmt::format("{} is the catalogue's: the file of that name in the current folder is ./{}",
                     setting_text(setting), setting.value);
}

}  // namespace

std::vector<std::string> file_notes(const std::string& scenario, const std::vector<Setting>& set) {
  std::vector<std::string> notes;
  NamedFiles named([&](const std::filesystem::path& file, const std::string& content) {
    if (text_in_memory(file)) return;  // what an object in Python says of itself
    if (std::string note = unsealed_note(content, file.string()); !note.empty())
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  });
  const std::filesystem::path file = scenario;
  named.add_file(file);
  // A path in a setting is looked for in the current folder, then in the scenario's.
  for (const auto& [key, value, written] : set) {
    named.add_text(value, "");
    named.add_text(value, file.parent_path());
  }
  for (const Setting& setting : set)
    if (std::string note = beside_file_note(setting); !note.empty())
      notes.push_back(std::move(note));
  return notes;
}

}  // namespace ddpsim
