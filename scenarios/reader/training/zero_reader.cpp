#include "scenarios/reader/training/zero_reader.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr std::int64_t most_counted = std::int64_t{1} << 50;

struct KeyOf {
  std::string_view key;
  ZeroVariant variant;
};
constexpr std::array keys_of_variants{
    KeyOf{"parameters_as_bucket_view", ZeroVariant::torch},
    KeyOf{"send", ZeroVariant::course},
    KeyOf{"gradients", ZeroVariant::course},
    KeyOf{"reduce_bucket_size", ZeroVariant::deepspeed},
    KeyOf{"overlap_comm", ZeroVariant::deepspeed},
    KeyOf{"ddp_bucket_size", ZeroVariant::megatron},
    KeyOf{"overlap_grad_reduce", ZeroVariant::megatron},
    KeyOf{"overlap_param_gather", ZeroVariant::megatron},
    KeyOf{"ddp_average_in_collective", ZeroVariant::megatron},
};

void check_keys(const ZeroSettings& settings, const YamlMap& map) {
  for (const KeyOf& each : keys_of_variants)
    if (const auto given = map.find(std::string(each.key));
        given && each.variant != settings.variant)
      given->fail(fmt::format(
          "{} is a key of variant {}, and this is {}: take it out, or write "
          "variant: {}",
          each.key, name_of(each.variant), name_of(settings.variant), name_of(each.variant)));
}

/// Sizes count elements: a size in bytes is refused by its unit.
Value<std::int64_t> elements() {
  return value::whole<std::int64_t>(1, most_counted);
}

void add_deepspeed(Map<ZeroSettings>& map, std::string_view overlaps) {
  map.key("reduce_bucket_size", elements(), &ZeroSettings::reduce_bucket_size,
          {.meaning = "Variant deepspeed: the elements at which a bucket of gradients is reduced, "
                      "before it would hold more.",
           .source = "DeepSpeed's zero_optimization.reduce_bucket_size (rule F85)"})
      .key("overlap_comm", value::boolean(), &ZeroSettings::overlap_comm,
           {.meaning = "Variant deepspeed: whether reductions run on a stream of their own, from "
                       "hooks.",
            .unset = std::string(overlaps),
            .source = "DeepSpeed's zero_optimization.overlap_comm (rule F87)"});
}

}  // namespace

const Map<ZeroSettings>& zero1_map() {
  static const auto map = [] {
    Map<ZeroSettings> all("zero1", "Strategy zero1: each rank updates a part of the parameters.");
    all.key("variant",
            value::one_of(all_zero_variants,
                          {"DistributedDataParallel with ZeroRedundancyOptimizer",
                           "a sharded optimizer as CS336 has it, beside its own ways to reduce "
                           "gradients",
                           "DeepSpeed's stage 1", "Megatron-LM's distributed optimizer"}),
            &ZeroSettings::variant, {.meaning = "Whose code it is."})
        .key("parameters_as_bucket_view", value::boolean(),
             &ZeroSettings::parameters_as_bucket_view,
             {.meaning = "Variant torch: whether the parameters that a rank owns lie in one piece "
                         "and are broadcast together.",
              .source = "torch.distributed.optim.ZeroRedundancyOptimizer (rule F80)"})
        .key("send",
             value::one_of(all_parameter_sends,
                           {"a broadcast for each", "a broadcast for each rank's, in one piece",
                            "one all-gather of all pieces, padded to the longest"}),
             &ZeroSettings::send, {.meaning = "Variant course: how updated parameters travel."})
        .key("gradients",
             value::one_of(all_course_gradients, {"in buckets, as `bucketed` does",
                                                  "each by its hook, as `overlap` does"}),
             &ZeroSettings::gradients, {.meaning = "Variant course: how gradients are reduced."});
    add_deepspeed(all, "false");
    all.key("ddp_bucket_size", elements(), &ZeroSettings::ddp_bucket_size,
            {.meaning = "Variant megatron: the elements at which a bucket is closed, with "
                        "overlap_grad_reduce.",
             .otherwise = "40 million, or a million for each rank if that is more",
             .example = "40000000",
             .source = "Megatron-LM's --ddp-bucket-size (rule F93)"})
        .key("overlap_grad_reduce", value::boolean(), &ZeroSettings::overlap_grad_reduce,
             {.meaning = "Variant megatron: whether buckets are reduce-scattered during backward. "
                         "If not, all gradients are one bucket.",
              .source = "Megatron-LM's --overlap-grad-reduce (rule F95)"})
        .key("overlap_param_gather", value::boolean(), &ZeroSettings::overlap_param_gather,
             {.meaning = "Variant megatron: whether updated parameters are gathered during the "
                         "next forward pass, one bucket ahead.",
              .source = "Megatron-LM's --overlap-param-gather (rule F96)"})
        .key("ddp_average_in_collective", value::boolean(), &ZeroSettings::average_in_collective,
             {.meaning = "Variant megatron: whether reduce-scatters make the mean, in place of a "
                         "kernel before each.",
              .source = "Megatron-LM's --ddp-average-in-collective (rule F95)"});
    all.check(check_keys);
    return all;
  }();
  return map;
}

const Map<ZeroSettings>& zero2_map() {
  static const auto map = [] {
    Map<ZeroSettings> all("zero2",
                          "Strategy zero2: each rank keeps the gradients of its part alone, too. "
                          "It is DeepSpeed's stage 2.");
    add_deepspeed(all, "false");
    return all;
  }();
  return map;
}

const Map<ZeroSettings>& zero3_map() {
  static const auto map = [] {
    Map<ZeroSettings> all("zero3",
                          "Strategy zero3: each rank keeps its part of the parameters alone, too. "
                          "It is DeepSpeed's stage 3.");
    add_deepspeed(all, "true");
    all.key("stage3_prefetch_bucket_size", value::whole<std::int64_t>(0, most_counted),
            &ZeroSettings::prefetch_bucket_size,
            {.meaning = "The elements that are gathered ahead of the module that runs.",
             .source = "DeepSpeed's zero_optimization.stage3_prefetch_bucket_size (rule F89)"})
        .key("stage3_param_persistence_threshold", value::whole<std::int64_t>(0, most_counted),
             &ZeroSettings::param_persistence_threshold,
             {.meaning = "Parameters of at most so many elements stay whole on every rank.",
              .source = "DeepSpeed's zero_optimization.stage3_param_persistence_threshold (rule "
                        "F91)"})
        .key("stage3_max_live_parameters", elements(), &ZeroSettings::max_live_parameters,
             {.meaning = "The elements that are whole at a time, at most, by gathering ahead.",
              .source = "DeepSpeed's zero_optimization.stage3_max_live_parameters (rule F89)"})
        .key("stage3_max_reuse_distance", value::whole<std::int64_t>(0, most_counted),
             &ZeroSettings::max_reuse_distance,
             {.meaning = "A parameter stays whole if it is used again within so many elements.",
              .source = "DeepSpeed's zero_optimization.stage3_max_reuse_distance (rule F91)"});
    return all;
  }();
  return map;
}

}  // namespace ddpsim
