#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "tools/import/nccl_tests_line.hpp"

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
  std::string operation;               ///< "all_reduce"; "" if the log does not name it
  std::string program = "nccl-tests";  ///< or "rccl-tests", AMD's
  int ranks = 0;                       ///< listed devices that reduce together; 0: none are listed
  int nodes = 0;  ///< hosts of these devices; 0: not told apart, or several groups reduce
  std::vector<int> ranks_of_nodes{};  ///< of each of these hosts, by their names; empty: unknown
  int programs = 0;     ///< how often rank 0 is listed: more than once, and each program is alone
  std::string device;   ///< of rank 0
  std::string version;  ///< of nccl-tests, "2.19.6"; "" if not said
  std::vector<NcclTestsRow> rows;
  int wrong = 0;       ///< rows with a placement left out because its results were wrong
  int wrong_half = 0;  ///< of them, those of which the other placement is kept
  /// Placements left out because their bandwidths are not those of their size and time.
  int contradicting = 0;
  std::int64_t most_bytes = 0;       ///< the largest size it was to reach; 0: not said
  std::int64_t issued_together = 1;  ///< operations ("agg iters"), whose time is divided by them
  int unread = 0;  ///< rows left out because they break off, or have no time or size that can be
};

/// Reads the output of nccl-tests, as text (any version: what the columns are is taken from the
/// header above them) or as JSON (`-J`), with any number of runs, and the JSON and CSV that AMD's
/// rccl-tests writes (`-x`). What a launcher, a log store or NCCL put before lines, in between or
/// into a row is passed over (nccl_tests_line.hpp); so are rows of size 0. The environment that
/// JSON output carries is not looked at.
///
/// Throws InputError with file, and line if there is one, for a row that does not fit its header,
/// rows of several programs that each ran alone, damaged JSON, more than a million rows, and files
/// without any row.
std::vector<NcclTestsRun> read_nccl_tests(const std::filesystem::path& file);

/// Which operation a run was of: as named, or from its columns and the ratio of its bandwidths
/// (nccl-tests doc/PERFORMANCE.md: all-reduce 2 (n - 1) / n; gather and scatter (n - 1) / n; others
/// 1). "" if that fits several.
std::string operation_of(const NcclTestsRun& run);

/// Narrows what a row says of the ratio of its bandwidths by two that it prints.
void note_ratio(NcclTestsRow& row, Printed algorithm, Printed bus);

/// Why a log of several programs, each of which lists a rank 0 of its own, tells nothing.
std::string programs_alone(int programs);

/// Do the bandwidths of a run of all-reduces say that not as many ranks took part as are listed?
bool contradicts_ranks(const NcclTestsRun& run);

/// Ranks of a run of all-reduces: as listed, or n = 2 / (2 - ratio); 1 where the bus bandwidth is
/// 0. 0 if that fits several.
int ranks_of(const NcclTestsRun& run);

}  // namespace ddpsim
