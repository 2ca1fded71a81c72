#include "tools/report/writers/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/version.hpp"
#include "model/base/printable.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/writers/color.hpp"
#include "tools/report/writers/replaced_file.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// Are these one file, or would they be? Two results may share a device such as /dev/null.
bool one_file(const fs::path& one, const fs::path& other) {
  std::error_code error;
  if (fs::exists(one, error) && fs::exists(other, error))
    return !fs::is_character_file(one, error) && fs::equivalent(one, other, error);
  return fs::weakly_canonical(fs::absolute(landing_place(one), error), error) ==
         fs::weakly_canonical(fs::absolute(landing_place(other), error), error);
}

/// Does stdout, which the shell may have sent to a plain file, lead to this one?
bool is_stdout(const std::string& path) {
  struct stat given {
  }, standard{};
  return path == "-" || (stat(path.c_str(), &given) == 0 && fstat(STDOUT_FILENO, &standard) == 0 &&
                         S_ISREG(given.st_mode) && given.st_dev == standard.st_dev &&
                         given.st_ino == standard.st_ino);
}

void check_apart(const std::vector<ResultPlace>& places) {
  for (auto one = places.begin(); one != places.end(); ++one) {
    if (one->path != "-" && is_stdout(one->path))
      throw InputError(fmt::format("{} {}: stdout goes there already: write - or name another file",
                                   one->flag, one->path));
    for (auto other = places.begin(); other != one; ++other) {
      if (one->path == other->path)
        throw InputError(fmt::format("two results cannot both be written to {}",
                                     one->path == "-" ? "stdout" : one->path));
      if (one->path != "-" && other->path != "-" && one_file(one->path, other->path))
        throw InputError(
            fmt::format("{} {} and {} {} are one file: two results cannot both be "
                        "written there",
                        other->flag, other->path, one->flag, one->path));
    }
  }
}

/// Writes what took long to measure where there is still room, and says where; to stdout if there
/// is none anywhere.
std::string kept_elsewhere(const fs::path& path, const std::string& content) {
  const std::string name =
      fmt::format("{}.kept{}", path.stem().string(), path.extension().string());
  std::vector<fs::path> folders{path.parent_path(), "."};
  for (const char* variable : {"HOME", "TMPDIR"})
    if (const char* folder = std::getenv(variable)) folders.emplace_back(folder);
  folders.insert(folders.end(), {"/tmp", "/dev/shm"});
  for (const fs::path& folder : folders) {
    const fs::path kept = folder / name;
    std::error_code error;
    if (fs::exists(fs::symlink_status(kept, error))) continue;  // somebody else's
    try {
      ReplacedFile(kept.string()).write(content);
      return fmt::format("; what was measured is in {}", kept.string());
    } catch (const InputError&) {
    } catch (const DeviceError&) {
    }
  }
  std::fwrite(content.data(), 1, content.size(), stdout);
  return "; what was measured is on stdout";
}

}  // namespace

void check_places(const std::vector<ResultPlace>& given, const std::vector<fs::path>& inputs) {
  std::vector<ResultPlace> places;
  for (const ResultPlace& place : given)
    if (!place.path.empty()) places.push_back(place);
  check_apart(places);
  for (const ResultPlace& place : places) {
    if (place.path == "-") continue;
    for (const fs::path& input : inputs)
      if (one_file(place.path, input))
        throw InputError(
            fmt::format("{} {}: this would overwrite {}, which is read; name another "
                        "file",
                        place.flag, place.path, input == place.path ? "a file" : input.string()));
    ReplacedFile(place.path).check(place.room);
  }
}

void Outputs::add(const std::string& path, std::string content) {
  if (!path.empty()) files_.push_back({path, std::move(content), {}});
}

void Outputs::add_parts(const std::string& path, MakeParts parts) {
  if (!path.empty()) files_.push_back({path, "", std::move(parts)});
}

void Outputs::add_measured(const std::string& path, std::string content) {
  measured_.insert(path);
  add(path, std::move(content));
}

void Outputs::add_text(const std::string& text) {
  const std::string plain = printable(text, "\n");
  add("-", has_color(STDOUT_FILENO) ? in_color(plain) : plain);
}

void Outputs::print(const File& file) const {
  const auto take = [](std::string_view part) { std::fwrite(part.data(), 1, part.size(), stdout); };
  if (file.parts)
    file.parts(take);
  else
    take(file.content);
}

void Outputs::commit() const {
  std::string problems;
  bool machine_fails = false;
  const auto add = [&](const std::exception& problem, const std::string& path,
                       const std::string& content) {
    problems += fmt::format("{}{}", problems.empty() ? "" : "; ", problem.what());
    if (measured_.contains(path)) problems += kept_elsewhere(path, content);
  };
  for (const std::string& folder : folders_) {
    std::error_code error;
    fs::create_directories(folder, error);  // a file that cannot be written there says so
  }
  for (const auto& [path, content, parts] : files_) {
    if (path == "-") continue;
    try {
      if (parts)
        ReplacedFile(path).write_parts(parts);
      else
        ReplacedFile(path).write(content);
    } catch (const InputError& problem) {
      add(problem, path, content);
    } catch (const DeviceError& problem) {
      add(problem, path, content);
      machine_fails = true;
    }
  }
  for (const File& file : files_)
    if (file.path == "-") print(file);
  const bool told = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const std::string reason = std::strerror(errno);
  if (machine_fails) throw DeviceError(problems);
  if (!problems.empty()) throw InputError(problems);
  if (!told) throw DeviceError(fmt::format("stdout cannot be written: {}", reason));
}

nlohmann::ordered_json with_version(const nlohmann::ordered_json& json) {
  if (json.is_array()) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const auto& each : json) all.push_back(with_version(each));
    return all;
  }
  if (!json.is_object() || !json.contains("format")) return json;
  nlohmann::ordered_json result;
  for (const auto& [key, value] : json.items()) {
    result[key] = value;
    if (key == "format") result["version"] = version;
  }
  return result;
}

std::string json_text(const nlohmann::ordered_json& json) {
  return with_version(json).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace ddpsim
