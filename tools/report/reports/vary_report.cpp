#include "tools/report/reports/vary_report.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/cost/collective.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "sim/predict/step_sequence.hpp"
#include "tools/report/records/sweep_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/records/vary_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/best.hpp"
#include "tools/report/reports/cluster_notes.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/described_report.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/run_report.hpp"
#include "tools/report/reports/said_notes.hpp"
#include "tools/report/reports/throughput_report.hpp"
#include "tools/report/writers/text_writer.hpp"
#include "tools/study/carried_fit.hpp"
#include "tools/study/known_accuracy.hpp"
#include "tools/study/memory_advice.hpp"
#include "tools/study/names.hpp"
#include "tools/study/point_notes.hpp"
#include "tools/study/throughput.hpp"

namespace ddpsim {
namespace {

/// What a step takes in the long run: post_local_sgd averages models in one of several.
Duration lasting(const VariedRun& varied, const Step& step) {
  const auto averaged = averaged_step(varied.run.priced.model, step);
  return averaged ? averaged->mean : step.metrics.step;
}

/// The step of one strategy; null: this run has none.
const Step* step_under(const VariedRun& varied, Strategy strategy) {
  for (const Step& step : varied.run.compared)
    if (step.training.strategy == strategy) return &step;
  return nullptr;
}

/// A step, how long it lasts, and its samples a second; 0: not known.
struct ComparedStep {
  const VariedRun* run = nullptr;
  const Step* step = nullptr;
  Duration lasting{};
  double rate = 0;
  FieldValue figure{};  ///< that the table is sorted by, if by any
  bool unfit = false;   ///< it takes more memory than its device has

  double samples() const { return rate * in_seconds(lasting); }
  std::string text() const {
    return fmt::format("{}, {}", short_label(run->settings), strategy_label(step->training));
  }
};

/// The best step by some order: of all, and of those that are not known to need more memory than
/// their device has.
struct Leader {
  ComparedStep any, fitting;

  template <typename Better>
  void consider(const ComparedStep& candidate, Better better) {
    if (any.step == nullptr || better(candidate, any)) any = candidate;
    if (!candidate.unfit && (fitting.step == nullptr || better(candidate, fitting)))
      fitting = candidate;
  }
};

/// "shortest: batch: 8, overlap: 135.72 ms"; of steps that do not fit only beside one that does.
template <typename Figure>
std::string leader_line(const std::string& what, const Leader& leader, Figure figure) {
  const ComparedStep &any = leader.any, &fitting = leader.fitting;
  if (any.step == nullptr) return "";
  constexpr std::string_view unfit = "does not fit its device's memory";
  if (fitting.step == nullptr)
    return fmt::format("{}: {}: {}, which {}; no step here fits\n", what, any.text(), figure(any),
                       unfit);
  std::string line =
      fmt::format("{}{}: {}: {}", what, fitting.step == any.step ? "" : " of what fits",
                  fitting.text(), figure(fitting));
  if (fitting.step != any.step) line += fmt::format("; {}: {} {}", any.text(), figure(any), unfit);
  return line + "\n";
}

/// The best of the steps that average anything: the shortest, the one of most samples, and the one
/// that the table's order puts first.
struct BestSteps {
  std::optional<Field> sorted_by;
  Leader shortest, most, first;
  bool work_varies = false;  ///< not all steps are of as many samples

