#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

const std::string measured = shipped("seeds/cs336-xl-2xh100.yaml");

/// Refused with one line and nothing on stdout.
void check_unwritable(const std::vector<std::string>& arguments, const Scratch& scratch,
                      const std::string& line) {
  CAPTURE(arguments);
  const Outcome outcome = ddpsim(arguments, scratch.folder());
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err == "ddpsim: " + line + "\n");
}

TEST_CASE("a result that cannot be written is refused in one line", "[tools][output]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("folder"));
  const std::string missing = "none/x: cannot be written: No such file or directory";
  check_unwritable({"run", first_example, "--json", "none/x"}, scratch, missing);
  check_unwritable({"run", first_example, "--csv", "none/x"}, scratch, missing);
  check_unwritable({"run", first_example, "--trace", "none/x"}, scratch, missing);
  check_unwritable({"schedule", first_example, "--json", "none/x"}, scratch, missing);
  check_unwritable({"list", "models", "--json", "none/x"}, scratch, missing);
  check_unwritable({"run", first_example, "--json", "folder"}, scratch,
                   "folder: cannot be written: Is a directory");
  check_unwritable({"run", first_example, "--json", "/dev/full"}, scratch,
                   "/dev/full: cannot be written: No space left on device");
}

TEST_CASE("score's result that cannot be written is refused in one line", "[tools][output]") {
  const Scratch scratch;
  check_unwritable({"score", measured, "--json", "none/x"}, scratch,
                   "none/x: cannot be written: No such file or directory");
}

TEST_CASE("of several results, none is written if one cannot be", "[tools][output]") {
  const Scratch scratch;
  scratch.write("a.json", "old\n");
  check_unwritable(
      {"run", first_example, "--json", "a.json", "--csv", "b.csv", "--trace", "none/x"}, scratch,
      "none/x: cannot be written: No such file or directory");
  CHECK(content_of(scratch.path("a.json")) == "old\n");
  CHECK(!std::filesystem::exists(scratch.path("b.csv")));
  // Nor is what had been written beside its place left there.
  const auto entries = std::filesystem::directory_iterator(scratch.folder());
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}

TEST_CASE("an existing result is replaced whole", "[tools][output]") {
  const Scratch scratch;
  scratch.write("a.json", std::string(1'000'000, 'x'));
  REQUIRE(ddpsim({"run", first_example, "--json", "a.json", "--quiet"}, scratch.folder()).code ==
          0);
  CHECK(Json::parse(content_of(scratch.path("a.json")))["format"] == "ddpsim.run/1");
  CHECK(content_of(scratch.path("a.json")) == ddpsim({"run", first_example, "--json", "-"}).out);
}

TEST_CASE("a result goes where a symbolic link leads, and the link stays", "[tools][output]") {
  const Scratch scratch;
  scratch.write("real.json", "old\n");
  std::filesystem::create_symlink("real.json", scratch.path("link.json"));
  REQUIRE(ddpsim({"run", first_example, "--json", "link.json", "--quiet"}, scratch.folder()).code ==
          0);
  CHECK(std::filesystem::is_symlink(scratch.path("link.json")));
  CHECK(Json::parse(content_of(scratch.path("real.json")))["format"] == "ddpsim.run/1");
}

TEST_CASE("what is no plain file is written in place", "[tools][output]") {
  CHECK(ddpsim({"run", first_example, "--json", "/dev/null", "--quiet"}).code == 0);
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("a result asked for on stdout is alone there", "[tools][output]") {
  for (const char* flag : {"--json", "--trace"}) {
    const Outcome outcome = ddpsim({"run", first_example, flag, "-"});
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.json().is_object());
  }
  CHECK(ddpsim({"schedule", first_example, "--json", "-"}).json().is_object());
  CHECK(ddpsim({"schedule", first_example, "--trace", "-"}).json().is_object());
}

TEST_CASE("two results cannot go to one place", "[tools][output]") {
  const Scratch scratch;
  check_unwritable({"run", first_example, "--json", "-", "--csv", "-"}, scratch,
                   "two results cannot both be written to stdout");
  check_unwritable({"run", first_example, "--json", "x", "--trace", "x"}, scratch,
                   "two results cannot both be written to x");
  CHECK(!std::filesystem::exists(scratch.path("x")));
}

TEST_CASE("a stdout that takes nothing is a failure, not a success", "[tools][output]") {
  const std::string program = DDPSIM_PROGRAM;
  const std::vector<std::string> lines{" run " + first_example + " > /dev/full",
                                       " list devices --json - > /dev/full",
                                       " schedule " + first_example + " >&-"};
  for (const std::string& rest : lines) {
    CAPTURE(rest);
    const Outcome outcome = execute({"/bin/sh", "-c", program + rest});
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.err, Catch::StartsWith("ddpsim: stdout cannot be written: "));
    CHECK(lines_of(outcome.err).size() == 1);
  }
}

TEST_CASE("bytes that are no UTF-8 do not spoil the JSON", "[tools][output]") {
  const Scratch scratch;
  scratch.write("bad\xff.yaml", "workload: {model: resnet18, batch: 2}\ncluster: {device: t4}\n");
  const Outcome outcome = ddpsim({"run", "bad\xff.yaml", "--json", "-"}, scratch.folder());
  REQUIRE(outcome.code == 0);
  CHECK(outcome.json()["scenario"] == "bad\xef\xbf\xbd");  // U+FFFD
  CHECK(ddpsim({"run", "bad\xff.yaml", "--trace", "-"}, scratch.folder()).json().is_object());
}

TEST_CASE("a catalogue that is not there is said to be", "[tools][output]") {
  const Outcome outcome = execute(
      {"/bin/sh", "-c", "DDPSIM_CATALOGUE=/none " + std::string(DDPSIM_PROGRAM) + " list devices"});
  CHECK(outcome.code == 2);
  CHECK(outcome.err ==
        "ddpsim: /none/devices: no catalogue of devices there; set DDPSIM_CATALOGUE to the folder "
        "scenarios/catalogue\n");
}

}  // namespace
}  // namespace ddpsim
