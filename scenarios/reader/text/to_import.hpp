#pragma once

#include <string>
#include <string_view>

namespace ddpsim {

// What others measured stands in no file of ours, and `ddpsim import` makes one of it. A function
// says what `text`, all of `file` or its beginning, is and which command that is: "this is a log of
// nccl-tests; make a link of it: ddpsim import nccl-tests FILE -o link.yaml"; "": it is nothing
// that is imported, as far as is sure.

/// For JSON, and what is compressed: a trace of PyTorch's profiler, results of nccl-tests. No
/// file of ours has their keys.
std::string json_to_import(const std::string& file, std::string_view text);

/// For lines: the output of nccl-tests, or of a job with NCCL_DEBUG. Ask it of what is no mapping
/// of YAML: a file of ours may quote such lines.
std::string log_to_import(const std::string& file, std::string_view text);

}  // namespace ddpsim
