#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "model/workload/workload.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

template <typename T>
class Map;

struct ProfiledParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::fp32;
  bool sparse = false;
  std::int64_t sparse_rows = 0;  ///< 0: all of them
  bool unused = false;           ///< then `ready` does not matter
  Duration ready{};              ///< when its gradient is, from the start of backward

  bool operator==(const ProfiledParameter&) const = default;
};

/// A workload profile (format: ddpsim.workload/1): what one process measured of its own training
/// step, and perhaps what a run of several showed, which is then the scenario's `measured` unless
/// it has one of its own.
struct WorkloadProfile {
  std::string source;
  Duration forward{}, backward{};
  std::optional<Duration> optimizer;
  std::optional<Duration> copy_back;          ///< as in Workload
  Duration outside{};                         ///< likewise
  double step_spread = 0;                     ///< as in Workload
  std::vector<std::string> doubts;            ///< likewise
  std::vector<ProfiledParameter> parameters;  ///< in registration order
  std::vector<BufferGroup> buffers;           ///< those of one type together
  std::vector<int> arrival;  ///< parameter indices in the order their hooks fire; empty: by `ready`
  std::optional<Measured> measured;
};

/// The keys of a workload profile.
const Map<WorkloadProfile>& workload_profile_map();

/// Reads the mapping of a profile in full. Throws InputError.
WorkloadProfile read_workload_profile(const Yaml& given);

/// The profile as a workload: its backward pass becomes one timed kernel between every two instants
/// at which gradients were ready.
Workload workload_of(const WorkloadProfile& profile, const std::string& name);

}  // namespace ddpsim
