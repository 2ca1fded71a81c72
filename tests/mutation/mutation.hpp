#pragma once

#include <type_traits>

/// Included before every mutated source (tests/mutation/mutation_test.py).
namespace ddpsim::mutation {

/// Whether mutant `id` is the one that the environment variable DDPSIM_MUTANT chose. Marks the
/// mutant as reached, for the listener of tests that runtime.cpp registers.
bool chosen(int id);

/// `chosen`, usable in constant expressions, where no mutant is ever chosen.
constexpr bool on(int id) {
  return !std::is_constant_evaluated() && chosen(id);
}

}  // namespace ddpsim::mutation
