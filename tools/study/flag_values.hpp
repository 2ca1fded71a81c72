#pragma once

#include <string>
#include <vector>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// Values of flags as people write them. Each throws InputError naming the flag, what it was given
/// and what was expected.
double share_of(const std::string& flag, const std::string& text);       ///< "5%" or "0.05": 0.05
Duration duration_of(const std::string& flag, const std::string& text);  ///< "60 s", above zero
std::vector<Bytes> sizes_of(const std::string& flag, const std::string& text);  ///< "1MiB,25MiB"
int count_of(const std::string& flag, const std::string& text, int least, int most);

}  // namespace ddpsim
