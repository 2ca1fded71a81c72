#include "scenarios/reader/measured/measured_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/text/yaml_text.hpp"

namespace ddpsim {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Keys of the user's choice, each with a text.
Value<Settings> settings_value() {
  return {{value::form(Form::Kind::free_map)},
          [](const Yaml& given) {
            Settings settings;
            const YamlMap map(given);
            for (const auto& [key, setting] : map.entries())
              settings.emplace_back(key, setting.text("a value"));
            return settings;
          },
          [](YAML::Emitter& out, const Settings& settings) {
            out << YAML::Flow << YAML::BeginMap;
            for (const auto& [key, setting] : settings) {
              out << YAML::Key;
              write_text(out, key);
              out << YAML::Value;
              write_text(out, setting);
            }
            out << YAML::EndMap;
          }};
}

const Map<MeasuredCommunication>& communication_map() {
  static const auto map =
      Map<MeasuredCommunication>("measured_communication",
                                 "What a timer said of communication, and what it covered.")
          .key("time", value::time(), &MeasuredCommunication::time,
               {.meaning = "What the timer said.", .example = "42.8 ms", .required = true})
          .key(
              "covers",
              value::list_of(value::one_of(all_covered, {"the all-reduces", "the divisions",
                                                         "the copies into one piece of memory",
                                                         "the copies back"}),
                             "a list such as [all_reduce, divide]", "expected at least all_reduce"),
              &MeasuredCommunication::covers,
              {.meaning = "The parts it covered, from the first one's start to the last one's "
                          "end, with the device drained before.",
               .example = "[all_reduce, divide]",
               .required = true})
          .check([](MeasuredCommunication& communication, const YamlMap& entries) {
            const auto& covers = communication.covers;
            if (std::find(covers.begin(), covers.end(), Covered::all_reduce) == covers.end())
              entries.find("covers")->fail("a timer of communication covers all_reduce at least");
          });
  return map;
}

/// A time, the sum of the collectives', or a mapping.
Value<std::optional<MeasuredCommunication>> communication_value() {
  const auto time = value::time();
  const auto mapping = value::mapping(&communication_map);
  return {value::either({time.type, mapping.type}),
          [=](const Yaml& given) -> std::optional<MeasuredCommunication> {
            if (given.is_map()) return mapping.read(given);
            return MeasuredCommunication{time.read(given), {}};
          },
          [=](YAML::Emitter& out, const std::optional<MeasuredCommunication>& communication) {
            if (!communication) return;
            if (communication->covers.empty())
              time.write(out, communication->time);
            else
              mapping.write(out, *communication);
          }};
}

/// Throws InputError where what a step is made of takes longer than the step. Collectives that are
/// under way beside kernels may, several at once.
void check_parts(const MeasuredRow& row, const YamlMap& entries) {
  const auto part = [&](const char* key, const std::optional<Duration>& time) {
    if (time && *time > row.step)
      entries.find(key)->fail(
          fmt::format("{} is longer than the row's step of {}, which it is a part of",
                      to_string(*time), to_string(row.step)));
  };
  part("forward", row.times.forward);
  part("backward", row.times.backward);
  part("optimizer", row.times.optimizer);
  if (row.communication && (row.strategy == Strategy::naive || row.strategy == Strategy::flat))
    part("communication", row.communication->time);
  constexpr double rounding = 1.1;  // what timers take themselves
  const Duration parts = row.times.forward.value_or(Duration::zero()) +
                         row.times.backward.value_or(Duration::zero()) +
                         row.times.optimizer.value_or(Duration::zero());
  if (in_seconds(parts) > rounding * in_seconds(row.step))
    entries.node().fail(
        fmt::format("forward, backward and optimizer take {} together, which is longer than the "
                    "row's step of {}",
                    to_string(parts), to_string(row.step)));
}

/// Throws InputError where two keys of a row say one thing, or one says what a run of its strategy
/// has not.
void check_agree(const MeasuredRow& row, const YamlMap& entries) {
  if (const auto communication = entries.find("communication");
      communication && row.strategy == Strategy::none)
    communication->fail(
        "a step of none has no communication: take the key out, or write the strategy that was "
        "measured");
  const auto set = entries.find("set");
  if (!set) return;
  const YamlMap own(*set);
  if (const auto strategy = own.find("training.strategy"))
    strategy->fail(
        fmt::format("the row's strategy is {}: take this key out, or write `strategy: "
                    "{}` in the row",
                    name_of(row.strategy), strategy->scalar()));
  if (const auto cap = own.find("training.bucket_cap"); cap && row.bucket_cap)
    cap->fail(fmt::format("the row's bucket_cap is {}: take one of the two out",
                          to_string(*row.bucket_cap)));
}

const Map<MeasuredRow>& row_map() {
  const auto times = [](auto member) {
    return [member](auto& row) -> auto& {
      return row.times.*member;
    };
  };
  static const auto map =
      Map<MeasuredRow>("measured_row", "A run that was measured.")
          .key("strategy", strategy_value(), &MeasuredRow::strategy,
               {.meaning = "How gradients were averaged.", .example = "naive", .required = true})
          .key("bucket_cap", value::size(), &MeasuredRow::bucket_cap,
               {.meaning = "The bucket cap of the run.",
                .otherwise = "the scenario's own",
                .example = "10 MiB"})
          .key("step", value::time(), &MeasuredRow::step,
               {.meaning = "How long a step took.", .example = "531.7 ms", .required = true})
          .key("communication", communication_value(), &MeasuredRow::communication,
               {.meaning = "The sum of all collectives' durations, each from the last rank's "
                           "arrival; or, as a mapping, what a timer said that covered more.",
                .otherwise = "not measured",
                .example = "{time: 42.8 ms, covers: [all_reduce, divide]}"})
          .key("forward", value::time(), times(&MeasuredTimes::forward),
               {.meaning = "How long the step's forward passes took, of all its micro-batches.",
                .otherwise = "not measured",
                .example = "250 ms"})
          .key("backward", value::time(), times(&MeasuredTimes::backward),
               {.meaning = "How long the step's backward passes took, of all its micro-batches.",
                .otherwise = "not measured",
                .example = "507 ms"})
          .key("optimizer", value::time(), times(&MeasuredTimes::optimizer),
               {.meaning = "How long the optimizer took.",
                .otherwise = "not measured",
                .example = "106 ms"})
          .key("note", value::text(), &MeasuredRow::note,
               {.meaning = "What people should know of the row.",
                .otherwise = "nothing",
                .example = "of 100 steps"})
          .key("set", settings_value(), &MeasuredRow::set,
               {.meaning = "Keys of the scenario that differ in this row, by dotted path.",
                .otherwise = "the row is of the scenario as it is",
                .example = "{cluster.ranks_per_node: 1}"})
          .check([](MeasuredRow& row, const YamlMap& entries) {
            check_agree(row, entries);
            check_parts(row, entries);
          });
  return map;
}

Value<std::vector<MeasuredRow>> rows_value() {
  auto value = value::list_of(value::mapping(&row_map),
                              "a list of rows such as {strategy: naive, step: 531.7 ms}");
  value.type.front().fewest_items = 1;
  value.read = [](const Yaml& given) {
    std::vector<MeasuredRow> rows;
    for (const Yaml& item :
         given.list("a list of rows such as {strategy: naive, step: 531.7 ms}")) {
      rows.push_back(row_map().read(item));
      rows.back().place = item.place();
    }
    return rows;
  };
  return value;
}

}  // namespace

