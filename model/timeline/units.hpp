#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/timeline/why.hpp"

namespace ddpsim {

/// What a collective of a unit is for, told by what it sends and when the host issues it.
enum class UnitCollectiveKind : std::uint8_t {
  forward_gather,   ///< of parameters, before the last kernel of the forward pass
  backward_gather,  ///< of parameters, behind that and before the optimizer
  reduction,        ///< of gradients: a reduce-scatter, or what a strategy has in its place
  replica_sum,      ///< what follows that: an all-reduce among replicas
  updated_gather,   ///< of parameters that the optimizer has updated
};
inline constexpr std::array all_unit_collective_kinds{
    UnitCollectiveKind::forward_gather, UnitCollectiveKind::backward_gather,
    UnitCollectiveKind::reduction, UnitCollectiveKind::replica_sum,
    UnitCollectiveKind::updated_gather};
/// "forward_gather"
std::string_view name_of(UnitCollectiveKind kind);

/// One collective of a unit. Where several micro-batches have it, the instants are those of the
/// last one; what is exposed, and by what, is of all of them together.
struct UnitCollective {
  std::size_t unit = 0;  ///< program::Origin::group; the number of groups: of parameters of several
  UnitCollectiveKind kind = UnitCollectiveKind::reduction;
  Operation operation = Operation::reduce_scatter;
  std::uint32_t task = 0;  ///< of the rank's program: that of the last micro-batch
  /// How often the step has it: once in each micro-batch that does; of parameters of several
  /// groups, how many collectives there are.
  int count = 0;
  Bytes payload{};             ///< in one micro-batch
  ExposedBucket why;           ///< times, causes; `collectives` is `count`
  Cause held = Cause::launch;  ///< what it waited for last, exposed or not
};

/// Does the job gather or reduce-scatter what ranks keep parts of, rather than average in buckets
/// what all of them keep? Then its groups are units, for people.
bool has_units(const program::Job& job);

/// The collectives of all units, in the order of units, and of kinds within one; of one rank.
///
/// A collective begins once its input is there, the host has launched it, the collective before it
/// in its communicator and on its stream has ended, and the last rank has arrived. The input of a
/// gather is there once it has been packed, which the copy-out of the gather before it may hold up;
/// that of a reduction once gradients are packed, for which the kernels may have to wait until the
/// memory of an earlier input is free. Each of these accounts for exposed time as with buckets
/// (why_exposed); what they leave of a reduction is its gradients', and of a gather its own length:
/// its input has been there since the update before.
std::vector<UnitCollective> unit_collectives(const program::Job& job, const JobTimeline& timeline,
                                             std::size_t rank);

/// What brings updated parameters that are no group's behind the optimizer, all of it together: a
/// gather, or broadcasts of parameters by their owners. Nothing: there is none.
std::optional<UnitCollective> updated_sends(const program::Job& job, const JobTimeline& timeline,
                                            std::size_t rank);

/// The exposed time of all of them.
Duration exposed_of(const std::vector<UnitCollective>& collectives);

}  // namespace ddpsim
