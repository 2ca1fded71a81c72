#pragma once

#include <atomic>
#include <type_traits>

/// Included before every mutated source (tests/mutation/mutation_test.py).
namespace ddpsim::mutation {

constexpr int most = 10'000;
extern std::atomic<bool> reached[most];  ///< [mutant]

/// Whether mutant `id` is the one that the environment variable DDPSIM_MUTANT chose. Marks the
/// mutant as reached, for the listener of tests.
bool chosen(int id);

/// `chosen`, usable in constant expressions, where no mutant is ever chosen.
constexpr bool on(int id) {
  return !std::is_constant_evaluated() && chosen(id);
}

}  // namespace ddpsim::mutation
