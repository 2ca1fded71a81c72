// Ranks of a job leave each other small files in a folder. Where that folder lies among everybody's
// temporary files, another user may have put there what they like, under the very names that are
// going to be used: a link, so that we write into a file of ours elsewhere, or a pipe, so that we
// wait for ever for somebody to write into it. Hence three rules:
//
//   the folder is made with mode 0700 by its owner, and who finds it there checks that; from then
//   on
//                it is an open descriptor, which no renaming can lead elsewhere
//   writing makes a new file of a name that nobody can guess, and renames it: a rename replaces
//                what has the name, be it a link, and follows nothing
//   reading      opens without following links and without waiting, and then asks what was opened

#include "backend/job/folder_store.hpp"

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gloo/common/error.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/job/temporary_folder.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

constexpr const char* elsewhere = "name another with --rendezvous file:DIR";

DeviceError cannot_write(const fs::path& folder, const std::string& why) {
  return DeviceError(fmt::format("rendezvous directory {} cannot be written: {}; {}",
                                 folder.string(), why, elsewhere));
}

/// Closes itself.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// A name for a key's file: letters, digits, '-', '_' and '.' stay, other bytes become %2f and the
/// like.
std::string file_of(const std::string& key) {
  std::string name;
  for (const char c : key)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
        (c == '.' && !name.empty()))
      name += c;
    else
      name += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  return name;
}

/// A random file name, which nobody else can have made before.
std::string unheard_of() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    throw DeviceError(fmt::format("no random number: {}", std::strerror(errno)));
  return fmt::format(".part-{:016x}", number);
}

/// Opens the file of a key, which must be a plain file. None if there is no file of that name.
std::optional<int> open_key(const Folder& folder, const std::string& key) {
  const std::string name = file_of(key);
  const auto refuse = [&](const std::string& what) {
    return DeviceError(
        fmt::format("rendezvous {}: {} is {}, which no rank has written; empty the "
                    "directory or {}",
                    folder.path().string(), name, what, elsewhere));
  };
  const int file =
      openat(folder.descriptor(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return std::nullopt;
  if (file < 0 && errno == ELOOP) throw refuse("a link");
  if (file < 0 && errno == ENXIO) throw refuse("no plain file");  // a socket
  if (file < 0) throw cannot_write(folder.path(), std::strerror(errno));
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) return file;
  close(file);
  throw refuse("no plain file");
}

/// Closes the file too.
void write_whole(int file, const std::vector<char>& data) {
  std::size_t done = 0;
  int problem = 0;
  while (done < data.size() && problem == 0) {
    const ssize_t written = write(file, data.data() + done, data.size() - done);
    if (written >= 0)
      done += static_cast<std::size_t>(written);
    else if (errno != EINTR)
      problem = errno;
  }
  if (close(file) != 0 && problem == 0) problem = errno;
  if (problem != 0) throw DeviceError(std::strerror(problem));
}

}  // namespace

Folder Folder::open(const fs::path& path) {
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error) throw cannot_write(path, error.message());
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) throw cannot_write(path, std::strerror(errno));
  return {folder, path, made};
}

Folder Folder::open_own() {
  const fs::path path = temporary_folder() / fmt::format("ddpsim-{}", geteuid());
  const bool made = mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) throw cannot_write(path, std::strerror(errno));
  return open_closed(path, made);
}

Folder Folder::open_closed(const fs::path& path) {
  return open_closed(path, true);  // its last rank is to remove it as if a rank had made it
}

Folder Folder::open_closed(const fs::path& path, bool made) {
  Folder folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), path, made);
  const int problem = errno;
  const auto refuse = [&](const std::string& what) {
    return DeviceError(
        fmt::format("rendezvous directory {} {}; {}", path.string(), what, elsewhere));
  };
  // A link is no directory to open(): Linux says ENOTDIR or ELOOP.
  if (folder.descriptor_ < 0 && (problem == ENOTDIR || problem == ELOOP))
    throw refuse("is no directory, but something that was put in its place");
  if (folder.descriptor_ < 0 && problem == EACCES) throw refuse("belongs to another user");
  if (folder.descriptor_ < 0 && problem == ENOENT)
    throw DeviceError("the other ranks have given up: where they meet is gone");
  if (folder.descriptor_ < 0) throw cannot_write(path, std::strerror(problem));
  struct stat status {};
  if (fstat(folder.descriptor_, &status) != 0) throw cannot_write(path, std::strerror(errno));
  if (status.st_uid != geteuid()) throw refuse("belongs to another user");
  if ((status.st_mode & 077) != 0) throw refuse("is open to other users");
  return folder;
}

Folder Folder::inside(const std::string& name) const {
  const fs::path path = path_ / name;
  const bool made = mkdirat(descriptor_, name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) throw cannot_write(path, std::strerror(errno));
  const int folder =
      openat(descriptor_, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) throw cannot_write(path, std::strerror(errno));
  return {folder, path, made};
}

Folder::Folder(Folder&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      made_(other.made_) {}

Folder::~Folder() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::vector<std::string> Folder::entries() const {
  std::vector<std::string> names;
  const int copy = openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = copy < 0 ? nullptr : fdopendir(copy);
  if (list == nullptr) {
    if (copy >= 0) close(copy);
    return names;
  }
  while (const dirent* entry = readdir(list)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(list);
  return names;
}

FolderStore::FolderStore(const Folder& folder) : folder_(folder) {
  // Permissions say little (root, read-only mounts): try.
  const std::string probe = unheard_of();
  const File file(
      openat(folder_.descriptor(), probe.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) throw cannot_write(folder_.path(), std::strerror(errno));
  unlinkat(folder_.descriptor(), probe.c_str(), 0);
}

void FolderStore::set(const std::string& key, const std::vector<char>& data) {
  const int folder = folder_.descriptor();
  const std::string part = unheard_of(), name = file_of(key);
  const int file = openat(folder, part.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) throw cannot_write(folder_.path(), std::strerror(errno));
  try {
    write_whole(file, data);  // closed before the rename: over NFS, others see it whole only then
    if (renameat(folder, part.c_str(), folder, name.c_str()) != 0)
      throw DeviceError(std::strerror(errno));
  } catch (const DeviceError& problem) {
    unlinkat(folder, part.c_str(), 0);
    throw cannot_write(folder_.path(), problem.what());
  }
  own_.push_back(name);
}

std::vector<char> FolderStore::get(const std::string& key) {
  wait({key});
  const std::optional<int> opened = open_key(folder_, key);
  if (!opened)
    throw DeviceError(
        fmt::format("rendezvous {}: what was written there is gone: another job "
                    "uses it",
                    folder_.path().string()));
  const File file(*opened);
  std::vector<char> data;
  char block[4096];
  for (;;) {
    const ssize_t size = read(file.get(), block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw cannot_write(folder_.path(), std::strerror(errno));
    if (size == 0) return data;
    data.insert(data.end(), block, block + size);
  }
}

bool FolderStore::has(const std::string& key) const {
  const std::optional<int> opened = open_key(folder_, key);
  if (opened) close(*opened);
  return opened.has_value();
}

void FolderStore::wait(const std::vector<std::string>& keys,
                       const std::chrono::milliseconds& timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (const std::string& key : keys)
    while (!has(key)) {
      if (std::chrono::steady_clock::now() >= deadline)
        throw gloo::IoException(fmt::format("no {} within the time", key));
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
}

void FolderStore::remove_own() {
  for (const std::string& name : own_) unlinkat(folder_.descriptor(), name.c_str(), 0);
  own_.clear();
}

}  // namespace ddpsim
