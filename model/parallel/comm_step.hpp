#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/operation.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What one task of a comm hook does to its bucket's data; what it costs is its Operation's matter.
/// "The data" is the bucket, or, after `narrow`, its copy in the other type.
enum class CommAction : std::uint8_t {
  divide,  ///< data /= ranks
  narrow,  ///< data = the bucket, in `type`
  widen,   ///< the bucket = data; from here on the data is the bucket
  scale,   ///< data *= factor
  reduce,  ///< data = sum over ranks
  // PowerSGD; `tensor` is one of the bucket's gradients, a matrix M of n x m
  pad,              ///< batched: data = bucket and zeros, s x s
  add_error,        ///< data += error
  keep_input,       ///< input = data
  pack,             ///< small = the gradients that are not compressed
  draw_q,           ///< Q = random, the same on all ranks
  orthogonalize_q,  ///< columns of Q
  project,          ///< P = M Q
  reduce_small,     ///< small = sum over ranks
  unpack,           ///< the gradients that are not compressed = small / ranks
  reduce_p,         ///< P = sum over ranks
  orthogonalize_p,  ///< columns of P
  back_project,     ///< Q = M^T P
  reduce_q,         ///< Q = sum over ranks
  divide_q,         ///< Q /= ranks
  reconstruct,      ///< M = P Q^T
  keep_error,       ///< error = input - data
  unpad,            ///< batched: bucket = data
  // Quantisation
  observe,        ///< scale and zero point of the data, or of each channel of 512
  gather_scales,  ///< everyone's
  quantize,       ///< codes = data in 8 bit
  gather_codes,   ///< everyone's
  dequantize,     ///< bucket = mean over ranks of what the codes say
  // Own lists
  select,          ///< pairs = the `factor` share of the data of largest magnitude, with indices
  gather_pairs,    ///< everyone's pairs, of one part of the data each
  spread_pairs,    ///< data = sum of all pairs
  scatter_reduce,  ///< this rank's part of the data = sum over ranks
  gather_parts,    ///< data = everyone's parts
  gather_sum,      ///< data = sum of everyone's, gathered
  broadcast,       ///< data = rank 0's
  touch,           ///< reads and writes memory, changes nothing
  // Others
  synchronize,      ///< the host waits for the device
  update,           ///< the optimizer, for this bucket's parameters
  send_parameters,  ///< this bucket's parameters = their owner's
  reduce_subgroup,  ///< data = sum over this rank's subgroup
  divide_subgroup,  ///< data /= ranks of the subgroup
  plugin_before,    ///< the user's code: payload = f(bucket)
  plugin_reduce,    ///< payload = sum over ranks
  plugin_after,     ///< the user's code: bucket = f(payload)
};
inline constexpr std::size_t comm_action_count =
    static_cast<std::size_t>(CommAction::plugin_after) + 1;
std::string_view name_of(CommAction action);

/// One task of a comm hook on one bucket.
struct CommStep {
  CommAction action = CommAction::reduce;
  Operation operation = Operation::all_reduce;
  std::int32_t tensor = nobody;  ///< position in the bucket; nobody: all of it
  Kernel kernel;                 ///< what it computes, if it is no collective
  Bytes payload;                 ///< handed to the collective by each rank
  Duration host{};               ///< of the host itself, besides launching
  DType type = DType::fp32;      ///< of the data it works on
  /// scale: what the data is multiplied with; select: the share that travels on; orthogonalize_*:
  /// what is added to norms.
  double factor = 1;
  /// What sums over ranks are divided by: divide, divide_subgroup, unpack, divide_q, dequantize,
  /// and scale where its factor is 1 / ranks.
  std::int32_t divisor = 1;
  std::int32_t group = 0;  ///< collectives: ranks next to each other that take part; 0: all
  /// observe, quantize, dequantize and the gathers between: elements that share a scale; 0: all of
  /// them.
  std::int64_t channel = 0;
  /// pack, draw_q: the random numbers of an earlier step serve again, once there are any
  /// (PowerSGD's warm start).
  bool keeps_random = false;
  std::uint8_t communicator = 0;  ///< a collective's
  std::string code;               ///< plugin_*: the name of the user's code
};

/// A gradient as the two-dimensional matrix a comm hook takes it for.
struct MatrixShape {
  std::int64_t rows = 0, columns = 0;  ///< first dimension; product of the others
  bool operator==(const MatrixShape&) const = default;
};

/// A gradient that PowerSGD compresses: M = P Q^T, P of rows x rank, Q of columns x rank.
struct LowRank {
  std::int32_t tensor = nobody;  ///< position in the bucket; nobody: all of it, padded to a square
  std::int64_t rows = 0, columns = 0, rank = 0;
};

/// The side of the square that batched PowerSGD makes of a bucket.
std::int64_t batched_side(std::int64_t elements);

inline constexpr std::int64_t quantization_channel = 512;  ///< elements

/// Does one of these compute anything behind the first collective?
bool computes_aside(const std::vector<CommStep>& steps);

}  // namespace ddpsim
