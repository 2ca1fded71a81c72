#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ddpsim {

inline constexpr std::int32_t nobody = -1;  ///< an index that points nowhere

/// What a task does. The simulator only needs its costs; a backend does the thing.
enum class Operation : std::uint8_t {
  forward,         ///< a forward kernel
  backward,        ///< a backward kernel
  accumulate,      ///< gradient += new gradient, in later micro-batches
  hook,            ///< a gradient hook fires (on the host)
  copy_in,         ///< gradient x 1/W into its bucket
  concatenate,     ///< all gradients, a bucket's or buffers into one flat buffer
  all_reduce,      ///< of a bucket (one parameter, all of them, or anything between)
  wait,            ///< what follows on the compute stream waits for an all-reduce
  divide,          ///< by Schedule::divisor
  copy_out,        ///< bucket, or part of the flat buffer, back into the gradient
  broadcast,       ///< from one rank to all
  search_unused,   ///< find_unused_parameters: the host walks the graph
  copy_to_host,    ///< what a collective is given, where those run on the host
  copy_to_device,  ///< and what it gives
  optimizer,       ///< an optimizer kernel
  // What the user's hooks do (user_hook.hpp).
  gradient_hook,  ///< with a gradient, before DDP has it
  module_hook,    ///< with a layer's output
  // What comm hooks do besides (comm_hook.hpp).
  all_gather,
  reduce_scatter,
  cast,           ///< from one number format to another
  correct,        ///< PowerSGD: error feedback, added, kept or renewed
  pack,           ///< into or out of one contiguous piece
  draw,           ///< random numbers
  multiply,       ///< a GEMM
  orthogonalize,  ///< the columns of a matrix
  quantize,       ///< to 8 bit, or finding the scale for it
  dequantize,
  select,       ///< the largest of many
  own_kernel,   ///< the user's
  synchronize,  ///< the host waits for all the device has been given
};
inline constexpr std::size_t operation_count = static_cast<std::size_t>(Operation::synchronize) + 1;
std::string_view name_of(Operation operation);

constexpr bool is_collective(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::broadcast ||
         operation == Operation::all_gather || operation == Operation::reduce_scatter;
}

/// Those that compute: a calibration holds times of these, and of no others.
inline constexpr std::array kernel_operations{
    Operation::forward,       Operation::backward,      Operation::accumulate,
    Operation::copy_in,       Operation::concatenate,   Operation::divide,
    Operation::copy_out,      Operation::optimizer,     Operation::cast,
    Operation::correct,       Operation::pack,          Operation::draw,
    Operation::multiply,      Operation::orthogonalize, Operation::quantize,
    Operation::dequantize,    Operation::select,        Operation::own_kernel,
    Operation::gradient_hook, Operation::module_hook};

/// What a comm hook computes, and so may run aside: behind a collective, beside the backward pass. (An
/// optimizer may too, but is priced as it is anywhere else.)
constexpr bool may_run_aside(Operation operation) {
  switch (operation) {
    case Operation::divide:
    case Operation::cast:
    case Operation::correct:
    case Operation::pack:
    case Operation::draw:
    case Operation::multiply:
    case Operation::orthogonalize:
    case Operation::quantize:
    case Operation::dequantize:
    case Operation::select:
    case Operation::own_kernel:
      return true;
    default:
      return false;
  }
}

}  // namespace ddpsim
