#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddpsim {

/// The candidate with the fewest edits, if it is near enough to be a slip; else "". Another case of
/// letters, or an underscore for a hyphen, is no edit.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ddpsim
