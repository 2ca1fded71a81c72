#include "scenarios/reader/device_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/entry_keys.hpp"

namespace ddpsim {
namespace {

/// A key for each number format, bound to the place of the format in an array of the device.
/// `examples`: a value of each format, as one device has them.
template <typename V, typename Of>
Map<Device> by_dtype(std::string name, std::string meaning, const Value<V>& value, Of of,
                     const About& about,
                     const std::array<const char*, all_dtypes.size()>& examples = {}) {
  Map<Device> map(std::move(name), std::move(meaning));
  for (const DType type : all_dtypes) {
    const auto field = [ of, type ](auto& device) -> auto& {
      return of(device)[static_cast<std::size_t>(type)];
    };
    About each = about;
    each.meaning = fmt::format(fmt::runtime(about.meaning), name_of(type));
    if (const char* example = examples[static_cast<std::size_t>(type)]) each.example = example;
    map.key(std::string(name_of(type)), value, field, each);
  }
  return map;
}

const Map<Device>& peak_map() {
  static const auto map = by_dtype(
      "peak",
      "How fast a device multiplies dense matrices of each number format, by its data sheet.",
      value::flop_rate(), [](auto& device) -> auto& { return device.peak; },
      {.meaning = "The peak rate of dense matrix products in {}.",
       .otherwise = "the device does not multiply this format"},
      {"66.9 TFLOP/s", "494.7 TFLOP/s", "989.4 TFLOP/s", "989.4 TFLOP/s"});
  return map;
}

const Map<Device>& efficiency_map() {
  static const auto map = by_dtype(
      "gemm_efficiency", "Which share of the peak large matrix products reach.",
      value::number(0.01, 1), [](auto& device) -> auto& { return device.gemm_efficiency; },
      {.meaning = "The share of the peak that large matrix products in {} reach.", .unset = "0.7"});
  return map;
}

Map<Device> make_device_map() {
  Map<Device> map(
      "device",
      "An accelerator, or a CPU, as its data sheet and published measurements describe it.");
  add_entry_keys(map, device_entries, &Device::source);
  map.key_taken("compute_capability", value::number(1, 20),
                [](Device& device, double version) {
                  device.compute_capability = static_cast<int>(std::lround(version * 10));
                },
                {.meaning = "CUDA's compute capability. NCCL's model of collectives needs it.",
                 .otherwise = "the device is not a CUDA device",
                 .example = "9.0"})
      .key("multiprocessors", value::whole(1, 10000), &Device::multiprocessors,
           {.meaning = "The number of streaming multiprocessors, or of cores of a CPU. Collectives "
                       "take some of them from kernels that run beside them.",
            .otherwise = "needed, unless the device is synchronous",
            .example = "132"})
      .key("memory", value::size(), &Device::memory,
           {.meaning = "The size of the device's memory, as its driver reports it: whether a step "
                       "fits, and the batch that `ddpsim init` writes. No time depends on it.",
            .otherwise = "not known",
            .example = "81559 MiB"})
      .key("memory_bandwidth", value::bandwidth(), &Device::memory_bandwidth,
           {.meaning = "The peak rate of the device's memory, reads and writes together.",
            .otherwise = "needed",
            .example = "3350 GB/s"})
      .key("memory_efficiency", value::number(0.01, 1), &Device::memory_efficiency,
           {.meaning = "The share of the memory's peak rate that streaming kernels reach."})
      .key_read("peak", {value::map([]() -> const auto& { return peak_map().description(); })},
                [](Device& device, const Yaml& given) { peak_map().read(given, device); },
                {.meaning = "How fast the device multiplies dense matrices of each number format.",
                 .otherwise = "needed",
                 .example = "{fp32: 66.9 TFLOP/s, bf16: 989.4 TFLOP/s}"})
      .key_read(
          "gemm_efficiency",
          {value::map([]() -> const auto& { return efficiency_map().description(); })},
          [](Device& device, const Yaml& given) { efficiency_map().read(given, device); },
          {.meaning = "Which share of the peak large matrix products reach, by number format.",
           .otherwise = "0.7 each",
           .example = "{fp32: 0.76, bf16: 0.78}"})
      .key("peer_to_peer", value::boolean(), &Device::peer_to_peer,
           {.meaning = "Whether GPUs of this kind can copy to each other over PCIe. If not, NCCL's "
                       "data goes through the host's memory, more slowly, and kernels beside it "
                       "slow too, or start later."})
      .key("synchronous", value::boolean(), &Device::synchronous,
           {.meaning = "Whether kernels run on the host thread, as on a CPU. Launching a kernel "
                       "then costs nothing besides running it."})
      .needs_also({{.key = "memory_bandwidth"}, {.key = "base"}})
      .needs_also({{.key = "peak"}, {.key = "base"}})
      .needs_also({{.key = "multiprocessors"},
                   {.key = "synchronous", .value = {value::word("true")}},
                   {.key = "base"}});
  return map;
}

}  // namespace

const Map<Device>& device_map() {
  static const Map<Device> map = make_device_map();
  return map;
}

Device read_device(const Yaml& given) {
  Device device;
  device.gemm_efficiency.fill(0.7);
  const std::vector<Entry> entries = entry_with_bases(given, device_entries);
  device_map().read(layers_of(entries), device);
  device.name = entries.front().name;
  const auto need = [&](bool there, const char* key) {
    if (!there) entries.front().yaml.fail(fmt::format("missing key \"{}\"", key));
  };
  need(device.memory_bandwidth.bytes_per_second > 0, "memory_bandwidth");
  need(std::any_of(device.peak.begin(), device.peak.end(),
                   [](FlopRate rate) { return rate.flops_per_second > 0; }),
       "peak");
  need(device.synchronous || device.multiprocessors > 1, "multiprocessors");
  return device;
}

}  // namespace ddpsim
