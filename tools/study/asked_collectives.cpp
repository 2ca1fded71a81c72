#include "tools/study/asked_collectives.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

constexpr std::array measurable{Operation::all_reduce,     Operation::all_gather,
                                Operation::reduce_scatter, Operation::broadcast,
                                Operation::all_to_all,     Operation::send_receive};

Operation collective_named(const std::string& flag, const std::string& name) {
  std::string known;
  for (const Operation each : measurable) {
    if (name_of(each) == name) return each;
    known += fmt::format(", {}", name_of(each));
  }
  throw InputError(fmt::format("{}: unknown collective \"{}\"; known: all, none{}", flag,
                               name.substr(0, 40), known));
}

std::vector<Operation> operations_named(const std::string& flag, const std::string& names) {
  if (names == "none") return {};
  if (names == "all") return {measurable.begin(), measurable.end()};
  std::vector<Operation> operations;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const Operation each = collective_named(flag, name);
    if (std::ranges::find(operations, each) == operations.end()) operations.push_back(each);
  }
  if (operations.empty()) collective_named(flag, names);
  return operations;
}

}  // namespace

std::vector<CollectiveCase> collectives_of(const std::vector<program::Job>& steps, int ranks,
                                           Bytes largest) {
  std::map<std::pair<Operation, int>, Bytes> sizes;
  for (const program::Job& step : steps)
    for (const Work& work : step.works) {
      if (!is_collective(work.operation)) continue;
      const int among = work.group > 0 ? std::min(work.group, ranks) : ranks;
      if (among == 1 || (work.operation == Operation::all_reduce && among == ranks)) continue;
      Bytes& size = sizes[{work.operation, among}];
      size = std::max(
          size, work.operation == Operation::all_gather ? among * work.payload : work.payload);
    }
  std::vector<CollectiveCase> collectives;
  for (const auto& [kind, size] : sizes)
    collectives.push_back({kind.first, kind.second, std::min(2 * size, largest)});
  return collectives;
}

std::vector<CollectiveCase> collectives_named(const std::string& flag, const std::string& names,
                                              int ranks, Bytes largest) {
  std::vector<CollectiveCase> collectives;
  for (const Operation operation : operations_named(flag, names))
    for (int among = 2; among <= ranks; ++among) {
      if (operation == Operation::send_receive && among > 2) break;
      if (operation == Operation::all_reduce && among == ranks) break;
      if (operation != Operation::send_receive && ranks % among != 0) continue;
      collectives.push_back({operation, among, largest});
    }
  return collectives;
}

}  // namespace ddpsim
