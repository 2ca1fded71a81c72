#include "backend/job/rendezvous.hpp"

#include <cstdlib>
#include <optional>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/version.hpp"
#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Rendezvous> in(const Scratch& scratch) {
  return Rendezvous::open("file:" + scratch.folder().string(), "", 1s);
}

/// What rank 1 would say of itself.
void introduce_rank_1(Rendezvous& rendezvous, const std::string& text) {
  rendezvous.store().set("ddpsim-hello-1", {text.begin(), text.end()});
}

std::string refusal(Rendezvous& rendezvous) {
  try {
    rendezvous.meet(0, 2, "the same", 1s);
  } catch (const DeviceError& problem) {
    return problem.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a rank of another version is named with both versions", "[backend][rendezvous]") {
  const Scratch scratch;
  const auto mine = in(scratch), theirs = in(scratch);
  introduce_rank_1(*theirs, "0.0.9\n2\n0123456789abcdef");
  CHECK(refusal(*mine) ==
        fmt::format("rank 1 runs ddpsim 0.0.9, this is {}: start the same version everywhere",
                    version));
}

TEST_CASE("a rank that says what no ddpsim would is refused too", "[backend][rendezvous]") {
  const Scratch scratch;
  const auto mine = in(scratch), theirs = in(scratch);
  introduce_rank_1(*theirs, std::string(100000, 'x'));
  CHECK_THAT(refusal(*mine), Catch::StartsWith("rank 1 runs ddpsim of another kind"));
}

TEST_CASE("a rank that is there already is another job's", "[backend][rendezvous]") {
  const Scratch scratch;
  const auto theirs = in(scratch);
  theirs->store().set("ddpsim-hello-0", {'x'});
  const auto mine = in(scratch);
  CHECK_THAT(refusal(*mine), Catch::Contains("already holds a rank 0: another job uses it"));
}

TEST_CASE("ranks leave a folder that was there as they found it", "[backend][rendezvous]") {
  const Scratch scratch;
  {
    const auto mine = in(scratch);
    introduce_rank_1(*mine, "x");
    CHECK_FALSE(std::filesystem::is_empty(scratch.folder()));
  }
  CHECK(std::filesystem::is_empty(scratch.folder()));
}

TEST_CASE("the last rank to leave removes a folder that the job made, whoever made it",
          "[backend][rendezvous]") {
  const Scratch scratch;
  const std::string job = GENERATE("", "job-7");
  const auto open = [&] {
    return Rendezvous::open("file:" + scratch.path("meet").string(), job, 1s);
  };
  const std::filesystem::path folder = scratch.path("meet") / job;
  auto maker = open(), other = open();
  maker->store().set("ddpsim-hello-0", {'x'});
  introduce_rank_1(*other, "x");
  const bool maker_first = GENERATE(true, false);
  CAPTURE(job, maker_first);
  (maker_first ? maker : other).reset();
  CHECK(std::filesystem::exists(folder));
  (maker_first ? other : maker).reset();
  CHECK_FALSE(std::filesystem::exists(folder));
}

namespace {

namespace fs = std::filesystem;

/// While it exists, temporary files go to `folder`.
class Temporary {
 public:
  explicit Temporary(const fs::path& folder) {
    if (const char* value = std::getenv("TMPDIR")) before_ = value;
    setenv("TMPDIR", folder.c_str(), 1);
  }
  ~Temporary() {
    if (before_)
      setenv("TMPDIR", before_->c_str(), 1);
    else
      unsetenv("TMPDIR");
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

 private:
  std::optional<std::string> before_;
};

std::string own_folder() {
  return fmt::format("ddpsim-{}", geteuid());
}

/// Why a rank finds no place of its own; "" if it does.
std::string refusal_of_own() {
  try {
    Rendezvous::open_own("job-7");
  } catch (const DeviceError& problem) {
    return problem.what();
  }
  return "";
}

/// What rank 0 says when `plant` has put something where rank 1's key belongs.
template <typename Plant>
std::string said_of(const Scratch& scratch, const Plant& plant) {
  const auto mine = in(scratch);
  plant(scratch.path("ddpsim-hello-1"));
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = refusal(*mine);
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
  return scratch.without_folder(said);
}

}  // namespace

TEST_CASE("ranks that were told of no place meet in a folder closed to others, and remove it",
          "[backend][rendezvous]") {
  const Scratch scratch;
  const Temporary temporary(scratch.folder());
  const fs::path folder = scratch.path(own_folder());
  auto one = Rendezvous::open_own("job-7"), two = Rendezvous::open_own("job-7");
  auto other = Rendezvous::open_own("job-8");
  for (const fs::path& each : {folder, folder / "job-7", folder / "job-8"}) {
    CAPTURE(each.string());
    CHECK(fs::status(each).permissions() == fs::perms::owner_all);
  }
  one->store().set("key", {'a'});
  CHECK(two->store().get("key") == std::vector<char>{'a'});
  CHECK(one->description() == "file:" + (folder / "job-7").string());
  one.reset();
  two.reset();
  CHECK_FALSE(fs::exists(folder / "job-7"));
  other.reset();
  CHECK(fs::is_empty(scratch.folder()));
}

TEST_CASE("a folder that another user could have made is not used", "[backend][rendezvous]") {
  const Scratch scratch;
  const Temporary temporary(scratch.folder());
  const fs::path folder = scratch.path(own_folder());
  const std::string name = "rendezvous directory " + folder.string();
  const std::string advice = "; name another with --rendezvous file:DIR";
  const std::string misplaced = " is no directory, but something that was put in its place";
  SECTION("open to others") {
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms::owner_all | fs::perms::others_all);
    CHECK(refusal_of_own() == name + " is open to other users" + advice);
  }
  SECTION("of another user") {
    if (geteuid() != 0) return;  // only root can give a folder away
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms::owner_all);
    REQUIRE(chown(folder.c_str(), 12345, 12345) == 0);
    CHECK(refusal_of_own() == name + " belongs to another user" + advice);
  }
  SECTION("a link, though to a folder of our own") {
    fs::create_directory(scratch.path("mine"));
    fs::permissions(scratch.path("mine"), fs::perms::owner_all);
    fs::create_directory_symlink(scratch.path("mine"), folder);
    CHECK(refusal_of_own() == name + misplaced + advice);
    CHECK(fs::is_empty(scratch.path("mine")));
  }
  SECTION("a file") {
    scratch.write(own_folder(), "x");
    CHECK(refusal_of_own() == name + misplaced + advice);
  }
}

