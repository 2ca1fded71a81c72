#pragma once

#include <filesystem>

#include "model/cost/calibration.hpp"
#include "scenarios/reader/yaml.hpp"

namespace ddpsim {

/// A calibration file, as `ddpsim calibrate` writes it:
///
///     format: ddpsim.calibration/1
///     backend, machine, cpu, link, versions, date, workload: texts, for people
///     complete: true                      # false: interrupted; sections may be missing
///     ranks: 2
///     synchronous: true
///     launch: {kernel: 0 us, collective: 9 us, hook: 300 ns, handover: 1 ms, wait: 80 us}
///     slowest_rank: 1.05
///     backward_beside_hook: 1.1
///     tasks:
///       - {operation: forward, gemm: [64, 256, 128, 1], traffic: 786432 B, type: fp32,
///          time: 830 us, low: 810 us, high: 900 us, repeats: 40, outliers: 1}
///       - {operation: copy in, traffic: 2 MiB, time: 95 us}
///       - {operation: correct, traffic: 12 MiB, aside: true, time: 310 us}
///     factors:
///       - {operation: forward, over_medians: 1.04}
///     all_reduce:
///       - {bytes: 4 KiB, time: 60 us, low: 55 us, high: 71 us, repeats: 40, outliers: 0}
///     interference:
///       - {bytes: 4 MiB, compute_slowdown: 1.1, communication_slowdown: 1.05}
///     fits: {...}                         # for people: computed anew from the rest
///
/// Only format, ranks and synchronous must be there; of an entry, what says which it is (aside: false), and `time`.
/// `low` and `high` are `time` where they are missing. Only operations that a comm hook computes may be aside
/// (may_run_aside). Throws InputError.
Calibration read_calibration(const std::filesystem::path& file);

/// The same of a path in a scenario, relative to that scenario's file.
Calibration read_calibration(const Yaml& given);

}  // namespace ddpsim
