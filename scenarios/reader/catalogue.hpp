#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reader/yaml.hpp"

namespace ddpsim {

/// The kinds of entries, which are also the names of the folders.
inline constexpr std::string_view device_entries = "devices", link_entries = "links",
                                  model_entries = "models", cluster_entries = "clusters",
                                  operation_entries = "operations", host_entries = "hosts";

/// Where the catalogue is, the first of these that holds: $DDPSIM_CATALOGUE; the folder of
/// `use_catalogue`; ../share/ddpsim/catalogue beside the folder of the running program, as it is
/// installed; the folder of the source tree this was built from.
std::filesystem::path catalogue_folder();

/// From here on the catalogue is in `folder`. For programs that bring one along; call it before
/// anything is read.
void use_catalogue(const std::filesystem::path& folder);

/// The names of all entries of a kind, sorted.
std::vector<std::string> catalogue_names(std::string_view kind);

/// A description that may stand in three places: inline (a mapping), in a file (a path, relative to
/// the file that names it), or in the catalogue (a name).
struct Entry {
  Yaml yaml;         ///< the mapping itself
  std::string name;  ///< catalogue name, file name, or "inline"
};
/// Throws InputError if there is no such file or entry, with the nearest name, and if the file is
/// of another kind (file_kind.hpp).
Entry find_entry(const Yaml& given, std::string_view kind);

/// The file that `given` names, by a path or a name of the catalogue. Throws InputError as
/// find_entry does.
struct EntryFile {
  std::filesystem::path path;
  std::string name;           ///< catalogue name or file name
  bool of_catalogue = false;  ///< else a path of the user's
};
EntryFile find_entry_file(const Yaml& given, std::string_view kind);

/// An entry and those it is based on (`base:`, or another key that says so), the outermost first.
/// Throws InputError on a cycle, and for more than 32 entries.
std::vector<Entry> entry_with_bases(const Yaml& given, std::string_view kind,
                                    std::string_view base_key = "base");

}  // namespace ddpsim
