#pragma once

#include <cstddef>
#include <ostream>
#include <string>

#include "tests/golden/answers.hpp"

namespace ddpsim::golden {

/// The scenario of a case, the files it names, and each answer: its text and its JSON, indented.
void print_case(std::ostream& out, const Case& one);

/// Writes what is answered now of every case of the golden files; says which lines changed.
void update_golden(std::ostream& out);

/// Draws cases until each family of a group ("models") has `count`, or twice as many where models,
/// networks and files are concerned; of the group "shipped", takes every shipped scenario. Of a
/// family at most a tenth, or one, are refused, each of the group for another reason. Lines that
/// are there stay.
void draw_golden(std::ostream& out, std::size_t count, const std::string& group);

}  // namespace ddpsim::golden
