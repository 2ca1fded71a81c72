#include "tools/study/wrapping.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/base/index.hpp"
#include "model/parallel/policy/fsdp_units.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

using Members = std::vector<std::int32_t>;  ///< parameters

bool is_digit(char each) {
  return each >= '0' && each <= '9';
}

/// Which parameters lie under which module.
class Modules {
 public:
  explicit Modules(const std::vector<std::string>& names)
      : names_(names), taken_(names.size(), false) {
    for (std::size_t i = 0; i < names.size(); ++i)
      for (std::size_t dot = names[i].find('.'); dot != std::string::npos;
           dot = names[i].find('.', dot + 1)) {
        const std::string module = names[i].substr(0, dot);
        under_[module].push_back(static_cast<std::int32_t>(i));
        if (!is_digit(names[i][dot + 1])) named_.insert(module);
      }
  }

  /// The modules of a unit, whose parameters later ones find taken; none: they have no such.
  std::optional<UnitModules> take(const Members& unit) {
    std::set<std::int32_t> left(unit.begin(), unit.end());
    UnitModules modules;
    while (!left.empty()) {
      const std::optional<std::string> module = outermost(names_[at(*left.begin())], left);
      if (!module) return std::nullopt;
      for (const std::int32_t each : free_under(*module)) left.erase(each);
      modules.push_back(*module);
    }
    for (const std::int32_t each : unit) taken_[at(each)] = true;
    return modules;
  }

 private:
  Members free_under(const std::string& module) const {
    Members members;
    for (const std::int32_t each : under_.at(module))
      if (!taken_[at(each)]) members.push_back(each);
    return members;
  }

  /// Among the modules that the name lies under, and that are no mere lists (a block is none), the
  /// outermost one with nothing else to take, or the innermost that takes the same and is no part
  /// of a block.
  std::optional<std::string> outermost(const std::string& name,
                                       const std::set<std::int32_t>& unit) const {
    const std::size_t block = block_of(name).size();
    std::optional<std::string> found;
    std::size_t takes = 0;
    for (std::size_t dot = name.find('.'); dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      const std::string module = name.substr(0, dot);
      if (!named_.contains(module) && dot != block) continue;
      const Members members = free_under(module);
      const auto is_of_unit = [&](std::int32_t each) { return unit.contains(each); };
      if (!std::ranges::all_of(members, is_of_unit)) continue;
      const bool is_inside = block > 0 && dot > block;
      if (found && (members.size() != takes || is_inside)) break;
      found = module;
      takes = members.size();
    }
    return found;
  }

  const std::vector<std::string>& names_;
  std::map<std::string, Members> under_;
  std::set<std::string> named_;  ///< modules whose children have names and not numbers alone
  std::vector<bool> taken_;
};

/// "layers." 3 ".attention": a name around the first number between its dots.
struct Numbered {
  std::string before, behind;
  int number = 0;

  bool is_beside(const Numbered& other) const {
    return before == other.before && behind == other.behind && number == other.number + 1;
  }
};

std::optional<Numbered> numbered(const std::string& name) {
  const std::string block = block_of(name);
  if (block.empty()) return std::nullopt;
  const std::size_t begin = block.rfind('.') + 1;  // npos + 1 is 0
  Numbered found{block.substr(0, begin), name.substr(block.size())};
  const char* end = block.data() + block.size();
  const auto read = std::from_chars(block.data() + begin, end, found.number);
  const bool is_plain =
      read.ec == std::errc() && fmt::format("{}", found.number).size() == block.size() - begin;
  return is_plain ? std::optional(found) : std::nullopt;
}

/// Units of as many modules each, numbered one after the other; the last may have fewer.
struct Run {
  Numbered first;
  std::size_t each = 1;  ///< modules of a unit
  std::size_t units = 0;
  int end = 0;  ///< behind the last number
};

/// The run that the units from `begin` on are; of 0 units where the first one has no numbers.
Run run_from(const std::vector<UnitModules>& units, std::size_t begin) {
  Run run;
  std::optional<Numbered> last;
  for (std::size_t u = begin; u < units.size(); ++u) {
    std::optional<Numbered> newest = last;
    for (const std::string& name : units[u]) {
      const auto next = numbered(name);
      if (!next || (newest && !next->is_beside(*newest))) return run;
      newest = next;
    }
    if (u == begin) {
      run.first = *numbered(units[u].front());
      run.each = units[u].size();
    }
    if (units[u].size() > run.each) return run;
    last = newest;
    ++run.units;
    run.end = last->number + 1;
    if (units[u].size() < run.each) return run;
  }
  return run;
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char each : name) {
    if (each == '"' || each == '\\') text += '\\';
    text += each;
  }
  return text + "\"";
}

