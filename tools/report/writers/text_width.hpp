#pragma once

// Text as a terminal shows it: in columns, which are neither bytes nor characters.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddpsim {

/// The columns `text` takes on a terminal. UTF-8: combining marks take none, what East Asian fonts
/// draw wide takes two. A byte that is no UTF-8 takes one.
std::size_t display_width(std::string_view text);

/// `text` filled up with blanks to `width` columns.
std::string padded(std::string_view text, std::size_t width, bool to_the_right = false);

/// `text` on lines of at most `width` columns, parted at blanks, or within a word that has no room
/// on a line of its own. What begins with blanks goes on below its first word.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// `text` in at most `width` columns: the end of what does not fit is "...".
std::string shortened(std::string_view text, std::size_t width);

}  // namespace ddpsim
