#pragma once

#include <algorithm>
#include <array>

#include "model/cost/nccl_law.hpp"

namespace ddpsim {

/// How many bytes of a message NCCL hands from hop to hop at once, over all of its channels: a hop
/// passes a chunk on when the chunk is there, so a pipeline of h hops takes h chunks' time to fill.
///
/// NCCL halves its chunks while fewer than `chunks` of them would make up the message; taken as a
/// straight line between the sizes where it does so, for chunks grow with the message.
struct NcclChunks {
  struct Rung {
    double bytes = 0;   ///< of one chunk on each channel
    double chunks = 1;  ///< of that many bytes, at least, in the message
  };
  std::array<Rung, 4> rungs;

  double of(double message) const {
    double bytes = 0;
    for (const Rung& rung : rungs)
      bytes = std::max(bytes, std::min(rung.bytes, message / rung.chunks));
    return bytes;
  }
};

/// The chunks of a tree, of NVLS or of an NVLS tree; none of a ring, whose steps pass on the n-th
/// part of a message that its bytes are counted by. Source: NCCL 2.28.9, src/enqueue.cc
/// calcCollChunking.
NcclChunks nccl_chunks(const NcclSystem& system, NcclAlgorithm algorithm, NcclProtocol protocol);

}  // namespace ddpsim
