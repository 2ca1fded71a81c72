#pragma once

// What a step takes of a device's memory.

#include <array>

#include "tools/report/records/field_kinds.hpp"

namespace ddpsim::fields {

inline constexpr Field memory =
    record_field("memory", "What the step takes of the memory of one rank's device.");
inline constexpr Field peak_memory_bytes =
    bytes_field("peak_memory_bytes", "peak memory",
                "The most memory that a rank holds at one time; where activations or the "
                "optimizer's state are not known, without them.",
                Better::low);
inline constexpr Field peak_bytes = peak_memory_bytes.named("peak_bytes");
inline constexpr Field reserved_bytes =
    bytes_field("reserved_bytes", "reserved",
                "The least that PyTorch's allocator reserves of the device for that rank: it keeps "
                "a pool for each stream, and each pool has a peak of its own; nothing on a CPU.");
inline constexpr Field peak_at =
    text_field("at", "peak at",
               "In which part of the step the peak is: forward, backward, reduction (gradients "
               "that are averaged after backward) or "
               "optimizer.");
inline constexpr Field peak_at_layer =
    text_field("at_layer", "peak in layer",
               "The layer whose forward or backward pass is under way at the peak; nothing between "
               "the passes.");
inline constexpr Field peak_at_ms = ms_field(
    "at_ms", "peak at ms",
    "When the host issues what takes memory to its peak, from the begin of the step; nothing "
    "of `tune`, whose step is not simulated.");
inline constexpr Field device_bytes =
    bytes_field("device_bytes", "device", "The memory of the device, all of it.");
inline constexpr Field parameters_bytes =
    bytes_field("parameters_bytes", "parameters", "The memory of the parameters.");
inline constexpr Field module_buffers_bytes =
    bytes_field("module_buffers_bytes", "buffers",
                "Tensors that modules keep and that are not trained, such as the running means of "
                "batch norms; and the copy in which they are sent, if they are.");
inline constexpr Field frozen_bytes = bytes_field(
    "frozen_bytes", "frozen", "Parameters that are not trained, and tensors that modules hold.");
inline constexpr Field inputs_bytes = bytes_field(
    "inputs_bytes", "batch", "The memory of the batch; known of described models alone.");
inline constexpr Field workspaces_bytes =
    bytes_field("workspaces_bytes", "workspaces", "The workspaces that cuBLAS keeps allocated.");
inline constexpr Field gradients_bytes =
    bytes_field("gradients_bytes", "gradients",
                "The memory of the gradients, but for gradients that are views of buckets: at most "
                "at one time, those among them that are about to be added to earlier ones or to go "
                "into a bucket.");
inline constexpr Field buckets_bytes = bytes_field(
    "buckets_bytes", "buckets",
    "The memory out of which gradients are sent: buckets, into which they are copied, or in which "
    "they are views; under fsdp and zero3 gradients packed by parts, the inputs of "
    "reduce-scatters, and under zero3 their results; and what little ranks announce to each "
    "other.");
inline constexpr Field optimizer_bytes =
    bytes_field("optimizer_bytes", "optimizer",
                "The memory of the optimizer's state; nothing where an update was measured and "
                "nothing names the optimizer, as in a workload profile.");
inline constexpr Field hook_bytes =
    bytes_field("comm_hook_bytes", "comm hook",
                "What the comm hook keeps from step to step, and the most that it "
                "takes besides.");
inline constexpr Field activations_bytes =
    bytes_field("activations_bytes", "activations",
                "What autograd keeps of a micro-batch's forward pass; nothing for a workload "
                "profile, which does not say.");
inline constexpr Field working_bytes =
    bytes_field("working_bytes", "working",
                "The memory that the operation which runs at the peak takes for its own results "
                "and workspaces.");
inline constexpr Field memory_at_peak =
    record_field("at_peak",
                 "What there is at the peak, which these parts sum to: activations are freed while "
                 "gradients are made, so that all parts above add up to more.");

inline constexpr std::array of_memory{
    &memory,           &peak_memory_bytes,    &peak_bytes,    &reserved_bytes,
    &peak_at,          &peak_at_layer,        &peak_at_ms,    &device_bytes,
    &parameters_bytes, &module_buffers_bytes, &frozen_bytes,  &inputs_bytes,
    &workspaces_bytes, &gradients_bytes,      &buckets_bytes, &optimizer_bytes,
    &hook_bytes,       &activations_bytes,    &working_bytes, &memory_at_peak};

}  // namespace ddpsim::fields
