#include "scenarios/reader/training/comm_hook_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "model/parallel/policy/refusals.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

constexpr int most_iterations = 1'000'000'000;
constexpr std::size_t most_steps = 64, most_wrappers = 4;
constexpr int most_communicators = 4;
constexpr std::array wire_types{DType::fp32, DType::fp16, DType::bf16};

/// Every name, that of what takes something included.
std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const CommHookKind kind : all_comm_hooks)
    if (kind != CommHookKind::steps && kind != CommHookKind::plugin)
      all.emplace_back(name_of(kind));
  all.insert(all.end(), {"fp16_compress_wrapper", "bf16_compress_wrapper", "plugin"});
  return all;
}

/// What PyTorch's functions and Accelerate's enumeration call comm hooks, and we do otherwise.
std::string ours_of(const std::string& name) {
  using Pair = std::pair<std::string_view, CommHookKind>;
  constexpr std::array theirs{
      Pair{"allreduce_hook", CommHookKind::allreduce},
      Pair{"noop_hook", CommHookKind::noop},
      Pair{"fp16_compress_hook", CommHookKind::fp16_compress},
      Pair{"bf16_compress_hook", CommHookKind::bf16_compress},
      Pair{"fp16", CommHookKind::fp16_compress},
      Pair{"bf16", CommHookKind::bf16_compress},
      Pair{"powerSGD_hook", CommHookKind::powersgd},
      Pair{"power_sgd", CommHookKind::powersgd},
      Pair{"batched_powerSGD_hook", CommHookKind::batched_powersgd},
      Pair{"batched_power_sgd", CommHookKind::batched_powersgd},
      Pair{"quantization_pertensor_hook", CommHookKind::quantization_pertensor},
      Pair{"quantization_perchannel_hook", CommHookKind::quantization_perchannel},
      Pair{"post_localSGD_hook", CommHookKind::post_local_sgd},
      Pair{"hook_with_zero_step", CommHookKind::zero_step},
      Pair{"hook_with_zero_step_interleaved", CommHookKind::zero_step_interleaved}};
  for (const auto& [spelled, kind] : theirs)
    if (spelled == name) return std::string(name_of(kind));
  return "";
}

CommHookKind kind_named(const Yaml& where, const std::string& name) {
  const std::vector<std::string> known = names();
  const auto position = position_of(name, known);
  const std::string meant = position ? known[*position] : name;
  for (const CommHookKind kind : all_comm_hooks)
    if (name_of(kind) == meant && kind != CommHookKind::steps && kind != CommHookKind::plugin)
      return kind;
  if (const std::string ours = ours_of(name); !ours.empty())
    where.fail(fmt::format("{} is {} here: write {}", name, ours, ours));
  if (meant == "plugin")
    where.fail("expected the name of one of the plugin's comm hooks: write {plugin: its_name}");
  if (meant.ends_with("_compress_wrapper"))
    where.fail(
        fmt::format("{0} needs the comm hook that it wraps: write {{{0}: powersgd}}", meant));
  if (meant == "steps")
    where.fail("write the steps themselves, such as [{cast: fp16}, all_reduce, {scale: 1/ranks}]");
  where.fail_unknown(name, known);
}

const Map<PowerSgd>& powersgd_map() {
  static const auto map =
      Map<PowerSgd>("powersgd", "PowerSGD's settings, as PowerSGDState has them.")
          .key("rank", value::whole(1, 1024), &PowerSgd::rank,
               {.meaning = "The rank of the matrices that stand for a gradient.",
                .example = "4",
                .elsewhere = {{"matrix_approximation_rank", "PowerSGDState's"}}})
          .key("start_iteration", value::whole(0, most_iterations), &PowerSgd::start_iteration,
               {.meaning = "How many iterations reduce plainly before compression begins. At least "
                           "2 with error feedback or warm start, since the buckets must be the "
                           "rebuilt ones.",
                .example = "10",
                .elsewhere = {{"start_powerSGD_iter", "PowerSGDState's"}}})
          .key("min_compression_rate", value::number(0, 1e6), &PowerSgd::min_compression_rate,
               {.meaning = "A gradient is compressed if that makes it this many times smaller."})
          .key("error_feedback", value::boolean(), &PowerSgd::error_feedback,
               {.meaning = "Whether what compression lost is added to the next gradient.",
                .elsewhere = {{"use_error_feedback", "PowerSGDState's"}}})
          .key("warm_start", value::boolean(), &PowerSgd::warm_start,
               {.meaning = "Whether each iteration starts from the matrices of the one before."})
          .key("orthogonalization_epsilon", value::number(0, 1),
               &PowerSgd::orthogonalization_epsilon,
               {.meaning = "What is added to a norm before dividing by it."})
          .key("seed", value::whole<std::uint32_t>(0, 0xffffffff), &PowerSgd::seed,
               {.meaning = "The seed of the random matrices.",
                .elsewhere = {{"random_seed", "PowerSGDState's"}}})
          .check([](PowerSgd& state, const YamlMap& entries) {
            const auto start = entries.find("start_iteration");
            if (const std::string why = powersgd_refusal(state); start && !why.empty())
              start->fail(why);
          });
  return map;
}

