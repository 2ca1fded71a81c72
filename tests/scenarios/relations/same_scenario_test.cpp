// Two ways to write one scenario lead to one prediction, to the tick. DDPSIM_RELATIONS=100000 tries
// that many pairs of each kind in place of 50; DDPSIM_SEED=7 begins with another seed than 1.
#include <cstdlib>

#include <catch2/catch.hpp>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/scenario/scenario_text.hpp"
#include "sim/predict/predict.hpp"
#include "tests/scenarios/reader/scratch.hpp"
#include "tests/scenarios/relations/random_scenarios.hpp"
#include "tests/sim/predict/same_steps.hpp"

namespace ddpsim::relations {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// `entry` in block style, its keys below `indent` spaces: each with its first spelling and in
/// order, or, with dice, any of its spellings in any order.
std::string written(const Entry& entry, Dice* dice = nullptr, std::size_t indent = 0) {
  std::vector<const Entry*> order;
  for (const Entry& each : entry.keys) order.push_back(&each);
  for (std::size_t i = order.size(); dice && i > 1; --i)
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(dice->between(0, static_cast<int>(i) - 1))]);
  std::string text;
  for (const Entry* each : order) {
    text += std::string(indent, ' ') + each->key + ":";
    text += each->spellings.empty() ? "\n" + written(*each, dice, indent + 2)
            : dice                  ? " " + any_of(*dice, each->spellings) + "\n"
                                    : " " + each->spellings.front() + "\n";
  }
  return text;
}

/// Removes some scalars of `entry` and returns them as settings of dotted paths.
std::vector<Setting> taken_out(Entry& entry, Dice& dice, const std::string& path = "") {
  std::vector<Setting> settings;
  for (Entry& each : entry.keys) {
    if (!each.settable) continue;
    const std::string place = path.empty() ? each.key : path + "." + each.key;
    for (const Setting& inner : taken_out(each, dice, place)) settings.push_back(inner);
    if (each.spellings.empty() || dice.one_in(2)) continue;
    settings.emplace_back(place, any_of(dice, each.spellings));
  }
  const auto is_set = [&](const Entry& each) {
    const std::string place = path.empty() ? each.key : path + "." + each.key;
    return std::any_of(settings.begin(), settings.end(),
                       [&](const Setting& one) { return one.key == place; });
  };
  // What a mapping has left is not nothing: an empty mapping is no mapping.
  if (std::all_of(entry.keys.begin(), entry.keys.end(), is_set) && !entry.keys.empty()) {
    const std::string kept = path.empty() ? entry.keys[0].key : path + "." + entry.keys[0].key;
    std::erase_if(settings, [&](const Setting& one) { return one.key == kept; });
  }
  std::erase_if(entry.keys, is_set);
  return settings;
}

Entry& key_of(Entry& entry, const std::string& name) {
  const auto found = std::find_if(entry.keys.begin(), entry.keys.end(),
                                  [&](const Entry& each) { return each.key == name; });
  REQUIRE(found != entry.keys.end());
  return *found;
}

/// Every strategy's prediction is the same.
void require_same(const Scenario& one, const Scenario& other) {
  REQUIRE(one.training.bucket_cap == other.training.bucket_cap);  // a byte seldom makes a bucket
  REQUIRE(one.training.first_bucket_cap == other.training.first_bucket_cap);
  const StepModel of_one = model_of(one), of_other = model_of(other);
  for (const Strategy strategy : all_strategies) {
    CAPTURE(name_of(strategy));
    Training training = one.training, also = other.training;
    training.strategy = also.strategy = strategy;
    const bool reduces_each = strategy == Strategy::zero2 || strategy == Strategy::zero3;
    if (reduces_each && training.no_sync) continue;  // refused
    const Step a = predict(of_one, training), b = predict(of_other, also);
    REQUIRE(a.metrics.step == b.metrics.step);
    REQUIRE(a.metrics.communication == b.metrics.communication);
    REQUIRE(fixtures::same(a, b));
  }
}

