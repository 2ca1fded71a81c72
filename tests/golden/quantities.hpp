#pragma once

#include <string>

#include "scenarios/reader/format/format.hpp"
#include "tests/golden/draw.hpp"

namespace ddpsim::golden {

/// A number or a quantity of a form, as YAML has it: `near` times a power of two or a few. `near`
/// is a value of the key, such as its example "450 GB/s".
std::string drawn_quantity(const Draw& draw, const Form& form, const std::string& near,
                           const std::string& place);

}  // namespace ddpsim::golden
