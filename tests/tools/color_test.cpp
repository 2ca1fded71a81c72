// `--color`, NO_COLOR and terminals: colours change nothing else.
#include "tools/report/writers/color.hpp"

#include <regex>

#include <catch2/catch.hpp>
#include <pty.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

std::string without_color(const std::string& text) {
  return std::regex_replace(text, std::regex("\x1b\\[[0-9]+m"), "");
}

/// What `ddpsim run` shows on a terminal.
std::string on_terminal(const Environment& environment) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) throw std::runtime_error("forkpty failed");
  if (child == 0) {
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    alarm(60);
    execl(DDPSIM_PROGRAM, DDPSIM_PROGRAM, "run", first_example.c_str(), "--wide", nullptr);
    _exit(127);
  }
  std::string shown;
  char bytes[4096];
  for (ssize_t count; (count = read(terminal, bytes, sizeof bytes)) > 0;)
    shown.append(bytes, static_cast<std::size_t>(count));
  waitpid(child, nullptr, 0);
  close(terminal);
  return shown;
}

TEST_CASE("colours add escape sequences and change no character", "[tools][color]") {
  const Outcome plain = ddpsim({"run", first_example}),
                colored = ddpsim({"run", first_example, "--color", "always"});
  CHECK(plain.code == 0);
  CHECK(colored.code == 0);
  CHECK_THAT(plain.out, !Catch::Contains("\x1b"));
  CHECK_THAT(colored.out, Catch::Contains("\x1b[1mstrategy "));
  CHECK_THAT(colored.out, Catch::Contains("\x1b[32mFFFF"));
  CHECK_THAT(colored.out, Catch::Contains("\x1b[2m-----"));
  CHECK(without_color(colored.out) == plain.out);
}

TEST_CASE("a terminal gets colours unless somebody refuses them", "[tools][color]") {
  const std::string colored = on_terminal({});
  CHECK_THAT(colored, Catch::Contains("\x1b[1mstrategy "));
  for (const Environment& environment :
       {Environment{{"NO_COLOR", "1"}}, Environment{{"TERM", "dumb"}}}) {
    const std::string plain = on_terminal(environment);
    CHECK_THAT(plain, !Catch::Contains("\x1b"));
    CHECK(plain == without_color(colored));
  }
  CHECK_THAT(on_terminal({{"NO_COLOR", ""}}), Catch::Contains("\x1b[1mstrategy "));
}

TEST_CASE("results for programs have no colours", "[tools][color]") {
  for (const char* flag : {"--json", "--csv", "--markdown"}) {
    const Outcome outcome = ddpsim({"run", first_example, flag, "-", "--color", "always"});
    CAPTURE(flag);
    CHECK(outcome.code == 0);
    CHECK(!outcome.out.empty());
    CHECK_THAT(outcome.out, !Catch::Contains("\x1b"));
  }
}

TEST_CASE("notes and errors have colours as tables have", "[tools][color]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("s.yaml", content_of(first_example) + "nonsense: 1\n").string();
  CHECK_THAT(ddpsim({"run", file, "--color", "always"}).err, Catch::StartsWith("\x1b[31mddpsim:"));
  CHECK_THAT(ddpsim({"run", file}).err, Catch::StartsWith("ddpsim:"));
  const Outcome outcome = ddpsim({"run", first_example, "--color", "blue"});
  CHECK(outcome.code == 2);
  CHECK(outcome.err == "ddpsim: --color blue: expected auto, always or never\n");
}

TEST_CASE("only what has the form of a table or a timeline gets colours", "[tools][color]") {
  CHECK(in_color("a sentence\n- a list\n") == "a sentence\n- a list\n");
  CHECK(in_color("x compute       F.B\n") == "x compute       \x1b[32mF\x1b[0m.\x1b[34mB\x1b[0m\n");
  CHECK(in_color("to compute       Farther\n") == "to compute       Farther\n");
  CHECK(in_color("a  b\n--------\n1  2") == "\x1b[1ma  b\x1b[0m\n\x1b[2m--------\x1b[0m\n1  2");
  CHECK(in_color("") == "");
}

}  // namespace
}  // namespace ddpsim
