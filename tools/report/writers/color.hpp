#pragma once

#include <string>
#include <string_view>

namespace ddpsim {

/// When text has colours: on terminals that take them, or as `--color` says.
enum class ColorWish : unsigned char { automatic, always, never };

/// For all that the program writes from here on. Throws InputError for what is not auto, always or
/// never.
void wish_color(const std::string& word);

/// Does text on this file descriptor get colours? By itself: if it is a terminal, TERM is not
/// "dumb" and NO_COLOR (no-color.org) is not set to anything.
bool has_color(int descriptor);

/// Printable text with colours after its form: headings of tables are bold, rules faint, each
/// letter of a timeline drawn from characters has its own. Nothing else changes: without the escape
/// sequences it is the same text.
std::string in_color(std::string_view text);

/// A line of stderr with its first word in red ("ddpsim:", an error) or yellow ("note:").
std::string note_in_color(std::string_view line);

}  // namespace ddpsim
