#include "scenarios/reader/training/user_hook_reader.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "scenarios/reader/format/map.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_hooks = 64;
constexpr Bytes most_output{std::int64_t{1} << 40};

/// A hook with the workload whose parameters and layers it names.
struct HookDraft {
  UserHook hook;
  const Workload* workload = nullptr;
};

/// "known: a, b, c", or, of many, how many there are with the first and the last ones.
std::string known_text(const std::vector<std::string>& names) {
  constexpr std::size_t ends = 3;
  std::string text =
      names.size() <= 2 * ends ? "known: " : fmt::format("known: {} names, ", names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i >= ends && i + ends < names.size()) {
      if (i == ends) text += ", ...";
      continue;
    }
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return text;
}

/// `hint`: what to write, where that is known better than by the nearest name.
[[noreturn]] void fail_unmatched(const Yaml& where, const char* what, const std::string& pattern,
                                 const std::vector<std::string>& names, std::string hint = {}) {
  if (hint.empty())
    if (const std::string guess = nearest(pattern, names); !guess.empty())
      hint = fmt::format("did you mean \"{}\"?", guess);
  where.fail(fmt::format("no {} is named \"{}\"{}{}; {}", what, pattern.substr(0, 100),
                         hint.empty() ? "" : "; ", hint, known_text(names)));
}

/// Whose parameter is named as a layer might be: "parameter "lm_head.weight" is of layer "head"".
std::string layer_by_parameter(const std::string& pattern, const Workload& workload) {
  for (const Parameter& parameter : workload.parameters)
    if (parameter.layer >= 0 &&
        (matches(pattern, parameter.name) || matches(pattern + ".*", parameter.name)))
      return fmt::format("parameter \"{}\" is of layer \"{}\"", parameter.name,
                         workload.layers[static_cast<std::size_t>(parameter.layer)].name);
  return "";
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
  if (found.empty())
    fail_unmatched(given, "layer", pattern, names, layer_by_parameter(pattern, workload));
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
  if (groups.empty())
    given.fail("expected a layer with parameters, for a gradient hook fires on these");
  return groups;
}

/// `parameter:` or `layer:`: whose gradients.
void add_gradients(Map<HookDraft>& map, UserHookKind kind) {
  map.key_read("parameter", {value::form(Form::Kind::text)},
               [=](HookDraft& draft, const Yaml& given) {
                 draft.hook.groups = single_parameters(given, *draft.workload);
               },
               {.meaning = "The names of parameters, with * for any text. The hook gets each "
                           "gradient by itself.",
                .otherwise = "the parameters of `layer`",
                .example = "\"*.bias\""})
      .key_read("layer", {value::form(Form::Kind::text)},
                [=](HookDraft& draft, const Yaml& given) {
                  draft.hook.groups =
                      parameters_of_layers(given, *draft.workload, kind == UserHookKind::clip);
                },
                {.meaning = kind == UserHookKind::clip
                                ? "The names of layers, with * for any text. The hook gets the "
                                  "gradients of a layer together."
                                : "The names of layers, with * for any text. The hook gets each "
                                  "gradient of a layer by itself.",
                 .otherwise = "see `parameter`",
                 .example = "\"transformer.h.1*\""})
      .excludes("layer", {"parameter"}, "parameter and layer exclude each other")
      .needs({"parameter", "layer"},
             "missing key \"parameter\" or \"layer\": it says whose gradients the hook gets");
}

/// A hook with one number besides: norm, factor, deviation or rate.
Map<HookDraft> numbered(UserHookKind kind, std::string meaning, std::string key, double least,
                        double most, About about) {
  Map<HookDraft> map(fmt::format("hook_{}", name_of(kind)), std::move(meaning));
  add_gradients(map, kind);
  about.required = true;
  map.key(
      std::move(key), value::number(least, most),
      [](auto& draft) -> auto& { return draft.hook.value; }, std::move(about));
  return map;
}

