#include "tools/study/settings.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

#include "scenarios/reader/text/yaml_text.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t names_on_a_page = 60;

}  // namespace

std::string buckets_yaml(const Buckets& buckets, const Workload& workload) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "training" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "strategy" << YAML::Value << "bucketed";
  out << YAML::Key << "buckets" << YAML::Value << YAML::BeginSeq;
  for (const auto& bucket : buckets) {
    out << YAML::Flow << YAML::BeginSeq;
    for (const int index : bucket)
      write_text(out, workload.parameters[static_cast<std::size_t>(index)].name);
    out << YAML::EndSeq;
  }
  out << YAML::EndSeq << YAML::EndMap << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

namespace {

/// How PyTorch registers a comm hook on `model`, with the import that it takes; what it has no name
/// for is said.
std::string register_hook(const CommHook& hook) {
  if (!hook) return "";
  const PowerSgd& state = hook.powersgd;
  const std::string powersgd = fmt::format(
      "powerSGD_hook.PowerSGDState(None, matrix_approximation_rank={}, start_powerSGD_iter={}, "
      "min_compression_rate={:g}, use_error_feedback={}, warm_start={}, "
      "orthogonalization_epsilon={:g}, random_seed={})",
      state.rank, state.start_iteration, state.min_compression_rate,
      state.error_feedback ? "True" : "False", state.warm_start ? "True" : "False",
      state.orthogonalization_epsilon, state.seed);
  std::string of_state = "None", module, function;
  switch (hook.kind) {
    case CommHookKind::none:
    case CommHookKind::allreduce:
      module = "default_hooks";
      function = "allreduce_hook";
      break;
    case CommHookKind::noop:
      module = "debugging_hooks";
      function = "noop_hook";
      break;
    case CommHookKind::fp16_compress:
      module = "default_hooks";
      function = "fp16_compress_hook";
      break;
    case CommHookKind::bf16_compress:
      module = "default_hooks";
      function = "bf16_compress_hook";
      break;
    case CommHookKind::powersgd:
      of_state = powersgd;
      module = "powerSGD_hook";
      function = "powerSGD_hook";
      break;
    case CommHookKind::batched_powersgd:
      of_state = powersgd;
      module = "powerSGD_hook";
      function = "batched_powerSGD_hook";
      break;
    case CommHookKind::quantization_pertensor:
      module = "quantization_hooks";
      function = "quantization_pertensor_hook";
      break;
    case CommHookKind::quantization_perchannel:
      module = "quantization_hooks";
      function = "quantization_perchannel_hook";
      break;
    case CommHookKind::post_local_sgd:
    case CommHookKind::optimizer_overlap:
    case CommHookKind::zero_step:
    case CommHookKind::zero_step_interleaved:
    case CommHookKind::steps:
    case CommHookKind::plugin:
      return fmt::format("  # with the comm hook {}, registered as your script does\n",
                         label(hook));
  }
  std::string modules = module;
  function = module + "." + function;
  for (auto type = hook.wrappers.rbegin(); type != hook.wrappers.rend(); ++type)
    function = fmt::format("default_hooks.{}_compress_wrapper({})", name_of(*type), function);
  if (!hook.wrappers.empty() && module != "default_hooks") modules = "default_hooks, " + module;
  return fmt::format(
      "  from torch.distributed.algorithms.ddp_comm_hooks import {}\n"
      "  model.register_comm_hook({}, {})\n",
      modules, of_state, function);
}

/// A cap for each bucket of a partition: reached with its last gradient, and not before.
std::vector<RoundCap> caps_of(const Choice& partition, const Workload& workload) {
  const auto bytes_of = [&](int index) {
    return workload.parameters[static_cast<std::size_t>(index)].size();
  };
  std::vector<RoundCap> caps;
  for (const auto& bucket : partition.buckets) {
    Bytes size;
    for (const int index : bucket) size += bytes_of(index);
    caps.push_back(round_cap(size - bytes_of(bucket.back()) + Bytes{1}, size));
  }
  return caps;
}

/// May buckets that no single cap makes be told? Where a single cap pays they may be shorter still;
/// where none does, by more than noise they are. Errors that are allowed for take nothing away.
bool counts(const Tuning& tuning, const TuneOptions& options, const std::optional<Choice>& choice) {
  return choice && gains_with_errors(tuning, options, *choice) &&
         (tuning.advice.pays ||
          choice->step < scaled(settled(tuning, options).step, 1 - options.noise));
}

/// Do they count, save more of what is settled than anybody would measure, and keep to its largest
/// bucket where that is the objective?
bool saves_more(const Tuning& tuning, const TuneOptions& options,
                const std::optional<Choice>& choice) {
  return counts(tuning, options, choice) &&
         (options.objective != Objective::memory ||
          choice->largest <= settled(tuning, options).largest) &&
         choice->step < scaled(settled(tuning, options).step, 1 - 0.001);
}

/// "40 MiB", or what buckets are that no cap makes.
std::string caps_in_words(const Choice& choice) {
  if (choice.cap == Bytes{}) return "own buckets";
  const std::string cap = round_cap(choice.cap, choice.highest_cap).mib + " MiB";
  return choice.first_cap ? round_cap(*choice.first_cap, choice.highest_first).mib + " MiB, " + cap
                          : cap;
}

/// The lines for buckets that a program of one's own makes.
std::string own_settings(const Tuning& tuning, const TuneOptions& options,
                         const Training& training) {
  const auto caps = [](const Choice& choice) {
    std::string text;
    if (choice.first_cap) {
      const RoundCap first = round_cap(*choice.first_cap, choice.highest_first);
      text =
          fmt::format("  first_bucket_cap = {}  # bytes; {} MiB\n", first.bytes.count, first.mib);
    }
    const RoundCap each = round_cap(choice.cap, choice.highest_cap);
    return text + fmt::format("  bucket_cap = {}  # bytes; {} MiB\n", each.bytes.count, each.mib);
  };
  const Choice& chosen = settled(tuning, options);
  const bool as_it_is = chosen.buckets == tuning.given.buckets;
  std::string text = fmt::format(
      "  # {}buckets of {}: {:.2f} ms\n{}", as_it_is ? "nothing to change: " : "",
      training.bucket_rule == BucketRule::before_overflow
          ? "your own that close before they overflow (DistributedDataParallel's close after)"
          : "a wrapper of your own",
      in_ms(chosen.step), chosen.cap > Bytes{} ? caps(chosen) : std::string());
  if (saves_more(tuning, options, tuning.best_pair))
    text += fmt::format("  # both caps: {:.2f} ms\n{}", in_ms(tuning.best_pair->step),
                        caps(*tuning.best_pair));
  if (saves_more(tuning, options, tuning.best_partition))
    text += fmt::format("  # the free partition, which --buckets FILE writes: {:.2f} ms\n",
                        in_ms(tuning.best_partition->step));
  return text;
}

/// The lines for PyTorch's DistributedDataParallel, whose buckets close by torch's rule.
std::string torch_settings(const Tuning& tuning, const TuneOptions& options,
                           const Training& training, const Workload& workload) {
  const auto ddp = [&](const std::string& arguments) {
    return fmt::format("  model = DistributedDataParallel(model{}{}{}{})\n{}", arguments,
                       training.find_unused_parameters ? ", find_unused_parameters=True" : "",
                       training.static_graph ? ", static_graph=True" : "",
                       training.gradient_as_bucket_view ? ", gradient_as_bucket_view=True" : "",
                       register_hook(training.comm_hook));
  };
  const Choice& cap = tuning.advice.choice;
  const bool as_it_is = !tuning.advice.pays && tuning.standard_allowed &&
                        cap.step == tuning.standard.step && cap.cap == default_bucket_cap;
  const auto first_bucket = [](const RoundCap& first) {
    return fmt::format(
        "  torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = {}  # before wrapping; {} MiB\n",
        first.bytes.count, first.mib);
  };
  std::string text;
  if (keeps_given(tuning, options)) {
    const Choice& given = tuning.given;
    text = fmt::format("  # nothing to change: this scenario's {}: {:.2f} ms\n",
                       caps_in_words(given), in_ms(given.step));
    if (given.cap > Bytes{} && !given.first_cap)
      text += ddp(", bucket_cap_mb=" + round_cap(given.cap, given.highest_cap).mib);
  } else if (as_it_is) {
    text = fmt::format(
        "  # {}: {:.2f} ms\n{}",
        has_own_buckets(tuning)
            ? "leave bucket_cap_mb out, for DistributedDataParallel's default, bucket_cap_mb=25 "
              "with a first bucket of 1 MiB"
            : "nothing to change: DistributedDataParallel's default, bucket_cap_mb=25",
        in_ms(cap.step), ddp(""));
  } else {
    const RoundCap mib = round_cap(cap.cap, cap.highest_cap);
    const Choice& even_cap = cap.first_cap ? tuning.best_even_cap : cap;
    const RoundCap even = round_cap(even_cap.cap, even_cap.highest_cap);
    text = fmt::format(
        "  # PyTorch from about 2.5, where bucket_cap_mb holds for the first bucket too: {:.2f} "
        "ms\n{}",
        in_ms(even_cap.step),
        ddp(", bucket_cap_mb=" + even.mib +
            (training.batched_grad_copy ? ", batched_grad_copy=True" : "")));
    if (cap.first_cap && *cap.first_cap == default_first_bucket_cap) {
      text +=
          fmt::format("  # PyTorch to about 2.4, where the first bucket stays 1 MiB: {:.2f} ms\n{}",
                      in_ms(cap.step), ddp(", bucket_cap_mb=" + mib.mib));
    } else {
      const RoundCap first = cap.first_cap ? round_cap(*cap.first_cap, *cap.first_cap) : mib;
      text += fmt::format("  # PyTorch 1.10 to about 2.4: {:.2f} ms\n{}{}", in_ms(cap.step),
                          first_bucket(first), ddp(", bucket_cap_mb=" + mib.mib));
    }
  }

  if (saves_more(tuning, options, tuning.best_pair)) {
    const Choice& pair = *tuning.best_pair;
    text +=
        fmt::format("  # both caps, PyTorch 1.10 to about 2.4: {:.2f} ms\n{}{}", in_ms(pair.step),
                    first_bucket(round_cap(*pair.first_cap, pair.highest_first)),
                    ddp(", bucket_cap_mb=" + round_cap(pair.cap, pair.highest_cap).mib));
  }
  if (saves_more(tuning, options, tuning.best_partition) &&
      tuning.best_partition->buckets.size() <= names_on_a_page) {
    std::string caps;
    for (const RoundCap& each : caps_of(*tuning.best_partition, workload))
      caps += fmt::format("{}{}", caps.empty() ? "" : ", ", each.mib);
    text += fmt::format(
        "  # the free partition, PyTorch of 2026 with a list of caps: {:.2f} ms\n{}",
        in_ms(tuning.best_partition->step), ddp(fmt::format(", bucket_cap_mb_list=[{}]", caps)));
  }
  return text;
}

}  // namespace

