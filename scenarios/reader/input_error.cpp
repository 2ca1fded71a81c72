#include "scenarios/reader/input_error.hpp"

namespace ddpsim {

std::string printable(std::string_view text) {
  std::string clean;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = [&](std::size_t ahead) {
      return i + ahead < text.size() ? static_cast<unsigned char>(text[i + ahead]) : 0;
    };
    if (byte(0) < 0x20 || byte(0) == 0x7f) {
      clean += '?';
    } else if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) {  // U+0080 to U+009F
      clean += '?';
      i += 1;
    } else if (byte(0) == 0xe2 && byte(1) == 0x80 &&
               (byte(2) == 0xa8 || byte(2) == 0xa9)) {  // U+2028, U+2029
      clean += '?';
      i += 2;
    } else {
      clean += text[i];
    }
  }
  return clean;
}

}  // namespace ddpsim