const Map<PostLocalSgd>& post_local_sgd_map() {
  static const auto map =
      Map<PostLocalSgd>("post_local_sgd",
                        "Post-local SGD's settings, as PostLocalSGDState and its averager have "
                        "them.")
          .key("start_iteration", value::whole(0, most_iterations), &PostLocalSgd::start_iteration,
               {.meaning = "For how many iterations, from the first on, gradients are reduced over "
                           "all ranks.",
                .elsewhere = {{"start_localSGD_iter", "PostLocalSGDState's"}}})
          .key("subgroup", value::whole(1, 1'000'000), &PostLocalSgd::subgroup,
               {.meaning = "How many ranks form a subgroup, which goes on reducing gradients "
                           "within itself.",
                .otherwise = "those of a node",
                .example = "8"})
          .key("gradient_allreduce", value::boolean(), &PostLocalSgd::gradient_allreduce,
               {.meaning =
                    "Whether the ranks of a subgroup go on reducing gradients. If not, nobody "
                    "does after the start.",
                .elsewhere = {{"post_local_gradient_allreduce", "PostLocalSGDState's"}}})
          .key("period", value::whole(1, most_iterations), &PostLocalSgd::period,
               {.meaning = "Models are averaged every so many iterations."});
  return map;
}

/// "0.5", "1/ranks" (none).
std::optional<double> read_factor(const Yaml& given) {
  if (given.is_scalar() && given.text("a factor") == "1/ranks") return std::nullopt;
  return given.number(-1e30, 1e30);
}

const Map<OwnStep>& kernel_map() {
  static const auto map =
      Map<OwnStep>("own_kernel",
                   "A kernel that takes time and changes no data: it stands for one of your own.")
          .key("name", value::text("a name"), &OwnStep::name,
               {.meaning = "What it is called in tables and traces.",
                .example = "mask",
                .required = true})
          .key("passes", value::number(1e-6, 10000), &OwnStep::passes,
               {.meaning = "How many times every element of the bucket is read and written: 2 for "
                           "a kernel that does each once."})
          .key("launches", value::whole(1, 100000), &OwnStep::launches,
               {.meaning = "How many kernels the host enqueues."});
  return map;
}

const Map<OwnStep>& collective_map() {
  static const auto map =
      Map<OwnStep>("own_collective", "A collective with a communicator of its own.")
          .key("communicator", value::whole(0, most_communicators - 1), &OwnStep::communicator,
               {.meaning = "Which communicator runs it; DistributedDataParallel's is 0. Those of "
                           "one communicator run one after another.",
                .example = "1",
                .required = true});
  return map;
}

/// A step of a list that takes something: `{cast: fp16}`.
const Map<OwnStep>& step_map() {
  static const auto collective = [](Map<OwnStep>& map, OwnStep::Kind each, const char* meaning) {
    map.key_read(std::string(name_of(each)),
                 {value::map([]() -> const auto& { return collective_map().description(); })},
                 [each](OwnStep& step, const Yaml& given) {
                   step.kind = each;
                   if (!given.is_map())
                     given.fail(
                         fmt::format("{0} takes nothing, or {{communicator: 1}}: write it as a "
                                     "word, or {{{0}: {{communicator: 1}}}}",
                                     name_of(each)));
                   collective_map().read(given, step);
                 },
                 {.meaning = meaning, .example = "{communicator: 1}"});
  };
  static const Map<OwnStep> map = [] {
    using Kind = OwnStep::Kind;
    Map<OwnStep> all("comm_step", "A step of a comm hook of your own, with what it takes.");
    all.key_read("cast", value::one_of(wire_types).type,
                 [](OwnStep& step, const Yaml& given) {
                   step.kind = Kind::cast;
                   step.type = given.one_of<DType>(wire_types);
                 },
                 {.meaning = "The bucket is cast: from here on it has this number format.",
                  .example = "fp16"})
        .key_read("scale",
                  value::either({value::number(-1e30, 1e30).type, {value::word("1/ranks")}}),
                  [](OwnStep& step, const Yaml& given) {
                    step.kind = Kind::scale;
                    step.factor = read_factor(given);
                  },
                  {.meaning = "The bucket is multiplied by this factor.", .example = "1/ranks"})
        .key_read("topk", value::share(1e-9, 1).type,
                  [](OwnStep& step, const Yaml& given) {
                    step.kind = Kind::topk;
                    step.share = value::share(1e-9, 1).read(given);
                  },
                  {.meaning = "Only this share of the elements, those of largest magnitude, travel "
                              "on, each with its index. An all_gather follows.",
                   .example = "1 %"});
    collective(all, Kind::all_reduce, "Every rank receives the sum over all ranks.");
    collective(all, Kind::reduce_scatter,
               "Every rank receives the sum of one part of the bucket. An all_gather follows.");
    collective(all, Kind::all_gather,
               "Every rank receives the parts of all ranks. Where nothing was divided into parts, "
               "it receives the buckets of all ranks and sums them.");
    collective(all, Kind::broadcast, "Every rank receives rank 0's bucket.");
    all.key_read(
        "kernel", {value::map([]() -> const auto& { return kernel_map().description(); })},
        [](OwnStep& step, const Yaml& given) {
          step.kind = Kind::kernel;
          kernel_map().read(given, step);
        },
        {.meaning = "A kernel that takes time and changes no data: it stands for one of your own.",
         .example = "{name: mask, passes: 3, launches: 2}"});
    return all.exactly_one("expected one step: its name, or {name: what it takes}");
  }();
  return map;
}

