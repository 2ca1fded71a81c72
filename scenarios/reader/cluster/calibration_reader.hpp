#pragma once

#include <filesystem>

#include "model/cost/calibration.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

template <typename T>
class Map;

/// The keys of a calibration, as `ddpsim calibrate` writes it: docs/scenario.md describes them.
const Map<Calibration>& calibration_map();

/// Reads a calibration file. Throws InputError, also for a file that does not end with its mark.
Calibration read_calibration(const std::filesystem::path& file);

/// Reads the file at a path in a scenario, relative to that scenario's file.
Calibration read_calibration(const Yaml& given);

}  // namespace ddpsim
