// Which mutant is on. Linked into every mutated program.
#include <cstdlib>

#include "tests/mutation/mutation.hpp"

namespace ddpsim::mutation {
namespace {

int number_of_chosen() {
  const char* text = std::getenv("DDPSIM_MUTANT");
  return text ? std::atoi(text) : -1;
}

}  // namespace

std::atomic<bool> reached[most];

bool chosen(int id) {
  static const int number = number_of_chosen();
  if (!reached[id].load(std::memory_order_relaxed))
    reached[id].store(true, std::memory_order_relaxed);
  return id == number;
}

}  // namespace ddpsim::mutation
