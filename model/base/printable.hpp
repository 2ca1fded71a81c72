#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddpsim {

/// `text` so that a terminal shows it and obeys nothing in it: names of parameters, files and hooks
/// come from anywhere. What would move the cursor, change colours or turn the writing around is
/// spelled out:
///
///     \n \r \t          line feed, carriage return, tab
///     \x1b              any other control character of ASCII, and a byte that is no UTF-8
///     \u009b \u2028     control characters of Unicode: U+0080 to U+009F, line and
///                       paragraph separators, and what changes the direction of writing (U+061C,
///                       U+200E, U+200F, U+202A to 202E, U+2066 to 2069)
///
/// Characters in `kept`, such as "\n", stay as they are; so does a backslash. What is printable
/// already does not change.
std::string printable(std::string_view text, std::string_view kept = "");

/// At most `most` bytes of a text: of a longer one the beginning and the end, with " ... " between
/// them, characters whole. A path may have thousands of bytes, and what is wrong stands behind it.
std::string cut_in_middle(std::string text, std::size_t most);

/// The one line that an error says, whatever it quotes: printable, and if a screen does not hold it
/// its beginning and its end.
std::string error_line(std::string_view text);

/// The length of the UTF-8 character that begins at `at`; 0 if none does: a lead byte, the
/// continuation bytes it asks for, no longer form than needed, no surrogate, nothing past U+10FFFF.
std::size_t utf8_length(std::string_view text, std::size_t at);

}  // namespace ddpsim
