#include "tools/report/reports/unit_report.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/timeline/port_bytes.hpp"
#include "tools/report/records/choice_record.hpp"
#include "tools/report/records/schedule_fields.hpp"
#include "tools/report/records/unit_fields.hpp"
#include "tools/report/records/why_fields.hpp"
#include "tools/report/reports/why_report.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_units_shown = 12;

const fields::UnitColumns& columns_of(UnitCollectiveKind kind) {
  return fields::of_unit_kinds[static_cast<std::size_t>(kind)];
}

/// [unit] Its collectives.
std::vector<std::vector<UnitCollective>> by_unit(const Step& step) {
  std::vector<std::vector<UnitCollective>> all(step.job().groups.size());
  for (UnitCollective& each : unit_collectives(step)) {
    if (each.unit == all.size()) all.emplace_back();  // what is of no unit
    all[each.unit].push_back(std::move(each));
  }
  return all;
}

/// All of what a gather or broadcasts bring.
Bytes whole_size(const Step& step, const UnitCollective& collective) {
  const Work& work = step.job().works[step.rank().program.tasks[collective.task].work];
  return collective.operation == Operation::all_gather
             ? ranks_of(step.job(), work) * collective.payload
             : collective.payload;
}

/// The parameters of a unit; of what is of none, of those that nothing else sends.
program::ParameterGroup group_of(const Step& step, std::size_t unit,
                                 const std::vector<UnitCollective>& collectives) {
  const program::Job& job = step.job();
  if (unit < job.groups.size()) return job.groups[unit];
  program::ParameterGroup others;
  others.name = name_of_group(job, unit);
  for (const UnitCollective& each : collectives)
    if (each.kind == UnitCollectiveKind::updated_gather) others.size += whole_size(step, each);
  return others;
}

/// The kinds that any unit has.
std::vector<UnitCollectiveKind> kinds_of(const std::vector<std::vector<UnitCollective>>& units) {
  std::vector<UnitCollectiveKind> kinds;
  for (const UnitCollectiveKind kind : all_unit_collective_kinds)
    if (std::ranges::any_of(units, [&](const std::vector<UnitCollective>& unit) {
          return std::ranges::any_of(unit, [&](const auto& each) { return each.kind == kind; });
        }))
      kinds.push_back(kind);
  return kinds;
}

Record causes_record(const UnitCollective& collective) {
  Record shares;
  for (const Cause cause : all_causes)
    if (is_told_of_units(cause, collective))
      shares.add(field_of(cause), in_ms(collective.why.by(cause)));
  return shares;
}

Record collective_record(const Step& step, const UnitCollective& collective, bool why) {
  const ExposedBucket& told = collective.why;
  const Work& work = step.job().works[step.rank().program.tasks[collective.task].work];
  Record record;
  record.add(fields::unit_kind, name_of(collective.kind))
      .add(fields::operation, name_of(collective.operation))
      .add(fields::unit_count, collective.count)
      .add(fields::unit_sent_bytes,
           static_cast<std::int64_t>(port_share(work.operation, ranks_of(step.job(), work)) *
                                     static_cast<double>(collective.payload.count)))
      .add(fields::unit_ready_ms, in_ms(told.times.ready))
      .add(fields::unit_start_ms, in_ms(told.times.start))
      .add(fields::unit_end_ms, in_ms(told.times.end))
      .add(fields::unit_exposed_ms, in_ms(told.times.exposed));
  add_choice(record, told.times.choice);
  if (!why) return record;
  return record.add(fields::unit_called_ms, in_ms(told.called))
      .add(fields::unit_issued_ms, in_ms(told.issued))
      .add(fields::unit_launched_ms, in_ms(told.launched))
      .add(fields::previous_end_ms,
           told.previous == Instant{} ? FieldValue() : FieldValue(in_ms(told.previous)))
      .add(fields::unit_held_by, field_of(collective.held).name)
      .add(fields::reason, told.times.exposed > Duration::zero()
                               ? FieldValue(field_of(told.cause).name)
                               : FieldValue())
      .add(fields::exposed_by_ms, causes_record(collective));
}

std::string from_to(const UnitCollective& collective) {
  return fmt::format("{:.3f} - {:.3f}", in_ms(collective.why.times.start),
                     in_ms(collective.why.times.end));
}

