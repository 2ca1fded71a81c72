#include "tools/explore/controls.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/entry_keys.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "scenarios/reader/text/yaml_text.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t longest_value = 64;

/// The number a value stands for, in bytes, pieces, bytes per second, seconds or per cent; nothing
/// if it is none, or none that a slider could have.
std::optional<double> number_of(Measure measure, const std::string& value) {
  const auto within = [](double number, double least, double most) {
    return number >= least && number <= most ? std::optional(number) : std::nullopt;
  };
  switch (measure) {
    case Measure::size:
      if (const auto size = parse_bytes(value))
        return within(static_cast<double>(size->count), 1, 1e12);
      return std::nullopt;
    case Measure::count:
      if (const auto count = parse_integer(value))
        return within(static_cast<double>(*count), 1, 1e5);
      return std::nullopt;
    case Measure::rate:
      if (const auto rate = parse_bandwidth(value)) return within(rate->bytes_per_second, 1, 1e15);
      return std::nullopt;
    case Measure::time:
      if (const auto time = parse_duration(value)) return within(in_seconds(*time), 0, 1);
      return std::nullopt;
    case Measure::share:
      if (!value.ends_with('%')) return std::nullopt;
      if (const auto percent = parse_number(value.substr(0, value.find_last_not_of(" %") + 1)))
        return within(*percent, 0, 100);
      return std::nullopt;
    case Measure::choice:
      return std::nullopt;
  }
  return std::nullopt;
}

const char* expected(Measure measure) {
  switch (measure) {
    case Measure::size:
      return "a size such as 25 MiB, up to 1 TB";
    case Measure::count:
      return "a whole number from 1 to 100000";
    case Measure::rate:
      return "a rate such as 50 GB/s";
    case Measure::time:
      return "a time such as 5 us, up to 1 s";
    case Measure::share:
      return "a share such as 3 %";
    case Measure::choice:
      return "one of its choices";
  }
  return "";
}

std::vector<std::string> powers_of_two(int most) {
  std::vector<std::string> values;
  for (int value = 1; value <= most; value *= 2) values.push_back(fmt::format("{}", value));
  return values;
}

/// Even steps on a logarithmic scale, in round numbers.
std::vector<std::string> round_steps(int decades, double least, const char* unit) {
  std::vector<std::string> values;
  double power = least;
  for (int decade = 0; decade < decades; ++decade, power *= 10)
    for (const double times : {1.0, 1.5, 2.0, 3.0, 5.0, 7.0})
      values.push_back(fmt::format("{:.6g} {}", power * times, unit));
  values.push_back(fmt::format("{:.6g} {}", power, unit));
  return values;
}

/// Caps that people try: powers of two, PyTorch's own, and twice and four times that.
std::vector<std::string> caps() {
  return {"256 KiB", "512 KiB", "1 MiB",  "2 MiB",   "4 MiB",   "8 MiB",   "16 MiB",  "25 MiB",
          "32 MiB",  "50 MiB",  "64 MiB", "100 MiB", "128 MiB", "256 MiB", "512 MiB", "1 GiB"};
}

constexpr const char* hook_id = "comm_hook";
constexpr const char* first_cap_id = "first_bucket_cap";
constexpr const char* system_id = "system";
constexpr const char *nodes_id = "nodes", *ranks_id = "ranks_per_node";

/// What was chosen; "" if nothing was.
std::string chosen(const Moved& moved, const std::string& id) {
  const auto found = moved.find(id);
  return found == moved.end() ? std::string() : found->second;
}

std::string as_given(const std::string& name) {
  return name.empty() ? "as given" : fmt::format("as given ({})", name);
}

std::vector<Option> comm_hooks(const std::string& now) {
  return {{"", fmt::format("as given ({})", now)},
          {"none", "none"},
          {"fp16_compress", "fp16_compress"},
          {"bf16_compress", "bf16_compress"},
          {"{powersgd: {rank: 1}}", "powersgd, rank 1"},
          {"{powersgd: {rank: 2}}", "powersgd, rank 2"},
          {"{powersgd: {rank: 4}}", "powersgd, rank 4"},
          {"{powersgd: {rank: 8}}", "powersgd, rank 8"},
          {"batched_powersgd", "batched_powersgd"},
          {"quantization_pertensor", "quantization_pertensor"},
          {"quantization_perchannel", "quantization_perchannel"}};
}