Value<Strategy> strategy_value() {
  std::vector<std::string> meanings;
  for (const StrategyFacts& each : strategy_facts) meanings.emplace_back(each.meaning);
  return value::one_of(all_strategies, meanings);
}

Value<std::vector<Strategy>> strategies_value() {
  auto value = value::list_of(strategy_value(), "a list of strategies, such as [naive, overlap]",
                              "expected at least one strategy");
  value.read = [](const Yaml& given) {
    std::vector<Strategy> strategies;
    for (const Yaml& item : given.list("a list of strategies, such as [naive, overlap]")) {
      const auto strategy = item.one_of<Strategy>(all_strategies);
      if (std::find(strategies.begin(), strategies.end(), strategy) != strategies.end())
        item.fail(fmt::format("{} is in the list already", name_of(strategy)));
      strategies.push_back(strategy);
    }
    if (strategies.empty()) given.fail("expected at least one strategy");
    return strategies;
  };
  return value;
}

std::string no_fit_of(Strategy strategy) {
  if (fits_of(strategy) != Fits::nothing) return "";
  std::vector<std::string_view> computation, interference;
  for (const StrategyFacts& facts : strategy_facts)
    if (facts.fits != Fits::nothing)
      (facts.fits == Fits::interference ? interference : computation).push_back(facts.name);
  return fmt::format("a row of {} fits nothing: name {} (computation), or {} (interference)",
                     name_of(strategy), fmt::join(computation, " or "),
                     fmt::join(interference, " or "));
}

