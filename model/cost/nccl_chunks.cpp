#include "model/cost/nccl_chunks.hpp"

#include <bit>

// Worked example: a tree with LL128 over four nodes of eight GPUs. NCCL reckons with 1 + 2 + 0.8 =
// 3.8 steps, and wants 3.8 x 16 / 8 = 7.6 chunks. 8 channels x 18 kB is the least, so a message of
// 1 MB moves in chunks of 144 kB; of 2 MB in chunks of 2 MB / 7.6 = 263 kB; from 4.4 MB on in
// chunks of 8 x 72 kB, and these grow once a message holds 30.4 of them.

namespace ddpsim {
namespace {

/// Half of the channels are one tree's and half the other's, whose chunks pass other ports
/// meanwhile.
constexpr double tree_channels = nccl_tree_channels, channels = 2 * tree_channels;

/// One step's buffer (NCCL's 8 steps to a buffer): LL and LL128 give some of it to flags.
constexpr double ll_chunk = 32 * 1024, simple_chunk = 512 * 1024, ll128_chunk = 576'000;

NcclChunks tree_chunks(const NcclSystem& system, NcclProtocol protocol) {
  switch (protocol) {
    case NcclProtocol::ll:
      return {{{{tree_channels * ll_chunk}}}};
    case NcclProtocol::simple:
      return {{{{tree_channels * simple_chunk}}}};
    case NcclProtocol::ll128:
      break;
  }
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(system.nodes))) - 1;
  const double gpus = system.mean_ranks(), steps = 1 + levels + 0.1 * gpus;
  const auto at_least = [&](double factor) { return std::max(1.0, factor * steps / gpus); };
  return {{{{tree_channels * ll128_chunk / 32},
            {tree_channels * ll128_chunk / 8, at_least(16)},
            {tree_channels * ll128_chunk, at_least(64)}}}};
}

}  // namespace

NcclChunks nccl_chunks(const NcclSystem& system, NcclAlgorithm algorithm, NcclProtocol protocol) {
  // Each GPU that the switch adds up for is the head of as many chunks as there are channels (where
  // it has a NIC; but more NICs must not make a node slower).
  const double heads = channels * system.ranks_per_node;
  switch (algorithm) {
    case NcclAlgorithm::ring:
      return {};
    case NcclAlgorithm::tree:
      return tree_chunks(system, protocol);
    case NcclAlgorithm::nvls:
      return {{{{heads * 16 * 1024},
                {heads * 32 * 1024, 2},
                {heads * 64 * 1024, 8},
                {heads * 128 * 1024, 64}}}};
    case NcclAlgorithm::nvls_tree:
      if (system.nodes >= 4) return {{{{heads * 64 * 1024}}}};
      return {{{{heads * 64 * 1024}, {heads * 128 * 1024, 4}}}};
  }
  return {};
}

}  // namespace ddpsim
