#pragma once

#include <string>
#include <string_view>

namespace ddpsim::fuzz {

/// Ends the program with `what` and `detail` on stderr unless `good`. A fuzzer keeps the input.
void require(bool good, std::string_view what, std::string_view detail = {});

/// What a refusal has to be: one line of printable text, not longer than a screen, that begins with
/// the file it is about (`file:line:column: ` or `file: `) or the flag (`--set ...`).
void check_refusal(std::string_view text, std::string_view file);

/// One line of printable text, not longer than a screen.
void check_line(std::string_view text);

/// Writes `content` where a path leads to it, in memory, and returns that path. The next call
/// replaces it.
std::string plain_file(std::string_view content);

}  // namespace ddpsim::fuzz
