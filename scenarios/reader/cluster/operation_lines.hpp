#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/kernel/operation_table.hpp"

namespace ddpsim {

/// The rows of a table of operations (format: ddpsim.operations/1) whose every row stands on one
/// line, as programs write them:
///
///     operations:
///       - {gemm: {m: 64, n: 8, k: 8}, type: bf16, read: 1152, written: 1024, time: 4.7 us}
///
/// Nothing where anything is written otherwise or is wrong: the reader of YAML then reads the file,
/// or says what is wrong. It needs 0.1 s for a thousand rows, which every run would pay; this needs
/// a millisecond. A test holds the two against each other.
std::optional<std::vector<MeasuredOperation>> operations_on_lines(std::string_view content);

}  // namespace ddpsim
