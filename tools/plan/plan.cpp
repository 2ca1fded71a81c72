#include "tools/plan/plan.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "model/parallel/memory/peak_memory.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/parallel.hpp"
#include "tools/plan/ways.hpp"
#include "tools/report/records/plan_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/cluster_notes.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/said_notes.hpp"
#include "tools/report/reports/throughput_report.hpp"
#include "tools/study/carried_fit.hpp"
#include "tools/study/comparison.hpp"
#include "tools/study/file_notes.hpp"
#include "tools/study/names.hpp"
#include "tools/study/point_notes.hpp"
#include "tools/study/throughput.hpp"
#include "tools/study/wrapping.hpp"
#include "tools/study/zero_code.hpp"

namespace ddpsim {
namespace {

using Settings = std::vector<Setting>;

/// Batches that nobody listed grow no further.
constexpr int largest_grown_batch = 4096;

Settings joined(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

/// A scenario that has, or may have, another number of GPUs. Throws InputError.
class Sizes {
 public:
  Sizes(const PlanRequest& request, const Scenario& base) : request_(request), base_(base) {
    if (!request.gpus.empty() && !base.cluster.ranks_per_node.equal())
      throw InputError(fmt::format(
          "--gpus: the nodes here have {} ranks, and a plan is of nodes that are alike: say how "
          "many each has, such as --ranks-per-node {}",
          to_string(base.cluster.ranks_per_node), base.cluster.ranks_per_node.largest()));
  }

  std::vector<PlannedSize> all() const {
    if (request_.gpus.empty())
      return {{base_.cluster.ranks(),
               base_.cluster.ranks_per_node.equal() ? base_.cluster.nodes : 1,
               {}}};
    std::vector<PlannedSize> sizes;
    for (const int gpus : request_.gpus) sizes.push_back(of(gpus));
    return sizes;
  }

 private:
  PlannedSize of(int gpus) const {
    const int each = base_.cluster.ranks_per_node.largest();
    if (gpus > each && gpus % each != 0)
      throw InputError(
          fmt::format("--gpus {}: a node has {} here, and these are no whole nodes: write a "
                      "multiple of {}, or fewer than {}",
                      gpus, each, each, each));
    const std::string written = fmt::format("--gpus {}", gpus);
    const Setting nodes{"cluster.nodes", fmt::format("{}", std::max(1, gpus / each)), written};
    const Setting ranks{"cluster.ranks_per_node", fmt::format("{}", std::min(gpus, each)), written};
    const auto makes = [&](const Settings& settings) {
      try {
        return read_scenario(request_.file, joined(request_.set, settings)).cluster.ranks() == gpus;
      } catch (const InputError& problem) {
        throw InputError(
            fmt::format("{}, as nodes of {}: {}", written, std::min(gpus, each), problem.what()));
      }
    };
    const int count = std::max(1, gpus / each);
    if (gpus >= each && makes({nodes})) return {gpus, count, {nodes}};
    if (makes({nodes, ranks})) return {gpus, count, {nodes, ranks}};
    throw InputError(
        fmt::format("{}: the cluster of {} cannot be made so large", written, request_.file));
  }

  const PlanRequest& request_;
  const Scenario& base_;
};

/// Is it known what all of a step takes, and what the device has?
bool knows_memory(const Scenario& scenario) {
  if (scenario.cluster.device.memory <= Bytes{}) return false;
  Training training = scenario.training;
  training.strategy = Strategy::none;
  const StepWorks works(scenario.workload, scenario.cluster, scenario.optimizer);
  return step_memory(scenario.workload, scenario.optimizer, training,
                     plan_step(works, training).job)
      .is_whole();
}

/// The batches to try, the smallest first.
struct Batches {
  std::vector<int> sizes;
  bool grow = false;     ///< up to the first that does not fit
  bool as_read = false;  ///< the scenario's own: no setting says it
};

Batches batches_of(const PlanRequest& request, const Scenario& base) {
  const bool is_set = is_said(request.set, "workload.batch");
  const bool is_fixed = base.described || base.batch == 0;
  if (!request.batches.empty() && is_fixed)
    throw InputError(fmt::format(
        "--batches: {} was {} with one batch{}: take the flag out, or {} the model with another",
        shown_name(base.workload.name, "model"), base.described ? "described" : "measured",
        base.described ? fmt::format(" ({})", base.batch) : "",
        base.described ? "describe" : "measure"));
  if (!request.batches.empty() && is_set)
    throw InputError("--batches says which are tried: leave workload.batch out of --set");
  if (!request.batches.empty()) {
    Batches batches{request.batches};
    std::ranges::sort(batches.sizes);
    return batches;
  }
  if (is_fixed || is_set || !knows_memory(base)) return {.sizes = {base.batch}, .as_read = true};
  std::set<int> sizes{base.batch};
  for (int size = 1; size <= largest_grown_batch; size *= 2) sizes.insert(size);
  return {.sizes = {sizes.begin(), sizes.end()}, .grow = true};
}

/// Tokens, samples or micro-batches that all ranks together do in a step.
double planned_work_of(const Scenario& scenario, const Training& training) {
  const auto samples = samples_of(scenario, training);
  if (!samples) return static_cast<double>(training.micro_batches) * scenario.cluster.ranks();
  return samples->tokens.value_or(samples->samples);
}

PlannedRate planned_rate_of(const Scenario& scenario) {
  if (scenario.batch == 0) return PlannedRate::micro_batches;
  return scenario.sequence > 0 ? PlannedRate::tokens : PlannedRate::samples;
}

/// The step without communication that a strategy's is held against, as `run` does.
StepMetrics without_communication(const StepModel& model, const Training& training) {
  return predict(model, training.compared_with()).metrics;
}

/// What a step is found to be, as far as it was simulated.
class Tried {
 public:
  Tried(const Scenario& scenario, PlanCandidate& candidate)
      : scenario_(scenario), candidate_(candidate) {
    const CalibratedCluster& cluster = scenario.cluster;
    candidate.batch = scenario.batch;
    found_.add(fields::strategy, name_of(scenario.training.strategy))
        .add(fields::result_label, strategy_label(scenario.training))
        .add(fields::batch, scenario.batch > 0 ? FieldValue(scenario.batch) : FieldValue())
        .add(fields::ranks, cluster.ranks())
        .add(fields::nodes, cluster.nodes)
        .add(fields::ranks_per_node, ranks_value(cluster.ranks_per_node));
  }

  void take(const StepMemory& memory) {
    const Bytes device = scenario_.cluster.device.memory;
    candidate_.peak = memory.peak;
    candidate_.reserves_too_much = reserves_too_much(scenario_, memory);
    found_.add(fields::peak_memory_bytes, memory.peak.count);
    if (device > Bytes{})
      found_.add(fields::peak_of_device,
                 static_cast<double>(memory.peak.count) / static_cast<double>(device.count));
    if (device > Bytes{} && !fits(memory.peak, device)) {
      candidate_.verdict = Verdict::too_large;
      found_.add(fields::fits_device, false);
    } else {
      candidate_.verdict = device > Bytes{} && memory.is_whole() ? Verdict::fits : Verdict::unknown;
    }
  }

  void take(const CalibratedModel& priced, const Step& step, const StepMemory& memory) {
    const StepMetrics none = without_communication(priced.model, scenario_.training);
    const auto averaged = averaged_step(priced.model, step);
    const Duration lasts = averaged ? averaged->mean : step.metrics.step;
    const Result result{.step = &step, .none = &none, .memory = &memory};
    found_.add(fields::step_ms, in_ms(lasts))
        .add(fields::communication_ms, in_ms(step.metrics.communication))
        .add(fields::exposed_ms, in_ms(exposed(step.metrics, none) + lasts - step.metrics.step))
        .add(fields::bound, name_of(step.metrics.bound))
        .add(band_record(knowledge_of(scenario_, priced), scenario_.training.strategy, step.metrics,
                         none.working(), least_step(scenario_), lasts - step.metrics.step))
        .add(throughput_record(scenario_, result, lasts));
    const double work = planned_work_of(scenario_, scenario_.training);
    candidate_.rate = work / in_seconds(lasts);
    candidate_.device_seconds = scenario_.cluster.ranks() / candidate_.rate;
  }

  const Record& found() const { return found_; }

 private:
  const Scenario& scenario_;
  PlanCandidate& candidate_;
  Record found_;
};

/// All columns, in their order.
Record whole_record(const Record& found) {
  Record record;
  for (const Field& column : candidate_columns()) {
    const FieldValue* value = found.find(column);
    record.add(column, value == nullptr ? FieldValue() : *value);
  }
  return record;
}

/// Fills in what is not chosen of a candidate.
void try_candidate(const PlanRequest& request, const PlannedWay& way, PlanCandidate& candidate) {
  Record found;
  const auto refuse = [&](const char* problem) {
    candidate.verdict = Verdict::refused;
    candidate.error = printable(problem);
    found = {};
    found.add(fields::strategy, name_of(way.strategy)).add(fields::refusal, candidate.error);
  };
  try {
    Settings settings = joined(request.set, candidate.settings);
    settings.emplace_back("compare", fmt::format("[{}]", name_of(way.strategy)));
    const Scenario scenario = read_scenario(request.file, settings);
    const CalibratedModel priced = price_calibrated(scenario, request.laws_only);
    const auto planned =
        std::make_shared<const PlannedStep>(plan_step(priced.model.works, scenario.training));
    const StepMemory memory =
        step_memory(scenario.workload, scenario.optimizer, scenario.training, planned->job);
    candidate.others = priced.others;
    Tried tried(scenario, candidate);
    tried.take(memory);
    if (candidate.is_simulated())
      tried.take(priced, predict(priced.model.costs, scenario.training, planned), memory);
    if (candidate.is_simulated() && way.strategy == Strategy::fsdp) {
      candidate.sharding = scenario.training;
      candidate.code = fully_shard_code(scenario);
    }
    if (candidate.is_simulated() && scenario.training.zero() != nullptr)
      candidate.options = zero_code(scenario.training);
    found = tried.found();
  } catch (const InputError& problem) {
    refuse(problem.what());
  } catch (const std::invalid_argument& problem) {  // a law refuses what the scenario asks of it
    refuse(problem.what());
  }
  Texts chosen;
  for (const Setting& setting : candidate.settings) chosen.emplace_back(setting.key, setting.value);
  candidate.figures = whole_record(found.add(fields::chosen_settings, std::move(chosen)));
}

/// One way on one number of GPUs, with growing batches.
std::vector<PlanCandidate> try_batches(const PlanRequest& request, const TrainingPlan& plan,
                                       const Batches& batches, std::size_t size, std::size_t way) {
  std::vector<PlanCandidate> tried;
  const std::optional<Settings> chosen = settings_at(plan.ways[way], plan.sizes[size]);
  if (!chosen) return tried;
  for (const int batch : batches.sizes) {
    PlanCandidate& candidate = tried.emplace_back();
    candidate.size = size;
    candidate.way = way;
    candidate.batch = batch;
    candidate.settings = joined(plan.sizes[size].settings, *chosen);
    if (!batches.as_read) {
      const std::string text = fmt::format("{}", batch);
      candidate.settings.emplace_back("workload.batch", text, "--batches " + text);
    }
    try_candidate(request, plan.ways[way], candidate);
    const bool ends = candidate.verdict == Verdict::refused ||
                      (batches.grow && candidate.verdict != Verdict::fits);
    if (ends) break;
  }
  return tried;
}

/// Candidates of each size and way, in the order of plan.sizes and, within, of plan.ways.
class Chains {
 public:
  Chains(const PlanRequest& request, const TrainingPlan& plan, const Batches& batches,
         const std::function<void(double)>& watch)
      : request_(request),
        plan_(plan),
        batches_(batches),
        watch_(watch),
        tried_(plan.sizes.size() * plan.ways.size()) {
    try_all([](const PlannedWay& way) { return !way.between; });
    try_all([](const PlannedWay& way) { return way.between.has_value(); });
  }

  std::vector<std::vector<PlanCandidate>>& all() { return tried_; }

 private:
  /// All ways of a kind.
  template <typename Kind>
  void try_all(Kind&& is_kind) {
    std::vector<std::size_t> chains;
    for (std::size_t chain = 0; chain < tried_.size(); ++chain)
      if (is_kind(plan_.ways[way_of(chain)])) chains.push_back(chain);
    parallel_for(chains.size(), allowed_cores(), [&](int, std::size_t i) {
      const std::size_t chain = chains[i];
      tried_[chain] =
          try_batches(request_, plan_, batches_at(chain), size_of(chain), way_of(chain));
      const std::lock_guard lock(guard_);
      if (watch_) watch_(static_cast<double>(++done_) / static_cast<double>(tried_.size()));
    });
  }

  /// The batches to try. A way between two others has those that the one with more memory left has
  /// alone.
  Batches batches_at(std::size_t chain) const {
    const auto& between = plan_.ways[way_of(chain)].between;
    if (!between) return batches_;
    const std::size_t first = size_of(chain) * plan_.ways.size();
    const auto fits = [&](std::size_t way, int batch) {
      return std::ranges::any_of(tried_[first + way], [&](const PlanCandidate& each) {
        return each.batch == batch && each.verdict == Verdict::fits;
      });
    };
    Batches left{.sizes = {}, .grow = batches_.grow, .as_read = batches_.as_read};
    for (const int batch : batches_.sizes)
      if (fits(between->more, batch) && !fits(between->less, batch)) left.sizes.push_back(batch);
    return left;
  }

  std::size_t size_of(std::size_t chain) const { return chain / plan_.ways.size(); }
  std::size_t way_of(std::size_t chain) const { return chain % plan_.ways.size(); }

  const PlanRequest& request_;
  const TrainingPlan& plan_;
  const Batches& batches_;
  const std::function<void(double)>& watch_;
  std::vector<std::vector<PlanCandidate>> tried_;
  std::mutex guard_;
  std::size_t done_ = 0;
};

/// The simulated ones, the quickest first; then those that are too large, then the refused ones.
void sort_candidates(std::vector<PlanCandidate>& candidates) {
  const auto order = [](const PlanCandidate& each) {
    const int group = each.is_simulated() ? 0 : each.verdict == Verdict::too_large ? 1 : 2;
    return std::tuple(group, -each.rate);
  };
  std::ranges::stable_sort(candidates, {}, order);
}

void number_candidates(TrainingPlan& plan) {
  const auto put = [&](std::size_t index, const Field& field, std::size_t place) {
    for (NamedValue& entry : plan.candidates[index].figures.entries)
      if (entry.field->name == field.name) entry.value = place + 1;
  };
  const std::vector<std::size_t> cheapest = plan.cheapest();
  for (std::size_t place = 0; place < cheapest.size(); ++place) {
    put(place, fields::place, place);
    put(cheapest[place], fields::cost_place, place);
  }
}

/// What is said of the scenario at each of the sizes.
std::vector<std::string> notes_at_sizes(const PlanRequest& request, const TrainingPlan& plan) {
  PointNotes of_sizes;
  for (const PlannedSize& size : plan.sizes) {
    const Settings settings = joined(request.set, size.settings);
    const Scenario scenario = read_scenario(request.file, settings);
    of_sizes.add(size.settings, cluster_notes(scenario, settings));
  }
  return of_sizes.lines(plan.sizes.size());
}

/// Where measured rows were fitted to steps that they are not of.
std::vector<std::string> notes_on_fits(const TrainingPlan& plan) {
  PointNotes of_candidates;
  for (std::size_t index = 0; index < plan.simulated(); ++index) {
    const PlanCandidate& candidate = plan.candidates[index];
    std::vector<std::string> notes;
    if (!candidate.others.empty()) notes.push_back(carried_fit_note_at_point(candidate.others));
    of_candidates.add(candidate.settings, notes);
  }
  return of_candidates.lines(plan.simulated());
}

/// Of steps that fit, but not with what PyTorch's allocator keeps around them; "": there is none.
std::string note_on_pools(const TrainingPlan& plan) {
  const auto end = plan.candidates.begin() + static_cast<std::ptrdiff_t>(plan.simulated());
  const auto is_so = std::mem_fn(&PlanCandidate::reserves_too_much);
  const auto first = std::find_if(plan.candidates.begin(), end, is_so);
  if (first == end) return "";
  return fmt::format(
      "of {} of the {} steps that fit, the first in place {}, PyTorch's allocator would reserve "
      "more than {} has: {}; `ddpsim run` says how much",
      std::count_if(first, end, is_so), plan.simulated(), first - plan.candidates.begin() + 1,
      shown_name(plan.scenario.cluster.device.name, "device"), full_pools);
}

std::vector<std::string> notes_on(const PlanRequest& request, const TrainingPlan& plan) {
  std::vector<std::string> notes;
  add_each_once(notes, file_notes(request.file, request.set));
  add_each_once(notes, lost_accuracy_notes());
  add_each_once(notes, notes_at_sizes(request, plan));
  add_each_once(notes, notes_on_fits(plan));
  if (std::string note = note_on_pools(plan); !note.empty()) notes.push_back(std::move(note));
  if (std::ranges::any_of(plan.candidates, [](const PlanCandidate& each) {
        return each.verdict == Verdict::unknown;
      }))
    notes.push_back(
        plan.scenario.cluster.device.memory <= Bytes{}
            ? "the memory of the device is not known: nothing here is said to fit it, and larger "
              "batches than the scenario's are not tried unless --batches lists them"
            : "activations, or the optimizer's state, are not known here: a step is said not to "
              "fit where the rest is too much, and none is said to fit");
  if (plan.scenario.described || plan.scenario.batch == 0)
    notes.push_back(fmt::format(
        "batches are not varied: {} was {}", shown_name(plan.scenario.workload.name, "model"),
        plan.scenario.described
            ? fmt::format("described with a batch of {}: describe it again with another",
                          plan.scenario.batch)
            : "measured with one, and does not say which"));
  if (plan.batches_end > 0)
    notes.push_back(
        fmt::format("batches of more than {} were not tried, and may fit: --batches lists others",
                    plan.batches_end));
  return notes;
}

}  // namespace

std::size_t TrainingPlan::simulated() const {
  return static_cast<std::size_t>(std::ranges::count_if(candidates, &PlanCandidate::is_simulated));
}

std::vector<std::size_t> TrainingPlan::cheapest() const {
  std::vector<std::size_t> order(simulated());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t index) { return candidates[index].device_seconds; });
  return order;
}

