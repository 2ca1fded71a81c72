#pragma once

// What descriptions of fields are made of: the usual kinds, and the usual ways to write a number.

#include "tools/report/records/record.hpp"

namespace ddpsim::fields {

using enum Importance;

inline constexpr Look tenths{"{:.1f}"}, hundredths{"{:.2f}"}, thousandths{"{:.3f}"};
inline constexpr Look signed_hundredths{"{:+.2f}"};
inline constexpr Look percent{"{:.0f} %", 100}, tenths_of_percent{"{:.1f} %", 100},
    signed_percent{"{:+.1f} %", 100}, hundredths_of_percent{"{:.2f} %", 100},
    signed_hundredths_of_percent{"{:+.2f} %", 100};
inline constexpr Look as_size{.style = Look::Style::size};
inline constexpr Look as_bar{.between = "", .style = Look::Style::bar};

/// Fields of the usual kinds.
constexpr Field text_field(std::string_view name, std::string_view label, std::string_view hint) {
  return {.name = name, .label = label, .hint = hint};
}
constexpr Field count_field(std::string_view name, std::string_view label, std::string_view hint,
                            Better better = Better::neither) {
  return {.name = name, .label = label, .kind = ValueKind::whole, .hint = hint, .better = better};
}
constexpr Field bytes_field(std::string_view name, std::string_view label, std::string_view hint,
                            Better better = Better::neither) {
  return {.name = name,
          .label = label,
          .kind = ValueKind::whole,
          .unit = "bytes",
          .hint = hint,
          .better = better,
          .look = as_size};
}
constexpr Field ms_field(std::string_view name, std::string_view label, std::string_view hint,
                         Better better = Better::neither) {
  return {.name = name,
          .label = label,
          .kind = ValueKind::real,
          .unit = "ms",
          .hint = hint,
          .better = better,
          .look = hundredths};
}
/// A part of something, or a factor: a number without a unit.
constexpr Field ratio_field(std::string_view name, std::string_view label, std::string_view hint,
                            Better better, Look look) {
  return {.name = name,
          .label = label,
          .kind = ValueKind::real,
          .hint = hint,
          .better = better,
          .look = look};
}
constexpr Field flag_field(std::string_view name, std::string_view hint) {
  return {.name = name, .label = name, .kind = ValueKind::flag, .hint = hint};
}
constexpr Field list_field(std::string_view name, std::string_view hint) {
  return {.name = name, .label = name, .kind = ValueKind::list, .hint = hint};
}
constexpr Field record_field(std::string_view name, std::string_view hint) {
  return {.name = name, .label = name, .kind = ValueKind::record, .hint = hint};
}

}  // namespace ddpsim::fields
