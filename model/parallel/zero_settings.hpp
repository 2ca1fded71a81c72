#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ddpsim {

/// Whose ZeRO it is: the code differs in what is reduced, when, and how updated parameters travel.
enum class ZeroVariant : std::uint8_t {
  torch,      ///< DistributedDataParallel with ZeroRedundancyOptimizer
  course,     ///< buckets, and a sharded optimizer as students of CS336 write it
  deepspeed,  ///< DeepSpeed's stages
  megatron,   ///< Megatron-LM's distributed optimizer
};
inline constexpr std::array all_zero_variants{ZeroVariant::torch, ZeroVariant::course,
                                              ZeroVariant::deepspeed, ZeroVariant::megatron};
constexpr std::string_view name_of(ZeroVariant variant) {
  constexpr std::array<std::string_view, all_zero_variants.size()> names{"torch", "course",
                                                                         "deepspeed", "megatron"};
  return names[static_cast<std::size_t>(variant)];
}

/// How a sharded optimizer of the course sends what each rank has updated.
enum class ParameterSend : std::uint8_t {
  parameter,  ///< a broadcast for each parameter
  rank,       ///< a broadcast for each rank, of its parameters in one piece
  gather,     ///< one all-gather of all ranks' pieces, padded to the longest
};
inline constexpr std::array all_parameter_sends{ParameterSend::parameter, ParameterSend::rank,
                                                ParameterSend::gather};
constexpr std::string_view name_of(ParameterSend send) {
  constexpr std::array<std::string_view, all_parameter_sends.size()> names{"parameter", "rank",
                                                                           "gather"};
  return names[static_cast<std::size_t>(send)];
}

/// How gradients are reduced beside a sharded optimizer of the course.
enum class CourseGradients : std::uint8_t {
  bucketed,  ///< in buckets, as `bucketed` does
  overlap,   ///< each by its hook, as `overlap` does
};
inline constexpr std::array all_course_gradients{CourseGradients::bucketed,
                                                 CourseGradients::overlap};
constexpr std::string_view name_of(CourseGradients gradients) {
  constexpr std::array<std::string_view, all_course_gradients.size()> names{"bucketed", "overlap"};
  return names[static_cast<std::size_t>(gradients)];
}

/// `zero1`, `zero2` or `zero3`. Sizes are in elements, as those who wrote these programs count.
struct ZeroSettings {
  ZeroVariant variant = ZeroVariant::torch;

  bool parameters_as_bucket_view = false;                 ///< torch: one broadcast for each rank
  ParameterSend send = ParameterSend::parameter;          ///< course
  CourseGradients gradients = CourseGradients::bucketed;  ///< course
  std::int64_t reduce_bucket_size = 500'000'000;          ///< deepspeed
  bool overlap_comm = false;                              ///< deepspeed
  // deepspeed, stage 3:
  std::int64_t prefetch_bucket_size = 50'000'000;
  std::int64_t param_persistence_threshold = 100'000;
  std::int64_t max_live_parameters = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;
  // megatron:
  std::optional<std::int64_t> ddp_bucket_size{};  ///< none: max(40e6, 1e6 ranks)
  bool overlap_grad_reduce = false, overlap_param_gather = false;
  bool average_in_collective = false;

  /// Are gradients reduced one by one, without buckets?
  bool overlaps_each() const {
    return variant == ZeroVariant::course && gradients == CourseGradients::overlap;
  }

  bool operator==(const ZeroSettings&) const = default;
};

}  // namespace ddpsim
