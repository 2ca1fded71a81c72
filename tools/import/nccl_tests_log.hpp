#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// A line of a log: what operations on one message size took.
struct NcclTestsRow {
  Bytes size;  ///< the whole array, as printed
  std::string type;
  std::string reduction;    ///< "sum"; "none", or "" where there is no such column
  std::optional<int> root;  ///< none: no such column
  std::optional<Duration> out_of_place, in_place;  ///< none: not measured, or wrong results
  /// Bus over algorithm bandwidth, as a range that rounding leaves; 0 to 0 where bandwidths round
  /// to 0.
  double least_ratio = 0, most_ratio = 0;
};

/// One run of a program of nccl-tests.
struct NcclTestsRun {
  std::string operation;  ///< "all_reduce"; "" if the log does not name it
  int ranks = 0;          ///< listed devices; 0: none are
  std::string device;     ///< of rank 0
  std::string version;    ///< of nccl-tests, "2.19.6"; "" if not said
  std::vector<NcclTestsRow> rows;
  int wrong = 0;   ///< rows left out because results were wrong
  int unread = 0;  ///< rows left out because they break off, or have no time or size that can be
};

/// Reads the output of nccl-tests, as text (any version: what the columns are is taken from the
/// header above them) or as JSON (`-J`), with any number of runs. Prefixes of mpirun and srun, and
/// whatever else a launcher or NCCL printed in between, are passed over; so are rows of size 0. The
/// environment that JSON output carries is not looked at.
///
/// Throws InputError with file, and line if there is one, for a row that does not fit its header,
/// damaged JSON, more than a million rows, and files without any row.
std::vector<NcclTestsRun> read_nccl_tests(const std::filesystem::path& file);

/// Which operation a run was of: as named, or from its columns and the ratio of its bandwidths
/// (nccl-tests doc/PERFORMANCE.md: all-reduce 2 (n - 1) / n; gather and scatter (n - 1) / n; others
/// 1). "" if that fits several.
std::string operation_of(const NcclTestsRun& run);

/// Ranks of a run of all-reduces: as listed, or n = 2 / (2 - ratio). 0 if that fits several.
int ranks_of(const NcclTestsRun& run);

}  // namespace ddpsim
