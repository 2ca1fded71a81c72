#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>

namespace ddpsim {

/// What was made of each file or folder, kept while the time of its last change stays. That time
/// does not tell two changes of one moment apart: what changed within the last second is made
/// anew whenever it is asked for. Threads may share it.
template <typename T>
class WhileUnchanged {
 public:
  /// `make()`, or what it returned before. What it throws is thrown on.
  template <typename Make>
  T of(const std::filesystem::path& path, Make&& make) {
    std::error_code error;
    const auto changed = std::filesystem::last_write_time(path, error);
    const std::lock_guard lock(guard_);
    const auto found = all_.find(path);
    if (!error && found != all_.end() && found->second.changed == changed)
      return found->second.value;
    T value = make();
    const auto now = std::filesystem::file_time_type::clock::now();
    if (!error && now - changed > std::chrono::seconds{1})
      all_.insert_or_assign(path, Kept{changed, value});
    return value;
  }

 private:
  struct Kept {
    std::filesystem::file_time_type changed;
    T value;
  };
  std::mutex guard_;
  std::map<std::filesystem::path, Kept> all_;
};

}  // namespace ddpsim
