#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "model/kernel/step_constants.hpp"

namespace ddpsim {

/// A constant of whole steps by its name.
struct NamedConstant {
  std::string_view name;
  double& (*of)(StepConstants&);
};

#define DDPSIM_CONSTANT(member)                                    \
  NamedConstant {                                                  \
#member, [](StepConstants & c) -> double& { return c.member; } \
  }
#define DDPSIM_BLOCK_CONSTANTS(member)                                \
  DDPSIM_CONSTANT(member.start_us), DDPSIM_CONSTANT(member.block_ns), \
      DDPSIM_CONSTANT(member.rate), DDPSIM_CONSTANT(member.sharpness)

inline constexpr std::array step_constants{
    DDPSIM_CONSTANT(warm),
    DDPSIM_CONSTANT(half_warm),
    DDPSIM_CONSTANT(layout_start_us),
    DDPSIM_CONSTANT(layout_rate),
    DDPSIM_CONSTANT(layout_narrow_rate),
    DDPSIM_BLOCK_CONSTANTS(batch_norm),
    DDPSIM_BLOCK_CONSTANTS(batch_norm_backward),
    DDPSIM_CONSTANT(batch_norm_once_rate),
    DDPSIM_CONSTANT(batch_norm_backward_once_rate),
    DDPSIM_CONSTANT(batch_norm_held_bytes),
    DDPSIM_BLOCK_CONSTANTS(batch_norm_statistics),
    DDPSIM_BLOCK_CONSTANTS(batch_norm_own),
    DDPSIM_CONSTANT(batch_norm_transform_rate),
    DDPSIM_CONSTANT(batch_norm_transform_small_rate),
    DDPSIM_CONSTANT(statistics_last_rate),
    DDPSIM_CONSTANT(statistics_last_few_rate),
    DDPSIM_CONSTANT(statistics_last_backward_rate),
    DDPSIM_CONSTANT(transform_last_rate),
    DDPSIM_CONSTANT(transform_last_backward_rate),
    DDPSIM_CONSTANT(layer_norm_backward_rate),
    DDPSIM_CONSTANT(layer_norm_weights_rate),
    DDPSIM_CONSTANT(attention_backward_start_us),
    DDPSIM_CONSTANT(attention_sums_rate),
    DDPSIM_CONSTANT(attention_copy_rate),
    DDPSIM_CONSTANT(efficient_backward_tflops),
    DDPSIM_CONSTANT(max_pool_backward),
    DDPSIM_CONSTANT(max_pool_backward_last),
    DDPSIM_CONSTANT(product_of_a_step),
    DDPSIM_CONSTANT(unaligned_picture),
    DDPSIM_CONSTANT(optimizer_rate),
    DDPSIM_CONSTANT(optimizer_few_rate),
    DDPSIM_CONSTANT(optimizer_tensor_us),
    DDPSIM_CONSTANT(host_of_a_step),
};

#undef DDPSIM_BLOCK_CONSTANTS
#undef DDPSIM_CONSTANT

/// Ends the program where there is none.
inline double& constant_named(std::string_view name, StepConstants& constants) {
  for (const NamedConstant& each : step_constants)
    if (each.name == name) return each.of(constants);
  std::fprintf(stderr, "no constant %s\n", std::string(name).c_str());
  std::exit(2);
}

/// "name=value".
inline void set_constant(std::string_view text, StepConstants& constants) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    std::fprintf(stderr, "%s: expected NAME=VALUE\n", std::string(text).c_str());
    std::exit(2);
  }
  constant_named(text.substr(0, equals), constants) =
      std::stod(std::string(text.substr(equals + 1)));
}

}  // namespace ddpsim
