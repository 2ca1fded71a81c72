#include "scenarios/reader/user_hook_reader.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr std::size_t most_hooks = 64;
constexpr Bytes most_output{std::int64_t{1} << 40};

UserHookKind kind_named(const Yaml& where, const std::string& name) {
  std::vector<std::string> known;
  for (const UserHookKind kind : all_user_hooks) {
    if (name_of(kind) == name) return kind;
    known.emplace_back(name_of(kind));
  }
  where.fail_unknown(name, known);
}

[[noreturn]] void fail_unmatched(const Yaml& where, const char* what, const std::string& pattern,
                                 const std::vector<std::string>& names) {
  const std::string guess = nearest(pattern, names);
  where.fail(fmt::format("no {} is named \"{}\"{}", what, pattern.substr(0, 100),
                         guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess)));
}

/// Layers whose name matches.
std::vector<std::int32_t> layers_of(const Yaml& given, const Workload& workload) {
  const std::string pattern = given.text("a layer's name, with * for any text");
  std::vector<std::int32_t> found;
  std::vector<std::string> names;
  for (const Layer& layer : workload.layers) {
    if (matches(pattern, layer.name)) found.push_back(static_cast<std::int32_t>(names.size()));
    names.push_back(layer.name);
  }
  if (found.empty()) fail_unmatched(given, "layer", pattern, names);
  return found;
}

/// Every matching parameter by itself.
std::vector<std::vector<std::int32_t>> single_parameters(const Yaml& given,
                                                         const Workload& workload) {
  std::vector<std::vector<std::int32_t>> groups;
  for (const std::int32_t index : parameters_named(given, workload)) groups.push_back({index});
  return groups;
}

/// The parameters of every matching layer; `together`: as one group.
std::vector<std::vector<std::int32_t>> parameters_of_layers(const Yaml& given,
                                                            const Workload& workload,
                                                            bool together) {
  if (!has_shapes(workload))
    given.fail("a profile has no layers: write parameter: with a pattern, such as \"1.*\"");
  std::vector<std::vector<std::int32_t>> groups;
  for (const std::int32_t layer : layers_of(given, workload)) {
    std::vector<std::int32_t> members;
    for (std::size_t p = 0; p < workload.parameters.size(); ++p)
      if (workload.parameters[p].layer == layer) members.push_back(static_cast<std::int32_t>(p));
    if (together && !members.empty()) groups.push_back(members);
    for (std::size_t m = 0; !together && m < members.size(); ++m) groups.push_back({members[m]});
  }
  if (groups.empty()) given.fail("expected a layer with parameters: a gradient hook needs some");
  return groups;
}

/// `parameter:` or `layer:`, and `pattern` as written.
void read_gradients(YamlMap& map, const Workload& workload, UserHook& hook) {
  const auto parameter = map.optional("parameter");
  const auto layer = map.optional("layer");
  if (parameter && layer) layer->fail("parameter and layer exclude each other");
  if (!parameter && !layer)
    map.node().fail("missing key \"parameter\" or \"layer\": whose gradients");
  hook.pattern = (parameter ? *parameter : *layer).text("a name, with * for any text");
  hook.groups = parameter ? single_parameters(*parameter, workload)
                          : parameters_of_layers(*layer, workload, hook.kind == UserHookKind::clip);
}