std::string list_of(const UnitModules& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(quoted(name));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

/// `f"layers.{i}"`
std::string pattern_of(const Numbered& first, char index) {
  std::string text = quoted(first.before);
  text.pop_back();
  return fmt::format("f{}{{{}}}{}", text, index, quoted(first.behind).substr(1));
}

/// `range(32)`, `range(1, 5)`, `range(0, 32, 4)`
std::string range_of(int first, int end, std::size_t step) {
  if (step > 1) return fmt::format("range({}, {}, {})", first, end, step);
  return first == 0 ? fmt::format("range({})", end) : fmt::format("range({}, {})", first, end);
}

/// `[[f"layers.{i}"] for i in range(32)]`
std::string list_of(const Run& run) {
  const int first = run.first.number;
  if (run.each == 1)
    return fmt::format("[[{}] for i in {}]", pattern_of(run.first, 'i'),
                       range_of(first, run.end, 1));
  const bool is_even = static_cast<std::size_t>(run.end - first) % run.each == 0;
  const std::string last = fmt::format("i + {}", run.each);
  return fmt::format("[[{} for j in range(i, {})] for i in {}]", pattern_of(run.first, 'j'),
                     is_even ? last : fmt::format("min({}, {})", last, run.end),
                     range_of(first, run.end, run.each));
}

/// The units as a Python expression, `indent` deep where it takes several lines.
std::string expression_of(const std::vector<UnitModules>& units) {
  std::vector<std::string> parts;
  for (std::size_t u = 0; u < units.size();) {
    const Run run = run_from(units, u);
    if (run.units > 1) {
      parts.push_back(list_of(run));
      u += run.units;
      continue;
    }
    parts.push_back(fmt::format("[{}]", list_of(units[u++])));
  }
  if (parts.size() == 1) return parts.front();
  return fmt::format("(\n    {}\n)", fmt::join(parts, "\n    + "));
}

/// Blocks that run forward again in the backward pass, each as a unit.
std::vector<UnitModules> checkpoints_of(const Workload& workload) {
  std::set<int> layers;
  for (std::size_t i = 0; i < workload.layers.size(); ++i)
    for (const Kernel& kernel : workload.layers[i].backward)
      if (kernel.recomputed == 1) layers.insert(static_cast<int>(i));
  std::vector<UnitModules> blocks;
  std::set<std::string> known;
  for (const Parameter& parameter : workload.parameters) {
    const std::string block = block_of(parameter.name);
    if (layers.contains(parameter.layer) && !block.empty() && known.insert(block).second)
      blocks.push_back({block});
  }
  return blocks;
}

/// Do checkpoints keep what some operations gave, so that they run fewer kernels again?
bool are_selective(const Workload& workload) {
  return std::ranges::any_of(workload.layers, [](const Layer& layer) {
    const auto again = std::ranges::count_if(
        layer.backward, [](const Kernel& kernel) { return kernel.recomputed == 1; });
    return again > 0 && again < static_cast<std::ptrdiff_t>(layer.forward.size());
  });
}

/// What a selective checkpoint keeps (checkpoint_operations_of_last_layer), for PyTorch.
constexpr std::string_view selective_code = R"(attention = {
    getattr(torch.ops.aten, name).default
    for name in ("_scaled_dot_product_flash_attention",
                 "_scaled_dot_product_efficient_attention",
                 "_scaled_dot_product_cudnn_attention",
                 "_scaled_dot_product_flash_attention_for_cpu")
}

def kept_results():
    """What attention gives, and every second product with a weight, is kept."""
    products = {False: 0, True: 0}  # in forward, and where forward runs again

    def policy(context, operation, *arguments, **keywords):
        is_kept = operation in attention
        if operation is torch.ops.aten.mm.default:
            products[context.is_recompute] += 1
            is_kept = products[context.is_recompute] % 2 == 1
        return CheckpointPolicy.MUST_SAVE if is_kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)

)";

