#pragma once

#include <filesystem>
#include <functional>

#include <nlohmann/json.hpp>

namespace ddpsim {

using JsonEvents = nlohmann::json_sax<nlohmann::json>;

/// Reads a JSON file, plain or gzip, from its beginning to its end and hands `events` what it
/// holds, without ever keeping more of it than one token and 256 KiB. `events` may throw; what its
/// `parse_error` says is not used. `progress` gets the share of the file that has been read.
///
/// Throws InputError, with file:line:column where there is one, if the file cannot be read, is cut
/// off or no JSON, is nested more than 64 deep, holds a token (or a run of brackets and blanks) of
/// more than 1 MiB, or more than 16 GiB of text.
void stream_json(const std::filesystem::path& file, JsonEvents& events,
                 const std::function<void(double)>& progress);

}  // namespace ddpsim
