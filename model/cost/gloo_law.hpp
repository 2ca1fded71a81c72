#pragma once

#include "model/cluster/cluster.hpp"

namespace ddpsim {

/// TCP over Ethernet frames of 1500 bytes: 1448 of the 1514 that a link counts are payload.
inline constexpr double tcp_share = 1448.0 / 1514;

/// Gloo's all-reduces between hosts, priced by the bytes that cross each port.
///
///     t = steps x latency + sum over the two halves of
///         size x max(bytes per byte / effective line rate, memory traffic per byte / memory rate)
///
/// Either algorithm reduces and scatters in its first half and gathers in its second: (n-1)/n of
/// the array leaves each rank in each. A ring takes n-1 steps a half; halving and doubling takes
/// log2 n, each to a partner twice as far away, so that within nodes 1 - 1/g of the array crosses a
/// rank's link and between N nodes 1 - 1/N of it a node's interface.
///
/// A process speaks through one interface, so of a node's NICs one counts. The memory of a host
/// sees what TCP copies, out of the array and into it, and in the first half what is added up. Both
/// go on beside the wire, for Gloo keeps one segment on its way while it adds up another; so the
/// slower of the two counts. Where a device says nothing of its memory, the wire alone counts.
///
/// torch.distributed's Gloo runs rings. Halving and doubling is Gloo's older interface, and the
/// shape of its `bcube` with base 2. Sources: facebookincubator/gloo cc44198, gloo/allreduce.cc and
/// gloo/allreduce_halving_doubling.h; pytorch 0069b72, ProcessGroupGloo.cpp.
class GlooLaw {
 public:
  /// Throws std::invalid_argument if a link that counts has no bandwidth, or if halving and
  /// doubling is asked for of ranks or nodes that are no power of two, or of unequal nodes.
  explicit GlooLaw(const Cluster& cluster);

  struct Price {
    Duration latency{};
    Duration transfer{};
    CollectiveChoice choice;

    Duration time() const { return latency + transfer; }
  };
  Price all_reduce(Bytes size) const;

  /// Seconds that a byte of the array takes through the narrowest port at line rate, or through the
  /// host's memory, and which of them that is: no time is below that.
  struct Narrowest {
    double seconds_per_byte = 0;
    CollectiveBound port = CollectiveBound::port;
  };
  Narrowest narrowest() const { return narrowest_; }

 private:
  GlooAlgorithm algorithm_ = GlooAlgorithm::ring;
  int nics_ = 0;
  double latency_ = 0;           ///< seconds
  double seconds_per_byte_ = 0;  ///< with what TCP's headers and the two halves cost
  Narrowest narrowest_;
};

}  // namespace ddpsim
