#pragma once

#include <optional>

#include "model/kernel/kernel_law.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// The release of PyTorch whose choices of kernels are meant where nothing else is said: 2.13.
inline constexpr int usual_release = 213;

/// Do the laws by class price kernels of this device: does it run them beside the host, and is its
/// data sheet known?
bool has_laws(const Device& device);

/// Does the device launch a kernel of devices that have so many multiprocessors and this compute
/// capability (times ten; 0: any) at least? Kernels of Hopper's (90) are those of Blackwell's data
/// centre GPUs as well, but not of GPUs of capability 12, whose kernels are of Ampere's kind.
/// Source: traces of an RTX 5070 Ti, in which none of Hopper's helpers is
/// (tests/python/test_describe_cuda.py).
bool launches(const Device& device, int multiprocessors, int capability);

/// How long a part of a kernel keeps the device busy, in all its launches; none where the device
/// launches none. `release`: 213 is PyTorch 2.13, which decides which kernel computes attention.
/// Throws as kernel_time.
std::optional<KernelTime> part_time(const KernelPart& part, const Device& device, int release);

/// Adds what the part costs to a sum, and its launches; of the sum memory bounds the mean share.
void add_part(ClassCost& sum, int& launches, const KernelPart& part, const KernelTime& time);

/// Gives every kernel of the workload whose parts are known what they cost on the device by class,
/// and their launches there; the parts have served their turn then, and go. Leaves all as it is
/// where the device has no laws.
void price_by_class(Workload& workload, const Device& device, int release = usual_release);

}  // namespace ddpsim
