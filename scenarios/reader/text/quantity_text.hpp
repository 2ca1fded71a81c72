#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/price.hpp"
#include "model/base/quantity.hpp"

namespace ddpsim {

/// Numbers as people write them, each with its unit: "250 ms", "25 MiB", "450 GB/s", "400 Gbit/s",
/// "989 TFLOP/s". A space before the unit is optional. Nothing if the text is not such a quantity,
/// has no unit, or does not fit. Zero and negative values are parsed; whether they make sense is
/// the caller's to say.
std::optional<Duration> parse_duration(std::string_view text);
std::optional<Bytes> parse_bytes(std::string_view text);
std::optional<Bandwidth> parse_bandwidth(std::string_view text);
std::optional<FlopRate> parse_flop_rate(std::string_view text);
/// "2.5 USD/h": three capital letters name the currency.
std::optional<Price> parse_price(std::string_view text);

/// A plain decimal integer or number, nothing else around it ("010" is ten).
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// What the parsers above take, for people and for other programs.

enum class Quantity : std::uint8_t { duration, bytes, bandwidth, flop_rate };
std::vector<std::string_view> unit_names(Quantity quantity);
/// What is likely meant by a text that the parser does not take: "50 MiB" of "50mib", "400 Gbit/s"
/// of "400 Gbps". "" if nobody can tell.
std::string quantity_meant(std::string_view text, Quantity quantity);

/// Which sign a text may have.
enum class Sign : std::uint8_t { any, not_negative, positive };

/// Regular expressions (ECMA 262) that whole texts match if the parsers take them, but for the size
/// of the numbers.
std::string quantity_pattern(Quantity quantity, Sign sign);
std::string integer_pattern();
std::string number_pattern();
std::string percent_pattern();
std::string times_pattern();  ///< "1.3x"
std::string price_pattern();  ///< above zero

}  // namespace ddpsim
