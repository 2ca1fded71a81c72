#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// A table, what is said below it, and another one for what is of a second kind.
struct Listing {
  Table table;
  std::string below{};
  Table more{};
  std::vector<std::string> left_out{};  ///< errors of entries of the catalogue that no row is of

  /// Sources are long: they stand below the tables.
  Page page() const;
};

/// What a catalogue's kind holds ("models", "devices", "links", "clusters"), "strategies", "hooks",
/// or "results": what the values of our JSON and CSV mean. None for any other word. Throws
/// InputError where the catalogue cannot be read.
std::optional<Listing> listing_of(std::string_view kind);

}  // namespace ddpsim
