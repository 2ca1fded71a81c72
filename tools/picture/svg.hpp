#pragma once

// Pictures are SVG: text that a browser draws, that prints at any size, and that a paper takes in.

#include <string>
#include <string_view>

namespace ddpsim {

/// `text` within an element or an attribute of XML or HTML: marks are escaped, and what neither
/// may hold is spelled out.
std::string escaped_xml(std::string_view text);

/// Names differ at both ends: one of more than `most` letters loses its middle.
std::string shortened(const std::string& name, std::size_t most);

/// A coordinate: at most two digits behind the point, and none that say nothing.
std::string coordinate(double value);

/// What every picture begins with: its size in pixels, what it is called and what it shows (for
/// those who hear it), and its colours, light and dark. Ends with `</svg>` of the caller's.
std::string svg_head(double width, double height, std::string_view title,
                     std::string_view description);

/// Steps of 1, 2 or 5 times a power of ten, so that at most `most` of them fit into `length`.
double tick_step(double length, int most);

/// `value` with as many digits as steps of `step` need.
std::string tick_label(double value, double step);

}  // namespace ddpsim
