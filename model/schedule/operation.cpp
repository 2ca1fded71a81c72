#include "model/schedule/operation.hpp"

namespace ddpsim {

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::forward:
      return "forward";
    case Operation::backward:
      return "backward";
    case Operation::accumulate:
      return "accumulate";
    case Operation::hook:
      return "hook";
    case Operation::copy_in:
      return "copy in";
    case Operation::concatenate:
      return "concatenate";
    case Operation::all_reduce:
      return "all-reduce";
    case Operation::wait:
      return "wait";
    case Operation::divide:
      return "divide";
    case Operation::copy_out:
      return "copy out";
    case Operation::broadcast:
      return "broadcast";
    case Operation::search_unused:
      return "search unused";
    case Operation::copy_to_host:
      return "copy to host";
    case Operation::copy_to_device:
      return "copy to device";
    case Operation::optimizer:
      return "optimizer";
    case Operation::gradient_hook:
      return "gradient hook";
    case Operation::module_hook:
      return "module hook";
    case Operation::all_gather:
      return "all-gather";
    case Operation::reduce_scatter:
      return "reduce-scatter";
    case Operation::cast:
      return "cast";
    case Operation::correct:
      return "correct";
    case Operation::pack:
      return "pack";
    case Operation::draw:
      return "draw";
    case Operation::multiply:
      return "multiply";
    case Operation::orthogonalize:
      return "orthogonalize";
    case Operation::quantize:
      return "quantize";
    case Operation::dequantize:
      return "dequantize";
    case Operation::select:
      return "select";
    case Operation::own_kernel:
      return "own kernel";
    case Operation::synchronize:
      return "synchronize";
  }
  return "?";
}

}  // namespace ddpsim
