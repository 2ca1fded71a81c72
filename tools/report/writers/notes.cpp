#include "tools/report/writers/notes.hpp"

#include <cstdio>
#include <string>

#include <unistd.h>

#include "model/base/printable.hpp"
#include "tools/report/writers/color.hpp"

namespace ddpsim {

void note(std::string_view line) {
  constexpr std::size_t longest = 3000;  // beyond every list of names that an error gives
  const std::string plain = cut_in_middle(printable(line), longest);
  draw((has_color(STDERR_FILENO) ? note_in_color(plain) : plain) + "\n");
}

void add_notes(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) note("note: {}", line);
}

void draw(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace ddpsim
