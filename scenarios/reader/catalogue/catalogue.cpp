#include "scenarios/reader/catalogue/catalogue.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/format/file_kind.hpp"

namespace ddpsim {
namespace {

/// Far more than anybody keeps apart; each is compared with all that came before.
constexpr std::size_t most_based = 32;

/// Is it a file that lies beside `given`, whose name is no entry's and no family's?
bool is_file_beside(const Yaml& given, const std::string& text,
                    const std::vector<std::string>& names) {
  return !text.empty() && !position_of(text, names) && family_of(text, names).empty() &&
         unreadable(given.folder() / text).empty();
}

/// The entry that `text` names, in any case; or the one member of the family that it names.
std::string name_meant(const Yaml& given, const std::string& text,
                       const std::vector<std::string>& names) {
  if (const auto position = position_of(text, names)) return names[*position];
  const std::vector<std::string> members = family_of(text, names);
  if (members.empty()) given.fail_unknown(text, names);
  if (members.size() == 1) return members.front();
  std::string list;
  for (const std::string& member : members) list += (list.empty() ? "" : ", ") + member;
  given.fail(fmt::format("\"{}\" is a family: write one of {}", text, list));
}

/// What a file of the user's is to be that stands in place of such an entry.
FileKind kind_of_entry(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, FileKind>, 6> all{
      {{device_entries, FileKind::device},
       {link_entries, FileKind::link},
       {model_entries, FileKind::model},
       {cluster_entries, FileKind::cluster},
       {operation_entries, FileKind::operations},
       {host_entries, FileKind::host}}};
  return std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == kind; })
      ->second;
}

}  // namespace

EntryFile find_entry_file(const Yaml& given, std::string_view kind) {
  const std::string text =
      given.text(fmt::format("a name from the catalogue of {}, a path or a mapping", kind));
  const bool is_path = is_path_of_entry(text);
  const std::vector<std::string> names =
      is_path ? std::vector<std::string>() : catalogue_names(kind);
  if (is_path || is_file_beside(given, text, names)) {
    const std::filesystem::path path = given.folder() / text;
    if (const std::string reason = unreadable(path); !reason.empty())
      given.fail(fmt::format("{}: {}", path.string(), reason));
    return {path, std::filesystem::path(text).stem().string(), false};
  }
  const std::string name = name_meant(given, text, names);
  return {catalogue_folder() / kind / (name + ".yaml"), name, true};
}

Entry find_entry(const Yaml& given, std::string_view kind) {
  if (given.is_map()) return {given, "inline"};
  const EntryFile file = find_entry_file(given, kind);
  const FileKind expected = kind_of_entry(kind);
  Entry entry{Yaml::load(file.path, example_of(expected)), file.name};
  if (!file.of_catalogue) check_kind(entry.yaml, expected, &given);
  return entry;
}

std::vector<Entry> entry_with_bases(const Yaml& given, std::string_view kind,
                                    std::string_view base_key) {
  std::vector<Entry> entries{find_entry(given, kind)};
  std::vector<std::string> files{entries.front().name == "inline" ? ""
                                                                  : entries.front().yaml.file()};
  while (auto base = YamlMap(entries.back().yaml).find(base_key)) {
    Entry next = find_entry(*base, kind);
    if (next.name == "inline") base->fail("expected the name of a catalogue entry or a path");
    std::error_code error;
    for (const std::string& file : files)
      if (!file.empty() && std::filesystem::equivalent(file, next.yaml.file(), error))
        base->fail(
            fmt::format("the files are based on each other in a circle: {}", next.yaml.file()));
    if (entries.size() == most_based)
      base->fail(fmt::format("more than {} files are based on each other: put the keys into fewer",
                             most_based));
    files.push_back(next.yaml.file());
    entries.push_back(std::move(next));
  }
  return entries;
}

}  // namespace ddpsim
