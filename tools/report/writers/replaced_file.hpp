#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <sys/stat.h>

namespace ddpsim {

/// The file that a path leads to, through links, whether it is there or not: a link to a file that
/// is yet to be made leads to that file.
std::filesystem::path landing_place(const std::filesystem::path& path);

/// A file that is written whole: beside its place, then renamed into it, so that a reader never
/// sees half of one. What is there keeps its mode and its owner, and a link goes on leading where
/// it led. Written in place are a pipe or a device, a file with several names (hard links), one
/// whose owner could not be kept, and one that may be written in a folder that may not, or that is
/// mounted by itself. In place, room on the disk is reserved before anything is overwritten.
class ReplacedFile {
 public:
  explicit ReplacedFile(std::string path);
  ReplacedFile(const ReplacedFile&) = delete;
  /// Leaves nothing beside the file.
  ~ReplacedFile();

  /// Throws DeviceError if it could not be written now, or the disk has no `room`, in bytes, for
  /// it; InputError if no file can have that name (a folder, or in none). Changes nothing.
  void check(std::int64_t room) const;
  /// Throws the same if it cannot be written.
  void write(const std::string& content) const;
  /// Writes a content that `make(take)` hands over part by part.
  using Take = std::function<void(std::string_view)>;
  void write_parts(const std::function<void(const Take&)>& make) const;

 private:
  /// `size`: how much room in place is reserved; 0 if it is not known.
  void write_parts(const std::function<void(const Take&)>& make, std::size_t size) const;
  bool is_plain() const { return !old_ || S_ISREG(old_->st_mode); }
  /// Opens the file beside, with the mode and owner of what it replaces; negative, with `errno`,
  /// if there can be none, or none that would be the same file to everybody else.
  int open_beside() const;
  void write_in_place(const std::function<void(const Take&)>& make, std::size_t size) const;
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::filesystem::path target_, beside_;
  std::optional<struct stat> old_;  ///< what is there
};

}  // namespace ddpsim
