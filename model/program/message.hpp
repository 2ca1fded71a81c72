#pragma once

#include <cstdint>
#include <string_view>

namespace ddpsim {

/// What a collective carries: a bucket's gradients, or what DDP itself has to announce or to
/// agree on (then no group is named in its origin, and where values matter to nobody else a
/// backend may send others).
enum class Message : std::uint8_t {
  gradients,
  buffers,         ///< rank 0's, before forward
  own,             ///< the network's own: a synchronised batch norm's, a loss's
  bucket_indices,  ///< of the rebuild: int32 for each parameter and one more
  bucket_lengths,  ///< of the rebuild: int32 for each bucket
  used_map,        ///< which parameters were used: int32 for each
  active_ranks,    ///< join: 1 of every rank that has inputs
  early_end,       ///< join: has any rank run out of inputs?
  buffer_source,   ///< join: the largest rank that has inputs
  will_sync,       ///< join: 1 of every rank that will communicate gradients
  parameters,      ///< models are averaged, or those of a unit are gathered
  norm,            ///< of the gradients of all ranks' parts, squared, to clip by
  // The three parts of a sparse gradient, in its bucket.
  sparse_shape,
  sparse_indices,
  sparse_values,
};
std::string_view name_of(Message message);

}  // namespace ddpsim
