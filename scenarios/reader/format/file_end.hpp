#pragma once

#include "scenarios/reader/format/map.hpp"

namespace ddpsim {

// A YAML file that was cut off at the end of a line is still YAML. So what a program writes ends
// with the key `end`, which repeats the file's format. Cut off within a line it is often no YAML
// any more, and people should hear of the cut, not of a bracket. A comment on that last line says
// whether anything else was lost or changed (seal.hpp).
//
//     format: ddpsim.link/1
//     written_by: ddpsim 0.1.0
//     ...
//     end: ddpsim.link/1  # 12 lines, crc32 5f0c92aa

/// Checks the key `end` of a calibration, which must have it. `format` is the value of its key
/// `format`. Throws InputError if the key is missing or names another format.
void check_end(const YamlMap& map, const Yaml& format);

/// Checks the end of a profile, which people write too: only one that names the program it was
/// `written_by` must have the key.
void check_end_if_written(const YamlMap& map, const Yaml& format);

/// Why a file that is no YAML was cut off within a line, as "line:column: ..." of its end; empty if
/// it was not, or is none of those that have to end with the mark. `failed` is the line, counted
/// from 0, in which the parser gave up.
std::string cut_off(std::string_view content, int failed);

/// The key `end`, which the functions above check.
template <typename T>
void add_end(Map<T>& map, const std::string& format) {
  map.key_constant("end", format,
                   {.meaning = "The last line of a file that a program wrote, which repeats its "
                               "format: a file without it was cut off.",
                    .otherwise = "needed, if the file says that a program wrote it",
                    .example = format});
}

/// The keys `written_by` and `end` of a profile.
template <typename T>
void add_written_by(Map<T>& map) {
  map.key_said("written_by", value::text("the name of a program"),
               {.meaning = "The program that wrote the file.",
                .otherwise = "a person wrote it",
                .example = "ddpsim 0.1.0"})
      .needs_also({{.key = "end"}, {.key = "written_by", .absent = true}});
}

}  // namespace ddpsim
