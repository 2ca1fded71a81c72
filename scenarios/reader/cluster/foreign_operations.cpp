#include "scenarios/reader/cluster/foreign_operations.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/entry_keys.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/cluster/operations_reader.hpp"

namespace ddpsim {
namespace {

/// In small letters, all else left out.
std::string letters_and_digits(std::string_view text) {
  std::string kept;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      kept += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kept;
}

/// Is the one's memory about as fast as the other's? Of a device that is written out nothing else
/// says which it is.
bool has_memory_of(const Device& one, const Device& other) {
  constexpr double near = 0.2;
  const double ratio =
      one.memory_bandwidth.bytes_per_second / other.memory_bandwidth.bytes_per_second;
  return ratio > 1 - near && ratio < 1 + near;
}

}  // namespace

/// The word before the first hyphen tells ("a100-80"), unless it has no number ("rtx-6000-ada").
/// "a10" is no "A100".
bool is_called(std::string_view device, std::string_view by_driver) {
  const std::string_view said = device.substr(0, device.find(mark_of_changes));
  const std::string_view word = said.substr(0, said.find('-'));
  const bool numbered = word.find_first_of("0123456789") != std::string_view::npos;
  const std::string model = letters_and_digits(numbered ? word : said),
                    driver = letters_and_digits(by_driver);
  if (model.empty()) return false;
  // "H100" of "H100 80GB" ends there, "A10" of "A100" does not.
  const auto ends_number = [&](std::size_t end) {
    if (end == driver.size()) return true;
    std::size_t place = 0;  // in `by_driver`, behind so many letters and digits
    for (std::size_t kept = 0; kept < end; ++place)
      kept += std::isalnum(static_cast<unsigned char>(by_driver[place])) != 0 ? 1 : 0;
    return std::isdigit(static_cast<unsigned char>(by_driver[place])) == 0;
  };
  for (std::size_t at = driver.find(model); at != std::string::npos;
       at = driver.find(model, at + 1))
    if (ends_number(at + model.size())) return true;
  return false;
}

std::optional<ForeignOperations> operations_of_another(const Yaml& given) {
  const std::vector<std::string> catalogue = catalogue_names(device_entries);
  const auto is_of_catalogue = [&](const Entry& entry) {
    return std::ranges::find(catalogue, entry.name) != catalogue.end();
  };
  const std::vector<Entry> entries = entry_with_bases(given, device_entries);
  const auto names_one = std::ranges::find_if(
      entries, [](const Entry& entry) { return YamlMap(entry.yaml).has("operations"); });
  if (names_one == entries.end() || is_of_catalogue(*names_one)) return std::nullopt;
  const Yaml table = YamlMap(names_one->yaml).at("operations");
  const auto base = std::find_if(names_one, entries.end(), is_of_catalogue);
  if (table.is_map() || table.is_word("none")) return std::nullopt;
  ForeignOperations found{table.scalar(), device_of_operations(table), ""};
  const bool named = base != entries.end();
  bool known = false, own_device = named && is_called(base->name, found.device);
  for (const std::string& name : catalogue) {
    if (!is_called(name, found.device)) continue;
    known = true;
    const Entry entry = find_entry(Yaml::of_text(name), device_entries);
    if (!named && has_memory_of(read_device(given), read_device(Yaml::of_text(name))))
      own_device = true;
    const auto own = YamlMap(entry.yaml).find("operations");
    if (own && own->is_scalar() && !own->is_word("none")) found.scaled_from = name;
  }
  return known && !own_device ? std::optional(found) : std::nullopt;
}

}  // namespace ddpsim
