#include "scenarios/reader/scenario/not_a_scenario.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "scenarios/reader/text/names.hpp"

namespace ddpsim {
namespace {

bool is_there(const std::filesystem::path& file) {
  std::error_code error;  // a path may be too long to be asked about
  return text_in_memory(file).has_value() || std::filesystem::exists(file, error);
}

void check_is_no_python(const std::string& name) {
  const std::size_t colon = name.rfind(".py:");
  const std::string file = colon == std::string::npos ? name : name.substr(0, colon + 3);
  if (!file.ends_with(".py") || !is_there(file)) return;
  const std::string function = colon == std::string::npos ? "make" : name.substr(colon + 4);
  const std::string made = std::filesystem::path(file).stem().string() + ".yaml";
  throw InputError(fmt::format(
      "{}: a Python file is no scenario: describe the model that its function {} returns, with its "
      "batch and loss, by `ddpsim describe {}:{} -o {}`, then give {} in its place, with --cluster",
      name, function, file, function, made, made));
}

void check_is_no_entry(const std::string& name) {
  struct Kind {
    std::string_view entries, what, flag;
  };
  constexpr std::array kinds{Kind{model_entries, "a model", "model"},
                             Kind{cluster_entries, "a ready cluster", "cluster"},
                             Kind{device_entries, "a device", "device"}};
  for (const Kind& kind : kinds) {
    const std::vector<std::string> names = catalogue_names(kind.entries);
    const bool exact = std::find(names.begin(), names.end(), name) != names.end();
    const std::string meant = exact ? name : other_spelling_of(name, names);
    if (meant.empty()) continue;
    throw InputError(fmt::format(
        "{}: no such file, but {}the name of {}: `ddpsim init --{} {} {}.yaml` writes a scenario "
        "with it",
        name, exact ? "" : meant + " is ", kind.what, kind.flag, meant, meant));
  }
}

}  // namespace

void check_is_no_ingredient(const std::filesystem::path& file) {
  const std::string name = file.string();
  check_is_no_python(name);
  if (!is_there(file)) check_is_no_entry(name);
}

}  // namespace ddpsim
