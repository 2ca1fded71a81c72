#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ddpsim {

// What the program says on stderr. Nobody may read it, and it may not be writable at all (a full
// disk): that is no failure, and changes no exit code.

/// A line. What a terminal would obey in it is spelled out (model/base/printable.hpp).
void note(std::string_view line);
template <typename... Values>
void note(fmt::format_string<Values...> format, Values&&... values) {
  note(std::string_view{fmt::format(format, std::forward<Values>(values)...)});
}

/// "note: ..." for each.
void add_notes(const std::vector<std::string>& lines);

/// Text as it is, for what is drawn on a terminal.
void draw(std::string_view text);

}  // namespace ddpsim
