#include "model/parallel/policy/fsdp_units.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

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
  std::map<std::string, std::size_t> lists;
  // By the list, and in it by the number: "layers.9" stands before "layers.10", whichever of them
  // has parameters that are trained.
  std::map<std::tuple<std::size_t, std::size_t, std::string>, std::vector<std::int32_t>> blocks;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string block = block_of(names[i]);
    if (block.empty()) continue;
    const std::string list = block.substr(0, block.rfind('.') + 1);  // npos + 1 is 0
    const std::size_t place = lists.try_emplace(list, lists.size()).first->second;
    blocks[{place, block.size(), block}].push_back(static_cast<std::int32_t>(i));
  }
  std::vector<std::vector<std::int32_t>> units;
  for (auto& [key, unit] : blocks) units.push_back(std::move(unit));
  return units;
}

}  // namespace ddpsim
