#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace ddpsim {

using Seconds = std::chrono::duration<double>;

/// What the rest of a sweep will take if it goes on as it did: `done` points of those it had to
/// compute took `passed`, `left` are left. 0 while that says too little: before a second.
Seconds expected_rest(std::size_t done, std::size_t left, Seconds passed);

/// Less is not worth a word.
inline constexpr Seconds long_wait{5};

/// "about 40 s", "about 12 min", "about 3.5 h".
std::string about(Seconds time);

}  // namespace ddpsim
