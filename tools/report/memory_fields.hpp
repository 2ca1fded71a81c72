#pragma once

// What a step takes of a device's memory.

#include <array>

#include "tools/report/field_kinds.hpp"

namespace ddpsim::fields {

inline constexpr Field memory =
    record_field("memory", "What the step takes of the memory of one rank's device.");
inline constexpr Field peak_memory_bytes =
    bytes_field("peak_memory_bytes", "peak memory",
                "The most a rank holds at one time; where activations are not known, of the rest.",
                Better::low);
inline constexpr Field peak_bytes = peak_memory_bytes.named("peak_bytes");
inline constexpr Field peak_at =
    text_field("at", "peak at",
               "When that is: forward, backward, reduction (gradients behind backward) or "
               "optimizer.");
inline constexpr Field device_bytes =
    bytes_field("device_bytes", "device", "The memory of the device, all of it.");
inline constexpr Field parameters_bytes =
    bytes_field("parameters_bytes", "parameters", "The parameters.");
inline constexpr Field module_buffers_bytes =
    bytes_field("module_buffers_bytes", "buffers", "Tensors that are not trained, but kept.");
inline constexpr Field frozen_bytes = bytes_field(
    "frozen_bytes", "frozen", "Parameters that are not trained, and tensors that modules hold.");
inline constexpr Field inputs_bytes =
    bytes_field("inputs_bytes", "batch", "The batch, of a described model.");
inline constexpr Field workspaces_bytes =
    bytes_field("workspaces_bytes", "workspaces", "What cuBLAS keeps of the allocator's memory.");
inline constexpr Field gradients_bytes = bytes_field(
    "gradients_bytes", "gradients", "The gradients, without those that are views of buckets.");
inline constexpr Field buckets_bytes =
    bytes_field("buckets_bytes", "buckets", "What gradients are copied into to be reduced.");
inline constexpr Field optimizer_bytes =
    bytes_field("optimizer_bytes", "optimizer", "What the optimizer keeps.");
inline constexpr Field hook_bytes =
    bytes_field("comm_hook_bytes", "comm hook", "What the comm hook keeps, and takes at most.");
inline constexpr Field activations_bytes =
    bytes_field("activations_bytes", "activations",
                "What autograd keeps of a micro-batch's forward pass; nothing of a workload "
                "profile, which does not tell.");
inline constexpr Field working_bytes = bytes_field(
    "working_bytes", "working", "What the operation that runs at the peak takes for itself.");
inline constexpr Field memory_at_peak =
    record_field("at_peak",
                 "What there is at the peak, which these parts sum to: activations go while "
                 "gradients come, so that all parts above are more.");

inline constexpr std::array of_memory{
    &memory,           &peak_memory_bytes,    &peak_bytes,      &peak_at,      &device_bytes,
    &parameters_bytes, &module_buffers_bytes, &frozen_bytes,    &inputs_bytes, &workspaces_bytes,
    &gradients_bytes,  &buckets_bytes,        &optimizer_bytes, &hook_bytes,   &activations_bytes,
    &working_bytes,    &memory_at_peak};

}  // namespace ddpsim::fields
