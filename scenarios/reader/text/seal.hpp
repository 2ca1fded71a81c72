#pragma once

#include <string>
#include <string_view>

namespace ddpsim {

// What a program of ours measured is read long after, on another machine. A line that was lost on
// the way, or a digit that changed, would still be a calibration, of another machine. So the last
// line, the key `end` (file_end.hpp), has a comment that counts the lines and sums up the bytes:
//
//     end: ddpsim.calibration/1  # 43 lines, crc32 5f0c92aa
//
// The sum is zlib's crc32 of the whole file without that comment and without carriage returns,
// which a copy between systems may add. It finds accidents, not forgery.

/// zlib's crc32 of these bytes, in 8 hexadecimal digits.
std::string crc32_text(std::string_view bytes);

/// `text`, which ends with its line `end: ...`, with the seal on that line.
std::string sealed(std::string text);

/// Throws InputError, with file, line and column, if a file has a seal that does not hold. A file
/// without one passes: an earlier release, or a person, wrote it.
void check_seal(std::string_view content, const std::string& file);

/// Does the line `end: ...` stand here, with a seal or without?
bool is_end_line(std::string_view line, std::string_view format);

/// Did a program write this file, and without a seal? "" for what a person wrote, else a note that
/// damage could not be noticed.
std::string unsealed_note(std::string_view content, const std::string& file);

}  // namespace ddpsim
