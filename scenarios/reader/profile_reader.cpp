#include "scenarios/reader/profile_reader.hpp"

#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "scenarios/reader/measured_reader.hpp"

namespace ddpsim {
namespace {

ProfiledParameter read_parameter(const Yaml& given, Duration backward) {
  ProfiledParameter timed;
  YamlMap map(given);
  timed.name = map.required("name").text("a name");
  for (const Yaml& extent :
       map.required("shape").list("a list of whole numbers, such as [1024, 1024]"))
    timed.shape.push_back(extent.integer(1, std::int64_t{1} << 40));
  if (const auto value = map.optional("dtype")) timed.dtype = value->one_of<DType>(all_dtypes);
  if (const auto value = map.optional("sparse")) timed.sparse = value->boolean();
  if (const auto rows = map.optional("rows")) {
    if (!timed.sparse) rows->fail("rows are a sparse gradient's: say sparse: true");
    timed.sparse_rows = rows->integer(1, std::int64_t{1} << 40);
  }
  if (const auto value = map.optional("unused")) timed.unused = value->boolean();
  const auto ready = timed.unused ? map.optional("ready") : map.required("ready");
  timed.ready = ready ? ready->duration_or_zero() : backward;
  if (timed.ready > backward)
    ready->fail(fmt::format("a gradient cannot be ready after the backward pass has ended ({})",
                            to_string(backward)));
  map.finish();
  return timed;
}

BufferGroup read_buffers(const Yaml& given) {
  BufferGroup group;
  YamlMap map(given);
  group.tensors = static_cast<int>(map.required("tensors").integer(1, 1'000'000));
  group.size = Bytes{map.required("bytes").integer(1, std::int64_t{1} << 40)};
  map.finish();
  return group;
}

Kernel timed_kernel(const std::string& name, Duration time) {
  Kernel kernel;
  kernel.name = name;
  kernel.time = time;
  return kernel;
}

}  // namespace

WorkloadProfile read_workload_profile(const Yaml& given) {
  YamlMap map(given);
  const Yaml format = map.required("format");
  if (format.text("ddpsim.workload/1") != "ddpsim.workload/1")
    format.fail("expected ddpsim.workload/1");
  WorkloadProfile profile;
  if (const auto source = map.optional("source")) profile.source = source->text("a text");
  profile.forward = map.required("forward").duration();
  profile.backward = map.required("backward").duration();
  if (const auto value = map.optional("optimizer")) profile.optimizer = value->duration();
  if (const auto value = map.optional("step_spread")) profile.step_spread = value->number(0, 1);

  const Yaml parameters = map.required("parameters");
  for (const Yaml& item : parameters.list("a list of parameters in registration order"))
    profile.parameters.push_back(read_parameter(item, profile.backward));
  if (profile.parameters.empty()) parameters.fail("expected at least one parameter");
  if (const auto buffers = map.optional("buffers"))
    for (const Yaml& item : buffers->list("a list of {tensors, bytes}, one for each type"))
      profile.buffers.push_back(read_buffers(item));
  if (const auto arrival = map.optional("arrival"))
    for (const Yaml& index : arrival->list("a list of parameter indices"))
      profile.arrival.push_back(static_cast<int>(
          index.integer(0, static_cast<std::int64_t>(profile.parameters.size()) - 1)));
  if (const auto measured = map.optional("measured")) profile.measured = read_measured(*measured);
  map.finish();
  try {
    check(workload_of(profile, std::filesystem::path(given.file()).stem().string()));
  } catch (const std::invalid_argument& problem) {
    parameters.fail(problem.what());
  }
  return profile;
}

Workload workload_of(const WorkloadProfile& profile, const std::string& name) {
  Workload workload;
  workload.name = name;
  workload.source = profile.source;
  workload.optimizer = profile.optimizer;
  workload.step_spread = profile.step_spread;
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
