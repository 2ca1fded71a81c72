#include "tools/study/zero_code.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/ways/zero_ways.hpp"

namespace ddpsim {
namespace {

/// `"stage3_prefetch_bucket_size": 50000000`, of all options that tune looks at.
std::string deepspeed_code(const Training& training) {
  const ZeroSettings& its = *training.zero();
  const int stage = training.strategy == Strategy::zero1   ? 1
                    : training.strategy == Strategy::zero2 ? 2
                                                           : 3;
  std::vector<std::string> entries{
      fmt::format("\"stage\": {}", stage), fmt::format("\"overlap_comm\": {}", its.overlap_comm),
      fmt::format("\"reduce_bucket_size\": {}", its.reduce_bucket_size)};
  const auto add = [&](const char* key, std::int64_t value) {
    entries.push_back(fmt::format("\"{}\": {}", key, value));
  };
  if (stage == 3) {
    add("stage3_prefetch_bucket_size", its.prefetch_bucket_size);
    add("stage3_param_persistence_threshold", its.param_persistence_threshold);
    add("stage3_max_live_parameters", its.max_live_parameters);
    add("stage3_max_reuse_distance", its.max_reuse_distance);
  }
  std::string precision;
  if (const auto type = training.mp_policy.param_dtype)
    precision = fmt::format("\"{}\": {{\"enabled\": true}},\n", name_of(*type));
  return fmt::format("DeepSpeed's configuration:\n\n{}\"zero_optimization\": {{\n  {}\n}}\n",
                     precision, fmt::join(entries, ",\n  "));
}

/// Source of --grad-reduce-in-bf16: Megatron-LM's megatron/training/arguments.py, by which --bf16
/// alone keeps and reduces gradients in fp32.
std::string megatron_code(const Training& training) {
  const ZeroSettings& its = *training.zero();
  std::vector<std::string> arguments{"--use-distributed-optimizer"};
  if (const auto type = training.mp_policy.param_dtype)
    arguments.push_back(fmt::format("--{}", name_of(*type)));
  if (training.mp_policy.param_dtype == DType::bf16)
    arguments.emplace_back("--grad-reduce-in-bf16");
  if (its.overlap_grad_reduce) arguments.emplace_back("--overlap-grad-reduce");
  if (its.overlap_param_gather) arguments.emplace_back("--overlap-param-gather");
  if (its.overlap_grad_reduce && its.ddp_bucket_size)
    arguments.push_back(fmt::format("--ddp-bucket-size {}", *its.ddp_bucket_size));
  if (its.average_in_collective) arguments.emplace_back("--ddp-average-in-collective");
  return fmt::format("arguments of Megatron-LM:\n\n{}\n", fmt::join(arguments, " "));
}

std::string torch_code(const ZeroSettings& its) {
  return fmt::format(
      "Python for the optimizer, here AdamW:\n\n"
      "import torch\n"
      "from torch.distributed.optim import ZeroRedundancyOptimizer\n\n"
      "optimizer = ZeroRedundancyOptimizer(\n"
      "    model.parameters(), optimizer_class=torch.optim.AdamW,\n"
      "    parameters_as_bucket_view={},\n"
      ")\n",
      its.parameters_as_bucket_view ? "True" : "False");
}

}  // namespace

std::vector<std::string> zero_options(const Training& training, const ZeroSettings& given) {
  const ZeroSettings &its = *training.zero(), standard = standard_zero(training);
  std::vector<std::string> options;
  if (training.strategy == Strategy::zero1)
    options.push_back(fmt::format("variant: {}", name_of(its.variant)));
  const auto add = [&](const char* key, const auto& of) {
    if (of(its) != of(standard) || of(its) != of(given))
      options.push_back(fmt::format("{}: {}", key, of(its)));
  };
  const auto add_member = [&](const char* key, auto ZeroSettings::*member) {
    add(key, [member](const ZeroSettings& settings) { return settings.*member; });
  };
  add_member("parameters_as_bucket_view", &ZeroSettings::parameters_as_bucket_view);
  add("send", [](const ZeroSettings& settings) { return name_of(settings.send); });
  add("gradients", [](const ZeroSettings& settings) { return name_of(settings.gradients); });
  add_member("overlap_comm", &ZeroSettings::overlap_comm);
  add_member("reduce_bucket_size", &ZeroSettings::reduce_bucket_size);
  add_member("stage3_prefetch_bucket_size", &ZeroSettings::prefetch_bucket_size);
  add_member("stage3_param_persistence_threshold", &ZeroSettings::param_persistence_threshold);
  add_member("stage3_max_live_parameters", &ZeroSettings::max_live_parameters);
  add_member("stage3_max_reuse_distance", &ZeroSettings::max_reuse_distance);
  add_member("overlap_grad_reduce", &ZeroSettings::overlap_grad_reduce);
  add_member("overlap_param_gather", &ZeroSettings::overlap_param_gather);
  if (its.ddp_bucket_size)
    options.push_back(fmt::format("ddp_bucket_size: {}", *its.ddp_bucket_size));
  add_member("ddp_average_in_collective", &ZeroSettings::average_in_collective);
  return options;
}

std::string zero_code(const Training& training) {
  const ZeroSettings& its = *training.zero();
  switch (its.variant) {
    case ZeroVariant::torch:
      return torch_code(its);
    case ZeroVariant::course:
      break;
    case ZeroVariant::deepspeed:
      return deepspeed_code(training);
    case ZeroVariant::megatron:
      return megatron_code(training);
  }
  return "";
}

}  // namespace ddpsim
