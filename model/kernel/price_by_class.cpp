#include "model/kernel/price_by_class.hpp"

#include <algorithm>

#include "model/kernel/host_law.hpp"

namespace ddpsim {

bool has_laws(const Device& device) {
  return !device.synchronous && device.peak_of(DType::fp32).flops_per_second > 0 &&
         device.memory_bandwidth.bytes_per_second > 0;
}

bool launches(const Device& device, int multiprocessors, int capability) {
  constexpr int as_ampere = 120;
  if (device.multiprocessors < multiprocessors) return false;
  if (capability == 0) return true;
  return device.compute_capability >= capability && device.compute_capability < as_ampere;
}

std::optional<KernelTime> part_time(const KernelPart& part, const Device& device, int release) {
  if (!launches(device, part.multiprocessors, part.capability)) return std::nullopt;
  const auto* attention = std::get_if<AttentionOperation>(&part.kernel.shape);
  if (attention == nullptr) return kernel_time(part.kernel, device);
  DeviceKernel kernel = part.kernel;
  AttentionOperation chosen = *attention;
  chosen.implementation = attention_kernel(chosen, kernel.type, device, release);
  kernel.shape = chosen;
  kernel.launches = 1;  // its law knows them
  return kernel_time(kernel, device);
}

void add_part(ClassCost& sum, int& launches, const KernelPart& part, const KernelTime& time) {
  const Duration work = time.busy + time.launches * kernel_gap;
  const double bound = in_seconds(sum.work) * static_cast<double>(sum.memory_fraction) +
                       in_seconds(work) * static_cast<double>(time.memory_fraction);
  // Added as real numbers: either may be the longest Duration there is, and a whole number has no
  // room for twice that.
  sum.work = from_ticks(static_cast<double>(sum.work.count()) + static_cast<double>(work.count()));
  sum.host += host_in_step(part.host);
  if (sum.work > Duration::zero())
    sum.memory_fraction = static_cast<float>(bound / in_seconds(sum.work));
  launches += time.launches;
}

namespace {

void price(Kernel& kernel, const Device& device, int release) {
  ClassCost sum{{}, {}, 0};
  int launches = 0;
  for (const KernelPart& part : kernel.parts)
    if (const auto time = part_time(part, device, release)) add_part(sum, launches, part, *time);
  kernel.by_class = sum;
  kernel.launches = std::max(1, launches);
}

/// `before`: the same pass of the layer before, priced; blocks of a network are alike.
void price(std::vector<Kernel>& pass, const std::vector<Kernel>* before, const Device& device,
           int release) {
  for (std::size_t k = 0; k < pass.size(); ++k) {
    Kernel& kernel = pass[k];
    if (kernel.time || kernel.parts.empty()) continue;
    const Kernel* same = before != nullptr && k < before->size() ? &(*before)[k] : nullptr;
    if (same != nullptr && same->by_class && same->parts == kernel.parts) {
      kernel.by_class = same->by_class;
      kernel.launches = same->launches;
    } else {
      price(kernel, device, release);
    }
  }
}

}  // namespace

void price_by_class(Workload& workload, const Device& device, int release) {
  if (!has_laws(device)) return;
  const Layer* before = nullptr;
  for (Layer& layer : workload.layers) {
    price(layer.forward, before == nullptr ? nullptr : &before->forward, device, release);
    price(layer.backward, before == nullptr ? nullptr : &before->backward, device, release);
    before = &layer;
  }
  for (Layer& layer : workload.layers)
    for (auto* pass : {&layer.forward, &layer.backward})
      for (Kernel& kernel : *pass) {
        kernel.reduces_rows = reduces_rows(kernel);
        kernel.parts = {};
      }
}

}  // namespace ddpsim
