#pragma once

#include <cstdint>

#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// A piece of memory that the steps of a comm hook read and change, of one bucket on one rank.
enum class HookPiece : std::uint8_t {
  none,
  data,            ///< the bucket, or its copy in another number format or padded to a square
  matrix,          ///< PowerSGD's M: one gradient in the data, or all of the padded data
  p,               ///< PowerSGD's P of every compressed gradient, one behind the other
  q,               ///< PowerSGD's Q likewise
  small,           ///< the gradients that PowerSGD does not compress, one behind the other
  input,           ///< the data as PowerSGD found them
  error,           ///< what PowerSGD lost of them, for the next training step
  scales,          ///< quantisation: all channels' scales, then all channels' zero points
  codes,           ///< quantisation: a byte for each element
  pairs,           ///< the values of largest magnitude with their indices
  own_part,        ///< this rank's part of the data; every rank has one of equal size
  plugin_payload,  ///< what the user's code makes of the bucket
  parameters,      ///< the parameters whose gradients the bucket holds
};

/// What a backend that runs schedules has to be able to do with pieces so that it can run every
/// comm hook. The table says for each CommAction which of them it is, with which target and
/// sources. (Of jobs, HookedBucket says it with actions.)
enum class HookPrimitive : std::uint8_t {
  nothing,
  cast,           ///< the data go on in the type of the step
  divide,         ///< target /= the divisor of the step
  scale,          ///< target *= the step's factor
  copy,           ///< target = source
  add,            ///< target += source
  subtract,       ///< target = source - second source
  pad,            ///< the data go on as a square with zeros behind the bucket's elements
  unpad,          ///< the data are the bucket's elements again
  pack,           ///< target = the gradients in the source that are not compressed
  unpack,         ///< those gradients in the target = source / ranks
  draw,           ///< the target's part for one gradient = random numbers, the same on all ranks
  orthogonalize,  ///< columns of the target's part for one gradient
  multiply,       ///< the target's part for one gradient = product of the sources' parts
  observe,        ///< target = a scale and a zero point for each channel of the source
  quantize,       ///< target = the source in 8 bit, by the scales
  dequantize,     ///< target = mean over ranks of what the codes and scales say
  select,         ///< target = the values of largest magnitude in the source
  spread,         ///< target = sum of the pairs of all ranks
  touch,          ///< reads and writes memory, changes nothing
  plugin_before,  ///< target = the user's function of the source
  plugin_after,   ///< likewise
  update,         ///< the optimizer, on the parameters of this bucket
  // Collectives: all ranks of the group (CommStep::group) hand over the target.
  all_reduce,      ///< target = sum over ranks
  reduce_scatter,  ///< this rank's part of the target = sum over ranks
  all_gather,      ///< every rank gets everyone's target
  broadcast,       ///< target = that of one rank
};
constexpr bool is_collective(HookPrimitive primitive) {
  return primitive >= HookPrimitive::all_reduce;
}

/// What one CommAction means.
struct ActionMeaning {
  HookPrimitive primitive = HookPrimitive::nothing;
  HookPiece target = HookPiece::none;
  HookPiece source = HookPiece::none;
  HookPiece second_source = HookPiece::none;
};

/// The table: the one place that tells these backends what an action does with which piece. What an
/// all_gather brings is spread over the data where its target is `own_part` (part by part) or
/// `data` (summed over ranks); that of scales, codes and pairs is read by a later step.
ActionMeaning meaning_of(CommAction action);

}  // namespace ddpsim