namespace {

/// Strategies of which a measured row can be fitted. Others are read all the same, and refused with
/// the reason.
Value<std::vector<Strategy>> fitted_strategies_value() {
  Value<std::vector<Strategy>> value = strategies_value();
  std::erase_if(value.type.front().items.front().choices, [](const NamedChoice& choice) {
    return std::ranges::any_of(all_strategies, [&](Strategy strategy) {
      return choice.name == name_of(strategy) && fits_of(strategy) == Fits::nothing;
    });
  });
  return value;
}

/// What is fitted where nobody says: computation to a row of none, in which nothing else is, and
/// communication to what a naive row says of it; where there is neither, computation to a row of
/// fsdp (sim/predict/fit.hpp).
std::vector<Strategy> usually_fitted(const std::vector<MeasuredRow>& rows) {
  const auto has = [&](Strategy strategy, bool communication) {
    return std::ranges::any_of(rows, [&](const MeasuredRow& row) {
      return row.strategy == strategy && (row.communication || !communication);
    });
  };
  const bool none = has(Strategy::none, false), naive = has(Strategy::naive, none);
  if (none && !naive) return {Strategy::none};
  if (naive && !none) return {Strategy::naive};
  if (!none && has(Strategy::fsdp, false)) return {Strategy::fsdp};
  return {Strategy::none, Strategy::naive};
}

}  // namespace

const Map<Measured>& measured_map() {
  static const auto map =
      Map<Measured>("measured", "What a real run showed. `score` holds predictions against it.")
          .key("source", value::text(), &Measured::source,
               {.meaning = "Where the figures come from.", .example = "a table in the README"})
          .key(
              "calibrate_on", fitted_strategies_value(), &Measured::calibrate_on,
              {.meaning = "The strategies whose rows may be used to fit compute times. Of several "
                          "rows of one strategy the nearest to the scenario is fitted, and of its "
                          "repeats the mean. All other rows are predicted.",
               .otherwise = "`[none]` where there is a row of none, and `[none, naive]` if a naive "
                            "row then says its communication; else `[naive]`, or `[fsdp]` where "
                            "there is no naive row",
               .example = "[none, naive]",
               .always_written = true})
          .key("rows", rows_value(), &Measured::rows,
               {.meaning = "The runs.",
                .example = "[{strategy: naive, step: 531.7 ms}]",
                .required = true})
          .check([](Measured& measured, const YamlMap& entries) {
            if (measured.rows.empty()) entries.node().fail("expected at least one row");
            for (const Strategy strategy : measured.calibrate_on)
              if (const std::string why = no_fit_of(strategy); !why.empty())
                entries.find("calibrate_on")->fail(why);
            if (!entries.find("calibrate_on"))
              measured.calibrate_on = usually_fitted(measured.rows);
          });
  return map;
}

Value<Measured> measured_value() {
  auto value = value::mapping(&measured_map);
  value.write = [](YAML::Emitter& out, const Measured& measured) {
    out << YAML::BeginMap;
    measured_map().write(out, measured);
    out << YAML::EndMap;
  };
  return value;
}

}  // namespace ddpsim
