#include "scenarios/reader/training/unit_reader.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/parallel/user_hook.hpp"
#include "scenarios/reader/text/nearest.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t longest_shown = 100;
constexpr std::size_t deepest = 64;  ///< parts of a name, beyond which modules are not told apart

std::vector<std::string> parts_of(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

bool is_named(const std::vector<std::string>& pattern, const std::vector<std::string>& module) {
  return std::ranges::equal(pattern, module, ddpsim::matches);
}

/// Parameters of modules, as calls of fully_shard take them.
class Units {
 public:
  explicit Units(const Workload& workload) : workload_(workload) {
    for (std::size_t i = 0; i < workload.parameters.size(); ++i) {
      const std::vector<std::string> parts = parts_of(workload.parameters[i].name, '.');
      std::string module;
      for (std::size_t k = 0; k + 1 < std::min(parts.size(), deepest); ++k) {
        module += (k == 0 ? "" : ".") + parts[k];
        if (members_.try_emplace(module).second) modules_.push_back(module);
        members_[module].push_back(static_cast<std::int32_t>(i));
      }
    }
    taken_.assign(workload.parameters.size(), false);
  }

  void add(const Yaml& item) {
    const std::string text = item.text("a module's name");
    const std::vector<std::string> names = parts_of(text, '+');
    if (names.size() == 1) {
      bool adds = false;
      for (const std::string& module : named(item, text)) adds = add_unit({module}) || adds;
      if (!adds) fail_taken(item);
      return;
    }
    std::vector<std::string> together;
    for (const std::string& name : names)
      for (const std::string& module : named(item, name)) together.push_back(module);
    if (!add_unit(together)) fail_taken(item);
  }

  std::vector<std::vector<std::int32_t>> result() { return std::move(units_); }

 private:
  std::vector<std::string> named(const Yaml& item, const std::string& pattern) const {
    const std::vector<std::string> parts = parts_of(pattern, '.');
    std::vector<std::string> found;
    for (const std::string& module : modules_)
      if (is_named(parts, parts_of(module, '.'))) found.push_back(module);
    if (!found.empty()) return found;
    const std::string guess = nearest(pattern, modules_);
    item.fail(fmt::format("{} has no module \"{}\" with parameters{}", workload_.name,
                          pattern.substr(0, longest_shown),
                          guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess)));
  }

  /// A call of fully_shard that finds all parameters taken makes no unit.
  bool add_unit(const std::vector<std::string>& modules) {
    std::vector<std::int32_t> unit;
    for (const std::string& module : modules)
      for (const std::int32_t each : members_.at(module))
        if (!taken_[at(each)]) {
          taken_[at(each)] = true;
          unit.push_back(each);
        }
    if (unit.empty()) return false;
    std::ranges::sort(unit);
    units_.push_back(std::move(unit));
    return true;
  }

  [[noreturn]] static void fail_taken(const Yaml& item) {
    item.fail(
        "all of its parameters are in a unit already: take it out, or write it before the "
        "units that hold them");
  }

  const Workload& workload_;
  std::vector<std::string> modules_;                          ///< in the order of parameters
  std::map<std::string, std::vector<std::int32_t>> members_;  ///< of each module
  std::vector<bool> taken_;                                   ///< [parameter]
  std::vector<std::vector<std::int32_t>> units_;
};

}  // namespace

std::vector<std::vector<std::int32_t>> read_units(const Yaml& given, const Workload& workload) {
  Units units(workload);
  for (const Yaml& item : given.list("a list of modules, such as [embed, layers.*, norm+head]"))
    units.add(item);
  return units.result();
}

}  // namespace ddpsim
