#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/import/nccl_tests_log.hpp"

namespace ddpsim {

/// What a line of Docker's json-file log holds, {"log": "...", "stream": "stdout", ...}; none: it
/// is no such line.
std::optional<std::string> line_in_json(std::string_view line);

/// Does the file begin as JSON does? So does "[1,0]<stdout>:" not, nor a log in Docker's lines of
/// JSON, which is text.
bool is_nccl_tests_json(const std::filesystem::path& file);

/// Reads the JSON that nccl-tests writes (-J, since 2.17.3): one object, or a list of them; or that
/// of rccl-tests. Throws InputError if it is larger than 16 MiB, no JSON, or neither's.
std::vector<NcclTestsRun> read_nccl_tests_json(const std::filesystem::path& file);

/// "/opt/nccl-tests/build/all_reduce_perf": "all_reduce".
std::string operation_named(std::string_view program);

}  // namespace ddpsim