  void consider(const ComparedStep& candidate) {
    const Training& training = candidate.step->training;
    const bool communicates =
        training.strategy != Strategy::none &&
        (training.strategy != Strategy::bucketed || training.comm_hook.kind != CommHookKind::noop);
    if (!communicates) return;
    constexpr double alike = 1e-6;
    work_varies = work_varies || (most.any.step != nullptr &&
                                  std::abs(candidate.samples() / most.any.samples() - 1) > alike);
    using Compared = const ComparedStep&;
    shortest.consider(candidate, [](Compared a, Compared b) { return a.lasting < b.lasting; });
    most.consider(candidate, [](Compared a, Compared b) { return a.rate > b.rate; });
    if (sorted_by && !candidate.figure.is_nothing())
      first.consider(candidate, [&](Compared a, Compared b) {
        return goes_before(*sorted_by, a.figure, b.figure);
      });
  }
};

/// What a key is called above its column: its last part, or all of it where two end alike.
std::string_view label_of(const std::vector<Setting>& settings, const std::string& key) {
  const auto last = [](const std::string& of) {
    return std::string_view(of).substr(of.rfind('.') + 1);
  };
  const auto alike = std::count_if(settings.begin(), settings.end(), [&](const Setting& setting) {
    return last(setting.key) == last(key);
  });
  return alike == 1 ? last(key) : std::string_view(key);
}

std::vector<Field> key_columns(const std::vector<Setting>& settings) {
  std::vector<Field> columns;
  for (const Setting& setting : settings)
    columns.push_back(fields::key_field(setting.key, label_of(settings, setting.key)));
  return columns;
}

/// The values of those columns.
Record keys_record(const std::vector<Field>& columns, const std::vector<Setting>& settings) {
  Record record;
  for (std::size_t k = 0; k < columns.size(); ++k) record.add(columns[k], settings[k].value);
  return record;
}

/// The row's strategy, with its buckets unless a column of a key says them.
std::string name_in_table(const VariedRun& varied, const Training& training) {
  const bool told = std::ranges::any_of(
      varied.settings, [&](const Setting& setting) { return is_in_label(setting.key, training); });
  return told ? std::string(name_of(training.strategy)) : short_strategy_label(training);
}

/// The row of the strategy that is compared at that place.
Record row_record(const VariedRun& varied, std::size_t place, const VariedRun& first,
                  Duration lasts) {
  const Step& step = varied.run.compared[place];
  const StepMetrics& metrics = step.metrics;
  const Step* same = step_under(first, step.training.strategy);
  FieldValue against;
  if (same != nullptr) against = in_seconds(lasts) / in_seconds(lasting(first, *same)) - 1;
  Record row;
  row.add(fields::strategy, name_in_table(varied, step.training))
      .add(fields::step_ms, in_ms(lasts))
      .add(fields::against_first, against)
      .add(band_record(varied.run.knowledge, step.training.strategy, metrics,
                       varied.run.none.metrics.working(), least_step(varied.run.scenario),
                       lasts - metrics.step))
      .add(fields::exposed_ms,
           in_ms(exposed(metrics, varied.run.without_communication(step)) + lasts - metrics.step))
      .add(fields::communication_ms, in_ms(metrics.communication))
      .add(fields::collectives, metrics.collectives)
      .add(fields::wire_bytes, step.job().ranks() > 1 ? metrics.wire.count : 0)
      .add(fields::comm_hook_ms, in_ms(metrics.comm_hook))
      .add(fields::comm_hook_memory_bytes,
           varied.run.memories[place].most[program::Holds::hook].count)
      .add(fields::bound, name_of(metrics.bound));
  return row;
}

bool does_not_fit(const Record& row) {
  const FieldValue* fits = row.find(fields::fits_device);
  const bool* known = fits == nullptr ? nullptr : std::get_if<bool>(&fits->held);
  return known != nullptr && !*known;
}

/// "any": what a key does not change stands once.
constexpr const char* any_value = "any";

/// Joins rows of one strategy, in `rows`, that differ in nothing but their value in column `key`,
/// if all values that the key takes there are alike. Columns before `keys` are of keys.
void join_alike(std::vector<TableRow>& rows, std::size_t key, std::size_t keys) {
  std::set<std::string> values;
  std::map<std::string, std::vector<const TableRow*>> groups;  // by the other keys' values
  for (const TableRow& row : rows) {
    values.insert(*row[key].text());
    std::string others;
    for (std::size_t k = 0; k < keys; ++k)
      if (k != key) others += *row[k].text() + '\n';
    groups[others].push_back(&row);
  }
  const auto differ_elsewhere = [&](const TableRow& one, const TableRow& other) {
    return !std::equal(one.begin() + static_cast<std::ptrdiff_t>(keys), one.end(),
                       other.begin() + static_cast<std::ptrdiff_t>(keys));
  };
  if (values.size() < 2) return;
  for (const auto& entry : groups) {
    const auto& group = entry.second;
    if (group.size() != values.size() || std::ranges::any_of(group, [&](const TableRow* row) {
          return differ_elsewhere(*group.front(), *row);
        }))
      return;
  }
  std::vector<TableRow> joined;
  for (const TableRow& row : rows) {
    if (*row[key].text() != *rows.front()[key].text()) continue;
    joined.push_back(row);
    joined.back()[key] = FieldValue(any_value);
  }
  rows = std::move(joined);
}

/// Sorts the rows by the column of `best`; what has no value stays below.
void sort_by(Table& table, const Field& best) {
  const std::size_t column = table.index_of(best);
  std::stable_sort(table.rows.begin(), table.rows.end(), [&](const TableRow& a, const TableRow& b) {
    return goes_before(best, a[column], b[column]);
  });
}

/// Are all-reduces taken from a measured table? It holds for the NICs that it was measured with.
bool is_priced_by_table(const CalibratedCluster& cluster) {
  return CollectiveLaw(cluster).name() == std::string("table");
}

/// What the user calls the network of a combination: the value that `cluster.inter_node` takes
/// there, or, where that does not vary, the name of the link.
std::string name_of_network(const VariedRun& varied) {
  for (const Setting& setting : varied.settings)
    if (setting.key == "cluster.inter_node") return shown(setting.value);
  return shown_name(varied.run.scenario.cluster.inter_node.name, "link");
}

bool has_comm_hooks(const Variants& variants) {
  return std::ranges::any_of(variants.runs, [](const VariedRun& varied) {
    return std::ranges::any_of(varied.run.compared,
                               [](const Step& step) { return !step.job().state.empty(); });
  });
}

/// What ranks_notes says of the runs.
std::vector<std::string> ranks_notes_of(const Variants& variants) {
  std::vector<std::pair<std::vector<Setting>, int>> points;
  for (const VariedRun& varied : variants.runs)
    points.emplace_back(varied.settings, varied.run.scenario.cluster.ranks());
  return ranks_notes(points);
}

/// What a step amounts to, as the second table of `run` has it, where the width allows.
std::vector<Field> throughput_columns(const Variants& variants) {
  const bool tokens = std::ranges::all_of(
      variants.runs, [](const VariedRun& varied) { return varied.run.scenario.sequence > 0; });
  std::vector<Field> columns{tokens ? fields::tokens_per_second : fields::samples_per_second,
                             fields::mfu, fields::peak_memory_bytes, fields::fits_device};
  if (!ranks_notes_of(variants).empty()) columns.insert(columns.begin(), fields::world_size);
  for (Field& column : columns) column.importance = Importance::usual;
  return columns;
}

/// The currencies of the prices.
std::set<std::string> currencies_of(const Variants& variants) {
  std::set<std::string> currencies;
  for (const VariedRun& varied : variants.runs)
    if (varied.run.scenario.price) currencies.insert(varied.run.scenario.price->currency);
  return currencies;
}

std::vector<PricedPoint> priced_points(const Variants& variants) {
  std::vector<PricedPoint> points;
  for (const VariedRun& varied : variants.runs) {
    const auto& price = varied.run.scenario.price;
    points.push_back({varied.settings, price ? price->currency : ""});
  }
  return points;
}

/// The columns of the table for people; that of `best` among them.
std::vector<Field> page_columns(const std::vector<Field>& keys, const std::optional<Field>& best,
                                const std::vector<Field>& throughput, bool comm_hooks,
                                const Scenario* priced, bool currencies, bool refused) {
  std::vector<Field> columns = keys;
  columns.insert(columns.end(), {fields::strategy, fields::step_ms, fields::against_first,
                                 fields::band_low_ms.with(Importance::little),
                                 fields::band_high_ms.with(Importance::little)});
  columns.insert(columns.end(), throughput.begin(), throughput.end());
  columns.insert(columns.end(),
                 {fields::exposed_ms, fields::communication_ms, fields::collectives});
  if (comm_hooks)
    columns.insert(columns.end(), {fields::wire_bytes.with(Importance::much),
                                   fields::comm_hook_ms.with(Importance::much),
                                   fields::comm_hook_memory_bytes, fields::bound});
  else
    columns.insert(columns.end(), {fields::wire_bytes, fields::bound});
  if (priced != nullptr)
    columns.push_back(
        (priced->sequence > 0 ? fields::cost_per_billion_tokens : fields::cost_per_million_samples)
            .with(Importance::much));
  if (currencies) columns.push_back(fields::currency.with(Importance::much));
  if (best) {
    const auto same =
        std::ranges::find_if(columns, [&](const Field& field) { return field.name == best->name; });
    if (same == columns.end())
      columns.push_back(best->with(Importance::most));
    else
      same->importance = Importance::most;
  }
  if (refused) columns.push_back(fields::refusal.with(Look{}.to_the_left().or_blank()));
  return columns;
}

/// On the cluster of one combination.
std::vector<std::string> notes_of(const VariedRun& varied, const std::vector<Setting>& set) {
  std::vector<Setting> settings = set;
  settings.insert(settings.end(), varied.settings.begin(), varied.settings.end());
  std::vector<std::string> notes = cluster_notes(varied.run.scenario, settings);
  add_each_once(notes, idle_strategy_notes(varied.run.scenario, settings));
  return notes;
}

}  // namespace

void check_best(const Variants& variants, const std::optional<Field>& best) {
  if (!best) return;
  if (const std::string why = why_no_best(*best, priced_points(variants)); !why.empty())
    throw InputError("--best: " + why);
}

Page varied_page(const Variants& variants, const std::optional<Field>& best) {
  const std::vector<VariedRun>& runs = variants.runs;
  const Scenario& scenario = runs.front().run.scenario;
  Page page;
  const bool others = std::any_of(runs.begin(), runs.end(), [&](const VariedRun& varied) {
    return cluster_text(varied.run.scenario) != cluster_text(scenario);
  });
  const std::string network = shown_name(scenario.workload.name, "model");
  page.add(Paragraph{fmt::format(
      "{}\n{}{}{}", scenario.name, network == scenario.name ? "" : network + "\n",
      others ? "the first: " : "", cluster_text(scenario, runs.front().run.knowledge))});
  std::vector<ModesAtPoint> modes;
  for (const VariedRun& varied : runs)
    modes.push_back({varied.settings, described_modes_text(varied.run.scenario)});
  page.add(Paragraph{described_modes_text(modes, runs.size())});
  const std::vector<Field> keys = key_columns(runs.front().settings);
  const auto priced = std::ranges::find_if(
      runs, [](const VariedRun& varied) { return varied.run.scenario.price.has_value(); });
  const std::vector<Field> throughput = throughput_columns(variants);
  const std::set<std::string> currencies = currencies_of(variants);
  Table table{page_columns(keys, best, throughput, has_comm_hooks(variants),
                           priced == runs.end() ? nullptr : &priced->run.scenario,
                           currencies.size() > 1, !variants.refused.empty())};
  if (best) table.title = sorted_text(*best);
  BestSteps found{best, {}, {}, {}, false};
  bool averages = false;
  std::size_t strategies = 0;
  for (const VariedRun& varied : runs)
    strategies = std::max(strategies, varied.run.compared.size());
  bool joined = false;
  for (std::size_t s = 0; s < strategies; ++s) {
    Table of_strategy{table.columns};
    for (const VariedRun& varied : runs) {
      if (s >= varied.run.compared.size()) continue;  // `compare` itself varies
      const Step& step = varied.run.compared[s];
      const Duration lasts = lasting(varied, step);
      averages = averages || lasts != step.metrics.step;
      Record row = row_record(varied, s, runs.front(), lasts);
      row.add(keys_record(keys, varied.settings));
      const Result result = varied.run.results()[s];
      row.add(in_the_long_run(run_row(varied.run, result), varied.run, result));
      const FieldValue* figure = best ? row.find(*best) : nullptr;
      of_strategy.add(row);
      const auto samples = samples_of(varied.run.scenario, step.training);
      found.consider({&varied, &step, lasts, samples ? samples->samples / in_seconds(lasts) : 0,
                      figure != nullptr ? *figure : FieldValue(), does_not_fit(row)});
    }
    const std::size_t all = of_strategy.rows.size();
    for (std::size_t k = 0; k < keys.size(); ++k) join_alike(of_strategy.rows, k, keys.size());
    joined = joined || of_strategy.rows.size() < all;
    std::ranges::move(of_strategy.rows, std::back_inserter(table.rows));
  }
  if (best) sort_by(table, *best);
  std::vector<Field> perhaps_empty{fields::band_low_ms, fields::band_high_ms};
  perhaps_empty.insert(perhaps_empty.end(), throughput.begin(), throughput.end());
  for (const Field& field : perhaps_empty)
    if (!best || best->name != field.name) drop_if_empty(table, table.index_of(field));
  for (const RefusedRun& refused : variants.refused)
    table.add(keys_record(keys, refused.settings).add(fields::refusal, refused.problem));
  keep_what_does_not_fit(table);
  page.add(std::move(table));
  std::string notes =
      "exposed: how much longer the step is than without communication; "
      "wire: bytes that each rank hands to collectives";
  notes += has_comm_hooks(variants) ? "; hook: the comm hook's own kernels\n" : "\n";
  if (currencies.size() == 1) notes += fmt::format("costs in {}\n", *currencies.begin());
  if (joined) notes += "any: the key changes nothing under that strategy\n";
  if (averages) notes += in_the_long_run_text;
  if (best && best->name != fields::step_ms.name)
    notes += leader_line(fmt::format("best by {}{}", best->name,
                                     unpriced_clusters(*best, priced_points(variants)).empty()
                                         ? ""
                                         : " of the clusters with a price"),
                         found.first,
                         [&](const ComparedStep& of) { return cell_text(*best, of.figure); });
  notes += leader_line("shortest", found.shortest, [](const ComparedStep& of) {
    return fmt::format("{:.2f} ms", in_ms(of.lasting));
  });
  if (found.work_varies && found.most.any.rate > 0)
    notes += leader_line("most samples a second", found.most,
                         [](const ComparedStep& of) { return fmt::format("{:.1f}", of.rate); });
  page.add(Paragraph{notes});
  return page;
}

std::string varied_accuracy(const Variants& variants) {
  std::vector<std::pair<std::string, const VariedRun*>> kinds;  // each once, with its first
  bool some_unknown = false;
  for (const VariedRun& varied : variants.runs) {
    const std::string said = accuracy_sentences(varied.run);
    some_unknown = some_unknown || said.empty();
    if (said.empty()) continue;
    if (std::ranges::none_of(kinds, [&](const auto& kind) { return kind.first == said; }))
      kinds.emplace_back(said, &varied);
  }
  if (kinds.empty()) return "";
  const auto& [said, first] = kinds.front();
  if (kinds.size() == 1 && !some_unknown) return said;
  return fmt::format(
      "At {}: {} At other combinations it may be otherwise: step_low_ms and "
      "step_high_ms are the band of each.",
      short_label(first->settings), said);
}

List varied_records(const Variants& variants, const std::vector<Setting>& set) {
  List all;
  std::vector<std::string> of_all = network_notes(variants);
  add_each_once(of_all, ranks_notes_of(variants));
  add_each_once(of_all, price_notes(variants, set));
  for (const VariedRun& varied : variants.runs) {
    std::vector<std::string> notes = of_all;
    add_each_once(notes, notes_of(varied, set));
    add_each_once(notes, fit_notes(varied.run.priced));
    add_each_once(notes, run_warnings(varied.run));
    List results;
    for (const Result& result : varied.run.results())
      results.emplace_back(
          in_the_long_run(result_record(varied.run.scenario, result)
                              .add(throughput_record(varied.run.scenario, result))
                              .add(band_record(varied.run.knowledge, result.step->training.strategy,
                                               result.step->metrics, result.none->working(),
                                               least_step(varied.run.scenario))),
                          varied.run, result));
    all.emplace_back(run_record(varied.run.scenario, notes, std::move(results))
                         .add(fields::set, texts_of(varied.settings)));
  }
  for (const RefusedRun& refused : variants.refused)
    all.emplace_back(Record()
                         .add(fields::format, "ddpsim.run/1")
                         .add(fields::scenario, variants.runs.front().run.scenario.name)
                         .add(fields::notes, List{})
                         .add(fields::results, List{})
                         .add(fields::set, texts_of(refused.settings))
                         .add(fields::refusal, refused.problem));
  return all;
}

std::vector<std::string> network_notes(const Variants& variants) {
  // The networks in the order they appear, each with the NICs that a node has where it is used.
  std::vector<std::pair<std::string, std::set<int>>> networks;
  for (const VariedRun& varied : variants.runs) {
    const CalibratedCluster& cluster = varied.run.scenario.cluster;
    if (touches(varied.settings, "cluster.inter_node.nics")) return {};  // the user says how many
    if (cluster.nodes == 1 || is_priced_by_table(cluster)) continue;
    const std::string name = name_of_network(varied);
    auto found = std::ranges::find(networks, name, &std::pair<std::string, std::set<int>>::first);
    if (found == networks.end()) found = networks.insert(found, std::pair(name, std::set<int>{}));
    found->second.insert(nics_per_node(cluster));
  }
  const auto has_as_many = [&](const auto& network) {
    return network.second == networks.front().second;
  };
  if (std::ranges::all_of(networks, has_as_many)) return {};
  std::vector<std::string> each;
  for (const auto& [name, nics] : networks)
    each.push_back(fmt::format("{} has {}", name, fmt::join(nics, " or ")));
  return {fmt::format(
      "the networks differ in NICs of a node: {}; cluster.inter_node.nics makes them alike",
      fmt::join(each, ", "))};
}

std::vector<std::string> price_notes(const Variants& variants, const std::vector<Setting>& set) {
  // Prices of clusters' files are of those clusters; one that a device keeps is noted at its point.
  if (!is_set(set, "cluster.price")) return {};
  std::set<std::string> devices;
  const Price* price = nullptr;
  for (const VariedRun& varied : variants.runs) {
    const Scenario& scenario = varied.run.scenario;
    if (!scenario.price) return {};
    price = &*scenario.price;
    devices.insert(shown_name(scenario.cluster.device.name, "device"));
  }
  if (price == nullptr || devices.size() < 2) return {};
  // A mapping is a whole cluster, in which the scenario's `nodes` do not hold.
  const int nodes = variants.runs.front().run.scenario.cluster.nodes;
  return {fmt::format(
      "cluster.price, {:g} {} an hour, is taken for {} alike: give each a price of its own, such "
      "as --vary 'cluster={{system: dgx-a100, nodes: {}, price: 2 USD/h}},{{system: dgx-h100, "
      "nodes: {}, price: 4 USD/h}}'",
      price->per_hour, price->currency, enumerated({devices.begin(), devices.end()}), nodes,
      nodes)};
}

std::vector<std::string> varied_notes(const Variants& variants, const std::vector<Setting>& set) {
  PointNotes notes;
  for (const VariedRun& varied : variants.runs) {
    std::vector<std::string> here = notes_of(varied, set);
    if (const auto& others = varied.run.priced.others; !others.empty())
      here.push_back(carried_fit_note_at_point(others));
    notes.add(varied.settings, here);
  }
  for (const RefusedRun& refused : variants.refused) notes.add(refused.settings, {});
  return notes.lines(variants.runs.size() + variants.refused.size());
}

std::vector<std::string> memory_notes(const Variants& variants, const std::string& file,
                                      const std::vector<Setting>& set) {
  const VariedRun* least = nullptr;
  Bytes least_peak;
  for (const VariedRun& varied : variants.runs)
    for (const StepMemory& memory : varied.run.memories)
      if (least == nullptr || memory.peak < least_peak) {
        least = &varied;
        least_peak = memory.peak;
      }
  std::size_t steps = 0;
  std::vector<std::string> unfit;
  for (const VariedRun& varied : variants.runs) {
    steps += varied.run.compared.size();
    for (std::string& warning : memory_warnings(varied.run)) unfit.push_back(std::move(warning));
  }
  if (unfit.empty()) return {};
  std::vector<std::string> notes{
      fmt::format("{} of {} steps do not fit their device's memory and are predicted all the same; "
                  "the first: {}",
                  unfit.size(), steps, unfit.front())};
  if (unfit.size() == steps) {
    std::vector<Setting> settings = set;
    settings.insert(settings.end(), least->settings.begin(), least->settings.end());
    if (const std::string advice = memory_advice(file, settings); !advice.empty())
      notes.push_back(fmt::format("{}: {}", short_label(least->settings), advice));
  }
  return notes;
}

std::vector<std::string> notes_on_all(const Variants& variants, const std::string& file,
                                      const std::vector<Setting>& set,
                                      const std::optional<Field>& best) {
  std::vector<std::string> notes = network_notes(variants);
  add_each_once(notes, lost_accuracy_notes());
  add_each_once(notes, ranks_notes_of(variants));
  add_each_once(notes, price_notes(variants, set));
  if (best) add_each_once(notes, unpriced_notes(*best, priced_points(variants)));
  add_each_once(notes, varied_notes(variants, set));
  add_each_once(notes, memory_notes(variants, file, set));
  return notes;
}

Table varied_table(const Variants& variants, const std::optional<Field>& best) {
  Table table{run_columns()};
  table.columns.push_back(fields::set);
  table.columns.push_back(fields::refusal);
  for (const VariedRun& varied : variants.runs)
    for (const Result& result : varied.run.results())
      table.add(in_the_long_run(run_row(varied.run, result), varied.run, result)
                    .add(fields::set, texts_of(varied.settings)));
  if (best) sort_by(table, *best);
  for (const RefusedRun& refused : variants.refused)
    table.add(Record()
                  .add(fields::set, texts_of(refused.settings))
                  .add(fields::refusal, refused.problem));
  return table;
}

}  // namespace ddpsim
