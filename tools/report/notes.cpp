#include "tools/report/notes.hpp"

#include <cstdio>
#include <string>

#include "model/base/printable.hpp"

namespace ddpsim {

void note(std::string_view line) {
  draw(printable(line) + "\n");
}

void add_notes(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) note("note: {}", line);
}

void draw(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace ddpsim