bool has_own_buckets(const Tuning& tuning) {
  return tuning.given.buckets != tuning.compared().buckets;
}

bool keeps_given(const Tuning& tuning, const TuneOptions& options) {
  const Choice& given = tuning.given;
  return has_own_buckets(tuning) && options.objective != Objective::memory &&
         (!options.largest_bucket || given.largest <= *options.largest_bucket) &&
         tuning.advice.choice.step >= scaled(given.step, 1 - options.noise);
}

const Choice& settled(const Tuning& tuning, const TuneOptions& options) {
  return keeps_given(tuning, options) ? tuning.given : tuning.advice.choice;
}

bool gains_with_errors(const Tuning& tuning, const TuneOptions& options, const Choice& choice) {
  return std::ranges::equal(choice.with_errors, settled(tuning, options).with_errors, std::less{});
}

std::string settings_to_paste(const Tuning& tuning, const TuneOptions& options,
                              const Training& training, const Workload& workload) {
  std::string text = "to paste:\n\n";
  const bool ddp = training.bucket_rule == BucketRule::torch && !training.own_buckets();
  text += ddp ? torch_settings(tuning, options, training, workload)
              : own_settings(tuning, options, training);
  // Other frameworks' defaults are as good; and they have none of these comm hooks.
  const bool hooked = training.comm_hook && training.comm_hook.kind != CommHookKind::allreduce;
  if (!tuning.advice.pays || keeps_given(tuning, options) || hooked) return text;
  const Choice& overflow = tuning.best_overflow_cap;
  const RoundCap fused = round_cap(overflow.cap, overflow.highest_cap);
  text += fmt::format(
      "  # Horovod (fuses up to the threshold; its cycle time is not simulated): {:.2f} ms\n"
      "  HOROVOD_FUSION_THRESHOLD={}\n",
      in_ms(overflow.step), fused.bytes.count);
  const DType type = workload.parameters.front().dtype;
  const bool one_size =
      std::all_of(workload.parameters.begin(), workload.parameters.end(),
                  [&](const Parameter& each) { return size_of(each.dtype) == size_of(type); });
  if (one_size)
    text += fmt::format(
        "  # DeepSpeed, ZeRO stages 0 to 2 (in elements, as buckets there close before they "
        "overflow)\n  \"zero_optimization\": {{\"reduce_bucket_size\": {}}}\n",
        fused.bytes.count / size_of(type).count);
  if (counts(tuning, options, tuning.best_partition) &&
      workload.parameters.size() <= names_on_a_page)
    text += fmt::format("\nthe free partition, for a scenario:\n\n{}",
                        buckets_yaml(tuning.best_partition->buckets, workload));
  return text;
}

