#pragma once

#include <array>
#include <string>
#include <vector>

namespace ddpsim {

/// What `--link` says, given once or twice: [inside a node, between nodes]; "" where it says
/// nothing. A link of Ethernet or InfiniBand joins nodes, unless it is a measured table: those are
/// of ranks as they were, which are taken as one node unless the table says that there were several
/// (`nodes`). Other links are inside one. Throws
/// InputError, naming the flag, where there is no such link and where two of them join the same.
std::array<std::string, 2> links_of(const std::vector<std::string>& given);

}  // namespace ddpsim