void read_chunks(YamlMap& map, const Workload& workload, UserHook& hook) {
  constexpr int most = 4096;
  const Yaml layer = map.required("layer");
  hook.pattern = layer.text("a layer's name, with * for any text");
  hook.layers = layers_of(layer, workload);
  Chunks& chunks = hook.chunks;
  chunks.count = static_cast<int>(map.required("count").integer(1, most));
  chunks.threads = chunks.count;
  if (const auto value = map.optional("threads"))
    chunks.threads = static_cast<int>(value->integer(1, 256));
  else if (chunks.threads > 256)
    chunks.threads = 256;
  if (const auto value = map.optional("time")) chunks.time = value->duration_or_zero();
  if (const auto value = map.optional("host_memory")) chunks.host_memory = value->bandwidth();
  if (const auto value = map.optional("transfer")) chunks.transfer = value->bandwidth();
  if (const auto value = map.optional("output")) {
    chunks.output = value->bytes();
    if (chunks.output > most_output) value->fail("expected at most 1 TiB");
  }
  for (const std::int32_t index : hook.layers) {
    const Layer& each = workload.layers[static_cast<std::size_t>(index)];
    const std::optional<Bytes> output =
        chunks.output == Bytes{} ? output_of(each) : std::optional(chunks.output);
    if (!output)
      layer.fail(fmt::format("how large the output of {} is, is not known: say output: 4 MiB",
                             each.name.substr(0, 100)));
    hook.outputs.push_back(*output);
  }
}

void read_plugin(YamlMap& map, const Workload& workload, UserHook& hook) {
  hook.plugin = map.required("name").text("the name of a gradient hook in the plugin");
  read_gradients(map, workload, hook);
  if (const auto value = map.optional("passes")) hook.passes = value->number(0, 10000);
  if (const auto value = map.optional("launches"))
    hook.launches = static_cast<int>(value->integer(1, 100000));
  if (const auto value = map.optional("host")) hook.host = value->duration_or_zero();
}

UserHook read_user_hook(const Yaml& given, const Workload& workload) {
  UserHook hook;
  const auto entries = YamlMap(given).entries();
  if (entries.size() != 1)
    given.fail(
        "expected one hook: {scale: {parameter: \"*\", factor: 0.5}}; see `ddpsim list hooks`");
  const auto& [name, settings] = entries.front();
  hook.kind = kind_named(given, name);
  YamlMap map(settings);
  switch (hook.kind) {
    case UserHookKind::clip:
      read_gradients(map, workload, hook);
      hook.value = map.required("norm").number(1e-30, 1e30);
      break;
    case UserHookKind::scale:
      read_gradients(map, workload, hook);
      hook.value = map.required("factor").number(-1e30, 1e30);
      break;
    case UserHookKind::noise:
      read_gradients(map, workload, hook);
      hook.value = map.required("deviation").number(0, 1e30);
      if (const auto value = map.optional("seed"))
        hook.seed =
            static_cast<std::uint64_t>(value->integer(0, std::numeric_limits<std::int64_t>::max()));
      break;
    case UserHookKind::decay:
      read_gradients(map, workload, hook);
      hook.value = map.required("rate").number(0, 1e6);
      break;
    case UserHookKind::record:
      read_gradients(map, workload, hook);
      break;
    case UserHookKind::chunks:
      read_chunks(map, workload, hook);
      break;
    case UserHookKind::plugin:
      read_plugin(map, workload, hook);
      break;
  }
  map.finish();
  return hook;
}

}  // namespace

std::vector<std::int32_t> parameters_named(const Yaml& given, const Workload& workload) {
  const std::string pattern = given.text("a parameter's name, with * for any text");
  std::vector<std::int32_t> found;
  std::vector<std::string> names;
  for (const Parameter& parameter : workload.parameters) {
    if (matches(pattern, parameter.name)) found.push_back(static_cast<std::int32_t>(names.size()));
    names.push_back(parameter.name);
  }
  if (found.empty()) fail_unmatched(given, "parameter", pattern, names);
  return found;
}

std::vector<UserHook> read_user_hooks(const Yaml& given, const Workload& workload) {
  const std::vector<Yaml> items = given.list("a list of hooks");
  if (items.size() > most_hooks) given.fail(fmt::format("expected at most {} hooks", most_hooks));
  std::vector<UserHook> hooks;
  for (const Yaml& item : items) hooks.push_back(read_user_hook(item, workload));
  return hooks;
}

}  // namespace ddpsim
