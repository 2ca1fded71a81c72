#include "scenarios/reader/cluster/device_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/entry_keys.hpp"
#include "scenarios/reader/cluster/operations_reader.hpp"

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
    each.meaning = fmt::format(fmt::runtime(std::string(about.meaning)), name_of(type));
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
      "gemm_efficiency",
      "Which share of the peak large matrix products reach: more than 1 where a card's clock is "
      "above "
      "that of its data sheet.",
      value::number(0.01, 1.5), [](auto& device) -> auto& { return device.gemm_efficiency; },
      {.meaning = "The share of the peak that large matrix products in {} reach.", .unset = "0.7"});
  return map;
}

/// `operations: {scaled_from: h200}`.
struct ScaledFrom {
  std::string device;
};

const Map<ScaledFrom>& scaled_from_map() {
  static const auto map =
      Map<ScaledFrom>("scaled_operations",
                      "The measured operations of another device, scaled to this one.")
          .key_read("scaled_from", {{.kind = Form::Kind::entry, .catalogue = device_entries}},
                    [](ScaledFrom&, const Yaml&) {},  // read_device has followed it
                    {.meaning = "The device that was measured, which has `operations` of its own. "
                                "Each time is multiplied by what the laws say of this device over "
                                "what they say of that one: by their data sheets.",
                     .example = "h200",
                     .required = true});
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
      .key_read(
          "nvlink", value::boolean().type,
          [](Device&, const Yaml& given) { given.boolean(); },  // lacks_nvlink reads it
          {.meaning = "Whether the device can have NVLink, in whatever form. Where it cannot, "
                      "a scenario that joins such devices by NVLink gets a note.",
           .unset = "true"})
      .key_read(
          "nvlink_bridge", value::boolean().type,
          [](Device&, const Yaml& given) { given.boolean(); },  // has_nvlink_bridge does
          {.meaning = "Whether NVLink between such cards is a bridge that joins two. A scenario "
                      "that joins more of them by NVLink, or by a switch, gets a note.",
           .unset = "false"})
      .key("synchronous", value::boolean(), &Device::synchronous,
           {.meaning = "Whether kernels run on the host thread, as on a CPU. Launching a kernel "
                       "then costs nothing besides running it. It is not "
                       "CUDA_LAUNCH_BLOCKING: a GPU that is said to be synchronous is priced as a "
                       "CPU, and gets a note."})
      .key_read("operations",
                Type{value::word("none", "the laws alone price kernels"),
                     {.kind = Form::Kind::entry, .catalogue = operation_entries},
                     value::map([]() -> const auto& { return scaled_from_map().description(); })},
                [](Device&, const Yaml&) {},  // read_device has followed it
                {.meaning = "Single operations that were measured on the device, such as `python "
                            "-m ddpsim.measure operations` writes. For kernels of workload "
                            "descriptions and of the catalogue's models they go before the laws. "
                            "Of a device that takes them from its `base` and has another data "
                            "sheet they are scaled by the laws.",
                 .otherwise = "none",
                 .example = "my-gpu.yaml"})
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

namespace {

/// By the keys of entry `first` and of those it is based on.
Device read_layers(const std::vector<Entry>& entries, std::size_t first) {
  Device device;
  device.gemm_efficiency.fill(0.7);
  const std::vector<Entry> some(entries.begin() + static_cast<std::ptrdiff_t>(first),
                                entries.end());
  device_map().read(layers_of(some), device);
  const bool changed = some.front().name == "inline" && some.size() > 1;
  device.source = source_of(some);
  device.name = changed ? some[1].name + std::string(mark_of_changes) : some.front().name;
  return device;
}

/// Do the laws of kernels see the same device?
bool same_sheet(const Device& one, const Device& other) {
  const auto rates = [](const Device& device) {
    std::array<double, 2 * all_dtypes.size() + 2> all{};
    for (const DType type : all_dtypes) {
      all[2 * static_cast<std::size_t>(type)] = device.peak_of(type).flops_per_second;
      all[2 * static_cast<std::size_t>(type) + 1] = device.efficiency_of(type);
    }
    all[all.size() - 2] = device.memory_bandwidth.bytes_per_second;
    all[all.size() - 1] = device.memory_efficiency;
    return all;
  };
  return one.compute_capability == other.compute_capability &&
         one.multiprocessors == other.multiprocessors && rates(one) == rates(other);
}

std::shared_ptr<const OperationTable> scaled_from(const OperationTable& table, Device measured) {
  return std::make_shared<const OperationTable>(
      table.scaled_from(std::make_shared<const Device>(std::move(measured))));
}

/// The table of the first entry that says something of `operations`; null: there is none.
/// `of_another`: may it be the table of another device?
std::shared_ptr<const OperationTable> operations_of(const std::vector<Entry>& entries,
                                                    const Device& device, bool of_another);

Device read_device(const Yaml& given, bool operations_of_another) {
  const std::vector<Entry> entries = entry_with_bases(given, device_entries);
  Device device = read_layers(entries, 0);
  const auto need = [&](bool there, const char* key) {
    if (!there) entries.front().yaml.fail(fmt::format("missing key \"{}\"", key));
  };
  need(device.memory_bandwidth.bytes_per_second > 0, "memory_bandwidth");
  need(std::any_of(device.peak.begin(), device.peak.end(),
                   [](FlopRate rate) { return rate.flops_per_second > 0; }),
       "peak");
  const bool counted = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return YamlMap(entry.yaml).has("multiprocessors");
  });
  need(device.synchronous || counted, "multiprocessors");
  device.operations = operations_of(entries, device, operations_of_another);
  return device;
}

