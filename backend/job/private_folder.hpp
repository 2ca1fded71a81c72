#pragma once

#include <filesystem>

namespace ddpsim {

/// The file in a folder that ranks made, so that the last of them to leave removes it.
inline constexpr const char* folder_mark = "made-by-ddpsim";

/// A new folder among temporary files, of mode 0700, in which the ranks of one job meet. The last
/// rank to have connected removes it, lest a job that is killed leave it; what is left of it goes
/// with this object.
///
/// A job of which every process is killed before its ranks have met can remove nothing. So each new
/// folder first removes those that such jobs of the same user left: the processes of a living job
/// hold a lock on theirs, which the kernel gives up when the last of them ends.
class PrivateFolder {
 public:
  /// Throws DeviceError if none can be made.
  PrivateFolder();
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Removes from `above` the folders that PrivateFolder made, whose jobs are gone, and which are
/// older than a minute. One that holds anything but what ranks write there stays.
void remove_abandoned_folders(const std::filesystem::path& above);

}  // namespace ddpsim
