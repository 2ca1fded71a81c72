#include "scenarios/reader/training_reader.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "model/ddp/zero_step.hpp"
#include "scenarios/reader/comm_hook_reader.hpp"
#include "scenarios/reader/user_hook_reader.hpp"

namespace ddpsim {
namespace {

/// `buckets: [[name, ...], ...]`: every parameter once.
std::vector<std::vector<int>> read_buckets(const Yaml& given, const Workload& workload) {
  std::unordered_map<std::string, int> index_of;
  std::vector<std::string> names;
  for (const Parameter& parameter : workload.parameters) {
    index_of.emplace(parameter.name, static_cast<int>(names.size()));
    names.push_back(parameter.name);
  }
  std::vector<bool> seen(names.size(), false);
  std::vector<std::vector<int>> buckets;
  for (const Yaml& bucket : given.list("a list of lists of parameter names")) {
    std::vector<int>& indices = buckets.emplace_back();
    for (const Yaml& item : bucket.list("a list of parameter names")) {
      const std::string name = item.text("a parameter name");
      const auto found = index_of.find(name);
      if (found == index_of.end()) {
        const std::string guess = nearest(name, names);
        item.fail(fmt::format("{} has no parameter \"{}\"{}", workload.name, name.substr(0, 100),
                              guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess)));
      }
      if (seen[static_cast<std::size_t>(found->second)])
        item.fail(fmt::format("parameter \"{}\" is in a bucket already", name));
      if (!indices.empty()) {
        const DType first = workload.parameters[static_cast<std::size_t>(indices[0])].dtype;
        const DType here = workload.parameters[static_cast<std::size_t>(found->second)].dtype;
        if (here != first)
          item.fail(fmt::format("\"{}\" is {}, but its bucket is {}: a bucket has one type", name,
                                name_of(here), name_of(first)));
      }
      seen[static_cast<std::size_t>(found->second)] = true;
      indices.push_back(found->second);
    }
    if (indices.empty()) bucket.fail("expected at least one parameter name in a bucket");
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end())
    given.fail(fmt::format("parameter \"{}\" is in no bucket ({} of {} are missing)",
                           names[static_cast<std::size_t>(missing - seen.begin())],
                           std::count(seen.begin(), seen.end(), false), seen.size()));
  return buckets;
}

/// The two iterations that have names.
enum class Phase : std::uint8_t { steady, first };
constexpr std::array all_phases{Phase::steady, Phase::first};
constexpr std::string_view name_of(Phase phase) {
  return phase == Phase::steady ? "steady" : "first";
}

constexpr std::int64_t last_iteration = 1'000'000'000;

/// `phase: first` or `iteration: 3`.
int read_iteration(YamlMap& map) {
  const auto phase = map.optional("phase");
  const auto iteration = map.optional("iteration");
  if (phase && iteration) iteration->fail("iteration and phase exclude each other");
  if (iteration) return static_cast<int>(iteration->integer(1, last_iteration));
  return phase && phase->one_of<Phase>(all_phases) == Phase::first ? 1 : 0;
}

/// `join: true`, or a mapping.
std::optional<Join> read_join(const Yaml& given) {
  if (given.is_scalar()) return given.boolean() ? std::optional<Join>(Join{}) : std::nullopt;
  Join join;
  YamlMap map(given);
  if (const auto value = map.optional("throw_on_early_termination"))
    join.throw_on_early_termination = value->boolean();
  if (const auto value = map.optional("divide_by_initial_world_size"))
    join.divide_by_initial_world_size = value->boolean();
  if (const auto value = map.optional("joined_ranks"))
    join.joined_ranks = static_cast<int>(value->integer(0, 1 << 20));
  map.finish();
  return join;
}

/// `delay_all_reduce: {parameters: ["head.*"], hook: embed.weight}`
DelayedAllReduce read_delayed(const Yaml& given, const Workload& workload) {
  DelayedAllReduce delayed;
  YamlMap map(given);
  for (const Yaml& item : map.required("parameters").list("a list of names, with * for any text"))
    for (const auto& found : parameters_named(item, workload))
      if (!delayed.contains(found)) delayed.parameters.push_back(found);
  const Yaml hook = map.required("hook");
  if (delayed.parameters.empty()) given.fail("expected the name of one parameter at least");
  const std::vector<std::int32_t> hooked = parameters_named(hook, workload);
  if (hooked.size() != 1)
    hook.fail(
        fmt::format("expected the name of one parameter, and {} are named so", hooked.size()));
  delayed.hook = hooked.front();
  map.finish();
  const std::vector<int> arrival = arrival_order(workload);
  const auto sends = std::find(arrival.begin(), arrival.end(), delayed.hook);
  const auto unused = [&](std::int32_t index) {
    return workload.parameters[static_cast<std::size_t>(index)].unused;
  };
  for (const std::int32_t index : delayed.parameters)
    if (unused(index) || unused(delayed.hook) || std::find(arrival.begin(), sends, index) == sends)
      hook.fail(fmt::format(
          "{} gets its gradient after this one, or never, and would be sent before: name a "
          "parameter that comes later in backward",
          workload.parameters[static_cast<std::size_t>(index)].name.substr(0, 200)));
  return delayed;
}

/// `bucket_caps: [1 MiB, 4 MiB]`: each cap has to close, or hold, a bucket.
std::vector<Bytes> read_caps(const Yaml& given, const Workload& workload,
                             const Training& training) {
  std::vector<Bytes> caps;
  const std::vector<Yaml> items = given.list("a list of sizes, such as [1 MiB, 4 MiB, 25 MiB]");
  for (const Yaml& item : items) caps.push_back(item.bytes());
  if (caps.empty()) given.fail("expected at least one size");
  std::vector<GradientInfo> gradients;
  for (const Parameter& parameter : workload.parameters)
    gradients.push_back({parameter.size(), parameter.dtype, parameter.sparse});
  const std::vector<int> arrival = arrival_order(workload);
  const std::size_t buckets =
      steady_buckets(gradients, arrival, {caps, training.bucket_rule}).size();
  if (buckets < caps.size())
    items[buckets].fail(
        fmt::format("this cap closes no bucket: all gradients are in the {} before it", buckets));
  return caps;
}

}  // namespace