OwnStep read_step(const Yaml& given) {
  if (!given.is_scalar()) return step_map().read(given);
  OwnStep step;
  step.kind = given.one_of<OwnStep::Kind>(all_own_steps);
  if (step.kind == OwnStep::Kind::cast || step.kind == OwnStep::Kind::topk ||
      step.kind == OwnStep::Kind::kernel)
    given.fail(fmt::format("{0} needs a value: write {{{0}: ...}}", name_of(step.kind)));
  return step;
}

/// The steps that may stand as a word.
constexpr std::array bare_steps{OwnStep::Kind::scale, OwnStep::Kind::all_reduce,
                                OwnStep::Kind::reduce_scatter, OwnStep::Kind::all_gather,
                                OwnStep::Kind::broadcast};

Type step_type() {
  return value::either({value::one_of(bare_steps).type,
                        {value::map([]() -> const auto& { return step_map().description(); })}});
}

/// What is selected has to be gathered, what is scattered too, before anything else is done with
/// it.
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

/// A comm hook by its name, within so many wrappers.
struct NamedHook {
  CommHook hook;
  int depth = 0;
};

CommHook read_named(const Yaml& given, int depth);
const Map<NamedHook>& hook_map();

/// Nothing: most comm hooks have no settings.
struct NoSettings {};
const Map<NoSettings>& no_settings_map() {
  static const Map<NoSettings> map("no_settings", "This comm hook has no settings.");
  return map;
}

struct PluginHook {
  std::string name;
  DType payload = DType::fp32;
};
const Map<PluginHook>& plugin_map() {
  static const auto map =
      Map<PluginHook>("plugin_comm_hook", "A comm hook of a plugin.")
          .key("name", value::text("the name of a comm hook in the plugin"), &PluginHook::name,
               {.meaning = "Its name in the plugin.", .example = "cut_bf16", .required = true})
          .key("payload", value::one_of(wire_types), &PluginHook::payload,
               {.meaning = "The number format of what it sends: as many elements as the bucket "
                           "has."});
  return map;
}

/// What a comm hook does, for people.
std::string meaning_of(CommHookKind kind) {
  switch (kind) {
    case CommHookKind::none:
      return "DistributedDataParallel divides while it copies in, and sums.";
    case CommHookKind::allreduce:
      return "The bucket is divided by the ranks and summed.";
    case CommHookKind::noop:
      return "Nothing is communicated.";
    case CommHookKind::fp16_compress:
      return "The bucket travels as fp16.";
    case CommHookKind::bf16_compress:
      return "The bucket travels as bf16.";
    case CommHookKind::powersgd:
      return "PowerSGD: matrices of low rank are sent in place of each gradient.";
    case CommHookKind::batched_powersgd:
      return "PowerSGD of the whole bucket, taken as one square matrix.";
    case CommHookKind::quantization_pertensor:
      return "Every rank receives the buckets of all ranks in 8 bits, with one scale for each "
             "bucket.";
    case CommHookKind::quantization_perchannel:
      return "Every rank receives the buckets of all ranks in 8 bits, with one scale for every 512 "
             "elements.";
    case CommHookKind::post_local_sgd:
      return "Post-local SGD: after some iterations gradients are reduced within each node alone, "
             "and models are averaged over all ranks now and then.";
    case CommHookKind::optimizer_overlap:
      return "The optimizer updates a bucket's parameters once the bucket is reduced.";
    case CommHookKind::zero_step:
      return "Each bucket belongs to a rank, which alone updates its parameters and broadcasts "
             "them, "
             "once all buckets are reduced.";
    case CommHookKind::zero_step_interleaved:
      return "Each bucket belongs to a rank, which alone updates its parameters and broadcasts "
             "them, "
             "once the bucket is reduced.";
    case CommHookKind::steps:
    case CommHookKind::plugin:
      return "";
  }
  return "";
}