std::shared_ptr<const OperationTable> operations_of(const std::vector<Entry>& entries,
                                                    const Device& device, bool of_another) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto given = YamlMap(entries[i].yaml).find("operations");
    if (!given) continue;
    if (given->is_word("none")) return nullptr;
    if (device.synchronous)
      given->fail("measured operations are of GPUs: a calibration measures a CPU's kernels");
    if (given->is_map()) {
      if (!of_another) return nullptr;
      scaled_from_map().read(*given);
      const Yaml name = *YamlMap(*given).find("scaled_from");
      const Device measured = read_device(name, false);
      if (!measured.operations)
        name.fail(fmt::format("device {} has no measured operations of its own", measured.name));
      return scaled_from(*measured.operations, measured);
    }
    auto table = measured_operations(*given);
    if (i == 0) return table;
    const Device base = read_layers(entries, i);
    return same_sheet(device, base) ? table : scaled_from(*table, base);
  }
  return nullptr;
}

}  // namespace

Device read_device(const Yaml& given) {
  return read_device(given, true);
}

/// What a device, or a base of it, says under the key; none: nothing.
static std::optional<bool> said_of(const Yaml& given, std::string_view key) {
  for (const Entry& entry : entry_with_bases(given, device_entries))
    if (const auto said = YamlMap(entry.yaml).find(key)) return said->boolean();
  return std::nullopt;
}

/// What a device of the catalogue says of the key; none for other names.
static std::optional<bool> said_of(const std::string& name, std::string_view key) {
  const std::vector<std::string> names = catalogue_names(device_entries);
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  return said_of(Yaml::of_text(name), key);
}

bool lacks_nvlink(const std::string& name) {
  return !said_of(name, "nvlink").value_or(true);
}

bool lacks_nvlink(const Yaml& given) {
  return !said_of(given, "nvlink").value_or(true);
}

bool is_known_gpu(std::string name) {
  name = without_mark(std::move(name));
  const std::vector<std::string> names = catalogue_names(device_entries);
  return std::find(names.begin(), names.end(), name) != names.end() &&
         !said_of(name, "synchronous").value_or(false);
}

bool has_nvlink_bridge(const std::string& name) {
  return said_of(name, "nvlink_bridge").value_or(false);
}

bool has_nvlink_bridge(const Yaml& given) {
  return said_of(given, "nvlink_bridge").value_or(false);
}

}  // namespace ddpsim
