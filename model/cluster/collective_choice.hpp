#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ddpsim {

enum class NcclAlgorithm : std::uint8_t { tree, ring, nvls, nvls_tree };
inline constexpr std::array all_nccl_algorithms{NcclAlgorithm::tree, NcclAlgorithm::ring,
                                                NcclAlgorithm::nvls, NcclAlgorithm::nvls_tree};
constexpr std::string_view name_of(NcclAlgorithm algorithm) {
  constexpr std::array<std::string_view, all_nccl_algorithms.size()> names{"tree", "ring", "nvls",
                                                                           "nvls_tree"};
  return names[static_cast<std::size_t>(algorithm)];
}

enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
inline constexpr std::array all_nccl_protocols{NcclProtocol::ll, NcclProtocol::ll128,
                                               NcclProtocol::simple};
constexpr std::string_view name_of(NcclProtocol protocol) {
  constexpr std::array<std::string_view, all_nccl_protocols.size()> names{"ll", "ll128", "simple"};
  return names[static_cast<std::size_t>(protocol)];
}

/// Releases of NCCL that choose differently: 2.4 takes trees for small messages alone; 2.28 reckons
/// a step of an NVLS tree between nodes longer than releases before it, and so keeps to trees for
/// larger messages.
enum class NcclRelease : std::uint8_t { before_2_5, before_2_28, from_2_28 };
inline constexpr std::array all_nccl_releases{NcclRelease::before_2_5, NcclRelease::before_2_28,
                                              NcclRelease::from_2_28};
constexpr std::string_view name_of(NcclRelease release) {
  constexpr std::array<std::string_view, all_nccl_releases.size()> names{"2.4", "2.26", "2.28"};
  return names[static_cast<std::size_t>(release)];
}

/// How Gloo's collectives run, on hosts.
enum class GlooAlgorithm : std::uint8_t { ring, halving_doubling };
inline constexpr std::array all_gloo_algorithms{GlooAlgorithm::ring,
                                                GlooAlgorithm::halving_doubling};
constexpr std::string_view name_of(GlooAlgorithm algorithm) {
  return algorithm == GlooAlgorithm::ring ? "ring" : "halving_doubling";
}

/// NCCL_CTA_POLICY: with `zero` all-gathers within a node go by copy engines.
enum class CtaPolicy : std::uint8_t { usual, zero };
inline constexpr std::array all_cta_policies{CtaPolicy::usual, CtaPolicy::zero};
constexpr std::string_view name_of(CtaPolicy policy) {
  return policy == CtaPolicy::usual ? "default" : "zero";
}

/// What a scenario forces upon NCCL, as NCCL_ALGO, NCCL_PROTO and NCCL_MAX_NCHANNELS do, or asks of
/// Gloo, and the release of NCCL that chooses the rest.
struct ForcedChoice {
  std::optional<NcclAlgorithm> algorithm;
  std::optional<NcclProtocol> protocol;
  std::optional<int> channels;             ///< at most so many
  std::optional<GlooAlgorithm> gloo = {};  ///< counts where collectives are Gloo's
  NcclRelease release = NcclRelease::from_2_28;
  CtaPolicy cta_policy = CtaPolicy::usual;
};

/// What most of a collective's time goes to.
enum class CollectiveBound : std::uint8_t {
  unknown,  ///< by a table: nobody knows
  latency,  ///< steps, not bytes
  port,     ///< the port that joins a GPU to the others of its node
  pcie,     ///< a GPU's way to the NICs
  nic,      ///< the NICs of a node
  sms,      ///< the thread blocks that move the bytes
  memory,   ///< the memory of a host, which copies and adds up
  /// The memory of a host, through which kernels of the GPUs of a node reach each other.
  host_memory,
};
constexpr std::string_view name_of(CollectiveBound bound) {
  constexpr std::array<std::string_view, 8> names{"unknown", "latency", "port",   "pcie",
                                                  "nic",     "sms",     "memory", "host memory"};
  return names[static_cast<std::size_t>(bound)];
}

/// How a collective runs, and what bounds it.
struct CollectiveChoice {
  std::optional<NcclAlgorithm> algorithm;  ///< none: not known
  std::optional<NcclProtocol> protocol;    ///< none: not NCCL
  std::int16_t channels = 0;               ///< thread blocks, each on an SM; 0: none
  std::int16_t nics = 0;                   ///< of each node; 0: one node
  CollectiveBound bound = CollectiveBound::unknown;
  std::optional<GlooAlgorithm> gloo = {};  ///< Gloo's, in place of NCCL's
  bool copy_engines = false;               ///< in place of an algorithm and its channels
};

}  // namespace ddpsim
