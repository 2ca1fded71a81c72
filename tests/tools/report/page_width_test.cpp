// Tables keep to the width of the terminal, or of COLUMNS, and show everything elsewhere.

#include <cstdlib>
#include <regex>

#include <catch2/catch.hpp>
#include <sys/ioctl.h>

#include "tests/tools/program.hpp"
#include "tools/report/writers/text_width.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

const std::string remark = "--wide shows all)";

Outcome in_columns(const std::string& columns, Words arguments) {
  arguments.insert(arguments.begin(), DDPSIM_PROGRAM);
  return execute(arguments, {}, {{"COLUMNS", columns}});
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  for (const std::string& line : lines_of(text)) width = std::max(width, display_width(line));
  return width;
}

/// `text` without the sequences that choose a colour.
std::string without_color(const std::string& text) {
  static const std::regex sequence("\x1b\\[[0-9;]*m");
  return std::regex_replace(text, sequence, "");
}

/// What ddpsim prints on a terminal of so many columns that shows colours.
std::string on_terminal(unsigned short columns, Words arguments) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const winsize size{50, columns, 0, 0};
  REQUIRE(ioctl(terminal, TIOCSWINSZ, &size) == 0);
  const std::string name = ptsname(terminal);
  arguments.insert(arguments.begin(), DDPSIM_PROGRAM);
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("COLUMNS");
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    const int out = open(name.c_str(), O_WRONLY | O_NOCTTY);
    if (out < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(126);
    close(out);
    close(terminal);
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    alarm(60);
    execv(words[0], words.data());
    _exit(127);
  }
  std::string text;
  char buffer[4096];
  // Reading fails once nobody has the other end open any more.
  for (ssize_t got = 0; (got = read(terminal, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  CHECK(status == 0);
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  return text;
}

TEST_CASE("80 columns hold every table", "[tools][report][page_width]") {
  const std::string slow = shipped("seeds/comm-hooks-slow-link.yaml");
  for (const Words& arguments : std::vector<Words>{
           {"run", first_example, "--steps", "3", "--ddp-statistics", "--why"},
           {"run", shipped("seeds/hooks-demo-4.yaml"), "--steps", "30", "--run-ahead"},
           {"run", slow, "--vary", "training.comm_hook=allreduce,{powersgd: {rank: 4}}"},
           {"sweep", first_example, "--vary", "training.bucket_cap=1MiB,4MiB", "--vary",
            "cluster.ranks_per_node=2,8"},
           {"score", shipped("seeds/cs336-xl-2xh100.yaml")},
           {"schedule", first_example, "--tasks"},
           {"list", "devices"},
           {"list", "hooks"},
           {"list", "results"}}) {
    const Outcome outcome = in_columns("80", arguments);
    CAPTURE(arguments, outcome.err, outcome.out);
    CHECK(outcome.code == 0);
    CHECK(widest(outcome.out) <= 80);
  }
}

TEST_CASE("a narrow table keeps what matters most and says what is left out",
          "[tools][report][page_width]") {
  const Outcome narrow = in_columns("80", {"run", first_example});
  std::string header;
  for (const std::string& line : lines_of(narrow.out))
    if (header.empty() && line.starts_with("strategy ")) header = line;
  for (const char* kept : {"strategy", "step ms", "exposed ms", "overlap", "speedup"})
    CHECK_THAT(header, Catch::Contains(kept));
  CHECK_THAT(header, !Catch::Contains("forward ms"));
  CHECK_THAT(narrow.out, Catch::Contains("(left out: forward ms, backward ms, "));
  const Outcome wide = in_columns("80", {"run", first_example, "--wide"});
  CHECK(wide.out == ddpsim({"run", first_example}).out);
  CHECK_THAT(wide.out, Catch::Contains("forward ms") && !Catch::Contains(remark));
}

TEST_CASE("COLUMNS that is no number of columns is not followed", "[tools][report][page_width]") {
  const std::string all = ddpsim({"list", "devices"}).out;
  for (const char* columns : {"", "0", "-5", "wide", "80x"})
    CHECK(in_columns(columns, {"list", "devices"}).out == all);
}

TEST_CASE("a table fits the terminal it is printed on", "[tools][report][page_width]") {
  const std::string colored = on_terminal(70, {"run", first_example});
  const std::string narrow = without_color(colored);
  CHECK(narrow != colored);
  CHECK(widest(narrow) <= 70);
  CHECK_THAT(narrow, Catch::Contains(remark));
  CHECK(on_terminal(70, {"run", first_example, "--color", "never"}) == narrow);
  const std::string all = ddpsim({"run", first_example}).out;
  CHECK(without_color(on_terminal(70, {"run", first_example, "--wide"})) == all);
  CHECK(without_color(on_terminal(400, {"run", first_example})) == all);
}

TEST_CASE("the width changes tables alone, not what programs read", "[tools][report][page_width]") {
  for (const char* flag : {"--json", "--csv", "--markdown"})
    CHECK(in_columns("40", {"run", first_example, flag, "-"}).out ==
          ddpsim({"run", first_example, flag, "-"}).out);
}

TEST_CASE("every command that prints tables takes --wide and --markdown",
          "[tools][report][page_width]") {
  for (const char* command : {"run", "sweep", "schedule", "tune", "score", "calibrate", "validate",
                              "import", "list", "backends"}) {
    CAPTURE(command);
    const std::string help = ddpsim({command, "--help"}).out;
    CHECK_THAT(help, Catch::Contains("--wide") && Catch::Contains("--markdown"));
  }
}

TEST_CASE("run --markdown has the table for GitHub and the timelines as code",
          "[tools][report][markdown]") {
  const Outcome outcome = ddpsim({"run", first_example, "--markdown", "-"});
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out,
             Catch::Contains("\n| strategy | step ms | forward ms | backward ms | optimizer ms | "
                             "comm ms | exposed ms | overlap | speedup | collectives | bound |\n"
                             "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n| naive | ") &&
                 Catch::Contains("\n```\n"));
  const Scratch scratch;
  const std::string file = scratch.path("run.md").string();
  REQUIRE(ddpsim({"run", first_example, "--quiet", "--markdown", file}).code == 0);
  CHECK(content_of(file) == outcome.out);
}

}  // namespace
}  // namespace ddpsim