const Map<HookDraft>& clip_map() {
  static const auto map =
      numbered(UserHookKind::clip, "Gradients that are longer than a norm are scaled down to it.",
               "norm", 1e-30, 1e30, {.meaning = "The longest they may be.", .example = "1.0"});
  return map;
}

const Map<HookDraft>& scale_map() {
  static const auto map =
      numbered(UserHookKind::scale, "Gradients are multiplied by a factor.", "factor", -1e30, 1e30,
               {.meaning = "The factor.", .example = "0.5"});
  return map;
}

const Map<HookDraft>& noise_map() {
  static const auto map = [] {
    auto all =
        numbered(UserHookKind::noise,
                 "Normal noise is added to gradients, different on every rank.", "deviation", 0,
                 1e30, {.meaning = "The standard deviation of the noise.", .example = "0.01"});
    all.key("seed", value::whole<std::uint64_t>(0, std::numeric_limits<std::int64_t>::max()),
            [](auto& draft) -> auto& { return draft.hook.seed; },
            {.meaning = "The seed of the noise."});
    return all;
  }();
  return map;
}

const Map<HookDraft>& decay_map() {
  static const auto map =
      numbered(UserHookKind::decay, "A multiple of the parameter is added to its gradient (L2).",
               "rate", 0, 1e6, {.meaning = "The multiple.", .example = "0.01"});
  return map;
}

const Map<HookDraft>& record_map() {
  static const auto map = [] {
    Map<HookDraft> all("hook_record", "Notes that it fired, and does nothing else.");
    add_gradients(all, UserHookKind::record);
    return all;
  }();
  return map;
}

/// The output of every layer, where it is not given.
void find_outputs(HookDraft& draft, const YamlMap& map) {
  UserHook& hook = draft.hook;
  if (!map.has("threads")) hook.chunks.threads = std::min(hook.chunks.count, 256);
  const auto output = map.find("output");
  if (output && hook.chunks.output > most_output) output->fail("expected at most 1 TiB");
  for (const std::int32_t index : hook.layers) {
    const Layer& each = draft.workload->layers[static_cast<std::size_t>(index)];
    const std::optional<Bytes> found = output ? std::optional(hook.chunks.output) : output_of(each);
    if (!found)
      map.find("layer")->fail(
          fmt::format("the size of the output of {} is not known: write it, such as output: 4 MiB",
                      each.name.substr(0, 100)));
    hook.outputs.push_back(*found);
  }
}

const Map<HookDraft>& chunks_map() {
  constexpr int most_chunks = 4096;
  const auto chunks = [](auto member) {
    return [member](auto& draft) -> auto& {
      return draft.hook.chunks.*member;
    };
  };
  static const auto map =
      Map<HookDraft>("hook_chunks",
                     "A forward hook that hands a layer's output in pieces to a pool of host "
                     "threads and joins them before the next layer. The device stands still "
                     "meanwhile, and a GPU's output goes to the host and back.")
          .key_read("layer", {value::form(Form::Kind::text)},
                    [](HookDraft& draft, const Yaml& given) {
                      draft.hook.layers = layers_of(given, *draft.workload);
                    },
                    {.meaning = "The names of layers, with * for any text.",
                     .example = "transformer.h.5",
                     .required = true})
          .key("count", value::whole(1, most_chunks), chunks(&Chunks::count),
               {.meaning = "Into how many pieces the output is cut.",
                .example = "4",
                .required = true})
          .key("threads", value::whole(1, 256), chunks(&Chunks::threads),
               {.meaning = "How many threads the pool has.",
                .otherwise = "one for each piece, at most 256",
                .example = "4"})
          .key("time", value::time_or_zero(), chunks(&Chunks::time),
               {.meaning = "What one thread would take for all of the output, besides reading and "
                           "writing it once.",
                .unset = "0 us",
                .example = "3 ms"})
          .key("host_memory", value::bandwidth(), chunks(&Chunks::host_memory),
               {.meaning = "How fast the host's memory reads and writes, all threads together."})
          .key("transfer", value::bandwidth(), chunks(&Chunks::transfer),
               {.meaning = "How fast data goes between a GPU and the host."})
          .key("output", value::size(), chunks(&Chunks::output),
               {.meaning = "How large the output of the layer is.",
                .otherwise = "found from the shapes of the layer's kernels",
                .example = "4 MiB"})
          .check(find_outputs);
  return map;
}