/// Calls `relate(scratch, scenario, dice)` on scenarios of many seeds.
template <typename Relate>
void for_random_scenarios(Relate&& relate) {
  const std::uint64_t first = number_from("DDPSIM_SEED", 1);
  const std::uint64_t count = number_from("DDPSIM_RELATIONS", 50);
  const Scratch scratch;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Dice dice(seed);
    const Entry scenario = random_scenario(dice);
    INFO("DDPSIM_SEED=" << seed << "\n" << written(scenario));
    relate(scratch, scenario, dice);
  }
}

TEST_CASE("neither the order of keys nor the choice of units changes a prediction",
          "[scenarios][relations]") {
  for_random_scenarios([](const Scratch& scratch, const Entry& scenario, Dice& dice) {
    const std::string text = written(scenario, &dice);
    INFO(text);
    require_same(read_scenario(scratch.write("a.yaml", written(scenario))),
                 read_scenario(scratch.write("b.yaml", text)));
  });
}

TEST_CASE("keys that are set give what the same keys in the file give", "[scenarios][relations]") {
  for_random_scenarios([](const Scratch& scratch, const Entry& scenario, Dice& dice) {
    Entry rest = scenario;
    const std::vector<Setting> settings = taken_out(rest, dice);
    for (const auto& [key, value, written] : settings) UNSCOPED_INFO(key << "=" << value);
    const auto file = scratch.write("b.yaml", written(rest, &dice));
    const Scenario expected = read_scenario(scratch.write("a.yaml", written(scenario)));
    require_same(expected, read_scenario(file, settings));
    // And so does the text that stands for the file with the settings.
    const std::string text = scenario_text(file, settings);
    require_same(expected, read_scenario(scratch.write("c.yaml", text)));
  });
}

TEST_CASE("a value that is set wins over the one of the file", "[scenarios][relations]") {
  for_random_scenarios([](const Scratch& scratch, const Entry& scenario, Dice& dice) {
    Entry other = random_scenario(dice), changed = scenario;
    std::vector<Setting> settings;
    for (const auto& [mapping, key] :
         {std::pair{"training", "bucket_cap"}, {"workload", "batch"}, {"cluster", "nodes"}}) {
      Entry& value = key_of(key_of(other, mapping), key);
      settings.emplace_back(fmt::format("{}.{}", mapping, key), any_of(dice, value.spellings));
      key_of(key_of(changed, mapping), key) = value;
    }
    require_same(read_scenario(scratch.write("a.yaml", written(scenario)), settings),
                 read_scenario(scratch.write("b.yaml", written(changed, &dice))));
  });
}

TEST_CASE("a mapping in a file of its own, or based on one, is the mapping",
          "[scenarios][relations]") {
  for_random_scenarios([](const Scratch& scratch, const Entry& scenario, Dice& dice) {
    Entry split = scenario;
    Entry other = random_scenario(dice);
    for (const std::string name : {"device", "intra_node", "inter_node"}) {
      Entry& mapping = key_of(key_of(split, "cluster"), name);
      Entry base = mapping;
      const std::string file = name + ".yaml";
      if (dice.one_in(2)) {  // all of it elsewhere
        mapping = {name, {file}};
      } else {  // some keys elsewhere, some here, where they win over other values there
        mapping.keys = {{"base", {file}}};
        for (Entry& each : base.keys) {
          if (dice.one_in(2)) continue;
          mapping.keys.push_back(each);
          each = key_of(key_of(key_of(other, "cluster"), name), each.key);
        }
      }
      scratch.write(file, written(base, &dice));
    }
    require_same(read_scenario(scratch.write("a.yaml", written(scenario))),
                 read_scenario(scratch.write("b.yaml", written(split, &dice))));
  });
}

}  // namespace
}  // namespace ddpsim::relations
