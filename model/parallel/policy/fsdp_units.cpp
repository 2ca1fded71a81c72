#include "model/parallel/policy/fsdp_units.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace ddpsim {

std::string block_of(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const bool is_number =
        end > begin && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin),
                                   name.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](char each) { return each >= '0' && each <= '9'; });
    if (is_number) return name.substr(0, end);
    begin = end + 1;
  }
  return "";
}

std::vector<std::string> names_for_units(const Workload& workload) {
  std::vector<std::string> names;
  for (const Parameter& each : workload.parameters) names.push_back(each.name);
  for (const FrozenParameter& each : workload.frozen_parameters) names.push_back(each.name);
  return names;
}

std::vector<std::vector<std::int32_t>> block_units(std::span<const std::string> names) {
  std::vector<std::vector<std::int32_t>> units;
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string block = block_of(names[i]);
    if (block.empty()) continue;
    const auto [found, is_new] = numbers.try_emplace(block, units.size());
    if (is_new) units.emplace_back();
    units[found->second].push_back(static_cast<std::int32_t>(i));
  }
  // "layers.9" before "layers.10", whichever of them has parameters that are trained.
  std::map<std::string, std::size_t> lists;
  const auto place = [&](const std::vector<std::int32_t>& unit) {
    const std::string block = block_of(names[static_cast<std::size_t>(unit.front())]);
    const std::size_t number = block.rfind('.') + 1;  // npos + 1 is 0
    const std::size_t list = lists.try_emplace(block.substr(0, number), lists.size()).first->second;
    return std::tuple(list, block.size(), block);
  };
  for (const auto& unit : units) place(unit);
  std::ranges::sort(units, {}, place);
  return units;
}

}  // namespace ddpsim