/// Checkpoints as a Python expression of names: every so many-th block, as far as they are so.
std::string names_expression_of(const std::vector<UnitModules>& blocks) {
  const auto first = numbered(blocks.front().front());
  const auto second = blocks.size() > 1 ? numbered(blocks[1].front()) : std::nullopt;
  std::vector<std::string> names;
  bool is_even = first && second && second->number > first->number;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    names.push_back(quoted(blocks[i].front()));
    const auto each = numbered(blocks[i].front());
    is_even =
        is_even && each && each->before == first->before &&
        each->number == first->number + static_cast<int>(i) * (second->number - first->number);
  }
  if (!is_even) return fmt::format("[{}]", fmt::join(names, ", "));
  const int step = second->number - first->number;
  const int last = first->number + step * static_cast<int>(blocks.size() - 1);
  return fmt::format("[{} for i in {}]", pattern_of(*first, 'i'),
                     range_of(first->number, last + 1, static_cast<std::size_t>(step)));
}

const char* torch_name_of(DType type) {
  return type == DType::bf16   ? "torch.bfloat16"
         : type == DType::fp16 ? "torch.float16"
                               : "torch.float32";
}

/// `MixedPrecisionPolicy(param_dtype=torch.bfloat16)`
std::string policy_of(const MixedPrecision& policy) {
  std::vector<std::string> arguments;
  if (policy.param_dtype)
    arguments.push_back(fmt::format("param_dtype={}", torch_name_of(*policy.param_dtype)));
  if (policy.reduce_dtype)
    arguments.push_back(fmt::format("reduce_dtype={}", torch_name_of(*policy.reduce_dtype)));
  return fmt::format("MixedPrecisionPolicy({})", fmt::join(arguments, ", "));
}

/// The keyword arguments of every call, a line each.
std::vector<std::string> arguments_of(const Scenario& scenario) {
  const Training& training = scenario.training;
  std::vector<std::string> lines;
  if (training.replicate > 1)
    lines.push_back(fmt::format(
        "mesh=init_device_mesh(\"{}\", ({}, {}), mesh_dim_names=(\"replicate\", \"shard\")),",
        scenario.cluster.device.synchronous ? "cpu" : "cuda", training.replicate,
        scenario.cluster.ranks() / training.replicate));
  if (!(training.mp_policy == MixedPrecision{}))
    lines.push_back(fmt::format("mp_policy={},", policy_of(training.mp_policy)));
  if (training.offload_policy) lines.emplace_back("offload_policy=CPUOffloadPolicy(),");
  if (const auto& reshard = training.reshard_after_forward)
    lines.push_back(fmt::format("reshard_after_forward={},", reshard->ranks > 0 && reshard->frees
                                                                 ? reshard_text(reshard)
                                                             : reshard->frees ? "True"
                                                                              : "False"));
  return lines;
}

/// Explicit prefetch, in both directions.
std::string prefetch_code(const Training& training, const std::vector<UnitModules>& units) {
  if (units.empty() || training.forward_prefetch + training.backward_prefetch == 0) return "";
  std::string text = fmt::format(
      "units = [model.get_submodule(names[0]) for names in {}]\n"
      "for i, unit in enumerate(units):\n",
      expression_of(units));
  if (training.forward_prefetch > 0)
    text += fmt::format("    unit.set_modules_to_forward_prefetch(units[i + 1:i + 1 + {}])\n",
                        training.forward_prefetch);
  if (training.backward_prefetch > 0)
    text +=
        fmt::format("    unit.set_modules_to_backward_prefetch(units[max(0, i - {}):i][::-1])\n",
                    training.backward_prefetch);
  return text;
}

/// What a training loop says, or single units do.
std::string left_to_say(const Training& training) {
  std::string text;
  if (!training.unit_settings.empty())
    text += "# and the settings that training.units gives to single units\n";
  if (training.micro_batches > 1 && !training.reshard_after_backward)
    text += "# in all micro-batches but the last: model.set_reshard_after_backward(False)\n";
  if (training.micro_batches > 1 && training.requires_all_reduce == AllReduced::last)
    text += "# in all micro-batches but the last: model.set_requires_all_reduce(False)\n";
  if (training.micro_batches > 1 && training.no_sync)
    text += "# in all micro-batches but the last: model.set_requires_gradient_sync(False)\n";
  return text;
}

}  // namespace

