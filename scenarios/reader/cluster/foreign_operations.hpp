#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// Does a driver call a device of this name so ("NVIDIA A100-SXM4-80GB" for a100-40)? Variants of a
/// model are alike.
bool is_called(std::string_view device, std::string_view by_driver);

/// A table of operations that were measured on another device of the catalogue.
struct ForeignOperations {
  std::string table;        ///< as it is named
  std::string device;       ///< that was measured, as its driver calls it
  std::string scaled_from;  ///< device of the catalogue that has operations of its own; "": none
};
/// The table that the device, as read_device takes it, takes for its own, where it is of another
/// device of the catalogue than that which it is based on, or, based on none, than any whose memory
/// is about as fast; none: there is none, or nobody can tell. Throws InputError.
std::optional<ForeignOperations> operations_of_another(const Yaml& given);

}  // namespace ddpsim