std::string percent(double share) {
  return fmt::format("{:.6g} %", 100 * share);
}

std::string quoted(const std::string& text) {
  std::string inner;
  for (const char c : text) inner += c == '\'' ? "''" : std::string(1, c);
  return fmt::format("'{}'", inner);
}

/// The value of a key two mappings deep, if the file or the settings have it.
std::optional<Yaml> find(const std::string& file, const std::vector<Setting>& set,
                         const std::string& outer, const std::string& inner) {
  if (is_workload_profile(file)) {
    for (auto setting = set.rbegin(); setting != set.rend(); ++setting)
      if (setting->key == outer + "." + inner) return Yaml::of_text(setting->value);
    return std::nullopt;
  }
  Yaml root = Yaml::load(file);
  apply_settings(root, set);
  const auto map = YamlMap(root).find(outer);
  if (!map || !map->is_map()) return std::nullopt;
  return YamlMap(*map).find(inner);
}

std::size_t nearest_option(const Control& control, double number) {
  std::size_t nearest = 0;
  double best = INFINITY;
  for (std::size_t i = 0; i < control.options.size(); ++i) {
    const double each = number_of(control.measure, control.options[i].value).value_or(INFINITY);
    const double far = std::abs(std::log(std::max(each, 1e-12) / std::max(number, 1e-12)));
    if (far < best) {
      best = far;
      nearest = i;
    }
  }
  return nearest;
}

}  // namespace

Controls::Controls(std::string file, std::vector<Setting> set, const Scenario& scenario)
    : file_(std::move(file)),
      set_(std::move(set)),
      nodes_(scenario.cluster.nodes),
      ranks_per_node_(scenario.cluster.ranks_per_node.largest()) {
  if (const auto batch = find(file_, set_, "workload", "batch")) batch_ = batch->scalar();
  intra_ = given_link("intra_node", scenario.cluster.intra_node);
  inter_ = given_link("inter_node", scenario.cluster.inter_node);
  add_training(scenario);
  add_cluster(scenario);
}

Controls::GivenLink Controls::given_link(const std::string& key, const Link& link) const {
  if (const auto given = find(file_, set_, "cluster", key)) {
    if (given->is_map()) return {"", true};
    return {quoted(given->scalar()), false};
  }
  const std::vector<std::string> names = catalogue_names(link_entries);
  const std::string name = without_mark(link.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) return {};
  return name == link.name ? GivenLink{name, false} : GivenLink{"", true};
}

void Controls::add_slider(Control control, std::vector<std::string> values,
                          const std::string& now) {
  if (!now.empty() && std::find(values.begin(), values.end(), now) == values.end())
    values.push_back(now);
  std::stable_sort(values.begin(), values.end(), [&](const auto& left, const auto& right) {
    return number_of(control.measure, left) < number_of(control.measure, right);
  });
  std::set<double> numbers;  // "1024 MiB" is "1 GiB"
  for (std::string& value : values)
    if (const auto number = number_of(control.measure, value);
        number && numbers.insert(*number).second)
      control.options.push_back({value, value});
  all_.push_back(std::move(control));
}

/// Why the scenario refuses what this control would change; "" if it does not.
std::string Controls::probe(const std::string& id) const {
  const auto control =
      std::find_if(all_.begin(), all_.end(), [&](const Control& each) { return each.id == id; });
  for (const std::size_t option : {control->options.size() - 1, control->options.size() / 2}) {
    try {
      read_scenario(file_, settings({{id, control->options[option].value}}));
      return "";
    } catch (const InputError& problem) {
      if (option == control->options.size() / 2) return problem.what();
    } catch (const std::invalid_argument& problem) {
      if (option == control->options.size() / 2) return problem.what();
    }
  }
  return "";
}

void Controls::add_training(const Scenario& scenario) {
  const Training& training = scenario.training;
  const std::string refusal =
      training.buckets.empty() && training.bucket_caps.empty() && training.parameter_groups == 0
          ? ""
          : "the scenario lists what each bucket holds, so that no cap applies";
  const std::string first = training.first_bucket_cap ? exact(*training.first_bucket_cap) : "";
  add_slider({"bucket_cap", "bucket cap", "training", Measure::size, {}, refusal}, caps(),
             exact(training.bucket_cap));
  add_slider({first_cap_id, "first bucket's cap", "training", Measure::size, {}, refusal}, caps(),
             first);
  all_.push_back({hook_id, "comm hook", "training", Measure::choice,
                  comm_hooks(training.comm_hook ? label(training.comm_hook) : "none"), ""});
  all_.back().unavailable = probe(hook_id);
  add_slider({"batch",
              "batch per rank",
              "training",
              Measure::count,
              {},
              batch_.empty() ? "the workload was measured or described with one batch size" : ""},
             powers_of_two(1024), batch_);
  if (!batch_.empty()) all_.back().unavailable = probe("batch");
}

