#include "tools/settings.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr std::int64_t most_decimals = 6;
constexpr std::size_t names_on_a_page = 60;

/// Fewer digits are rounder, zeros at the end left out; a five at the end, 25 and 75 rounder still.
int roughness(std::int64_t value) {
  while (value > 0 && value % 10 == 0) value /= 10;
  const int digits = static_cast<int>(fmt::format("{}", value).size());
  return 4 * digits - (value == 25 || value == 75 ? 3 : value % 10 == 5 ? 2 : 0);
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

}  // namespace

RoundCap round_cap(Bytes low, Bytes high) {
  if (low <= default_bucket_cap && default_bucket_cap <= high) return {"25", default_bucket_cap};
  std::int64_t scale = 1;
  for (std::int64_t decimals = 0; decimals <= most_decimals; ++decimals, scale *= 10) {
    // value / scale MiB, truncated to bytes, from low to high
    const auto bytes_of = [&](std::int64_t value) {
      return Bytes{static_cast<std::int64_t>(static_cast<double>(value) /
                                             static_cast<double>(scale) * 1024 * 1024)};
    };
    const auto from = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(low.count) / static_cast<double>(MiB.count) *
                  static_cast<double>(scale)));
    std::int64_t best = 0;
    for (std::int64_t value = std::max<std::int64_t>(from, 1);
         bytes_of(value) <= high && value < from + 2000; ++value)
      if (bytes_of(value) >= low && (best == 0 || roughness(value) < roughness(best))) best = value;
    if (best == 0) continue;
    return {
        fmt::format("{:.{}f}", static_cast<double>(best) / static_cast<double>(scale), decimals),
        bytes_of(best)};
  }
  // Exact: a whole number of bytes over a power of two.
  return {fmt::format("{} / 1048576", low.count), low};
}

std::string buckets_yaml(const Buckets& buckets, const Workload& workload) {
  std::string text = "training:\n  strategy: bucketed\n  buckets:\n";
  for (const auto& bucket : buckets) {
    std::string line;
    for (const int index : bucket) {
      const std::string& name = workload.parameters[static_cast<std::size_t>(index)].name;
      line += fmt::format("{}{}", line.empty() ? "" : ", ", quoted(name));
    }
    text += fmt::format("    - [{}]\n", line);
  }
  return text;
}

std::string settings_to_paste(const Tuning& tuning, const Workload& workload) {
  const Choice& cap = tuning.recommended;
  const RoundCap mib = round_cap(cap.cap, cap.highest_cap);
  std::string text = "to paste:\n\n";
  const RoundCap even = round_cap(tuning.best_even_cap.cap, tuning.best_even_cap.highest_cap);
  if (!tuning.pays && cap.cap == default_bucket_cap) {
    text += fmt::format(
        "  model = DistributedDataParallel(model)  # as it is, bucket_cap_mb=25: {:.2f} ms\n",
        in_ms(cap.step));
  } else if (cap.first_cap && *cap.first_cap == default_first_bucket_cap) {
    text += fmt::format(
        "  # PyTorch to 2.4, where the first bucket stays 1 MiB: {:.2f} ms\n"
        "  model = DistributedDataParallel(model, bucket_cap_mb={})\n"
        "  # PyTorch from 2.5, where bucket_cap_mb holds for the first bucket too: {:.2f} ms\n"
        "  model = DistributedDataParallel(model, bucket_cap_mb={})\n",
        in_ms(cap.step), mib.mib, in_ms(tuning.best_even_cap.step), even.mib);
  } else {
    text += fmt::format("  model = DistributedDataParallel(model, bucket_cap_mb={})  # {:.2f} ms\n",
                        mib.mib, in_ms(cap.step));
  }
  const Choice& pair = tuning.best_pair;
  const auto saves = [&](Duration step) {  // more than anybody would measure
    return tuning.pays && step < scaled(cap.step, 1 - 0.001);
  };
  if (pair.first_cap && saves(pair.step)) {
    const RoundCap first = round_cap(*pair.first_cap, pair.highest_first);
    const RoundCap second = round_cap(pair.cap, pair.highest_cap);
    text += fmt::format(
        "  # both caps, PyTorch 1.10 to 2.4: {:.2f} ms\n"
        "  torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = {}  # before wrapping; {} MiB\n"
        "  model = DistributedDataParallel(model, bucket_cap_mb={})\n",
        in_ms(pair.step), first.bytes.count, first.mib, second.mib);
  }
  const bool partition = tuning.best_partition && saves(tuning.best_partition->step);
  if (partition && tuning.best_partition->buckets.size() <= names_on_a_page) {
    std::string caps;
    for (const auto& bucket : tuning.best_partition->buckets) {
      const auto size_of = [&](int index) {
        return workload.parameters[static_cast<std::size_t>(index)].size();
      };
      Bytes size;
      for (const int index : bucket) size += size_of(index);
      // Reached with the last gradient, and not before.
      caps += fmt::format("{}{}", caps.empty() ? "" : ", ",
                          round_cap(size - size_of(bucket.back()) + Bytes{1}, size).mib);
    }
    text += fmt::format(
        "  # the free partition, PyTorch of 2026 with a list of caps: {:.2f} ms\n"
        "  model = DistributedDataParallel(model, bucket_cap_mb_list=[{}])\n",
        in_ms(tuning.best_partition->step), caps);
  }
  const RoundCap fused =
      round_cap(tuning.best_overflow_cap.cap, tuning.best_overflow_cap.highest_cap);
  const std::int64_t element = size_of(workload.parameters.front().dtype).count;
  text += fmt::format(
      "  # Horovod (fuses up to the threshold; its cycle time is not simulated): {0:.2f} ms\n"
      "  HOROVOD_FUSION_THRESHOLD={1}\n"
      "  # DeepSpeed, ZeRO stages 0 to 2 (in elements, as buckets there close before they "
      "overflow)\n"
      "  \"zero_optimization\": {{\"reduce_bucket_size\": {2}}}\n",
      in_ms(tuning.best_overflow_cap.step), fused.bytes.count, fused.bytes.count / element);
  if (tuning.pays && tuning.best_partition && workload.parameters.size() <= names_on_a_page)
    text += fmt::format("\nthe free partition, for a scenario:\n\n{}",
                        buckets_yaml(tuning.best_partition->buckets, workload));
  return text;
}

}  // namespace ddpsim
