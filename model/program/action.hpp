#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "model/base/quantity.hpp"
#include "model/program/buffer.hpp"
#include "model/workload/optimizer.hpp"

namespace ddpsim::program {

/// A range of Actions::slices.
struct Operands {
  std::uint32_t begin = 0, count = 0;
};

// What is done, to what. No action says how long it takes. Ranges of operands are of the list of
// actions that the action stands in.

/// For the tasks in `after`: on a device's stream for what follows there; on the host's stream the
/// host stands still.
struct Wait {};
/// The hosts of all ranks wait for each other.
struct Meet {};
/// The thread sleeps as long as its work says.
struct Pause {};
/// The host runs code that has no operands an executor could give it: a hook of DDP's or of a unit
/// that is sharded, a search of the graph, the user's own.
struct Call {
  enum class What : std::uint8_t { hook, unit, search, outside, user };
  What what = What::hook;
  std::int32_t index = nobody;  ///< of the parameter, the unit, or the user's hook
  Operands reads{};
};
/// Threads of the host copy a layer's output of so many bytes, in pieces of equal length, each by
/// one of them, which is busy for its share of `time` besides.
struct Chunked {
  std::int32_t pieces = 1, threads = 1;
  Bytes output{};
  Duration time{};
};
/// How the operands of a product lie in memory, row by row: as they are multiplied, or one of them
/// transposed.
enum class Layout : std::uint8_t { plain, left_transposed, right_transposed };
/// How a kernel goes over memory that it does not multiply: element by element, or row by row, each
/// of which it first reduces (a normalisation, a softmax).
enum class Motion : std::uint8_t { elements, rows };
/// A kernel of the network, of the shape that its work has. Its operands are made from `seed` and
/// the micro-batch.
struct Compute {
  std::uint32_t seed = 0;
  Layout layout = Layout::plain;
  Motion motion = Motion::elements;
  Slice weight{};    ///< that it multiplies with; empty: none, or one that is made from the seed
  Slice result{};    ///< where its product goes; empty: nobody reads it
  Operands fills{};  ///< gradients that it writes beside its own work
  /// Empty, or two slices for each of `fills`. Of a gradient that is zero but for some rows, others
  /// on each rank: where the numbers of these rows go, 8 bytes each, and its first row, which says
  /// how long rows are. Of any other gradient they are empty.
  Operands rows{};
};
/// to = factor x from, over the ranks of the group in `mean_over` (a communicator) if that is one.
struct Scale {
  Slice to{}, from{};
  float factor = 1;
  std::int16_t mean_over = static_cast<std::int16_t>(nobody);
};
/// to = value
struct Fill {
  Slice to{};
  double value = 0;
};
/// to = a left + b right
struct Combine {
  Slice to{}, left{}, right{};
  float a = 1, b = 1;
};
/// to = from in another number format; an executor counts what overflows.
struct Cast {
  Slice to{}, from{};
};
/// to = factor x those rows of `from` whose numbers `rows` has, 8 bytes each, one behind the other.
struct TakeRows {
  Slice to{}, rows{}, from{};
  float factor = 1;
};
/// Each row of `to` whose number is in `rows` = the sum of those rows of `from` that have it; all
/// other rows stay. An executor checks the numbers, which may be other ranks'.
struct AddRows {
  Slice to{}, rows{}, from{};
};
/// Many pieces in one go, one behind the other; casts where types differ.
struct Pack {
  Operands to{}, from{};
  float factor = 1;
  std::int16_t mean_over = static_cast<std::int16_t>(nobody);  ///< as of Scale
  bool zeros_behind = false;                                   ///< what `from` leaves of `to`
};
/// Tensors into parts of them all, as torch's chunk_cat: each of `from` is cut into `parts` pieces
/// as long as its place, of which the last ones may be shorter or empty. `to` is as many equal
/// parts, of which the first has `places`, and the k-th has the k-th pieces there; zeros lie where
/// a piece is shorter. Casts where types differ.
struct Chunk {
  Slice to{};
  Operands places{}, from{};
  std::int32_t parts = 1;
};
/// The other way round, as torch's split_with_sizes_copy.
struct Unchunk {
  Operands to{}, places{};
  Slice from{};
  std::int32_t parts = 1;
};
/// Each of `from` lies at its place in something whole, of which the ranks of the group in the
/// communicator `of` share equal parts, as long as `to`; the first part begins at `begin`, as
/// places count. `to`, which is this rank's part = what of `from` falls into it; the rest of it
/// stays. Casts where types differ.
struct TakePart {
  Slice to{};
  Operands places{}, from{};
  std::int64_t begin = 0;
  std::int16_t of = 0;
};
/// to = left right, of m x k and k x n; one of the two may be transposed.
struct Multiply {
  Slice to{}, left{}, right{};
  std::int64_t m = 0, n = 0, k = 0;
  Layout layout = Layout::plain;
};
/// The columns of a matrix become orthonormal, by Gram and Schmidt.
struct Orthogonalize {
  Slice matrix{};
  std::int64_t rows = 0, columns = 0;
  double epsilon = 0;  ///< added to norms
};
/// Random numbers, the same on all ranks.
struct Draw {
  Slice to{};
  bool fresh = true;  ///< from a new seed; else they go on behind those last drawn for the buffer
};
/// Scale and zero point of each `channel` elements (0: of all).
struct Observe {
  Slice scales{}, from{};
  std::int64_t channel = 0;
};
/// codes = from in 8 bit
struct Quantize {
  Slice codes{}, scales{}, from{};
  std::int64_t channel = 0;
};
/// to = the mean over the ranks of what their codes say
struct Dequantize {
  Slice to{}, codes{}, scales{};
  std::int64_t channel = 0;
  std::int16_t mean_over = static_cast<std::int16_t>(nobody);
};
/// pairs = the largest of `from` with their places
struct Select {
  Slice pairs{}, from{};
};
/// to = the sum of the pairs of all ranks of the group in the communicator `of`
struct Spread {
  Slice to{}, pairs{};
  std::int16_t of = 0;
};
/// gradients x norm / |gradients| where they are longer
struct Clip {
  Operands gradients{};
  double norm = 0;
};
/// to = from + normal noise, another on every rank
struct Noise {
  Slice to{}, from{};
  double deviation = 0;
  std::uint64_t seed = 0;
};
/// The user's own code on memory.
struct Plugin {
  enum class What : std::uint8_t {
    gradient,  ///< a hook: changes the gradient of a parameter
    before,    ///< a comm hook's: makes of a bucket what is summed over ranks
    after,     ///< and of the sum the bucket
  };
  What what = What::gradient;
  std::int16_t code = 0;            ///< index into Job::labels: the name that it has there
  std::int32_t parameter = nobody;  ///< of a gradient
  Slice weight{};                   ///< that parameter
  /// Gradients that are complete. The code may read those of them that are among `reads`: the
  /// others are being reduced where they lie.
  Operands complete{};
  Operands reads{}, writes{};
};
/// Reads and writes memory, and changes nothing.
struct Touch {
  Slice what{};
};
/// One step of an optimizer on parameters. `state` holds what it keeps of each, in their order: as
/// many slices for each as the optimizer keeps numbers of an element (state_slices).
struct Update {
  Optimizer optimizer = Optimizer::none;
  Operands parameters{}, gradients{}, state{};
};
/// Between the memory of the device and the host's.
struct Move {
  Slice to{}, from{};
  bool unawaited = false;  ///< as of the collective whose result it brings back
};

enum class Collectives : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
};
std::string_view name_of(Collectives collective);
enum class Reduction : std::uint8_t { none, sum, mean };
std::string_view name_of(Reduction reduction);

