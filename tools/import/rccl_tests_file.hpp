#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/import/nccl_tests_log.hpp"

namespace ddpsim {

/// The files that rccl-tests, AMD's fork of nccl-tests, writes with -x (`--output_file`), as JSON
/// or CSV (-Z, `--output_format`): an entry for each size and placement, with the operation
/// ("AllReduce"), the type, the reduction, microseconds, bandwidths and wrong results. Ranks are
/// "gpus" in a build without MPI, else "ranks" times "gpusPerRank". The first versions wrote an
/// object on each line and "#wrong", later ones a list and "wrong"; the columns of the CSV are
/// found by its header.
/// Source: ROCm/rccl-tests pull requests 93 and 140, and Reporter in its src/common.cu.

/// Is it an entry of rccl-tests?
bool is_rccl_entry(const nlohmann::json& object);

/// Is this the header of a CSV of rccl-tests?
bool is_rccl_header(std::string_view line);

/// Runs made of entries. Throws InputError, with the entry's place, if something is missing in it
/// or is not what it should be.
class RcclEntries {
 public:
  /// `place`: of the entry, such as "file:3:1".
  void take(const nlohmann::json& object, const std::string& place);
  /// Takes a row: what stands under each column.
  void take(const std::vector<std::string>& columns, const std::vector<std::string>& fields,
            const std::string& place);
  std::vector<NcclTestsRun> finish();

 private:
  std::vector<NcclTestsRun> runs_;
};

/// Reads the CSV. Throws InputError if it is larger than 16 MiB, or a line does not fit its header.
std::vector<NcclTestsRun> read_rccl_csv(const std::filesystem::path& file);

}  // namespace ddpsim