const Map<HookDraft>& user_plugin_map() {
  const auto hook = [](auto member) {
    return [member](auto& draft) -> auto& {
      return draft.hook.*member;
    };
  };
  static const auto map = [&] {
    Map<HookDraft> all("hook_plugin",
                       "A gradient hook of the shared library that `--plugin` "
                       "names.");
    all.key("name", value::text("the name of a gradient hook in the plugin"),
            hook(&UserHook::plugin),
            {.meaning = "Its name in the plugin.", .example = "my_hook", .required = true});
    add_gradients(all, UserHookKind::plugin);
    all.key("passes", value::number(0, 10000), hook(&UserHook::passes),
            {.meaning = "How many times every element is read and written: 2 for a hook that does "
                        "each once."})
        .key("launches", value::whole(1, 100000), hook(&UserHook::launches),
             {.meaning = "How many kernels the host enqueues."})
        .key("host", value::time_or_zero(), hook(&UserHook::host),
             {.meaning = "The host's time for it, besides its launches.",
              .unset = "0 us",
              .example = "5 us"});
    return all;
  }();
  return map;
}

const Map<HookDraft>& settings_of(UserHookKind kind) {
  switch (kind) {
    case UserHookKind::clip:
      return clip_map();
    case UserHookKind::scale:
      return scale_map();
    case UserHookKind::noise:
      return noise_map();
    case UserHookKind::decay:
      return decay_map();
    case UserHookKind::record:
      return record_map();
    case UserHookKind::chunks:
      return chunks_map();
    case UserHookKind::plugin:
      return user_plugin_map();
  }
  return record_map();
}

/// An entry of `hooks:`, `{clip: {...}}`.
const Map<HookDraft>& user_hook_map() {
  static const Map<HookDraft> map = [] {
    Map<HookDraft> all("hook",
                       "A hook that you attach to parameters or layers. A gradient hook "
                       "fires once a micro-batch, when the gradient is complete, before it "
                       "is added to `.grad` and before DistributedDataParallel's own hook, "
                       "as torch's Tensor.register_hook does.");
    for (const UserHookFacts& facts : user_hook_facts())
      all.key_read(std::string(name_of(facts.kind)),
                   {value::map([kind = facts.kind]() -> const auto& {
                     return settings_of(kind).description();
                   })},
                   [kind = facts.kind](HookDraft& draft, const Yaml& given) {
                     draft.hook.kind = kind;
                     settings_of(kind).read(given, draft);
                   },
                   {.meaning = settings_of(facts.kind).description().meaning,
                    .example = std::string(facts.example)});
    return all.exactly_one(
        "expected one hook: {scale: {parameter: \"*\", factor: 0.5}}; see `ddpsim list hooks`");
  }();
  return map;
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

Type user_hooks_type() {
  return {value::list({value::map([]() -> const auto& { return user_hook_map().description(); })},
                      0, most_hooks)};
}

std::vector<UserHook> read_user_hooks(const Yaml& given, const Workload& workload) {
  const std::vector<Yaml> items = given.list("a list of hooks");
  if (items.size() > most_hooks) given.fail(fmt::format("expected at most {} hooks", most_hooks));
  std::vector<UserHook> hooks;
  for (const Yaml& item : items) {
    HookDraft draft{.hook = {}, .workload = &workload};
    user_hook_map().read(item, draft);
    hooks.push_back(std::move(draft.hook));
  }
  return hooks;
}

}  // namespace ddpsim
