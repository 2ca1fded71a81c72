#pragma once

#include <yaml-cpp/yaml.h>

#include "model/cost/calibration.hpp"

namespace ddpsim {

/// Writes the key `fits` of a calibration, if any law can be fitted: for people, since what reads
/// the file fits anew.
void write_fits(YAML::Emitter& out, const Calibration& calibration);

}  // namespace ddpsim
