#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gloo/rendezvous/store.h>

namespace ddpsim {

/// An open folder that keeps meaning the same one, whatever becomes of its name.
class Folder {
 public:
  /// Opens `path`, and makes it first if it is not there, with the folders above it. Where the path
  /// leads through links they are followed. Throws DeviceError.
  static Folder open(const std::filesystem::path& path);
  /// The folder named ddpsim-UID among temporary files, made if it is not there: of this user,
  /// closed to others, and no link. Throws DeviceError if what has that name is anything else.
  static Folder open_own();
  /// The folder `path`, which has to be there: of this user, closed to others, and no link. Throws
  /// DeviceError if what has that name is anything else.
  static Folder open_closed(const std::filesystem::path& path);
  /// The folder `name` in this one, made if it is not there. No link is followed. Throws
  /// DeviceError.
  Folder inside(const std::string& name) const;

  Folder(Folder&& other) noexcept;
  Folder& operator=(Folder&&) = delete;
  ~Folder();

  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }
  bool was_made() const { return made_; }  ///< by this object
  std::vector<std::string> entries() const;

 private:
  static Folder open_closed(const std::filesystem::path& path, bool made);
  Folder(int descriptor, std::filesystem::path path, bool made)
      : descriptor_(descriptor), path_(std::move(path)), made_(made) {}

  int descriptor_;
  std::filesystem::path path_;
  bool made_;
};

/// Keys as plain files of a folder. Nothing else is taken for a key: links are not followed, and a
/// key that is a link, a pipe or anything but a plain file is an error, which names it. A file is
/// written whole and then renamed, so that nobody reads half of one.
class FolderStore : public gloo::rendezvous::Store {
 public:
  /// `folder` must outlive the store. Throws DeviceError if no file can be written there.
  explicit FolderStore(const Folder& folder);

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override { wait(keys, kDefaultTimeout); }
  /// Throws gloo::IoException when the time is over.
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  bool has(const std::string& key) const;
  /// The keys that this store has set.
  void remove_own();

 private:
  const Folder& folder_;
  std::vector<std::string> own_;
};

}  // namespace ddpsim