/// The names that may stand without settings.
std::vector<CommHookKind> bare_hooks() {
  std::vector<CommHookKind> kinds;
  for (const CommHookKind kind : all_comm_hooks)
    if (kind != CommHookKind::steps && kind != CommHookKind::plugin) kinds.push_back(kind);
  return kinds;
}

/// A name or a mapping of one, as a wrapper takes it.
Type named_type() {
  Form names{.kind = Form::Kind::choice};
  for (const CommHookKind kind : bare_hooks())
    names.choices.push_back({std::string(name_of(kind)), ""});
  return {names, value::map([]() -> const auto& { return hook_map().description(); })};
}

void add_wrapper(Map<NamedHook>& map, std::string name, DType type) {
  const auto read = [type](NamedHook& named, const Yaml& given) {
    if (named.depth >= static_cast<int>(most_wrappers)) given.fail("expected at most 4 wrappers");
    named.hook = read_named(given, named.depth + 1);
    if (const std::string why = wrapper_refusal(named.hook.kind, type); !why.empty())
      given.fail(why);
    named.hook.wrappers.insert(named.hook.wrappers.begin(), type);
  };
  const std::string format(name_of(type));
  map.key_read(std::move(name), named_type(), read,
               {.meaning = "The comm hook within works on the bucket in " + format + ".",
                .example = "{powersgd: {rank: 1}}"});
}

Map<NamedHook> make_hook_map() {
  Map<NamedHook> map("comm_hook", "A comm hook with its settings.");
  const auto settings = [&](CommHookKind kind, const auto& of, auto field, const char* example) {
    const auto read = [kind, of, field](NamedHook& named, const Yaml& given) {
      named.hook.kind = kind;
      of().read(given, field(named.hook));
    };
    map.key_read(std::string(name_of(kind)),
                 {value::map([of]() -> const auto& { return of().description(); })}, read,
                 {.meaning = meaning_of(kind), .example = example});
  };
  static NoSettings nothing;
  const auto powersgd = [](CommHook & hook) -> auto& {
    return hook.powersgd;
  };
  const auto post_local_sgd = [](CommHook & hook) -> auto& {
    return hook.post_local_sgd;
  };
  const auto none = [](CommHook&) -> auto& {
    return nothing;
  };
  for (const CommHookKind kind : bare_hooks()) {
    if (kind == CommHookKind::powersgd || kind == CommHookKind::batched_powersgd)
      settings(kind, &powersgd_map, powersgd, "{rank: 4, start_iteration: 10}");
    else if (kind == CommHookKind::post_local_sgd)
      settings(kind, &post_local_sgd_map, post_local_sgd, "{start_iteration: 100, period: 4}");
    else
      settings(kind, &no_settings_map, none, "{}");
  }
  add_wrapper(map, "fp16_compress_wrapper", DType::fp16);
  add_wrapper(map, "bf16_compress_wrapper", DType::bf16);
  map.key_read("plugin", {value::form(Form::Kind::text), value::map([]() -> const auto& {
                            return plugin_map().description();
                          })},
               [](NamedHook& named, const Yaml& given) {
                 named.hook.kind = CommHookKind::plugin;
                 PluginHook plugin;
                 if (given.is_scalar())
                   plugin.name = given.text("the name of a comm hook in the plugin");
                 else
                   plugin_map().read(given, plugin);
                 named.hook.plugin = plugin.name;
                 named.hook.plugin_type = plugin.payload;
               },
               {.meaning = "A comm hook of the shared library that `--plugin` names.",
                .example = "{name: cut_bf16, payload: bf16}",
                .short_for = {"name"}});
  map.exactly_one(
      "expected one comm hook: its name, or {name: {settings}}; see `ddpsim list hooks`");
  return map;
}

const Map<NamedHook>& hook_map() {
  static const Map<NamedHook> map = make_hook_map();
  return map;
}

CommHook read_named(const Yaml& given, int depth) {
  NamedHook named{.hook = {}, .depth = depth};
  if (given.is_scalar()) {
    named.hook.kind = kind_named(given, given.text("a comm hook"));
    return named.hook;
  }
  if (given.is_list())
    given.fail("a wrapper takes a comm hook by name: begin the list of steps with {cast: fp16}");
  hook_map().read(given, named);
  return named.hook;
}

}  // namespace

Type comm_hook_type() {
  Type named = named_type();
  for (NamedChoice& choice : named.front().choices)
    for (const CommHookKind kind : bare_hooks())
      if (name_of(kind) == choice.name) choice.meaning = meaning_of(kind);
  return value::either({named, {value::list(step_type(), 1, most_steps)}});
}

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