void check_bucketed(const Yaml& where, const Training& training, const Workload& workload) {
  for (const Parameter& parameter : workload.parameters) {
    if (parameter.unused && !training.find_unused_parameters && !training.static_graph)
      where.fail(
          fmt::format("no gradient reaches {}, so DistributedDataParallel's next forward would "
                      "fail: set find_unused_parameters: true or static_graph: true",
                      parameter.name.substr(0, 200)));
    if (parameter.sparse && training.comm_hook)
      where.fail(
          fmt::format("comm hooks take dense gradients, and that of {} is sparse: take comm_hook "
                      "out, or the parameter's sparse: true",
                      parameter.name.substr(0, 200)));
  }
  if (!is_zero_step(training.comm_hook.kind)) return;
  const std::string why = zero_step_refusal(training);
  if (!why.empty()) where.fail(why);
  for (const Parameter& parameter : workload.parameters)
    if (parameter.dtype != workload.parameters.front().dtype)
      where.fail(
          fmt::format("ZeRO's hooks take parameters of one type, and {} is not of the first one's: "
                      "take comm_hook out",
                      parameter.name.substr(0, 200)));
}

Training read_training(const Yaml& given, const Workload& workload) {
  Training training;
  YamlMap map(given);
  if (const auto value = map.optional("strategy"))
    training.strategy = value->one_of<Strategy>(all_strategies);
  if (const auto value = map.optional("pytorch"))
    training.pytorch = value->one_of<PyTorch>(all_pytorches);
  if (const auto value = map.optional("bucket_cap")) training.give_cap(value->bytes());
  if (const auto value = map.optional("bucket_rule"))
    training.bucket_rule = value->one_of<BucketRule>(all_bucket_rules);
  // A special first bucket is DDP's own; who writes buckets by the other rule has none.
  if (training.bucket_rule == BucketRule::before_overflow) training.first_bucket_cap.reset();
  if (const auto value = map.optional("first_bucket_cap")) {
    training.first_cap_given = true;
    if (value->is_scalar() && value->text("a size, or none") == "none")
      training.first_bucket_cap.reset();
    else
      training.first_bucket_cap = value->bytes();
  }
  if (const auto value = map.optional("last_bucket_cap"))
    training.last_bucket_cap = value->boolean();
  if (const auto value = map.optional("micro_batches"))
    training.micro_batches = static_cast<int>(value->integer(1, 1024));
  if (const auto value = map.optional("no_sync")) training.no_sync = value->boolean();
  if (const auto value = map.optional("find_unused_parameters"))
    training.find_unused_parameters = value->boolean();
  if (const auto value = map.optional("skip_all_reduce_unused_params"))
    training.skip_all_reduce_unused_params = value->boolean();
  if (const auto value = map.optional("static_graph")) training.static_graph = value->boolean();
  if (const auto value = map.optional("gradient_as_bucket_view"))
    training.gradient_as_bucket_view = value->boolean();
  if (const auto value = map.optional("batched_grad_copy"))
    training.batched_grad_copy = value->boolean();
  if (const auto value = map.optional("broadcast_buffers"))
    training.broadcast_buffers = value->boolean();
  if (const auto value = map.optional("comm_hook")) training.comm_hook = read_comm_hook(*value);
  if (const auto value = map.optional("hooks")) training.hooks = read_user_hooks(*value, workload);
  if (const auto value = map.optional("join")) training.join = read_join(*value);
  const auto delayed = map.optional("delay_all_reduce");
  if (delayed) training.delayed = read_delayed(*delayed, workload);
  training.iteration = read_iteration(map);

  const auto caps = map.optional("bucket_caps");
  const auto buckets = map.optional("buckets");
  const auto groups = map.optional("parameter_groups");
  if (caps) training.bucket_caps = read_caps(*caps, workload, training);
  if (buckets) {
    if (caps) buckets->fail("buckets and bucket_caps exclude each other");
    training.buckets = read_buckets(*buckets, workload);
  }
  if (groups) {
    if (caps || buckets) groups->fail("parameter_groups excludes buckets and bucket_caps");
    training.parameter_groups =
        static_cast<int>(groups->integer(1, static_cast<std::int64_t>(workload.parameters.size())));
  }
  if (const std::string why = delayed_refusal(training); !why.empty()) delayed->fail(why);
  map.finish();
  return training;
}

}  // namespace ddpsim
