#include "model/kernel/machine.hpp"

namespace ddpsim {
namespace {

/// What the constants were measured on: an H200's data sheet, and the share of its bandwidth that
/// large elementwise kernels reached.
constexpr double reference_multiprocessors = 132;
constexpr double reference_bandwidth = 4.8e12 * 0.88;
constexpr double lowest_clock = 0.1;  ///< over the reference's: what a strange data sheet comes to

double lanes_of_multiprocessor(int compute_capability) {
  switch (compute_capability) {
    case 60:
    case 70:
    case 72:
    case 75:
    case 80:
      return 64;
    default:
      return compute_capability == 0 ? 64 : 128;
  }
}

/// Second-level caches by generation, bytes: V100 6 MB; T4 4; A100 40; GA102 6; AD102 72, as most
/// of its cards have; H100 and H200 50; B200 126; GB202 128. Source: NVIDIA's white papers of these
/// architectures.
double cache_of(int compute_capability) {
  switch (compute_capability) {
    case 75:
      return 4e6;
    case 80:
      return 40e6;
    case 89:
      return 72e6;
    case 90:
      return 50e6;
    case 100:
    case 103:
      return 126e6;
    case 120:
      return 128e6;
    default:
      return 6e6;
  }
}

}  // namespace

Machine machine_of(const Device& device) {
  Machine machine;
  if (device.step_constants) machine.constants = *device.step_constants;
  machine.compute_capability = device.compute_capability;
  machine.multiprocessors = device.multiprocessors;
  const double lanes =
      device.multiprocessors * lanes_of_multiprocessor(device.compute_capability) * 2;
  machine.clock = std::max(lowest_clock,
                           device.peak_of(DType::fp32).flops_per_second / lanes / reference_clock);
  machine.lanes = machine.clock * device.multiprocessors / reference_multiprocessors;
  machine.bandwidth =
      device.memory_bandwidth.bytes_per_second * device.memory_efficiency / reference_bandwidth;
  machine.cache_bytes = cache_of(device.compute_capability);
  for (const DType type : all_dtypes)
    machine.product_rate[static_cast<std::size_t>(type)] =
        device.peak_of(type).flops_per_second * device.efficiency_of(type);
  return machine;
}

double seconds_of(double bytes, double terabytes_per_second, const Machine& machine) {
  return bytes / (terabytes_per_second * 1e12 * machine.bandwidth);
}

double floor_of(const Machine&) {
  return 1.2e-6;
}

}  // namespace ddpsim
