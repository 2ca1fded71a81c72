#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "model/base/index.hpp"
#include "model/workload/collective_operation.hpp"

namespace ddpsim {

/// What a task does in the step. A backend carries it out; how long it takes is in Costs.
enum class Operation : std::uint8_t {
  forward,         ///< a forward kernel
  backward,        ///< a backward kernel
  accumulate,      ///< gradient += new gradient, in later micro-batches
  hook,            ///< a gradient hook of DDP fires (on the host)
  copy_in,         ///< gradient x 1/W into its bucket
  concatenate,     ///< all gradients, those of a bucket, or buffers into one flat piece of memory
  all_reduce,      ///< of a bucket (one parameter, all of them, or anything between)
  wait,            ///< what follows on the compute stream waits for a collective
  divide,          ///< by the ranks of a mean
  copy_out,        ///< bucket, or part of the flat buffer, back into the gradient
  broadcast,       ///< from one rank to all
  search_unused,   ///< find_unused_parameters: the host walks the graph
  copy_to_host,    ///< the input of a collective, where collectives run on the hosts
  copy_to_device,  ///< the result of a collective that ran on the hosts
  optimizer,       ///< an optimizer kernel
  // What the user's hooks do (user_hook.hpp).
  gradient_hook,  ///< with a gradient, before DDP has it
  module_hook,    ///< with a layer's output
  // What comm hooks do besides (model/parallel/hooks).
  all_gather,
  reduce_scatter,
  cast,           ///< from one number format to another
  correct,        ///< error feedback, added, kept or renewed
  pack,           ///< into or out of one contiguous piece
  draw,           ///< random numbers
  multiply,       ///< a GEMM
  orthogonalize,  ///< the columns of a matrix
  quantize,       ///< to 8 bit, or finding the scale for it
  dequantize,
  select,       ///< the largest of many
  own_kernel,   ///< the user's
  synchronize,  ///< the host waits for all the device has been given
  outside,      ///< the host does what is no part of training: loads data, logs
  // What variants of a step have in the place of communication (variants.hpp).
  meet,   ///< the hosts of all ranks wait for each other
  pause,  ///< the thread that communicates sleeps
  // What jobs may hold, and no step of data-parallel training.
  all_to_all,
  send_receive,  ///< a message from one rank to another, at either end
  unit_hook,     ///< the host's part of gathering, freeing and reducing a unit's parameters
};
inline constexpr std::size_t operation_count = static_cast<std::size_t>(Operation::unit_hook) + 1;

namespace program {
/// The pass a task belongs to when a step's length is divided into passes.
enum class Pass : std::uint8_t { forward, backward, optimizer, none };
}  // namespace program

/// What is true of every task with an operation. One row for each is in operation_table.
struct OperationTraits {
  enum class Kind : std::uint8_t {
    kernel,      ///< computes or moves memory of the device; a calibration holds times of these
    collective,  ///< the ranks of a group together
    transfer,    ///< between a device's memory and the host's
    host,        ///< the host's own: hooks, waits, searches
  };
  using Pass = program::Pass;

