#include "scenarios/reader/workload/profile_reader.hpp"

#include <limits>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "scenarios/reader/format/file_end.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/measured/doubts.hpp"
#include "scenarios/reader/measured/measured_reader.hpp"

namespace ddpsim {
namespace {

Kernel timed_kernel(const std::string& name, Duration time) {
  Kernel kernel;
  kernel.name = name;
  kernel.time = time;
  return kernel;
}

/// By which share of the backward pass a gradient may be ready late: figures are rounded for print.
constexpr double rounding = 1e-3;

/// When an unused parameter is ready, until the profile is read: as the backward pass ends.
constexpr Duration at_the_end = Duration::max();

void finish_profiled_parameter(ProfiledParameter& parameter, const YamlMap& map) {
  if (const auto rows = map.find("rows"); rows && !parameter.sparse)
    rows->fail("rows are a sparse gradient's: say sparse: true");
  if (map.has("ready")) return;
  if (!parameter.unused) map.at("ready");
  parameter.ready = at_the_end;
}

const Map<ProfiledParameter>& profiled_parameter_map() {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  static const auto map =
      Map<ProfiledParameter>("profiled_parameter", "A parameter and when its gradient is ready.")
          .key("name", value::text("a name"), &ProfiledParameter::name,
               {.meaning = "Its name, as named_parameters() spells it.",
                .example = "0.weight",
                .required = true})
          .key("shape",
               value::list_of(value::whole<std::int64_t>(1, most),
                              "a list of whole numbers, such as [1024, 1024]"),
               &ProfiledParameter::shape,
               {.meaning = "Its shape.", .example = "[1024, 1024]", .required = true})
          .key("dtype", value::one_of(stored_dtypes), &ProfiledParameter::dtype,
               {.meaning = "How it and its gradient are stored.", .always_written = true})
          .key(
              "sparse", value::boolean(), &ProfiledParameter::sparse,
              {.meaning = "Whether its gradient is sparse, as an embedding's may be: it is reduced "
                          "by itself."})
          .key("rows", value::whole<std::int64_t>(1, most), &ProfiledParameter::sparse_rows,
               {.meaning = "How many rows a sparse gradient sends.",
                .otherwise = "all of them",
                .example = "512"})
          .key("unused", value::boolean(), &ProfiledParameter::unused,
               {.meaning = "Whether no gradient reaches it in this step."})
          .key("ready", value::time_or_zero(), &ProfiledParameter::ready,
               {.meaning = "When its gradient is ready, from the start of the backward pass.",
                .otherwise = "needed, unless the parameter is unused",
                .example = "150.3 ms",
                .always_written = true})
          .needs_also({{.key = "ready"}, {.key = "unused", .value = {value::word("true")}}})
          .check(finish_profiled_parameter);
  return map;
}

const Map<BufferGroup>& profiled_buffers_map() {
  static const auto map =
      Map<BufferGroup>("profiled_buffers",
                       "Tensors of one type that are not trained but kept alike on all ranks.")
          .key("tensors", value::whole(1, 1'000'000), &BufferGroup::tensors,
               {.meaning = "How many there are.", .example = "106", .required = true})
          .key("bytes", value::whole<std::int64_t>(1, std::int64_t{1} << 40),
               [](auto& group) -> auto& { return group.size.count; },
               {.meaning = "How many bytes they have together.",
                .example = "212992",
                .required = true});
  return map;
}

/// What the keys of a profile say together.
void finish_profile(WorkloadProfile& profile, const YamlMap& map) {
  if (profile.optimizer == Duration::zero()) profile.optimizer.reset();
  const Yaml parameters = *map.find("parameters");
  if (profile.parameters.empty()) parameters.fail("expected at least one parameter");
  for (std::size_t i = 0; i < profile.parameters.size(); ++i) {
    Duration& ready = profile.parameters[i].ready;
    if (ready == at_the_end) ready = profile.backward;
    if (ready > profile.backward && ready <= scaled(profile.backward, 1 + rounding))
      ready = profile.backward;
    if (ready > profile.backward)
      YamlMap(parameters.list("")[i])
          .find("ready")
          ->fail(fmt::format(
              "a gradient cannot be ready after the backward pass has ended ({:.6f} ms)",
              in_ms(profile.backward)));
  }
  if (const auto arrival = map.find("arrival"))
    for (const Yaml& index : arrival->list("a list of parameter indices"))
      profile.arrival.push_back(static_cast<int>(
          index.integer(0, static_cast<std::int64_t>(profile.parameters.size()) - 1)));
}

/// Parameter indices. Which there are is not known before all keys are read: finish_profile takes
/// them.
Value<std::vector<int>> arrival_value() {
  auto value = value::list_of(value::whole(0, std::numeric_limits<int>::max()), "");
  value.read = [](const Yaml&) { return std::vector<int>{}; };
  return value;
}

Map<WorkloadProfile> make_profile_map() {
  Map<WorkloadProfile> map("workload_profile",
                           "What one process measured of its own training step: it stands where a "
                           "model of the catalogue stands.");
  map.key_constant("format", "ddpsim.workload/1",
                   {.meaning = "Marks the file as a workload profile.",
                    .example = "ddpsim.workload/1",
                    .required = true});
  add_written_by(map);
  map.key("source", value::text(), &WorkloadProfile::source,
          {.meaning = "What was measured, where and when.",
           .example = "torch 2.11, H200, bf16, batch 8, 2026-11-20"})
      .key("forward", value::time(), &WorkloadProfile::forward,
           {.meaning = "How long the forward pass takes.", .example = "60.1 ms", .required = true})
      .key(
          "backward", value::time(), &WorkloadProfile::backward,
          {.meaning = "How long the backward pass takes.", .example = "150.3 ms", .required = true})
      .key("optimizer", value::time_or_zero(), &WorkloadProfile::optimizer,
           {.meaning = "How long the optimizer takes.",
            .otherwise = "there is none",
            .example = "12.0 ms"})
      .key("copy_back", value::time(), &WorkloadProfile::copy_back,
           {.meaning = "By how much copying one gradient out of its bucket, once it is reduced, "
                       "lengthens a step: the device's time, or the host's where the host is "
                       "behind.",
            .otherwise = "by the device's memory bandwidth",
            .example = "109 us"})
      .key("outside", value::time_or_zero(), &WorkloadProfile::outside,
           {.meaning = "What a step spends outside of its passes, the device idle: logging, "
                       "loading data.",
            .example = "0.4 ms"})
      .key("step_spread", value::number(0, 1), &WorkloadProfile::step_spread,
           {.meaning = "The standard deviation of a rank's computation from one step to the next, "
                       "as a share of it. Of several ranks the slowest sets the pace.",
            .example = "0.02"});
  add_doubts(map, &WorkloadProfile::doubts);
  map.key("parameters",
          value::list_of(value::mapping(&profiled_parameter_map),
                         "a list of parameters in registration order"),
          &WorkloadProfile::parameters,
          {.meaning = "The parameters in registration order.",
           .example = "[{name: 0.weight, shape: [1024, 1024], dtype: fp32, ready: 150.3 ms}]",
           .required = true,
           .remark = "in registration order; ready: from the start of backward"})
      .key("buffers",
           value::list_of(value::mapping(&profiled_buffers_map),
                          "a list of {tensors, bytes}, one for each type"),
           &WorkloadProfile::buffers,
           {.meaning = "The buffers that are broadcast before each forward pass, by type.",
            .otherwise = "there are none",
            .example = "[{tensors: 106, bytes: 212992}]",
            .remark = "of one type each"})
      .key("arrival", arrival_value(), &WorkloadProfile::arrival,
           {.meaning = "The order in which the parameters' hooks fired: every index once.",
            .otherwise = "by `ready`, of several at once the last registered first",
            .example = "[1, 0]"})
      .key("measured", measured_value(), &WorkloadProfile::measured,
           {.meaning = "What runs of several ranks showed. It is the scenario's `measured` unless "
                       "the scenario has one of its own.",
            .otherwise = "nothing was measured",
            .example = "{rows: [{strategy: naive, step: 531.7 ms}]}"})
      .check(finish_profile);
  add_end(map, "ddpsim.workload/1");
  return map;
}

}  // namespace

const Map<WorkloadProfile>& workload_profile_map() {
  static const Map<WorkloadProfile> map = make_profile_map();
  return map;
}

WorkloadProfile read_workload_profile(const Yaml& given) {
  const YamlMap map(given);
  check_end_if_written(map, map.at("format"));
  WorkloadProfile profile = workload_profile_map().read(given);
  try {
    check(workload_of(profile, std::filesystem::path(given.file()).stem().string()));
  } catch (const std::invalid_argument& problem) {
    map.at("parameters").fail(problem.what());
  }
  return profile;
}

Workload workload_of(const WorkloadProfile& profile, const std::string& name) {
  Workload workload;
  workload.name = name;
  workload.source = profile.source;
  workload.optimizer = profile.optimizer;
  workload.copy_back = profile.copy_back;
  workload.outside = profile.outside;
  workload.step_spread = profile.step_spread;
  workload.doubts = profile.doubts;
  workload.arrival = profile.arrival;
  workload.buffers = profile.buffers;

  // One kernel per distinct instant, and one for what is left of backward.
  std::map<Duration, int> instants;
  for (const ProfiledParameter& each : profile.parameters) instants.emplace(each.ready, 0);
  Layer layer;
  layer.name = "profile";
  layer.forward.push_back(timed_kernel("forward", profile.forward));
  Duration before{};
  for (auto& [instant, index] : instants) {
    index = static_cast<int>(layer.backward.size());
    layer.backward.push_back(timed_kernel(fmt::format("backward.{}", index), instant - before));
    before = instant;
  }
  if (profile.backward > before)
    layer.backward.push_back(timed_kernel("backward.rest", profile.backward - before));
  workload.layers.push_back(std::move(layer));
  for (const ProfiledParameter& each : profile.parameters) {
    Parameter& parameter = workload.parameters.emplace_back();
    parameter.name = each.name;
    parameter.shape = each.shape;
    parameter.dtype = each.dtype;
    parameter.sparse = each.sparse;
    parameter.sparse_rows = each.sparse_rows;
    parameter.unused = each.unused;
    parameter.ready_after = instants.at(each.ready);
  }
  return workload;
}

}  // namespace ddpsim
