#pragma once

#include <string>

#include "scenarios/reader/format/format.hpp"

namespace ddpsim {

/// May a value of the type be written as this scalar, as far as the type says? The name of an entry
/// has to be one of the catalogue; whether the file of a path is there is not looked at.
bool suits(const Type& type, const std::string& scalar);

/// A value of the key that is worth showing, as it is written in YAML: its example, else what holds
/// where the key is missing; "" for neither.
std::string example_value(const KeyDescription& key);

}  // namespace ddpsim