std::vector<UnitModules> unit_modules(const Workload& workload, const Training& training) {
  const std::vector<std::string> names = names_for_units(workload);
  const std::vector<Members> units = training.units.empty() ? block_units(names) : training.units;
  Modules modules(names);
  std::vector<UnitModules> found;
  for (const Members& unit : units) {
    std::optional<UnitModules> names_of_unit = modules.take(unit);
    if (!names_of_unit) return {};
    found.push_back(std::move(*names_of_unit));
  }
  return found;
}

bool are_blocks(const Workload& workload, const Training& training) {
  return training.unit_settings.empty() &&
         (training.units.empty() || training.units == block_units(names_for_units(workload)));
}

std::string units_text(const Workload& workload, const Training& training) {
  const std::vector<UnitModules> units = unit_modules(workload, training);
  std::set<std::string> blocks;
  for (const std::string& name : names_for_units(workload)) blocks.insert(block_of(name));
  std::vector<std::string> texts;
  for (std::size_t u = 0; u < units.size();) {
    const Run run = run_from(units, u);
    const auto is_of_list = [&](const std::string& block) {
      const auto each = numbered(block);
      return each && each->before == run.first.before;
    };
    const auto all = static_cast<std::size_t>(std::ranges::count_if(blocks, is_of_list));
    if (run.each == 1 && run.units > 1 && run.units == all) {
      texts.push_back(quoted(run.first.before + "*" + run.first.behind));
      u += run.units;
    } else {
      texts.push_back(quoted(fmt::format("{}", fmt::join(units[u++], "+"))));
    }
  }
  return texts.empty() ? "" : fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string fully_shard_code(const Scenario& scenario) {
  const Training& training = scenario.training;
  const std::vector<std::string> arguments = arguments_of(scenario);
  const std::vector<UnitModules> units = unit_modules(scenario.workload, training);
  const std::vector<UnitModules> blocks =
      scenario.described ? std::vector<UnitModules>{} : checkpoints_of(scenario.workload);
  const bool casts = !(training.mp_policy == MixedPrecision{});
  const bool selects = !blocks.empty() && are_selective(scenario.workload);
  std::string text;
  if (casts || selects) text += "import torch\n";
  if (!blocks.empty())
    text +=
        "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import "
        "checkpoint_wrapper\n";
  if (training.replicate > 1)
    text += "from torch.distributed.device_mesh import init_device_mesh\n";
  text += fmt::format("from torch.distributed.fsdp import {}{}fully_shard\n\n",
                      training.offload_policy ? "CPUOffloadPolicy, " : "",
                      casts ? "MixedPrecisionPolicy, " : "");
  if (selects) {
    text.insert(text.size() - 1,
                "from torch.utils.checkpoint import CheckpointPolicy, "
                "create_selective_checkpoint_contexts\n");
    text += selective_code;
  }
  if (!blocks.empty())
    text += fmt::format(
        "for name in {}:\n"
        "    above, _, last = name.rpartition(\".\")\n"
        "    block = checkpoint_wrapper(model.get_submodule(name){})\n"
        "    setattr(model.get_submodule(above), last, block)\n",
        names_expression_of(blocks), selects ? ", context_fn=kept_results" : "");
  std::string given;
  if (!arguments.empty()) {
    text += fmt::format("sharding = dict(\n    {}\n)\n", fmt::join(arguments, "\n    "));
    given = ", **sharding";
  }
  if (!units.empty())
    text += fmt::format(
        "for names in {}:\n"
        "    fully_shard([model.get_submodule(name) for name in names]{})\n",
        expression_of(units), given);
  else if (!training.units.empty())
    text += "# here fully_shard of each unit: the names of parameters do not tell their modules\n";
  text += fmt::format("fully_shard(model{})\n", given);
  if (training.reduce_scatter_max_input_buffers > 1)
    text += fmt::format("model.set_reduce_scatter_max_input_buffers({})\n",
                        training.reduce_scatter_max_input_buffers);
  if (training.separate_reduce_scatter_group) text += "model.set_separate_reduce_scatter_group()\n";
  return text + prefetch_code(training, units) + left_to_say(training);
}

}  // namespace ddpsim
