#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/text/catalogue_folder.hpp"

namespace ddpsim {

/// A description that may stand in three places: inline (a mapping), in a file (a path, relative to
/// the file that names it), or in the catalogue (a name). A name that the catalogue has is the
/// catalogue's, whatever files lie there; any other may be a file's.
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
