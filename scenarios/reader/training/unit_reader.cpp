#include "scenarios/reader/training/unit_reader.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/parallel/policy/fsdp_units.hpp"
#include "model/parallel/user_hook.hpp"
#include "scenarios/reader/text/nearest.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t longest_shown = 100;
constexpr std::size_t deepest = 64;  ///< parts of a name, beyond which modules are not told apart

/// What stands between the separators, without spaces around it.
std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    std::string_view part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Parameters of modules, as calls of fully_shard take them.
class Units {
 public:
  explicit Units(const Workload& workload)
      : workload_(workload), taken_(workload.parameters.size(), false) {
    for (std::size_t i = 0; i < workload.parameters.size(); ++i) {
      std::vector<std::string> parts = parts_of(workload.parameters[i].name, '.');
      parts.resize(std::min(parts.size() - 1, deepest));
      for (std::string module; std::string & part : parts) {
        module += (module.empty() ? "" : ".") + part;
        const auto [found, is_new] = numbers_.try_emplace(module, modules_.size());
        if (is_new) modules_.push_back({module, parts_of(module, '.'), {}});
        modules_[found->second].members.push_back(static_cast<std::int32_t>(i));
      }
    }
  }

  void add(const Yaml& item) {
    const std::vector<std::string> names = parts_of(item.text("a module's name"), '+');
    if (names.size() == 1) {
      bool adds = false;  // a call of fully_shard that finds all parameters taken makes no unit
      for (const Module* module : named(item, names.front()))
        if (std::vector<std::int32_t> unit = take(*module); !unit.empty()) {
          adds = true;
          units_.push_back(std::move(unit));
        }
      if (!adds) fail_taken(item, names.front());
      return;
    }
    std::vector<std::int32_t> together;
    for (const std::string& name : names) {
      const std::size_t before = together.size();
      for (const Module* module : named(item, name))
        for (const std::int32_t each : take(*module)) together.push_back(each);
      if (together.size() == before) fail_taken(item, name);
    }
    std::ranges::sort(together);
    units_.push_back(std::move(together));
  }

  std::vector<std::vector<std::int32_t>> result() { return std::move(units_); }

 private:
  struct Module {
    std::string name;
    std::vector<std::string> parts;  ///< of its name
    std::vector<std::int32_t> members;
  };

  std::vector<const Module*> named(const Yaml& item, const std::string& pattern) const {
    std::vector<const Module*> found;
    if (pattern.find('*') == std::string::npos) {
      if (const auto at = numbers_.find(pattern); at != numbers_.end())
        found.push_back(&modules_[at->second]);
    } else {
      const std::vector<std::string> parts = parts_of(pattern, '.');
      for (const Module& module : modules_)
        if (std::ranges::equal(parts, module.parts, ddpsim::matches)) found.push_back(&module);
    }
    if (!found.empty()) return found;
    std::vector<std::string> names;
    for (const Module& module : modules_) names.push_back(module.name);
    const std::string guess = nearest(pattern, names);
    item.fail(fmt::format(
        "{} has no module \"{}\" with parameters{}", workload_.name,
        pattern.substr(0, longest_shown),
        guess.empty() ? "; it has " + known() : fmt::format("; did you mean \"{}\"?", guess)));
  }

  /// "model.embed_tokens, model.layers.*, model.norm and lm_head": the blocks, and the modules of
  /// what is in none.
  std::string known() const {
    constexpr std::size_t most = 8;
    std::vector<std::string> patterns;
    for (const Parameter& parameter : workload_.parameters) {
      std::string name = block_of(parameter.name);
      if (name.empty())
        name = parameter.name.substr(0, std::min(parameter.name.rfind('.'), parameter.name.size()));
      else
        name = name.substr(0, name.rfind('.') + 1) + "*";
      name = name.substr(0, longest_shown);
      if (std::ranges::find(patterns, name) == patterns.end()) patterns.push_back(std::move(name));
    }
    const std::size_t shown = std::min(patterns.size(), most);
    const auto first = patterns.begin(), last = first + static_cast<std::ptrdiff_t>(shown);
    return fmt::format(
        "{}{}", fmt::join(first, last, ", "),
        shown < patterns.size() ? fmt::format(" and {} more", patterns.size() - shown) : "");
  }

  /// Those of its parameters that no unit has yet.
  std::vector<std::int32_t> take(const Module& module) {
    std::vector<std::int32_t> mine;
    for (const std::int32_t each : module.members)
      if (!taken_[at(each)]) {
        taken_[at(each)] = true;
        mine.push_back(each);
      }
    return mine;
  }

  [[noreturn]] static void fail_taken(const Yaml& item, const std::string& name) {
    item.fail(
        fmt::format("all parameters of \"{}\" are in a unit already: take it out, or write "
                    "it before the units that hold them",
                    name.substr(0, longest_shown)));
  }

  const Workload& workload_;
  std::vector<Module> modules_;                 ///< in the order of parameters
  std::map<std::string, std::size_t> numbers_;  ///< [name] index into modules_
  std::vector<bool> taken_;                     ///< [parameter]
  std::vector<std::vector<std::int32_t>> units_;
};

}  // namespace

std::vector<std::vector<std::int32_t>> read_units(const Yaml& given, const Workload& workload) {
  Units units(workload);
  for (const Yaml& item : given.list("a list of modules, such as [embed, layers.*, norm+head]"))
    units.add(item);
  std::vector<std::vector<std::int32_t>> found = units.result();
  if (found.empty()) given.fail("expected at least one module");
  return found;
}

}  // namespace ddpsim