Controls::GivenLink Controls::link_of(const std::string& place, const std::string& system) const {
  if (system.empty()) return place == "intra" ? intra_ : inter_;
  const Cluster cluster = read_ready_cluster(system).cluster;
  const Link& link = place == "intra" ? cluster.intra_node : cluster.inter_node;
  return {"", !link.name.empty()};
}

void Controls::add_cluster(const Scenario& scenario) {
  std::vector<Option> systems{{"", as_given(scenario.cluster.device.name)}};
  for (const std::string& name : catalogue_names(cluster_entries)) systems.push_back({name, name});
  all_.push_back({system_id, "ready system, in place of all below", "cluster", Measure::choice,
                  std::move(systems), ""});
  all_.back().unavailable = probe(system_id);
  const RanksPerNode& ranks = scenario.cluster.ranks_per_node;
  if (!ranks.equal())
    unequal_ = fmt::format("the nodes differ: they have {} ranks; a ready system's do not",
                           to_string(ranks));
  add_slider({nodes_id, "nodes", "cluster", Measure::count, {}, ""}, powers_of_two(1024),
             fmt::format("{}", nodes_));
  add_slider({ranks_id, "ranks per node", "cluster", Measure::count, {}, ""}, powers_of_two(16),
             fmt::format("{}", ranks_per_node_));
  add_link("intra", "within a node", scenario.cluster.intra_node);
  add_link("inter", "between nodes", scenario.cluster.inter_node);
  add_slider({"skew", "skew of ranks", "cluster", Measure::share, {}, ""},
             {"0 %", "0.5 %", "1 %", "2 %", "3 %", "5 %", "7 %", "10 %", "15 %", "20 %"},
             percent(scenario.cluster.skew));
  all_.back().unavailable = probe("skew");
}

void Controls::add_link(const std::string& place, const std::string& label, const Link& link) {
  const GivenLink& given = place == "intra" ? intra_ : inter_;
  std::vector<Option> links{{"", as_given(link.name)}};
  for (const std::string& name : catalogue_names(link_entries)) links.push_back({name, name});
  all_.push_back({place + "_link", "link " + label, label, Measure::choice, std::move(links), ""});
  const bool known = given.written || !given.base.empty();
  const std::string rate = link.bandwidth.bytes_per_second > 0 ? exact(link.bandwidth) : "";
  // Also for a link that is chosen only later: settings() looks at what is chosen.
  add_slider({place + "_bandwidth", "bandwidth " + label, label, Measure::rate, {}, ""},
             round_steps(3, 1, "GB/s"), rate);
  add_slider({place + "_latency", "latency " + label, label, Measure::time, {}, ""},
             round_steps(3, 1, "us"), known ? exact(link.latency) : "");
}

std::string Controls::fixed_because(const Control& control, const Moved& moved) const {
  const bool of_size = control.id == nodes_id || control.id == ranks_id;
  if (of_size && chosen(moved, system_id).empty()) return unequal_;
  return control.unavailable;
}

