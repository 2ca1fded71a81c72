#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/ranks_per_node.hpp"
#include "model/parallel/training.hpp"
#include "model/parallel/workload_gradients.hpp"
#include "model/parallel/write/step_works.hpp"
#include "model/parallel/write/step_writer.hpp"

namespace ddpsim {

// Which settings of a training do not go together, with each other or with the workload: steps that
// PyTorch would refuse or wait for for ever, and those that are not modelled. Every rule and its
// sentence stands in refusals.cpp and nowhere else. The reader of a scenario asks and adds the
// place of the key; build_job asks for what it cannot build and throws the same sentence.

/// Why a training cannot be.
struct Refusal {
  std::string key;                 ///< of a scenario, by dotted path: "training.comm_hook"
  std::string reason;              ///< "comm hooks take dense gradients, ..."
  std::vector<std::size_t> items;  ///< of the list under the key and the lists within it, from 0
};

/// Throws std::invalid_argument("key: reason") if there is a refusal.
void check(const std::optional<Refusal>& refusal);

/// Why gradients cannot travel together as `training` has it: its buckets and groups, and
/// delay_all_reduce. The indices in it need not be of the workload.
std::optional<Refusal> bucket_refusal(const WorkloadGradients& workload, const Training& training);

/// What is a slip where a person wrote it, though a job can be built of it (the tuner does):
/// two ways of making buckets at once, a cap that closes no bucket, a bucket of several types. To
/// be asked where there is no bucket_refusal.
std::optional<Refusal> slip_refusal(const WorkloadGradients& workload, const Training& training);

/// Why DistributedDataParallel, or the comm hook, cannot do a step of this workload.
std::optional<Refusal> step_refusal(const WorkloadGradients& workload, const Training& training,
                                    const StepWriter::Device& device);

/// Why ranks of nodes that differ in size cannot form the subgroups of post-local SGD: PyTorch cuts
/// all ranks into subgroups of one size.
std::optional<Refusal> subgroup_refusal(const Training& training, const RanksPerNode& ranks);

/// Throws what `check` does where DistributedDataParallel, the comm hook or the subgroups refuse a
/// step of strategy bucketed, or it clips gradients whose norm nobody has.
void check_bucketed(const StepWorks& works, const Training& training);

/// Why these settings of PowerSGD's state do not go together; empty if they do.
std::string powersgd_refusal(const PowerSgd& state);

/// Why this comm hook cannot be wrapped to work on a bucket in `type`; empty if it can.
std::string wrapper_refusal(CommHookKind wrapped, DType type);

/// Keys of `training:` of which only one says how buckets are made.
struct ExclusiveKey {
  std::string_view key;
  std::vector<std::string_view> others;
  std::string_view reason;
  bool (*is_set)(const Training&);
};
std::span<const ExclusiveKey> exclusive_keys();

}  // namespace ddpsim
