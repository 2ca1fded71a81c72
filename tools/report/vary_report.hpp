#pragma once

#include <optional>

#include "tools/report/page.hpp"
#include "tools/study/run_variants.hpp"

namespace ddpsim {

/// Rows by strategy, each against the first combination, with what a comm hook's own kernels and
/// memory cost; ends with the shortest step. A column for each key, and a row for each point that
/// is refused. `best`: sorted by it. Refers to the keys in `variants`.
Page varied_page(const Variants& variants, const std::optional<Field>& best = {});

/// A note where networks of other names have other numbers of NICs in a node: then it is not the
/// links alone that differ.
std::vector<std::string> network_notes(const Variants& variants);

/// That steps do not fit their device's memory, in a line; none: all fit.
std::vector<std::string> memory_notes(const Variants& variants);

/// As of `run`, each with its settings; then those that are refused, with the error.
List varied_records(const Variants& variants);
/// As of `run`, with last columns of settings and of the error, sorted in the same way.
Table varied_table(const Variants& variants, const std::optional<Field>& best = {});

}  // namespace ddpsim
