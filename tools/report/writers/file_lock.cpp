#include "tools/report/writers/file_lock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "model/base/printable.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/replaced_file.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// " (process 1234)", of what the owner wrote into the lock's file.
std::string owner_of(int file) {
  std::array<char, 20> digits{};
  const ssize_t read = pread(file, digits.data(), digits.size(), 0);
  std::string text(digits.data(), read > 0 ? static_cast<std::size_t>(read) : 0);
  text.resize(std::min(text.size(), text.find_first_not_of("0123456789")));
  return text.empty() ? "" : fmt::format(" (process {})", text);
}

/// Is the file that is open here still the one of that name? Its owner removes it in the end.
bool is_there(int file, const fs::path& path) {
  struct stat open_one {
  }, named{};
  return fstat(file, &open_one) == 0 && stat(path.c_str(), &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

}  // namespace

FileLock::FileLock(const std::string& path) {
  std::error_code error;
  // A link may point at what is still to be written.
  const fs::path target = fs::weakly_canonical(landing_place(path), error);
  beside_ = (error ? fs::path(path) : target).string() + ".lock";
  while (true) {
    file_ = open(beside_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    // Another user's, who may have it: to read is enough for a lock. Where there is none, none may
    // be made in this folder.
    if (file_ < 0 && errno == EACCES) {
      file_ = open(beside_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
      if (file_ < 0 && errno == ENOENT) errno = EACCES;
    }
    if (file_ < 0) {
      note(
          "note: {}: no lock can be taken ({}): another process that writes this file goes "
          "unnoticed",
          path, std::strerror(errno));
      return;
    }
    fchmod(file_,
           0644);  // whatever our umask is, so that other users can ask; fails if it is theirs
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      const std::string owner = owner_of(file_);
      close(file_);
      file_ = -1;
      if (!taken) return;  // the file system knows no locks
      throw DeviceError(printable(fmt::format(
          "{}: another process of ddpsim{} is writing it: wait until that one is done, or name "
          "another file",
          path, owner)));
    }
    if (is_there(file_, beside_)) break;
    close(file_);  // its owner has removed it since it was opened
  }
  const std::string process = fmt::format("{}\n", getpid());
  // Only an error would quote it.
  if (ftruncate(file_, 0) != 0 || pwrite(file_, process.data(), process.size(), 0) < 0) return;
}

FileLock::~FileLock() {
  if (file_ < 0) return;
  unlink(beside_.c_str());
  close(file_);
}

}  // namespace ddpsim
