#include "scenarios/reader/comm_hook_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/ddp/zero_step.hpp"
#include "scenarios/reader/quantity_text.hpp"

namespace ddpsim {
namespace {

constexpr int most_iterations = 1'000'000'000;
constexpr std::size_t most_steps = 64, most_wrappers = 4;
constexpr int most_communicators = 4;
constexpr std::array wire_types{DType::fp32, DType::fp16, DType::bf16};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const CommHookKind kind : all_comm_hooks)
    if (kind != CommHookKind::steps && kind != CommHookKind::plugin)
      all.emplace_back(name_of(kind));
  all.insert(all.end(), {"fp16_compress_wrapper", "bf16_compress_wrapper", "plugin"});
  return all;
}

CommHookKind kind_named(const Yaml& where, const std::string& name) {
  for (const CommHookKind kind : all_comm_hooks)
    if (name_of(kind) == name && kind != CommHookKind::steps && kind != CommHookKind::plugin)
      return kind;
  if (name == "plugin")
    where.fail("which of the plugin's comm hooks is missing: write {plugin: its_name}");
  if (name.ends_with("_compress_wrapper"))
    where.fail(fmt::format("what {0} wraps is missing: write {{{0}: powersgd}}", name));
  if (name == "steps")
    where.fail("write the steps themselves, such as [{cast: fp16}, all_reduce, {scale: 1/ranks}]");
  where.fail_unknown(name, names());
}

PowerSgd read_powersgd(const Yaml& given) {
  PowerSgd state;
  YamlMap map(given);
  if (const auto value = map.optional("rank"))
    state.rank = static_cast<int>(value->integer(1, 1024));
  const auto start = map.optional("start_iteration");
  if (start) state.start_iteration = static_cast<int>(start->integer(0, most_iterations));
  if (const auto value = map.optional("min_compression_rate"))
    state.min_compression_rate = value->number(0, 1e6);
  if (const auto value = map.optional("error_feedback")) state.error_feedback = value->boolean();
  if (const auto value = map.optional("warm_start")) state.warm_start = value->boolean();
  if (const auto value = map.optional("orthogonalization_epsilon"))
    state.orthogonalization_epsilon = value->number(0, 1);
  if (const auto value = map.optional("seed"))
    state.seed = static_cast<std::uint32_t>(value->integer(0, 0xffffffff));
  map.finish();
  if (start && state.start_iteration < 2 && (state.error_feedback || state.warm_start))
    start->fail(
        "expected at least 2: with error feedback or warm start the buckets must be the rebuilt "
        "ones");
  return state;
}

PostLocalSgd read_post_local_sgd(const Yaml& given) {
  PostLocalSgd state;
  YamlMap map(given);
  if (const auto value = map.optional("start_iteration"))
    state.start_iteration = static_cast<int>(value->integer(0, most_iterations));
  if (const auto value = map.optional("subgroup"))
    state.subgroup = static_cast<int>(value->integer(1, 1'000'000));
  if (const auto value = map.optional("gradient_allreduce"))
    state.gradient_allreduce = value->boolean();
  if (const auto value = map.optional("period"))
    state.period = static_cast<int>(value->integer(1, most_iterations));
  map.finish();
  return state;
}

/// "0.5", "1/ranks" (none).
std::optional<double> read_factor(const Yaml& given) {
  if (given.is_scalar() && given.text("a factor") == "1/ranks") return std::nullopt;
  return given.number(-1e30, 1e30);
}

/// "1 %", "0.01"
double read_share(const Yaml& given) {
  std::string text = given.text("a share, such as 1%");
  const auto last = text.find_last_not_of(' ');
  if (last == std::string::npos || text[last] != '%') return given.number(1e-9, 1);
  text.erase(last);
  text.erase(text.find_last_not_of(' ') + 1);
  const auto percent = parse_number(text);
  if (!percent || !(*percent >= 1e-7 && *percent <= 100))
    given.fail(
        fmt::format("expected a share from 1e-7 % to 100 %, got \"{} %\"", text.substr(0, 40)));
  return *percent / 100;
}

OwnStep read_kernel(const Yaml& given) {
  OwnStep step;
  step.kind = OwnStep::Kind::kernel;
  YamlMap map(given);
  step.name = map.required("name").text("a name");
  if (const auto value = map.optional("passes")) step.passes = value->number(1e-6, 10000);
  if (const auto value = map.optional("launches"))
    step.launches = static_cast<int>(value->integer(1, 100000));
  map.finish();
  return step;
}

