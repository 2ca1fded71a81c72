#pragma once

#include <string>
#include <string_view>

namespace ddpsim {

/// The text as a gzip file. Equal texts give equal bytes: the file names no time.
/// Throws std::runtime_error if zlib fails.
std::string gzip(std::string_view text);

}  // namespace ddpsim
