#include "scenarios/reader/training/fsdp_variant_reader.hpp"

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr std::array fsdp1_keys{"sharding_strategy", "backward_prefetch", "forward_prefetch",
                                "limit_all_gathers", "use_orig_params"};
constexpr std::array fully_shard_keys{"reshard_after_forward",
                                      "reshard_after_backward",
                                      "forward_prefetch",
                                      "backward_prefetch",
                                      "requires_all_reduce",
                                      "reduce_scatter_max_input_buffers",
                                      "separate_reduce_scatter_group",
                                      "offload_policy"};

void check_fsdp1_keys(const FsdpVariantSettings& settings, const YamlMap& map) {
  if (settings.variant == FsdpVariant::fsdp1) return;
  for (const std::string key : fsdp1_keys)
    if (const auto given = map.find(key))
      given->fail(
          fmt::format("{} is a key of variant fsdp1, and this is fully_shard: take it out, "
                      "or write variant: fsdp1",
                      key));
}

/// FullyShardedDataParallel wraps one module, and modelled is one sharding strategy for all.
void check_units(const Yaml& units) {
  for (const Yaml& each : units.list("a list of modules")) {
    if (each.is_map())
      each.fail("settings of single units are of variant fully_shard: name the module alone");
    if (each.text("a module's name").find('+') != std::string::npos)
      each.fail("FullyShardedDataParallel wraps one module: write the modules one by one");
  }
}

}  // namespace

const Map<FsdpVariantSettings>& fsdp_variant_map() {
  static const auto map = [] {
    Map<FsdpVariantSettings> all(
        "fsdp", "Strategy fsdp: which of PyTorch's two it is, and the options of the older one.");
    all.key("variant",
            value::one_of(all_fsdp_variants,
                          {"PyTorch 2's fully_shard (FSDP2)",
                           "FullyShardedDataParallel (FSDP1): the parameters of a unit are one "
                           "flat parameter"}),
            &FsdpVariantSettings::variant, {.meaning = "Whose code it is."})
        .key("sharding_strategy",
             value::one_of(
                 all_sharding_strategies,
                 {"parameters are freed behind their forward pass, but for the root's, and "
                  "gathered again",
                  "parameters stay whole from their forward pass to the end of their backward "
                  "pass",
                  "FULL_SHARD within each of `replicate` replicas",
                  "SHARD_GRAD_OP within each of `replicate` replicas"}),
             &FsdpVariantSettings::sharding_strategy,
             {.meaning = "Variant fsdp1: what is sharded, and how long.",
              .source = "torch.distributed.fsdp.ShardingStrategy (rule F73)"})
        .key("backward_prefetch",
             value::one_of(all_backward_prefetches,
                           {"before the kernels of the unit behind it",
                            "behind these kernels, before the reduce-scatter of their gradients",
                            "when its own kernels are to run, behind that reduce-scatter"}),
             &FsdpVariantSettings::backward_prefetch,
             {.meaning = "Variant fsdp1: when a unit is gathered for its backward pass.",
              .source = "torch.distributed.fsdp.BackwardPrefetch (rule F75)"})
        .key("forward_prefetch", value::boolean(), &FsdpVariantSettings::forward_prefetch,
             {.meaning = "Variant fsdp1: whether the host issues the next unit's gather before a "
                         "unit's forward pass. In backward each reduce-scatter then comes one "
                         "unit later.",
              .source = "torch.distributed.fsdp.FullyShardedDataParallel (rules F74, F78)"})
        .key("limit_all_gathers", value::boolean(), &FsdpVariantSettings::limit_all_gathers,
             {.meaning = "Variant fsdp1: whether the host waits, before it gathers, while two "
                         "units that it freed are still in use.",
              .source = "torch.distributed.fsdp.FullyShardedDataParallel (rule F76)"})
        .key("use_orig_params", value::boolean(), &FsdpVariantSettings::use_orig_params,
             {.meaning = "Variant fsdp1: whether the model keeps its own parameters. They lie at "
                         "multiples of 16 bytes then, and the flat parameter is padded when it is "
                         "made, not before each reduce-scatter.",
              .source = "torch.distributed.fsdp.FullyShardedDataParallel (rule F72)"});
    all.check(check_fsdp1_keys);
    return all;
  }();
  return map;
}

void check_keys_of_variant(const Training& training, const YamlMap& given) {
  if (training.fsdp.variant == FsdpVariant::fully_shard) return;
  for (const std::string key : fully_shard_keys)
    if (const auto found = given.find(key))
      found->fail(
          fmt::format("{} is a key of variant fully_shard, and training.fsdp.variant is "
                      "fsdp1: take it out, or write variant: fully_shard",
                      key));
  if (const auto units = given.find("units")) check_units(*units);
}

}  // namespace ddpsim
