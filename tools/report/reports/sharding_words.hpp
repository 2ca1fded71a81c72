#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/tune/shards.hpp"

namespace ddpsim {

/// What one setting of a sharding is, for people.
struct SettingWords {
  std::string text{};      ///< "" of what is left out or off, and need not be said
  std::int64_t order = 0;  ///< among the values of the setting
  bool is_usual = true;    ///< as it is by itself
};

/// A sharding's settings that tune varies: of one strategy and variant always the same ones.
std::vector<SettingWords> words_of_settings(const Sharding& sharding);

/// What the words mean, as keys of `training`.
std::string meaning_of_settings(const Training& training);

/// "own head, 2 inputs": what is other than by itself; "each block", or "the default options".
std::string sharding_text(const Sharding& sharding);

/// The keys of `training` that make the scenario's step so, as keys_text() has them.
std::string sharding_keys(const Scenario& scenario, const Sharding& sharding);

}  // namespace ddpsim
