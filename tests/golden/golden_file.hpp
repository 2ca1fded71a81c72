#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/golden/answers.hpp"

namespace ddpsim::golden {

/// A line of a golden file, and the case that it is of.
struct GoldenLine {
  Case of;
  std::string text;
};

/// The groups of families, "models" to "shipped": each has a file tests/golden/GROUP.txt.
std::vector<std::string> all_groups();
std::filesystem::path file_of(const std::string& group);

/// The lines of a group's file; none if there is no file.
std::vector<GoldenLine> read_golden(const std::string& group);
void write_golden(const std::string& group, const std::vector<GoldenLine>& lines);

}  // namespace ddpsim::golden
