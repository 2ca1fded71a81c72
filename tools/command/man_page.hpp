#pragma once

#include <string>

namespace ddpsim {

/// The manual page ddpsim(1), made of what --help prints: roff with the macros of man(7).
std::string man_page();

}  // namespace ddpsim
