#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/format/map.hpp"

namespace ddpsim {

/// Sentences that notes repeat: a list of at most 20 texts of at most 500 bytes each, without
/// control characters.
Value<std::vector<std::string>> doubts_value();

/// The key `doubts` of a file that somebody measured.
template <typename T>
void add_doubts(Map<T>& map, std::vector<std::string> T::*field) {
  map.key("doubts", doubts_value(), field,
          {.meaning = "Why what was measured is of little use, a sentence each, such as that other "
                      "programs were at work. `run` and `tune` repeat them, and then do not say "
                      "how far such predictions usually are off.",
           .otherwise = "nothing is known against it",
           .example = "[\"steps differ by 34 % from one to the next\"]"});
}

}  // namespace ddpsim