/// "5.426: itself 5.191, launch 0.235", "2.931 gradients", "hidden, previous".
std::string because_of(const UnitCollective& collective) {
  const ExposedBucket& told = collective.why;
  if (told.times.exposed <= Duration::zero()) {
    const bool waited = collective.held != Cause::itself && collective.held != Cause::gradients;
    return waited ? fmt::format("hidden, {}", name_of(collective.held)) : "hidden";
  }
  const std::string exposed = fmt::format("{:.3f}", in_ms(told.times.exposed));
  if (told.by(told.cause) == told.times.exposed)
    return fmt::format("{} {}", exposed, name_of(told.cause));
  return fmt::format("{}: {}", exposed, because(told));
}

}  // namespace

bool has_units(const Step& step) {
  return has_units(step.job());
}

std::string word_for_groups(const std::vector<NamedStep>& steps) {
  const auto is_of_units = [](const NamedStep& each) { return has_units(*each.step); };
  const auto is_of_buckets = [](const NamedStep& each) {
    return !has_units(*each.step) && !each.step->job().groups.empty();
  };
  const bool units = std::ranges::any_of(steps, is_of_units);
  if (!units) return "bucket";
  return std::ranges::any_of(steps, is_of_buckets) ? "bucket or unit" : "unit";
}

std::vector<UnitCollective> unit_collectives(const Step& step) {
  return unit_collectives(step.job(), step.times, step.ranks.front());
}

List unit_records(const Scenario& scenario, const Step& step, bool why) {
  const std::vector<std::vector<UnitCollective>> units = by_unit(step);
  List records;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const program::ParameterGroup group = group_of(step, u, units[u]);
    List names, collectives;
    for (const std::int32_t parameter : group.parameters)
      names.emplace_back(scenario.workload.parameters[at(parameter)].name);
    for (const UnitCollective& each : units[u])
      collectives.emplace_back(collective_record(step, each, why));
    records.emplace_back(Record()
                             .add(fields::unit_index, u)
                             .add(fields::unit_name, name_of_group(step.job(), u))
                             .add(fields::unit_bytes, group.size.count)
                             .add(fields::unit_parameters, std::move(names))
                             .add(fields::unit_exposed_ms, in_ms(exposed_of(units[u])))
                             .add(fields::unit_collectives, std::move(collectives)));
  }
  return records;
}

Table units_table(const Scenario& scenario, const Step& step) {
  const std::vector<std::vector<UnitCollective>> units = by_unit(step);
  Table table{{fields::unit_index, fields::unit_name, fields::unit_bytes, fields::tensors}};
  for (const UnitCollectiveKind kind : kinds_of(units)) {
    const fields::UnitColumns& columns = columns_of(kind);
    table.columns.insert(table.columns.end(),
                         {columns.from_to, columns.start_ms, columns.end_ms, columns.exposed_ms});
  }
  table.columns.insert(table.columns.end(),
                       {fields::unit_exposed_ms, fields::how, fields::first_and_last});
  table.title = fmt::format("{}s, in the order in which they are first sent, and their collectives",
                            word_for_groups({{"", &step}}));
  for (std::size_t u = 0; u < units.size(); ++u) {
    const program::ParameterGroup group = group_of(step, u, units[u]);
    const auto name = [&](std::int32_t parameter) {
      return scenario.workload.parameters[at(parameter)].name;
    };
    Record record;
    record.add(fields::unit_index, u)
        .add(fields::unit_name, name_of_group(step.job(), u))
        .add(fields::unit_bytes, group.size.count)
        .add(fields::tensors, group.parameters.size())
        .add(fields::unit_exposed_ms, in_ms(exposed_of(units[u])))
        .add(fields::first_and_last,
             group.parameters.empty()  // all are frozen
                 ? group.name
                 : name(group.parameters.front()) + " .. " + name(group.parameters.back()));
    if (!units[u].empty()) record.add(fields::how, choice_text(units[u].front().why.times.choice));
    for (const UnitCollective& each : units[u]) {
      const fields::UnitColumns& columns = columns_of(each.kind);
      record.add(columns.from_to, from_to(each))
          .add(columns.start_ms, in_ms(each.why.times.start))
          .add(columns.end_ms, in_ms(each.why.times.end))
          .add(columns.exposed_ms, in_ms(each.why.times.exposed));
    }
    table.add(record);
  }
  if (step.training.micro_batches > 1)
    table.notes = "Collectives are of the last micro-batch that has them; exposed is of all.\n";
  return table;
}

