#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/base/dtype.hpp"
#include "model/base/index.hpp"

namespace ddpsim::program {

/// Index into Job::buffers.
using BufferId = std::uint32_t;
inline constexpr BufferId no_buffer = ~BufferId{0};

/// What a buffer's memory is for.
enum class Holds : std::uint8_t {
  parameter,
  gradient,
  bucket,
  optimizer,  ///< its state: moments, masters
  activation,
  gathered,   ///< what all ranks have sent, as it came: parameters of a unit, a comm hook's codes
  scattered,  ///< the input of a reduce-scatter
  hook,       ///< a comm hook's: errors, factors, codes
  module_buffer,
  note,       ///< what ranks announce to each other
  frozen,     ///< parameters that are not trained
  input,      ///< the batch
  workspace,  ///< what libraries keep for their kernels
  working,    ///< what a module's passes or an optimizer take for a while
};
inline constexpr std::size_t kinds_of_memory = static_cast<std::size_t>(Holds::working) + 1;
std::string_view name_of(Holds holds);

/// How long a buffer is there.
enum class Life : std::uint8_t {
  job,   ///< its contents stay while the next job has an equal buffer
  step,  ///< memory of the whole program, its contents of one step
  held,  ///< between two points of the program (Hold)
};
std::string_view name_of(Life life);

/// What a buffer holds before the first program that has it.
/// Random numbers are those of a Draw, which takes a new seed for the first view of a buffer.
enum class Start : std::uint8_t { undefined, zeros, parameters, random };
std::string_view name_of(Start start);

enum class Place : std::uint8_t { device, host };
std::string_view name_of(Place place);

/// Consecutive elements of a buffer. Every rank has its own buffers.
struct Slice {
  BufferId buffer = no_buffer;
  /// A communicator: the slice is this rank's part, `begin` moved on by `count` times its place in
  /// its group, so that ranks with different parts share a program. nobody: the same place on all
  /// ranks.
  std::int16_t part_of = static_cast<std::int16_t>(nobody);
  std::int64_t begin = 0, count = 0;  ///< elements

  bool empty() const { return buffer == no_buffer || count == 0; }
  bool operator==(const Slice&) const = default;
};

/// Memory of one rank. (holds, index, name, elements, type) is its identity: contents of life `job`
/// stay while the next job has an equal buffer, wherever that lies in its list.
struct Buffer {
  Holds holds = Holds::parameter;
  std::int32_t index = nobody;  ///< of the parameter, bucket or unit
  std::int16_t name = 0;        ///< index into Job::labels: "P", "error", "fp16"
  DType type = DType::fp32;
  std::int64_t elements = 0;
  Place place = Place::device;
  Life life = Life::job;
  Start start = Start::undefined;
  Slice inside{};  ///< a view: it lies there and takes no memory; empty: memory of its own

  bool is_view() const { return inside.buffer != no_buffer; }
  bool operator==(const Buffer&) const = default;
};

}  // namespace ddpsim::program