OwnStep read_step(const Yaml& given) {
  OwnStep step;
  if (given.is_scalar()) {
    step.kind = given.one_of<OwnStep::Kind>(all_own_steps);
    if (step.kind == OwnStep::Kind::cast || step.kind == OwnStep::Kind::topk ||
        step.kind == OwnStep::Kind::kernel)
      given.fail(
          fmt::format("expected {{{0}: ...}}: what {0} takes is missing", name_of(step.kind)));
    return step;
  }
  YamlMap map(given);
  const auto entries = map.entries();
  if (entries.size() != 1) given.fail("expected one step: its name, or {name: what it takes}");
  const auto& [name, value] = entries.front();
  const auto kind = std::find_if(all_own_steps.begin(), all_own_steps.end(),
                                 [&](OwnStep::Kind each) { return name_of(each) == name; });
  if (kind == all_own_steps.end()) {
    std::vector<std::string> known;
    for (const OwnStep::Kind each : all_own_steps) known.emplace_back(name_of(each));
    given.fail_unknown(name, known);
  }
  step.kind = *kind;
  switch (step.kind) {
    case OwnStep::Kind::cast:
      step.type = value.one_of<DType>(wire_types);
      return step;
    case OwnStep::Kind::scale:
      step.factor = read_factor(value);
      return step;
    case OwnStep::Kind::topk:
      step.share = read_share(value);
      return step;
    case OwnStep::Kind::kernel:
      return read_kernel(value);
    case OwnStep::Kind::all_reduce:
    case OwnStep::Kind::reduce_scatter:
    case OwnStep::Kind::all_gather:
    case OwnStep::Kind::broadcast:
      if (!value.is_map())
        value.fail(
            fmt::format("{0} takes nothing, or {{communicator: 1}}: write it as a word, or "
                        "{{{0}: {{communicator: 1}}}}",
                        name));
      YamlMap settings(value);
      step.communicator =
          static_cast<int>(settings.required("communicator").integer(0, most_communicators - 1));
      settings.finish();
      return step;
  }
  return step;
}

/// What is selected has to be gathered, what is scattered too, before anything else is done with it.
void check_order(const std::vector<OwnStep>& steps, const std::vector<Yaml>& items) {
  bool apart = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool opens =
        steps[i].kind == OwnStep::Kind::topk || steps[i].kind == OwnStep::Kind::reduce_scatter;
    const bool closes = steps[i].kind == OwnStep::Kind::all_gather;
    if (apart && !closes && steps[i].kind != OwnStep::Kind::kernel)
      items[i].fail(
          "expected all_gather: topk and reduce_scatter leave parts that must be gathered "
          "first");
    apart = opens || (apart && !closes);
  }
  if (apart) items.back().fail("expected all_gather behind topk or reduce_scatter");
}

CommHook read_named(const Yaml& given, int depth) {
  CommHook hook;
  if (given.is_scalar()) {
    hook.kind = kind_named(given, given.text("a comm hook"));
    return hook;
  }
  if (given.is_list())
    given.fail("a wrapper takes a comm hook by name: begin the list of steps with {cast: fp16}");
  YamlMap map(given);
  const auto entries = map.entries();
  if (entries.size() != 1)
    given.fail("expected one comm hook: its name, or {name: {settings}}; see `ddpsim list hooks`");
  const auto& [name, value] = entries.front();
  const auto wrapper = [&](DType type) {
    if (depth >= static_cast<int>(most_wrappers)) value.fail("expected at most 4 wrappers");
    CommHook inner = read_named(value, depth + 1);
    if (is_zero_step(inner.kind))
      value.fail(fmt::format("{} reduces plainly: take {} away", name_of(inner.kind), name));
    inner.wrappers.insert(inner.wrappers.begin(), type);
    return inner;
  };
  if (name == "fp16_compress_wrapper") return wrapper(DType::fp16);
  if (name == "bf16_compress_wrapper") return wrapper(DType::bf16);
  if (name == "plugin") {
    hook.kind = CommHookKind::plugin;
    if (value.is_scalar()) {
      hook.plugin = value.text("the name of a comm hook in the plugin");
      return hook;
    }
    YamlMap settings(value);
    hook.plugin = settings.required("name").text("the name of a comm hook in the plugin");
    if (const auto payload = settings.optional("payload"))
      hook.plugin_type = payload->one_of<DType>(wire_types);
    settings.finish();
    return hook;
  }
  hook.kind = kind_named(given, name);
  switch (hook.kind) {
    case CommHookKind::powersgd:
    case CommHookKind::batched_powersgd:
      hook.powersgd = read_powersgd(value);
      return hook;
    case CommHookKind::post_local_sgd:
      hook.post_local_sgd = read_post_local_sgd(value);
      return hook;
    default:
      YamlMap(value).finish();  // it has no settings
      return hook;
  }
}

}  // namespace

CommHook read_comm_hook(const Yaml& given) {
  if (!given.is_list()) return read_named(given, 0);
  CommHook hook;
  hook.kind = CommHookKind::steps;
  const std::vector<Yaml> items = given.list("a list of steps");
  if (items.empty() || items.size() > most_steps)
    given.fail(fmt::format("expected 1 to {} steps", most_steps));
  for (const Yaml& item : items) hook.steps.push_back(read_step(item));
  check_order(hook.steps, items);
  return hook;
}

}  // namespace ddpsim
