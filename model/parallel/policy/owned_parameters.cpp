#include "model/parallel/policy/owned_parameters.hpp"

#include <algorithm>
#include <numeric>

namespace ddpsim {

OwnedParameters owned_by_size(const StepWorks& works, int ranks) {
  std::vector<std::int32_t> order(works.parameters());
  std::iota(order.begin(), order.end(), 0);
  const auto elements = [&works](std::int32_t each) {
    return works.matrices[at(each)].rows * works.matrices[at(each)].columns;
  };
  std::ranges::stable_sort(order, std::ranges::greater{}, elements);
  OwnedParameters owned(at(ranks));
  std::vector<std::int64_t> sizes(owned.size(), 0);
  for (const std::int32_t each : order) {
    const auto rank = std::ranges::min_element(sizes) - sizes.begin();
    owned[static_cast<std::size_t>(rank)].push_back(each);
    sizes[static_cast<std::size_t>(rank)] += elements(each);
  }
  return owned;
}

OwnedParameters owned_in_turn(const StepWorks& works, int ranks) {
  OwnedParameters owned(at(ranks));
  for (std::size_t i = 0; i < works.parameters(); ++i)
    owned[i % owned.size()].push_back(static_cast<std::int32_t>(i));
  return owned;
}

}  // namespace ddpsim