TEST_CASE("a key that is no plain file is refused at once", "[backend][rendezvous]") {
  const Scratch scratch;
  const std::string said =
      ", which no rank has written; empty the directory or name another with "
      "--rendezvous file:DIR";
  const std::string who = "rendezvous " + scratch.folder().string() + ": ddpsim-hello-1 is ";
  scratch.write("elsewhere", "secret");
  CHECK(said_of(scratch, [](const fs::path& key) { mkfifo(key.c_str(), 0600); }) ==
        who + "no plain file" + said);
  fs::remove(scratch.path("ddpsim-hello-1"));
  CHECK(said_of(scratch, [](const fs::path& key) { fs::create_symlink("elsewhere", key); }) ==
        who + "a link" + said);
  fs::remove(scratch.path("ddpsim-hello-1"));
  CHECK(said_of(scratch, [](const fs::path& key) { fs::create_directory(key); }) ==
        who + "no plain file" + said);
}

TEST_CASE("what a rank writes never goes where a link leads", "[backend][rendezvous]") {
  const Scratch scratch;
  const fs::path target = scratch.write("target", "mine");
  const fs::path folder = scratch.path("meet");
  fs::create_directory(folder);
  for (const char* name : {"key", "made-by-ddpsim", ".key", "probe"})
    fs::create_symlink(target, folder / name);
  {
    const auto rendezvous = Rendezvous::open("file:" + folder.string(), "", 1s);
    rendezvous->store().set("key", {'a'});
    CHECK(rendezvous->store().get("key") == std::vector<char>{'a'});
    CHECK_FALSE(fs::is_symlink(folder / "key"));
  }
  CHECK(content_of(target) == "mine");
}

TEST_CASE("keys of any name and any bytes come back as they were", "[backend][rendezvous]") {
  const Scratch scratch;
  const auto one = in(scratch), two = in(scratch);
  std::vector<char> every(100'000);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<char>(i * 31);
  for (const std::string key : {"a/b", "a%2fb", "..", ".", "rank 1\n", "a_b", "\xff"}) {
    CAPTURE(key);
    one->store().set(key, every);
    CHECK(two->store().get(key) == every);
    one->store().set(key, {});  // anew, and empty
    CHECK(two->store().get(key).empty());
  }
}

}  // namespace ddpsim