std::vector<Setting> Controls::settings(const Moved& moved) const {
  for (const auto& [id, value] : moved) {
    const auto control = std::find_if(all_.begin(), all_.end(),
                                      [name = id](const Control& each) { return each.id == name; });
    if (control == all_.end())
      throw InputError(fmt::format("{}: there is no such control", shown(id)));
    if (const std::string why = fixed_because(*control, moved); !why.empty())
      throw InputError(fmt::format("{}: {}", control->label, why));
    const bool is_option =
        std::any_of(control->options.begin(), control->options.end(),
                    [text = value](const Option& each) { return each.value == text; });
    if (!is_option && (value.size() > longest_value || !number_of(control->measure, value)))
      throw InputError(fmt::format("{}: expected {}", control->label, expected(control->measure)));
  }
  std::vector<Setting> settings = set_;
  const auto add = [&](const char* id, const char* key) {
    const auto found = moved.find(id);
    if (found != moved.end() && !found->second.empty()) settings.emplace_back(key, found->second);
  };
  add("bucket_cap", "training.bucket_cap");
  add(first_cap_id, "training.first_bucket_cap");
  add(hook_id, "training.comm_hook");
  add("batch", "workload.batch");
  add(system_id, "cluster");
  if (!chosen(moved, system_id).empty()) {
    add(nodes_id, "cluster.nodes");
    add(ranks_id, "cluster.ranks_per_node");
  } else if (moved.contains(nodes_id) || moved.contains(ranks_id)) {
    // Either of the two replaces `ranks`, and then says nothing of the other.
    const auto number = [&](const char* id, int given) {
      const std::string value = chosen(moved, id);
      return value.empty() ? fmt::format("{}", given) : value;
    };
    settings.emplace_back("cluster.nodes", number(nodes_id, nodes_));
    settings.emplace_back("cluster.ranks_per_node", number(ranks_id, ranks_per_node_));
  }
  add_link_settings(settings, moved, "intra");
  add_link_settings(settings, moved, "inter");
  add("skew", "cluster.skew");
  return settings;
}

void Controls::add_link_settings(std::vector<Setting>& settings, const Moved& moved,
                                 const std::string& place) const {
  const auto value = [&](const char* what) { return chosen(moved, place + what); };
  const GivenLink given = link_of(place, chosen(moved, system_id));
  const std::string key = fmt::format("cluster.{}_node", place), link = value("_link");
  std::string changes;
  for (const char* what : {"bandwidth", "latency"}) {
    const std::string number = value(fmt::format("_{}", what).c_str());
    if (number.empty()) continue;
    if (link.empty() && given.written)
      settings.emplace_back(fmt::format("{}.{}", key, what), number);
    else
      changes += fmt::format(", {}: {}", what, number);
  }
  if (changes.empty()) {
    if (!link.empty()) settings.emplace_back(key, link);
    return;
  }
  const std::string base = link.empty() ? given.base : link;
  if (base.empty())
    throw InputError(fmt::format("{}: choose a link first: the scenario names none",
                                 place == "intra" ? "within a node" : "between nodes"));
  settings.emplace_back(key, fmt::format("{{base: {}{}}}", base, changes));
}

std::map<std::string, Position> Controls::positions(const Scenario& scenario,
                                                    const Moved& moved) const {
  const Training& training = scenario.training;
  const Cluster& cluster = scenario.cluster;
  const auto rate = [](const Link& link) {
    return link.bandwidth.bytes_per_second > 0 ? exact(link.bandwidth) : std::string();
  };
  const auto batch = moved.find("batch");
  const std::map<std::string, std::string> now{
      {"bucket_cap", exact(training.bucket_cap)},
      {first_cap_id, exact(training.first_bucket_cap.value_or(training.bucket_cap))},
      {"batch", batch == moved.end() ? batch_ : batch->second},
      {"nodes", fmt::format("{}", cluster.nodes)},
      {"ranks_per_node", fmt::format("{}", cluster.ranks_per_node.largest())},
      {"intra_bandwidth", rate(cluster.intra_node)},
      {"intra_latency", exact(cluster.intra_node.latency)},
      {"inter_bandwidth", rate(cluster.inter_node)},
      {"inter_latency", exact(cluster.inter_node.latency)},
      {"skew", percent(cluster.skew)}};
  std::map<std::string, Position> positions;
  for (const Control& control : all_) {
    if (control.measure == Measure::choice) {
      positions[control.id] = {0, control.options.front().text, control.unavailable};
      continue;
    }
    const std::string& text = now.at(control.id);
    const auto number = number_of(control.measure, text);
    positions[control.id] = {number ? nearest_option(control, *number) : 0, number ? text : "-",
                             fixed_because(control, moved)};
  }
  if (const std::string system = chosen(moved, system_id); !system.empty()) {
    const Cluster ready = read_ready_cluster(system).cluster;
    const auto say = [&](const char* id, const Link& now, const Link& of_system) {
      const std::string& name = chosen(moved, id).empty() ? now.name : of_system.name;
      positions[id].text =
          name.empty() ? "the system has none" : fmt::format("the system's ({})", name);
    };
    say("intra_link", cluster.intra_node, ready.intra_node);
    say("inter_link", cluster.inter_node, ready.inter_node);
  }
  if (!training.first_bucket_cap) positions[first_cap_id].text = "as the bucket cap";
  return positions;
}

}  // namespace ddpsim