Table exposed_units_table(const Step& step) {
  const std::vector<std::vector<UnitCollective>> units = by_unit(step);
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return exposed_of(units[a]) > exposed_of(units[b]);
  });
  Table table{{fields::unit_name, fields::unit_bytes}};
  for (const UnitCollectiveKind kind : kinds_of(units)) {
    const Field& because = columns_of(kind).because;  // nothing hides what is behind the update
    table.columns.push_back(
        kind == UnitCollectiveKind::updated_gather ? because.with(Importance::most) : because);
  }
  const std::size_t shown = std::min(order.size(), most_units_shown);
  for (std::size_t i = 0; i < shown; ++i) {
    Record record;
    std::string name = name_of_group(step.job(), order[i]);
    if (order[i] == step.job().groups.size())
      name += fmt::format(", {} gathers", units[order[i]].back().count);
    record.add(fields::unit_name, name)
        .add(fields::unit_bytes, group_of(step, order[i], units[order[i]]).size.count);
    for (const UnitCollective& each : units[order[i]])
      record.add(columns_of(each.kind).because, because_of(each));
    table.add(record);
  }
  Duration left{};
  for (std::size_t i = shown; i < order.size(); ++i) left += exposed_of(units[order[i]]);
  if (shown < order.size())
    table.notes = fmt::format("and {} more, {:.3f} ms", order.size() - shown, in_ms(left));
  return table;
}

std::string exposed_units_text(bool alone) {
  std::string text =
      alone
          ? "why (ms): a gather or a reduce-scatter is exposed while it runs and the compute "
            "stream has\n"
            "nothing to do; if it is hidden, the word says what it waited for last\n"
          : "of units: a gather or a reduce-scatter is exposed likewise; if it is hidden, the word "
            "says\n"
            "what it waited for last\n";
  text +=
      "  itself        a gather would be exposed even if it began with the step: it is needed at "
      "once;\n"
      "                or, behind the update, even if it began at once\n"
      "  gradients     ready so late that the reduce-scatter would be exposed even if it began at "
      "once\n"
      "  previous      the collective before it in its communicator was still running\n"
      "  launch        the host had not launched it, or not what packs its input\n"
      "  copy-out      a gather's input is packed once the gather before it has been copied out\n"
      "  input buffer  gradients are packed once the memory of an earlier reduce-scatter's input "
      "is free\n";
  if (alone)
    text +=
        "  slowest rank  another rank arrived later, so that less computation was left to hide it; "
        "the wait\n"
        "                itself comes before the collective and is not in its exposed time\n";
  return text;
}

std::optional<UnitCollective> sent_behind_update(const Step& step) {
  if (has_units(step) || !shards(step.training.strategy)) return std::nullopt;
  return updated_sends(step.job(), step.times, step.ranks.front());
}

std::string behind_update_text(const std::string& label, const Step& step,
                               const UnitCollective& sent) {
  const bool is_one = sent.count == 1;
  const std::string what =
      fmt::format("{}{} of updated parameters{} behind the update", name_of(sent.operation),
                  is_one ? "" : "s", is_one ? "" : ", one after the other,");
  return fmt::format("{}: {} {}, {}: {}", label, sent.count, what,
                     to_string(whole_size(step, sent)), because_of(sent));
}

Record behind_update_record(const Step& step, const UnitCollective& sent) {
  return collective_record(step, sent, true);
}

std::vector<ExposedBucket> exposed_units(const Step& step) {
  std::vector<ExposedBucket> merged;
  for (const UnitCollective& each : unit_collectives(step)) {
    if (each.why.times.exposed <= Duration::zero()) continue;
    if (merged.empty() || merged.back().bucket != each.unit) {
      merged.push_back(each.why);
      continue;
    }
    ExposedBucket& unit = merged.back();
    unit.times.exposed += each.why.times.exposed;
    for (std::size_t c = 0; c < unit.exposed_by.size(); ++c)
      unit.exposed_by[c] += each.why.exposed_by[c];
  }
  return merged;
}

}  // namespace ddpsim