  std::string_view name;
  Kind kind = Kind::kernel;
  Pass pass = Pass::none;
  /// A comm hook may compute it behind a collective, beside the backward pass. (It may run an
  /// optimizer there too, which is priced as it is anywhere else.)
  bool may_run_aside = false;
  /// Left out by a rank that has run out of inputs (join).
  bool needs_inputs = false;
};

namespace operation_table {
using K = OperationTraits::Kind;
using P = OperationTraits::Pass;
/// [operation] name, kind, pass, may it run aside, does it need inputs.
inline constexpr std::array<OperationTraits, operation_count> rows{{
    {"forward", K::kernel, P::forward, false, true},
    {"backward", K::kernel, P::backward, false, true},
    {"accumulate", K::kernel, P::backward, false, true},
    {"hook", K::host, P::none, false, true},
    {"copy in", K::kernel, P::backward, false, true},
    {"concatenate", K::kernel},
    {"all-reduce", K::collective},
    {"wait", K::host},
    {"divide", K::kernel, P::none, true},
    {"copy out", K::kernel},
    {"broadcast", K::collective},
    {"search unused", K::host, P::none, false, true},
    {"copy to host", K::transfer},
    {"copy to device", K::transfer},
    {"optimizer", K::kernel, P::optimizer, false, true},
    {"gradient hook", K::kernel, P::backward, false, true},
    {"module hook", K::kernel, P::forward, false, true},
    {"all-gather", K::collective},
    {"reduce-scatter", K::collective},
    {"cast", K::kernel, P::none, true},
    {"correct", K::kernel, P::none, true},
    {"pack", K::kernel, P::none, true},
    {"draw", K::kernel, P::none, true},
    {"multiply", K::kernel, P::none, true},
    {"orthogonalize", K::kernel, P::none, true},
    {"quantize", K::kernel, P::none, true},
    {"dequantize", K::kernel, P::none, true},
    {"select", K::kernel, P::none, true},
    {"own kernel", K::kernel, P::none, true},
    {"synchronize", K::host},
    {"outside", K::host},
    {"meet", K::host},
    {"pause", K::host},
    {"all-to-all", K::collective},
    {"send/receive", K::collective},
    {"unit hook", K::host},
}};
}  // namespace operation_table

constexpr const OperationTraits& traits_of(Operation operation) {
  return operation_table::rows[static_cast<std::size_t>(operation)];
}

constexpr std::string_view name_of(Operation operation) {
  return traits_of(operation).name;
}
constexpr bool is_collective(Operation operation) {
  return traits_of(operation).kind == OperationTraits::Kind::collective;
}
/// Which collective of a step of data-parallel training the operation is. Throws std::logic_error
/// for any other.
constexpr CollectiveOperation collective_of(Operation operation) {
  if (operation == Operation::all_reduce) return CollectiveOperation::all_reduce;
  if (operation == Operation::all_gather) return CollectiveOperation::all_gather;
  if (operation == Operation::reduce_scatter) return CollectiveOperation::reduce_scatter;
  if (operation == Operation::broadcast) return CollectiveOperation::broadcast;
  throw std::logic_error("an operation that is no collective is asked which collective it is");
}
/// Is it a collective that jobs alone may hold?
constexpr bool is_of_jobs_alone(Operation operation) {
  return operation == Operation::all_to_all || operation == Operation::send_receive;
}
static_assert([] {  // does not compile while collective_of lacks a collective of such steps
  for (std::size_t i = 0; i < operation_count; ++i)
    if (const auto each = static_cast<Operation>(i); is_collective(each) && !is_of_jobs_alone(each))
      collective_of(each);
  return true;
}());
/// Between a device's memory and the host's?
constexpr bool is_transfer(Operation operation) {
  return traits_of(operation).kind == OperationTraits::Kind::transfer;
}
/// A kernel of the network or of its optimizer, which every strategy has.
constexpr bool is_training(Operation operation) {
  return operation == Operation::forward || operation == Operation::backward ||
         operation == Operation::optimizer;
}

constexpr bool is_kernel(Operation operation) {
  return traits_of(operation).kind == OperationTraits::Kind::kernel;
}
constexpr bool may_run_aside(Operation operation) {
  return traits_of(operation).may_run_aside;
}

/// Every operation that computes.
inline constexpr auto kernel_operations = [] {
  constexpr std::size_t count = [] {
    std::size_t kernels = 0;
    for (const OperationTraits& traits : operation_table::rows)
      kernels += traits.kind == OperationTraits::Kind::kernel ? 1 : 0;
    return kernels;
  }();
  std::array<Operation, count> kernels{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < operation_count; ++i)
    if (operation_table::rows[i].kind == OperationTraits::Kind::kernel)
      kernels[next++] = static_cast<Operation>(i);
  return kernels;
}();

}  // namespace ddpsim