DdpArguments ddp_arguments(const Tuning& tuning, const TuneOptions& options,
                           const Training& training, const Workload& workload) {
  if (training.bucket_rule != BucketRule::torch)
    throw std::invalid_argument(
        "training.bucket_rule: DistributedDataParallel makes buckets by the rule torch alone");
  std::vector<DdpArguments> candidates;  // from the simplest on
  const auto add = [&](const Choice& choice) {
    DdpArguments& made = candidates.emplace_back();
    made.step = choice.step;
    const RoundCap cap = round_cap(choice.cap, choice.highest_cap);
    if (choice.cap == default_bucket_cap && choice.first_cap == default_first_bucket_cap) return;
    if (choice.first_cap)
      made.caps = {round_cap(*choice.first_cap, choice.highest_first), cap};
    else
      made.cap = cap;
  };
  const Choice& advised = tuning.advice.choice;
  const bool only_advised = !tuning.advice.corners.empty() || options.objective != Objective::step;
  if (!only_advised) {
    if (tuning.standard_allowed) add(tuning.standard);
    if (tuning.advice.pays) add(tuning.best_even_cap);
  }
  add(advised);
  if (!only_advised && counts(tuning, options, tuning.best_pair)) add(*tuning.best_pair);
  if (!only_advised && counts(tuning, options, tuning.best_partition))
    candidates.push_back(
        {std::nullopt, caps_of(*tuning.best_partition, workload), tuning.best_partition->step});
  Duration shortest = Duration::max();
  for (const DdpArguments& each : candidates) shortest = std::min(shortest, each.step);
  constexpr double as_good = 1.001;
  return *std::find_if(candidates.begin(), candidates.end(), [&](const DdpArguments& each) {
    return each.step <= scaled(shortest, as_good);
  });
}

}  // namespace ddpsim
