#include "scenarios/profile_reader.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

struct TimedParameter {
  Parameter parameter;
  Duration ready{};
};

TimedParameter read_parameter(const Yaml& given, Duration backward) {
  TimedParameter timed;
  YamlMap map(given);
  timed.parameter.name = map.required("name").text("a name");
  for (const Yaml& extent :
       map.required("shape").list("a list of whole numbers, such as [1024, 1024]"))
    timed.parameter.shape.push_back(extent.integer(1, std::int64_t{1} << 40));
  if (const auto value = map.optional("dtype"))
    timed.parameter.dtype = value->one_of<DType>(all_dtypes);
  if (const auto value = map.optional("sparse")) timed.parameter.sparse = value->boolean();
  const Yaml ready = map.required("ready");
  timed.ready = ready.duration_or_zero();
  if (timed.ready > backward)
    ready.fail(fmt::format("a gradient cannot be ready after the backward pass has ended ({})",
                           to_string(backward)));
  map.finish();
  return timed;
}

Kernel timed_kernel(const std::string& name, Duration time) {
  Kernel kernel;
  kernel.name = name;
  kernel.time = time;
  return kernel;
}

}  // namespace

Workload read_profile(const Entry& entry) {
  YamlMap map(entry.yaml);
  const Yaml format = map.required("format");
  if (format.text("ddpsim.workload/1") != "ddpsim.workload/1")
    format.fail("expected ddpsim.workload/1");
  Workload workload;
  workload.name = entry.name;
  if (const auto source = map.optional("source")) workload.source = source->text("a text");
  const Duration forward = map.required("forward").duration();
  const Duration backward = map.required("backward").duration();
  if (const auto value = map.optional("optimizer")) workload.optimizer = value->duration();

  const Yaml parameters = map.required("parameters");
  std::vector<TimedParameter> timed;
  for (const Yaml& item : parameters.list("a list of parameters in registration order"))
    timed.push_back(read_parameter(item, backward));
  if (timed.empty()) parameters.fail("expected at least one parameter");

  // One kernel per distinct instant, and one for what is left of backward.
  std::map<Duration, int> instants;
  for (const TimedParameter& each : timed) instants.emplace(each.ready, 0);
  Layer layer;
  layer.name = "profile";
  layer.forward.push_back(timed_kernel("forward", forward));
  Duration before{};
  for (auto& [instant, index] : instants) {
    index = static_cast<int>(layer.backward.size());
    layer.backward.push_back(timed_kernel(fmt::format("backward.{}", index), instant - before));
    before = instant;
  }
  if (backward > before) layer.backward.push_back(timed_kernel("backward.rest", backward - before));
  workload.layers.push_back(std::move(layer));
  for (TimedParameter& each : timed) {
    each.parameter.ready_after = instants.at(each.ready);
    workload.parameters.push_back(std::move(each.parameter));
  }
  if (const auto arrival = map.optional("arrival"))
    for (const Yaml& index : arrival->list("a list of parameter indices"))
      workload.arrival.push_back(
          static_cast<int>(index.integer(0, static_cast<std::int64_t>(timed.size()) - 1)));
  map.finish();
  try {
    check(workload);
  } catch (const std::invalid_argument& problem) {
    parameters.fail(problem.what());
  }
  return workload;
}

}  // namespace ddpsim
