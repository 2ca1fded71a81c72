#include "backend/job/private_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/job/temporary_folder.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view pattern = "ddpsim-XXXXXX";
constexpr time_t youngest = 60;  // seconds; a job that makes its folder now has no lock on it yet

bool has_our_name(const std::string& name) {
  const std::size_t fixed = pattern.find('X');
  return name.size() == pattern.size() && name.starts_with(pattern.substr(0, fixed));
}

/// Does the open folder belong to this user, is it closed to all others, and was it not changed
/// just now?
bool may_be_abandoned(int folder) {
  struct stat status {};
  return fstat(folder, &status) == 0 && status.st_uid == geteuid() &&
         (status.st_mode & 0777) == 0700 && time(nullptr) - status.st_mtime > youngest;
}

/// Is the folder empty, or does it hold the mark of a job and nothing but plain files beside the
/// mark?
bool holds_only_keys(const fs::path& path) {
  std::error_code error;
  bool empty = true, marked = false;
  for (fs::directory_iterator each(path, error), end; !error && each != end;
       each.increment(error)) {
    empty = false;
    if (each->symlink_status(error).type() != fs::file_type::regular) return false;
    marked = marked || each->path().filename() == folder_mark;
  }
  return !error && (empty || marked);
}

void remove_if_abandoned(const fs::path& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  if (may_be_abandoned(folder) && flock(folder, LOCK_EX | LOCK_NB) == 0 && holds_only_keys(path)) {
    std::error_code ignored;
    std::vector<fs::path> keys;
    for (const auto& each : fs::directory_iterator(path, ignored)) keys.push_back(each.path());
    for (const fs::path& key : keys) unlink(key.c_str());
    rmdir(path.c_str());
  }
  close(folder);
}

}  // namespace

void remove_abandoned_folders(const fs::path& above) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator each(above, error), end; !error && each != end; each.increment(error))
    if (has_our_name(each->path().filename().string())) found.push_back(each->path());
  for (const fs::path& path : found) remove_if_abandoned(path);
}

PrivateFolder::PrivateFolder() {
  const fs::path above = temporary_folder();
  remove_abandoned_folders(above);
  std::string path = (above / pattern).string();
  if (mkdtemp(path.data()) == nullptr)
    throw DeviceError(
        fmt::format("no directory for the ranks to meet in {}: {}; name one with "
                    "--rendezvous file:DIR",
                    above.string(), std::strerror(errno)));
  path_ = path;
  lock_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) flock(lock_, LOCK_SH | LOCK_NB);  // where there are no locks nothing is removed
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace ddpsim
