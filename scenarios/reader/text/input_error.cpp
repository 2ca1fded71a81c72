#include "scenarios/reader/text/input_error.hpp"

#include <cstddef>

namespace ddpsim {

std::string shown(const std::string& text) {
  constexpr std::size_t most = 60;
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // a UTF-8 character stays whole
  return text.substr(0, end) + "...";
}

}  // namespace ddpsim
