#pragma once

#include <string>

namespace ddpsim {

/// A small good calibration for tests to spoil, and a scenario that uses it.
inline const std::string good_calibration =
    "format: ddpsim.calibration/1\n"
    "backend: gloo\n"
    "machine: \"host: Linux 6\"\n"
    "cpu: \"a CPU, 2 cores\"\n"
    "link: lo\n"
    "versions: ddpsim 0.1.0\n"
    "date: 2026-11-21T04:00:00Z\n"
    "workload: resnet18\n"
    "complete: false\n"
    "ranks: 2\n"
    "synchronous: true\n"
    "launch: {kernel: 1 us, collective: 9 us, hook: 300 ns}\n"
    "tasks:\n"
    "  - {operation: forward, gemm: [64, 256, 128, 1], traffic: 786432 B, type: fp32,\n"
    "     time: 0.83 ms, low: 0.8 ms, high: 1 ms, repeats: 40, outliers: 1}\n"
    "  - {operation: copy in, traffic: 2 MB, time: 200 us}\n"
    "factors:\n"
    "  - {operation: forward, over_medians: 1.25}\n"
    "all_reduce:\n"
    "  - {bytes: 4 KiB, time: 60 us, low: 55 us, high: 71 us, repeats: 40, outliers: 2}\n"
    "  - {bytes: 1048576, time: 1 ms}\n"
    "interference:\n"
    "  - {bytes: 4 MiB, compute_slowdown: 1.1, communication_slowdown: 0.95}\n"
    "fits: {streaming: [anything, {at: all}]}\n"
    "end: ddpsim.calibration/1\n";

inline const std::string calibrated_scenario =
    "workload: {model: resnet18, batch: 2}\n"
    "cluster:\n"
    "  calibration: c.yaml\n"
    "compare: [flat, bucketed]\n";

}  // namespace ddpsim