/// A collective of all ranks of this rank's group in the communicator.
struct Collective {
  Collectives what = Collectives::all_reduce;
  Reduction reduction = Reduction::none;  ///< of an all-gather: what comes is added up into `to`
  std::int16_t communicator = 0;
  std::int16_t root = 0;  ///< of a broadcast: place in the group
  /// The program may use its data without waiting for it, as PyTorch does with the all-reduce of
  /// parameters that DDP is told to leave alone (rule R50).
  bool unawaited = false;
  /// An all-gather or reduce-scatter whose input and output are one slice works in place: the parts
  /// of the ranks are ceil(elements / ranks) long, the last ones shorter or empty.
  Slice from{}, to{};
  /// Elements of each rank in its order, as fp64, where they differ; empty: all alike.
  Slice counts{};
};
/// The k-th of a pair of ranks meets the peer's k-th Receive of this one.
struct Send {
  std::int16_t communicator = 0, peer = 0;  ///< place in the group
  Slice what{};
};
struct Receive {
  std::int16_t communicator = 0, peer = 0;
  Slice what{};
};

using Action = std::variant<Wait, Meet, Pause, Call, Chunked, Compute, Scale, Fill, Combine, Cast,
                            TakeRows, AddRows, Pack, Chunk, Unchunk, TakePart, Multiply,
                            Orthogonalize, Draw, Observe, Quantize, Dequantize, Select, Spread,
                            Clip, Noise, Plugin, Touch, Update, Move, Collective, Send, Receive>;

/// The kind of the action in one word; a collective's is which one: "all_reduce".
std::string_view name_of(const Action& action);

/// May the program use what it writes without waiting for it?
bool is_unawaited(const Action& action);

/// The communicator it is issued in; nobody: it is no communication.
std::int16_t communicator_of(const Action& action);

}  // namespace ddpsim::program
