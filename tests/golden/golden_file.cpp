#include "tests/golden/golden_file.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace ddpsim::golden {

std::vector<std::string> all_groups() {
  std::vector<std::string> groups;
  for (const Family& family : all_families()) {
    std::string group = family.name.substr(0, family.name.find('/'));
    if (std::find(groups.begin(), groups.end(), group) == groups.end())
      groups.push_back(std::move(group));
  }
  groups.emplace_back("shipped");
  return groups;
}

std::filesystem::path file_of(const std::string& group) {
  return std::filesystem::path(DDPSIM_GOLDEN) / (group + ".txt");
}

std::vector<GoldenLine> read_golden(const std::string& group) {
  std::vector<GoldenLine> lines;
  std::ifstream file(file_of(group));
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (second == std::string::npos)
      throw std::runtime_error(file_of(group).string() + ": no line of a case: " + line);
    lines.push_back({{line.substr(0, first), line.substr(first + 1, second - first - 1)}, line});
  }
  return lines;
}

void write_golden(const std::string& group, const std::vector<GoldenLine>& lines) {
  std::ofstream file(file_of(group));
  for (const GoldenLine& line : lines) file << line.text << '\n';
  file.flush();
  if (!file) throw std::runtime_error("cannot write " + file_of(group).string());
}

}  // namespace ddpsim::golden
