// How far a command is, where nobody sees a bar.

#include "tools/report/writers/progress.hpp"

#include <chrono>
#include <thread>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// What is written to stderr while it lives.
class WrittenToStderr {
 public:
  explicit WrittenToStderr(const std::filesystem::path& file)
      : file_(file), before_(dup(STDERR_FILENO)) {
    const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    REQUIRE(opened >= 0);
    dup2(opened, STDERR_FILENO);
    close(opened);
  }
  ~WrittenToStderr() { restore(); }

  std::vector<std::string> lines() {
    restore();
    return lines_of(content_of(file_));
  }

 private:
  void restore() {
    if (before_ < 0) return;
    dup2(before_, STDERR_FILENO);
    close(std::exchange(before_, -1));
  }

  std::filesystem::path file_;
  int before_;
};

std::vector<std::string> lines_while(bool quiet, Progress::InLogs in_logs) {
  using std::chrono::milliseconds;
  const Scratch scratch;
  WrittenToStderr written(scratch.path("stderr"));
  {
    Progress progress(quiet, in_logs, milliseconds{20});
    progress.show("one long part", 0.25);
    std::this_thread::sleep_for(milliseconds{300});
  }
  return written.lines();
}

TEST_CASE("a log hears of a long part of the work while it lasts", "[tools][progress]") {
  const std::vector<std::string> lines = lines_while(false, Progress::InLogs::yes);
  REQUIRE(lines.size() >= 2);  // it was told of that part once
  for (const std::string& line : lines)
    CHECK_THAT(line,
               Catch::StartsWith("after ") && Catch::EndsWith(" s: one long part, 25 % done"));
  CHECK(lines_while(true, Progress::InLogs::yes).empty());
  CHECK(lines_while(false, Progress::InLogs::no).empty());
}

}  // namespace
}  // namespace ddpsim
