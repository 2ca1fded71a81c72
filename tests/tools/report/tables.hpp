#pragma once

#include "tools/report/records/field_kinds.hpp"

namespace ddpsim::tables {

// Fields for tables of the writers' tests: figures no command has.

inline constexpr Field dish = fields::text_field("dish", "dish", "What is cooked.");
inline constexpr Field price =
    fields::ms_field("price", "price", "What it costs.", Better::low).with(Importance::most);
inline constexpr Field weight = fields::bytes_field("weight", "weight", "What it weighs.");
inline constexpr Field spice =
    fields::ratio_field("spice", "spice", "How hot it is.", Better::neither, fields::percent)
        .with(Importance::least);
inline constexpr Field salt =
    fields::ratio_field("salt", "salt", "How salty it is.", Better::neither, fields::percent)
        .with(Importance::least);
inline constexpr Field remark = fields::text_field("remark", "remark", "What to say of it.")
                                    .with(Look{}.to_the_left())
                                    .with(Importance::much);
inline constexpr Field hot = fields::flag_field("hot", "Whether it is served hot.");

/// Two dishes, each in a row of 47 columns:
///
///     dish    price   weight  spice  salt  remark
///     soup    12.50  1.5 KiB   10 %   5 %  with bread
inline Table menu() {
  return {
      {dish, price, weight, spice, salt, remark},
      {{"soup", 12.5, 1536, 0.1, 0.05, "with bread"}, {"fish", 7.25, 3, FieldValue(), 0.5, ""}}};
}

}  // namespace ddpsim::tables
