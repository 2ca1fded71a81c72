#pragma once

#include <optional>
#include <string>
#include <string_view>

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

/// A plain decimal integer or number, nothing else around it ("010" is ten).
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

}  // namespace ddpsim
