#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

const std::vector<std::string> all_commands{"init",   "run",        "explore", "sweep", "schedule",
                                            "tune",   "score",      "import",  "list",  "explain",
                                            "schema", "completion", "doctor",  "plan"};

TEST_CASE("help names every command, and each tells its usage", "[tools][help]") {
  for (const char* word : {"--help", "-h", "help"}) {
    const Outcome outcome = ddpsim({word});
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    for (const std::string& command : all_commands)
      CHECK_THAT(outcome.out, Catch::Contains("\n  " + command + " "));
  }
  for (const std::string& command : all_commands) {
    for (const char* flag : {"--help", "-h"}) {
      const Outcome outcome = ddpsim({command, flag});
      CHECK(outcome.code == 0);
      CHECK(outcome.err.empty());
      CHECK_THAT(outcome.out, Catch::StartsWith("usage: ddpsim " + command + " "));
    }
  }
}

TEST_CASE("the example in a command's help works from the project's folder", "[tools][help]") {
  for (const std::string& command : all_commands) {
    const std::vector<std::string> lines = lines_of(ddpsim({command, "--help"}).out);
    REQUIRE(!lines.empty());
    const std::string begin = "example: ddpsim ";
    REQUIRE(lines.back().rfind(begin + command + " ", 0) == 0);
    // A folder that looks like the project's, so that an example may write its files.
    const Scratch scratch;
    std::filesystem::create_symlink(DDPSIM_SCENARIOS, scratch.path("scenarios"));
    // What serves a page until Ctrl-C ends by itself here.
    const std::string line =
        fmt::format("{} {}{}", DDPSIM_PROGRAM, lines.back().substr(begin.size()),
                    command == "explore" ? " --for 1s" : "");
    CAPTURE(line);
    const Outcome outcome = execute({"/bin/sh", "-c", line}, scratch.folder());
    CHECK(outcome.code == 0);
    CHECK(!outcome.out.empty());
    CHECK_THAT(outcome.err, !Catch::Contains("ddpsim:"));
  }
}

TEST_CASE("the manual page holds every command and flag, and man reads it", "[tools][help]") {
  const Scratch scratch;
  const Outcome outcome = ddpsim({"--man"});
  CHECK(outcome.code == 0);
  scratch.write("ddpsim.1", outcome.out);
  for (const std::string& command : all_commands)
    CHECK_THAT(outcome.out, Catch::Contains("\n.SS " + command + "\n"));
  CHECK_THAT(outcome.out, Catch::Contains("\\fB\\-\\-vary\\fR"));
  if (execute({"sh", "-c", "command -v groff"}).code != 0) return;
  const Outcome read = execute({"groff", "-man", "-ww", "-Tutf8", "ddpsim.1"}, scratch.folder());
  CHECK(read.code == 0);
  CHECK(read.err.empty());
  CHECK_THAT(read.out, Catch::Contains("predicts how fast a step"));
}

TEST_CASE("the flag --version says the version", "[tools][help]") {
  const Outcome outcome = ddpsim({"--version"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Matches("ddpsim [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_CASE("no command at all is bad input, with the overview", "[tools][help]") {
  const Outcome outcome = ddpsim({});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.out + outcome.err, Catch::Contains("usage: ddpsim COMMAND"));
}

}  // namespace
}  // namespace ddpsim
