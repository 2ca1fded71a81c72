#include "backend/job/private_folder.hpp"

#include <fstream>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// A folder for a test, removed with it.
class Above {
 public:
  Above() {
    std::string path = (fs::temp_directory_path() / "ddpsim-above-XXXXXX").string();
    path_ = mkdtemp(path.data());
  }
  ~Above() { fs::remove_all(path_); }
  Above(const Above&) = delete;
  Above& operator=(const Above&) = delete;
  const fs::path& path() const { return path_; }

  /// A folder in it, made two minutes ago, with these files.
  fs::path with(const std::string& name, const std::vector<std::string>& files = {}) const {
    const fs::path folder = path_ / name;
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms::owner_all);
    for (const std::string& file : files) std::ofstream(folder / file) << "key";
    grow_old(folder);
    return folder;
  }
  static void grow_old(const fs::path& folder) {
    const timespec two_minutes_ago{time(nullptr) - 120, 0};
    const timespec times[] = {two_minutes_ago, two_minutes_ago};
    REQUIRE(utimensat(AT_FDCWD, folder.c_str(), times, 0) == 0);
  }

 private:
  fs::path path_;
};

TEST_CASE("a folder that a killed job left is removed by the next one", "[backend][job]") {
  const Above above;
  const fs::path empty = above.with("ddpsim-abc123");
  const fs::path met = above.with("ddpsim-abc124", {folder_mark, "ddpsim-hello-0", "0"});
  remove_abandoned_folders(above.path());
  CHECK_FALSE(fs::exists(empty));
  CHECK_FALSE(fs::exists(met));
}

TEST_CASE("what no killed job left stays", "[backend][job]") {
  const Above above;
  const fs::path of_another_name = above.with("ddpsim-abc", {folder_mark});
  const fs::path unmarked = above.with("ddpsim-abc125", {"thesis.txt"});
  const fs::path young = above.with("ddpsim-abc126", {folder_mark});
  fs::last_write_time(young, fs::file_time_type::clock::now());
  const fs::path open_to_others = above.with("ddpsim-abc127", {folder_mark});
  fs::permissions(open_to_others, fs::perms::group_read, fs::perm_options::add);
  const fs::path with_folder = above.with("ddpsim-abc128", {folder_mark});
  fs::create_directory(with_folder / "sub");
  Above::grow_old(with_folder);
  const fs::path target = above.with("target", {folder_mark});
  fs::create_directory_symlink(target, above.path() / "ddpsim-abc129");
  const fs::path living = above.with("ddpsim-abc130", {folder_mark});
  const int lock = open(living.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(flock(lock, LOCK_SH) == 0);
  remove_abandoned_folders(above.path());
  for (const fs::path& each :
       {of_another_name, unmarked, young, open_to_others, with_folder, target, living})
    CHECK(fs::exists(each));
  CHECK(fs::exists(unmarked / "thesis.txt"));
  close(lock);
  remove_abandoned_folders(above.path());
  CHECK_FALSE(fs::exists(living));
}

TEST_CASE("a job's private folder is locked as long as it lives", "[backend][job]") {
  fs::path path;
  {
    const PrivateFolder folder;
    path = folder.path();
    const int other = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(flock(other, LOCK_EX | LOCK_NB) != 0);
    close(other);
  }
  CHECK_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace ddpsim
