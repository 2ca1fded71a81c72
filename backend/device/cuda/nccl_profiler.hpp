#pragma once

#include <cstdint>
#include <vector>

namespace ddpsim {

/// When a collective's kernel ran on this GPU, on the GPU's own clock (globaltimer), in
/// nanoseconds.
struct CollectiveSpan {
  std::uint64_t start = 0;  ///< its first thread block began
  std::uint64_t stop = 0;   ///< its last one ended
};

/// Has NCCL's profiler interface report to this process from the next connection on: NCCL then
/// looks for the table `ncclProfiler_v5` in the program itself. So the table is part of the
/// program, not of the module that brings NCCL: the program exports that symbol
/// (tools/CMakeLists.txt), and the loader finds it among the program's symbols. Reporting costs
/// NCCL a little work for each operation.
/// Source: NVIDIA/nccl, ext-profiler (version 5 of the interface, NCCL 2.28).
void use_nccl_profiler();

/// The all-reduces and broadcasts reported since the last call whose every thread block has ended,
/// in the order they were issued. Ends reach the host some time after the GPU.
std::vector<CollectiveSpan> take_collective_spans();

}  // namespace ddpsim
