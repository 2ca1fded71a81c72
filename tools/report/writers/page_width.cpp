#include "tools/report/writers/page_width.hpp"

#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {

PageWidth page_width() {
  if (const char* columns = std::getenv("COLUMNS"))
    if (const auto given = parse_integer(columns); given && *given > 0)
      return static_cast<std::size_t>(*given);
  winsize size{};
  if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return std::nullopt;
}

}  // namespace ddpsim
