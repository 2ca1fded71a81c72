#pragma once

#include <filesystem>
#include <string>

namespace ddpsim {

/// Keeps other processes of ddpsim from a file that is read, added to and written again, while this
/// object lives. The lock is a file beside it, `sweep.csv.lock`, whose lock the kernel gives up
/// when the process ends, however that ends; the file that a killed process left is used again.
/// Where the file system knows no locks, or no file can be made in the folder, nothing is locked,
/// and a note says so.
class FileLock {
 public:
  /// Throws DeviceError if another process has the lock, and names that process.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::filesystem::path beside_;
  int file_ = -1;
};

}  // namespace ddpsim
