#pragma once

#include <string>

#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// A table as GitHub renders it, with all of its columns.
std::string markdown_of(const Table& table);

/// A page with its tables; what is drawn or to be pasted as code.
std::string markdown_of(const Page& page);

}  // namespace ddpsim
