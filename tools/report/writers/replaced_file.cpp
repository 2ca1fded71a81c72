#include "tools/report/writers/replaced_file.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "model/base/printable.hpp"
#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// Like the kernel's: more are a circle.
constexpr int most_links = 40;

/// May the file be written where it is, although it cannot be replaced?
bool may_be_in_place(int error) {
  return error == EACCES || error == EPERM || error == EROFS || error == EBUSY || error == EXDEV;
}

/// Could no machine write a file of that name? Else it is this one that fails: a full disk, a
/// folder that is not ours.
bool is_wrong_name(int error) {
  return error == EISDIR || error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG ||
         error == ELOOP || error == EINVAL;
}

/// 0, or why not everything was written.
int write_all(int file, std::string_view content) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t written = ::write(file, content.data() + done, content.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return errno == 0 ? EIO : errno;
    done += static_cast<std::size_t>(written);
  }
  return 0;
}

/// An open file that parts go to, until one cannot be written.
class OpenFile {
 public:
  explicit OpenFile(int file) : file_(file) {}
  OpenFile(const OpenFile&) = delete;
  ~OpenFile() {
    if (file_ >= 0) ::close(file_);
  }
  void add(std::string_view part) {
    if (error_ == 0) error_ = write_all(file_, part);
    size_ += static_cast<off_t>(part.size());
  }
  void reserve(std::size_t size) {
    error_ = size == 0 ? 0 : posix_fallocate(file_, 0, static_cast<off_t>(size));
    if (error_ == EOPNOTSUPP || error_ == EINVAL) error_ = 0;  // the file system reserves nothing
  }
  void cut() {
    if (error_ == 0 && ftruncate(file_, size_) != 0) error_ = errno;
  }
  /// 0, or the first of what went wrong, also in closing.
  int close() {
    if (::close(std::exchange(file_, -1)) != 0 && error_ == 0) error_ = errno;
    return error_;
  }

 private:
  int file_, error_ = 0;
  off_t size_ = 0;
};

}  // namespace

fs::path landing_place(const fs::path& path) {
  fs::path target = path;
  std::error_code error;
  for (int link = 0; link < most_links && fs::is_symlink(target, error); ++link)
    target = target.parent_path() / fs::read_symlink(target, error);
  return target;
}

ReplacedFile::ReplacedFile(std::string path)
    : path_(std::move(path)),
      target_(landing_place(path_)),
      beside_(fmt::format("{}.{}.part", target_.string(), getpid())) {
  struct stat there {};
  if (stat(path_.c_str(), &there) == 0) old_ = there;
}

ReplacedFile::~ReplacedFile() {
  std::error_code error;
  if (is_plain()) fs::remove(beside_, error);
}

void ReplacedFile::fail(int error) const {
  const std::string text = fmt::format("{}: cannot be written: {}", path_, std::strerror(error));
  if (is_wrong_name(error)) throw InputError(text);
  throw DeviceError(printable(text));
}

int ReplacedFile::open_beside() const {
  if (old_ && old_->st_nlink > 1) {
    errno = EPERM;
    return -1;
  }
  // A file of our own is made: no link that somebody put there is followed.
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const mode_t mode = old_ ? 0600 : 0666;
  int file = open(beside_.c_str(), flags, mode);
  if (file < 0 && errno == EEXIST && unlink(beside_.c_str()) == 0)  // a dead process left it
    file = open(beside_.c_str(), flags, mode);
  if (file < 0 || !old_) return file;
  const bool ours = old_->st_uid == geteuid() && old_->st_gid == getegid();
  if ((ours || fchown(file, old_->st_uid, old_->st_gid) == 0) &&
      fchmod(file, old_->st_mode & 07777) == 0)
    return file;
  close(file);
  errno = EPERM;
  return -1;
}

void ReplacedFile::write_in_place(const std::function<void(const Take&)>& make,
                                  std::size_t size) const {
  const int opened = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (opened < 0) fail(errno);
  OpenFile file(opened);
  if (is_plain()) file.reserve(size);
  make([&](std::string_view part) { file.add(part); });
  if (is_plain()) file.cut();
  if (const int error = file.close(); error != 0) fail(error);
}

void ReplacedFile::check(std::int64_t room) const {
  if (old_ && S_ISDIR(old_->st_mode)) fail(EISDIR);
  if (old_ && access(path_.c_str(), W_OK) != 0) fail(errno);
  if (!is_plain()) return;
  const int file = open_beside();
  if (file < 0 && (!old_ || !may_be_in_place(errno))) fail(errno);
  if (file < 0) return;
  OpenFile probe(file);
  probe.reserve(static_cast<std::size_t>(room));  // a full disk gives a file, and no room in it
  if (const int error = probe.close(); error != 0) fail(error);
}

void ReplacedFile::write(const std::string& content) const {
  write_parts([&](const Take& take) { take(content); }, content.size());
}

void ReplacedFile::write_parts(const std::function<void(const Take&)>& make) const {
  write_parts(make, 0);
}

void ReplacedFile::write_parts(const std::function<void(const Take&)>& make,
                               std::size_t size) const {
  if (old_ && S_ISDIR(old_->st_mode)) fail(EISDIR);
  if (old_ && access(path_.c_str(), W_OK) != 0) fail(errno);
  if (!is_plain()) return write_in_place(make, 0);
  const int opened = open_beside();
  if (opened < 0) {
    if (!old_ || !may_be_in_place(errno)) fail(errno);
    return write_in_place(make, size);
  }
  OpenFile file(opened);
  make([&](std::string_view part) { file.add(part); });
  if (const int error = file.close(); error != 0) fail(error);
  if (rename(beside_.c_str(), target_.c_str()) == 0) return;
  if (!old_ || !may_be_in_place(errno)) fail(errno);
  write_in_place(make, size);
}

}  // namespace ddpsim
