#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/sim/engine/random_schedules.hpp"

/// Scenario files drawn from a seed, each of which can be written in many ways.
namespace ddpsim::relations {

using fixtures::Dice;
using Words = std::vector<std::string>;

/// A key with its value: a scalar or a list in flow style with all the texts that mean it, or a
/// mapping of keys.
struct Entry {
  std::string key;
  Words spellings;  ///< empty: a mapping
  std::vector<Entry> keys{};
  bool settable = true;  ///< `--set` takes it where the file lacks it
};

inline std::string any_of(Dice& dice, const Words& words) {
  return words[static_cast<std::size_t>(dice.between(0, static_cast<int>(words.size()) - 1))];
}

/// `count` thousandths of thousandths ... (`digits` decimals) of a unit: "3.4 us" of 3400, 3, "us".
inline std::string decimal(std::int64_t count, int digits, const std::string& unit) {
  std::int64_t one = 1;
  for (int i = 0; i < digits; ++i) one *= 10;
  return fmt::format("{}.{:0{}} {}", count / one, count % one, digits, unit);
}

inline Words spellings_of_ps(std::int64_t ps) {
  return {fmt::format("{} ps", ps), decimal(ps, 3, "ns"), decimal(ps, 6, "us"),
          decimal(ps, 6, "µs"),     decimal(ps, 9, "ms"), fmt::format("{}ps", ps)};
}

inline Words spellings_of_bytes(std::int64_t bytes) {
  Words texts{fmt::format("{} B", bytes), fmt::format("{}B", bytes), decimal(bytes, 3, "kB"),
              decimal(bytes, 3, "KB"), decimal(bytes, 6, "MB")};
  if (bytes % 1024 == 0) texts.push_back(fmt::format("{} KiB", bytes / 1024));
  if (bytes % (1024 * 256) == 0)
    texts.push_back(fmt::format("{} MiB", static_cast<double>(bytes) / (1024 * 1024)));
  return texts;
}

inline Words spellings_of_rate(int gigabytes) {
  return {fmt::format("{} GB/s", gigabytes), fmt::format("{}000 MB/s", gigabytes),
          fmt::format("{} Gbit/s", 8 * gigabytes), fmt::format("{} Gb/s", 8 * gigabytes),
          fmt::format("{}e9 B/s", gigabytes)};
}

inline Words spellings_of_flops(int tera) {
  return {fmt::format("{} TFLOP/s", tera), fmt::format("{}TFLOPS", tera),
          fmt::format("{}000 GFLOP/s", tera), fmt::format("{}e12 FLOP/s", tera)};
}

inline Entry time_of(const std::string& key, Dice& dice, int most_us) {
  return {key, spellings_of_ps(dice.time(most_us).count() + 1)};
}

inline Entry whole_of(const std::string& key, int value) {
  return {key, {std::to_string(value)}};
}

inline Entry truth_of(const std::string& key, bool value) {
  return {key, {value ? "true" : "false"}};
}

inline Entry random_link(Dice& dice, const std::string& key) {
  return {key,
          {},
          {{"kind", {any_of(dice, {"plain", "nvlink", "pcie", "ethernet"})}},
           time_of("latency", dice, 30),
           {"bandwidth", spellings_of_rate(dice.between(1, 400))}}};
}

inline Entry random_device_keys(Dice& dice) {
  return {"device",
          {},
          {{"compute_capability", {"9.0", "9"}},
           whole_of("multiprocessors", dice.between(40, 140)),
           {"memory_bandwidth", spellings_of_rate(dice.between(300, 4000))},
           {"memory_efficiency", {"0.8", "0.80"}},
           {"peak",
            {},
            {{"fp32", spellings_of_flops(dice.between(10, 90))},
             {"bf16", spellings_of_flops(dice.between(90, 900))}}}}};
}

inline Entry random_network(Dice& dice) {
  std::string widths = fmt::format("[{}", dice.between(1, 2000));
  for (int left = dice.between(1, 6); left > 0; --left)
    widths += fmt::format(", {}", dice.between(1, 2000));
  Entry model{"model", {}, {{"family", {"mlp", "MLP"}}, {"widths", {widths + "]"}}}};
  if (dice.one_in(3)) model.keys.push_back(truth_of("bias", false));
  model.settable = false;
  return {"workload",
          {},
          {model,
           whole_of("batch", dice.between(1, 64)),
           {"dtype", {any_of(dice, {"fp32", "bf16"})}},
           {"optimizer", {any_of(dice, {"none", "sgd", "adamw", "adamw-loop"})}}}};
}

inline Entry random_training_keys(Dice& dice) {
  const auto cap = [&] {
    const int kib = dice.between(1, 30'000);
    return spellings_of_bytes(dice.one_in(2) ? kib * 1024 : dice.between(1, 30'000'000));
  };
  Entry training{"training", {}, {{"bucket_cap", cap()}}};
  auto& keys = training.keys;
  if (dice.one_in(3)) keys.push_back({"first_bucket_cap", cap()});
  if (dice.one_in(3)) keys.push_back(truth_of("gradient_as_bucket_view", dice.one_in(2)));
  if (dice.one_in(3)) {
    keys.push_back(whole_of("micro_batches", dice.between(1, 3)));
    keys.push_back(truth_of("no_sync", dice.one_in(2)));
  }
  if (dice.one_in(3)) keys.push_back(truth_of("find_unused_parameters", true));
  if (dice.one_in(4)) keys.push_back({"bucket_rule", {"before_overflow"}});
  return training;
}

/// A scenario of one node or two, with each optional part now and then.
inline Entry random_scenario(Dice& dice) {
  Entry cluster{"cluster",
                {},
                {random_device_keys(dice), whole_of("nodes", dice.between(1, 2)),
                 whole_of("ranks_per_node", dice.between(1, 8)), random_link(dice, "intra_node"),
                 random_link(dice, "inter_node")}};
  if (dice.one_in(2))
    cluster.keys.push_back({"launch",
                            {},
                            {time_of("kernel", dice, 10), time_of("collective", dice, 40),
                             time_of("hook", dice, 15)}});
  if (dice.one_in(2))
    cluster.keys.push_back({"interference",
                            {},
                            {{"compute_slowdown", {"1.25", "1.250", "125e-2"}},
                             {"communication_slowdown", {"1.5", "1.50"}}}});
  if (dice.one_in(2)) cluster.keys.push_back({"skew", {"0", "0 %", "0.0"}});
  return {"", {}, {{"name", {"drawn"}}, random_network(dice), cluster, random_training_keys(dice)}};
}

}  // namespace ddpsim::relations
