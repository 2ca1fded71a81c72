#include "model/parallel/comm_step.hpp"

#include <algorithm>
#include <cmath>

namespace ddpsim {

std::string_view name_of(CommAction action) {
  switch (action) {
    case CommAction::divide:
      return "divide";
    case CommAction::narrow:
      return "cast to wire";
    case CommAction::widen:
      return "cast back";
    case CommAction::scale:
      return "scale";
    case CommAction::reduce:
      return "all-reduce";
    case CommAction::pad:
      return "pad";
    case CommAction::add_error:
      return "add error";
    case CommAction::keep_input:
      return "keep input";
    case CommAction::pack:
      return "pack uncompressed";
    case CommAction::draw_q:
      return "draw Q";
    case CommAction::orthogonalize_q:
      return "orthogonalize Q";
    case CommAction::project:
      return "P = M Q";
    case CommAction::reduce_small:
      return "all-reduce uncompressed";
    case CommAction::unpack:
      return "unpack uncompressed";
    case CommAction::reduce_p:
      return "all-reduce P";
    case CommAction::orthogonalize_p:
      return "orthogonalize P";
    case CommAction::back_project:
      return "Q = M^T P";
    case CommAction::reduce_q:
      return "all-reduce Q";
    case CommAction::divide_q:
      return "divide Q";
    case CommAction::reconstruct:
      return "M = P Q^T";
    case CommAction::keep_error:
      return "keep error";
    case CommAction::unpad:
      return "unpad";
    case CommAction::observe:
      return "find scale";
    case CommAction::gather_scales:
      return "all-gather scales";
    case CommAction::quantize:
      return "quantize";
    case CommAction::gather_codes:
      return "all-gather codes";
    case CommAction::dequantize:
      return "dequantize";
    case CommAction::select:
      return "select largest";
    case CommAction::gather_pairs:
      return "all-gather pairs";
    case CommAction::spread_pairs:
      return "add up pairs";
    case CommAction::scatter_reduce:
      return "reduce-scatter";
    case CommAction::gather_parts:
      return "all-gather parts";
    case CommAction::gather_sum:
      return "all-gather and add";
    case CommAction::broadcast:
      return "broadcast";
    case CommAction::touch:
      return "own kernel";
    case CommAction::synchronize:
      return "synchronize";
    case CommAction::update:
      return "optimizer";
    case CommAction::send_parameters:
      return "broadcast parameters";
    case CommAction::reduce_subgroup:
      return "all-reduce in subgroup";
    case CommAction::divide_subgroup:
      return "divide";
    case CommAction::plugin_before:
      return "plugin before";
    case CommAction::plugin_reduce:
      return "all-reduce payload";
    case CommAction::plugin_after:
      return "plugin after";
  }
  return "?";
}

bool computes_aside(const std::vector<CommStep>& steps) {
  const auto collective = [](const CommStep& step) { return is_collective(step.operation); };
  const auto first = std::find_if(steps.begin(), steps.end(), collective);
  return std::any_of(first, steps.end(), [&](const CommStep& step) {
    return !collective(step) && step.operation != Operation::synchronize;
  });
}

std::int64_t batched_side(std::int64_t elements) {
  auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
  while (side * side < elements) ++side;
  while (side > 0 && (side - 1) * (side - 1) >= elements) --side;
  return side;
}

}  // namespace ddpsim
