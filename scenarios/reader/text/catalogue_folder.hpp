#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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

/// Files beside the entries of a kind that are none for their ending, .yml or .json, sorted.
std::vector<std::string> misnamed_files(std::string_view kind);
/// What is said behind the name of such a file.
inline constexpr const char* misnamed_problem =
    ": entries of the catalogue end in .yaml: rename the file so";

/// Is what stands in an entry's place the path of a file, and no name? It has a slash or ends in
/// .yaml, .yml or .json.
bool is_path_of_entry(std::string_view text);

/// Is what stands in an entry's place no path, and the name of an entry or of a family of them? It
/// is the catalogue's then, in a scenario as on the command line, also beside a file of that name.
/// Throws InputError where there is no catalogue.
bool is_of_catalogue(std::string_view text, std::string_view kind);

}  // namespace ddpsim
