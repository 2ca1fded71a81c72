#include "scenarios/reader/text/catalogue_folder.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/names.hpp"
#include "scenarios/reader/text/while_unchanged.hpp"

namespace ddpsim {
namespace {

/// Where it is unless the environment says otherwise.
std::filesystem::path& usual_folder() {
  static std::filesystem::path folder = [] {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    const auto installed = program.parent_path().parent_path() / "share/ddpsim/catalogue";
    return !error && std::filesystem::is_directory(installed, error)
               ? installed
               : std::filesystem::path(DDPSIM_CATALOGUE_DIR);
  }();
  return folder;
}

}  // namespace

std::filesystem::path catalogue_folder() {
  const char* elsewhere = std::getenv("DDPSIM_CATALOGUE");
  return elsewhere != nullptr && *elsewhere != '\0' ? elsewhere : usual_folder();
}

void use_catalogue(const std::filesystem::path& folder) {
  usual_folder() = folder;
}

/// The names of all entries in a folder, sorted; none where there is no such folder.
static std::vector<std::string> entries_in(const std::filesystem::path& folder) {
  static WhileUnchanged<std::vector<std::string>> all;
  return all.of(folder, [&] {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& file : std::filesystem::directory_iterator(folder, error))
      if (file.path().extension() == ".yaml") names.push_back(file.path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
  });
}

std::vector<std::string> catalogue_names(std::string_view kind) {
  std::vector<std::string> names = entries_in(catalogue_folder() / kind);
  if (names.empty()) {
    const char* elsewhere = std::getenv("DDPSIM_CATALOGUE");
    const bool named = elsewhere != nullptr && *elsewhere != '\0';
    throw InputError(fmt::format(
        "{}: no catalogue of {} there; {}", (catalogue_folder() / kind).string(), kind,
        named ? "DDPSIM_CATALOGUE names that folder: unset it to have the installed catalogue, or "
                "let it name a copy of that"
              : "install ddpsim again, or let DDPSIM_CATALOGUE name the folder of a catalogue"));
  }
  return names;
}

std::vector<std::string> misnamed_files(std::string_view kind) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(catalogue_folder() / kind, error))
    if (file.path().extension() == ".yml" || file.path().extension() == ".json")
      files.push_back(file.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_path_of_entry(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") ||
         text.ends_with(".yml") || text.ends_with(".json");
}

bool is_of_catalogue(std::string_view text, std::string_view kind) {
  if (is_path_of_entry(text)) return false;
  const std::vector<std::string> names = catalogue_names(kind);
  return position_of(text, names).has_value() || !family_of(text, names).empty();
}

}  // namespace ddpsim
