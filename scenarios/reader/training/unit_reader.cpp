#include "scenarios/reader/training/unit_reader.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/parallel/policy/fsdp_units.hpp"
#include "model/parallel/user_hook.hpp"
#include "scenarios/reader/format/map.hpp"
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

/// A unit that is a mapping.
struct UnitDraft {
  std::string modules;
  std::optional<Reshard> reshard_after_forward;
  bool unshard_in_backward = true;
  std::optional<std::vector<Yaml>> forward_prefetch, backward_prefetch;
};

const Map<UnitDraft>& unit_map() {
  static const auto map = [] {
    const auto listed = [](std::optional<std::vector<Yaml>> UnitDraft::*list) {
      return [list](UnitDraft& draft, const Yaml& given) {
        draft.*list = given.list("a list of modules that are units");
      };
    };
    const Type names{value::list({value::form(Form::Kind::text)})};
    Map<UnitDraft> all("unit", "A call of fully_shard with settings of its own.");
    all.key("modules", value::text("a module's name"), &UnitDraft::modules,
            {.meaning = "The modules, as an entry of `units` names them.",
             .example = "\"*\"",
             .required = true})
        .key("reshard_after_forward", reshard_value(), &UnitDraft::reshard_after_forward,
             {.meaning = "As `training.reshard_after_forward`, of this unit.",
              .otherwise = "as of all units",
              .example = "false"})
        .key("unshard_in_backward", value::boolean(), &UnitDraft::unshard_in_backward,
             {.meaning = "Whether the unit is gathered for its backward pass. An embedding, whose "
                         "backward pass needs no weight, can do without.",
              .source = "FSDPModule.set_unshard_in_backward (rule F33)"})
        .key_read("forward_prefetch", names, listed(&UnitDraft::forward_prefetch),
                  {.meaning = "Units whose all-gathers are issued before this one's forward pass.",
                   .otherwise = "as many as `training.forward_prefetch` says",
                   .example = "[]",
                   .source = "FSDPModule.set_modules_to_forward_prefetch (rule F23)"})
        .key_read("backward_prefetch", names, listed(&UnitDraft::backward_prefetch),
                  {.meaning = "Units whose all-gathers are issued before this one's backward pass.",
                   .otherwise = "as many as `training.backward_prefetch` says",
                   .example = "[]",
                   .source = "FSDPModule.set_modules_to_backward_prefetch (rule F33)"});
    return all;
  }();
  return map;
}

/// Parameters of modules, as calls of fully_shard take them.
class Units {
 public:
  explicit Units(const Workload& workload) : workload_(workload) {
    const std::vector<std::string> names = names_for_units(workload);
    taken_.resize(names.size(), false);
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::vector<std::string> parts = parts_of(names[i], '.');
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
    if (!item.is_map()) return add(item, {});
    const UnitDraft draft = unit_map().read(item);
    add(YamlMap(item).at("modules"), draft);
  }

  /// Finds what units are to prefetch, once all are there.
  GivenUnits result() {
    GivenUnits given;
    bool has_settings = false;
    for (Unit& unit : units_) {
      UnitSettings& settings = given.settings.emplace_back();
      settings.reshard_after_forward = unit.draft.reshard_after_forward;
      settings.unshard_in_backward = unit.draft.unshard_in_backward;
      settings.forward_prefetch = named_units(unit.draft.forward_prefetch);
      settings.backward_prefetch = named_units(unit.draft.backward_prefetch);
      has_settings = has_settings || !(settings == UnitSettings{});
      given.parameters.push_back(std::move(unit.parameters));
      std::vector<std::string>& modules = given.modules.emplace_back();
      for (const Module* each : unit.modules) modules.push_back(each->name);
    }
    if (!has_settings) given.settings.clear();
    return given;
  }

 private:
  struct Module {
    std::string name;
    std::vector<std::string> parts;  ///< of its name
    std::vector<std::int32_t> members;
  };

  struct Unit {
    std::vector<std::int32_t> parameters;
    std::vector<const Module*> modules;
    UnitDraft draft;
  };

  void add(const Yaml& item, const UnitDraft& draft) {
    const std::vector<std::string> names = parts_of(item.text("a module's name"), '+');
    if (names.size() == 1) {
      bool adds = false;  // a call of fully_shard that finds all parameters taken makes no unit
      for (const Module* module : named(item, names.front()))
        if (std::vector<std::int32_t> unit = take(*module); !unit.empty()) {
          adds = true;
          units_.push_back({std::move(unit), {module}, draft});
        }
      if (!adds) fail_taken(item, names.front());
      return;
    }
    Unit together{{}, {}, draft};
    for (const std::string& name : names) {
      const std::size_t before = together.parameters.size();
      for (const Module* module : named(item, name)) {
        together.modules.push_back(module);
        for (const std::int32_t each : take(*module)) together.parameters.push_back(each);
      }
      if (together.parameters.size() == before) fail_taken(item, name);
    }
    std::ranges::sort(together.parameters);
    units_.push_back(std::move(together));
  }

  /// The units of modules that a list of prefetches names, in its order.
  std::optional<std::vector<std::int32_t>> named_units(
      const std::optional<std::vector<Yaml>>& items) const {
    if (!items) return std::nullopt;
    std::vector<std::int32_t> found;
    for (const Yaml& item : *items) {
      const std::string name = parts_of(item.text("a module's name"), '+').front();
      const std::vector<const Module*> modules = named(item, name);
      const std::size_t before = found.size();
      for (std::size_t u = 0; u < units_.size(); ++u)
        if (std::ranges::any_of(units_[u].modules, [&](const Module* each) {
              return std::ranges::find(modules, each) != modules.end();
            }))
          found.push_back(static_cast<std::int32_t>(u));
      if (found.size() == before)
        item.fail(fmt::format("no unit is made of \"{}\": expected a module that units names",
                              name.substr(0, longest_shown)));
    }
    return found;
  }

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
    for (const std::string& parameter : names_for_units(workload_)) {
      std::string name = block_of(parameter);
      if (name.empty())
        name = parameter.substr(0, std::min(parameter.rfind('.'), parameter.size()));
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
  std::vector<Unit> units_;
};

}  // namespace

GivenUnits read_units(const Yaml& given, const Workload& workload) {
  Units units(workload);
  for (const Yaml& item : given.list("a list of modules, such as [embed, layers.*, norm+head]"))
    units.add(item);
  GivenUnits found = units.result();
  if (found.parameters.empty()) given.fail("expected at least one module");
  return found;
}

Type units_type() {
  const Form mapping = value::map([]() -> const auto& { return unit_map().description(); });
  return {value::list(value::either({{value::form(Form::Kind::text)}, {mapping}}), 1)};
}

Value<std::optional<Reshard>> reshard_value() {
  constexpr int most_ranks = 1 << 20;
  return {value::either({value::boolean().type,
                         {value::word("auto", "of all units but the root's, as fully_shard does")},
                         value::whole(2, most_ranks).type}),
          [](const Yaml& given) -> std::optional<Reshard> {
            if (given.is_word("auto")) return std::nullopt;
            const std::string text = given.is_scalar() ? given.scalar() : "";
            if (!parse_integer(text)) return Reshard(given.boolean());
            if (text == "1") given.fail("among 1 rank parameters stay whole: write false");
            return Reshard::among(static_cast<int>(given.integer(2, most_ranks)));
          },
          {}};
}

}  // namespace ddpsim