TrainingPlan make_plan(const PlanRequest& request, const std::function<void(double)>& watch) {
  const Scenario base = read_scenario(request.file, request.set);
  TrainingPlan plan;
  plan.set = request.set;
  plan.rate = planned_rate_of(base);
  plan.sizes = Sizes(request, base).all();
  plan.ways = ways_of(request, base, plan.sizes);
  const Batches batches = batches_of(request, base);
  const auto largest = std::ranges::max_element(plan.sizes, {}, &PlannedSize::ranks);
  plan.scenario = read_scenario(request.file, joined(request.set, largest->settings));
  plan.knowledge = knowledge_of(plan.scenario, price_calibrated(plan.scenario, request.laws_only));

  Chains chains(request, plan, batches, watch);
  for (std::vector<PlanCandidate>& chain : chains.all()) {
    if (chain.empty()) continue;
    const PlanCandidate& last = chain.back();
    if (batches.grow && !plan.ways[last.way].between && last.verdict == Verdict::fits)
      plan.batches_end = last.batch;
    std::ranges::move(chain, std::back_inserter(plan.candidates));
  }
  sort_candidates(plan.candidates);
  if (plan.candidates.front().verdict == Verdict::refused)
    throw InputError(plan.candidates.front().error);
  number_candidates(plan);
  plan.notes = notes_on(request, plan);
  return plan;
}

const std::vector<Field>& candidate_columns() {
  static const std::vector<Field> columns = [] {
    std::vector<Field> all{fields::place,
                           fields::cost_place,
                           fields::chosen_settings,
                           fields::ranks,
                           fields::nodes,
                           fields::ranks_per_node,
                           fields::strategy,
                           fields::result_label,
                           fields::batch,
                           fields::step_ms,
                           fields::communication_ms,
                           fields::exposed_ms,
                           fields::bound,
                           fields::band_low_ms,
                           fields::band_high_ms,
                           fields::known_from,
                           fields::peak_memory_bytes,
                           fields::peak_of_device};
    // One rank and one node by themselves are not simulated.
    for (const Field* field : fields::of_throughput)
      if (field != &fields::scaling_efficiency && field != &fields::scaling_efficiency_node)
        all.push_back(*field);
    all.push_back(fields::refusal);
    return all;
  }();
  return columns;
}

}  // namespace ddpsim
