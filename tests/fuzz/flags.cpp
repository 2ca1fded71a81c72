// Values of flags and quantities. The first byte says of which kind, the rest is the text.

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "tests/fuzz/checks.hpp"
#include "tests/fuzz/targets.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/grid.hpp"

namespace ddpsim::fuzz {
namespace {

/// A text that is no quantity is told what was meant, and that is one.
template <typename Parse>
void check_quantity(std::string_view text, Quantity quantity, Parse parse) {
  if (parse(text)) return;
  const std::string meant = quantity_meant(text, quantity);
  require(meant.empty() || parse(meant).has_value(), "a suggestion that is refused", meant);
}

void check_axis(const std::string& text) {
  const Grid grid({parse_axis(text)});
  require(grid.points() == grid.axes().front().values.size(), "another number of points");
  for (const std::size_t point : {std::size_t{0}, grid.points() - 1})
    require(grid.point_of(grid.indices(point)) == point, "a point that is another");
}

void check(char kind, const std::string& text) {
  switch (kind) {
    case 'd':
      return check_quantity(text, Quantity::duration, parse_duration);
    case 'b':
      return check_quantity(text, Quantity::bytes, parse_bytes);
    case 'r':
      return check_quantity(text, Quantity::bandwidth, parse_bandwidth);
    case 'f':
      return check_quantity(text, Quantity::flop_rate, parse_flop_rate);
    case 'p':
      parse_price(text);
      return;
    case 'S':
      require(share_of("--share", text) >= 0, "a share below zero", text);
      return;
    case 'D':
      require(duration_of("--for", text) > Duration::zero(), "no time above zero", text);
      return;
    case 'B':
      for (const Bytes size : sizes_of("--sizes", text))
        require(size.count > 0, "no size above zero", text);
      return;
    case 'C': {
      const int count = count_of("--count", text, 1, 64);
      require(count >= 1 && count <= 64, "a count outside of its range", text);
      return;
    }
    default:
      check_axis(text);
  }
}

}  // namespace

void flags(std::string_view input) {
  if (input.empty()) return;
  try {
    check(input.front(), std::string(input.substr(1)));
  } catch (const InputError& problem) {
    check_refusal(problem.what(), "--");
  }
}

}  // namespace ddpsim::fuzz
