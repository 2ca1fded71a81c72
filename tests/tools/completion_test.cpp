// `ddpsim completion`: bash runs its script; zsh and fish check the grammar of theirs where these
// shells are, and the scripts hold every flag anywhere.

#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// What bash would offer behind these words, of which the last is being typed.
std::set<std::string> offered(const Scratch& scratch, const std::string& words, int at) {
  const Outcome outcome = execute(
      {"bash", "-c",
       "source ./completion.bash && COMP_WORDS=(" + words + ") COMP_CWORD=" + std::to_string(at) +
           " && _ddpsim && printf '%s\\n' \"${COMPREPLY[@]}\""},
      scratch.folder());
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  const std::vector<std::string> lines = lines_of(outcome.out);
  return {lines.begin(), lines.end()};
}

/// The flags that a command's help lists: "--json", from lines such as "  --json FILE|-  write";
/// what follows two spaces is the flag's description.
std::set<std::string> flags_in_help(const std::string& command) {
  std::set<std::string> flags;
  bool listed = false;
  for (const std::string& line : lines_of(ddpsim({command, "--help"}).out)) {
    listed = listed || line == "flags:";
    if (!listed || line.rfind("  -", 0) != 0) continue;
    std::istringstream words(line.substr(0, line.find("  ", 2)));
    for (std::string word; words >> word;)
      if (word.rfind("--", 0) == 0) flags.insert(word);
  }
  return flags;
}

TEST_CASE("bash completes commands, flags and files", "[tools][completion]") {
  const Scratch scratch;
  scratch.write("completion.bash", ddpsim({"completion", "bash"}).out);
  scratch.write("a file.yaml", "");
  CHECK(offered(scratch, "ddpsim sc", 1) == std::set<std::string>{"schedule", "score", "schema"});
  CHECK(offered(scratch, "ddpsim help tu", 2) == std::set<std::string>{"tune"});
  CHECK(offered(scratch, "ddpsim run --tra", 2) == std::set<std::string>{"--trace"});
  CHECK(offered(scratch, "ddpsim run --quiet a", 3) == std::set<std::string>{"a file.yaml"});
  for (const char* command : {"run", "tune", "sweep", "schedule", "score", "validate", "calibrate",
                              "import", "list", "schema", "plan"}) {
    CAPTURE(command);
    const std::set<std::string> told = flags_in_help(command);
    CHECK(told.contains("--help"));
    CHECK(offered(scratch, std::string("ddpsim ") + command + " --", 2) == told);
  }
}

TEST_CASE("zsh and fish get every flag of every command", "[tools][completion]") {
  const Scratch scratch;
  const std::string zsh = ddpsim({"completion", "zsh"}).out,
                    fish = ddpsim({"completion", "fish"}).out;
  for (const char* command : {"run", "tune", "validate"})
    for (const std::string& flag : flags_in_help(command)) {
      CAPTURE(command, flag);
      CHECK_THAT(zsh, Catch::Contains("'*" + flag + "["));
      CHECK_THAT(fish, Catch::Contains(std::string("'__fish_seen_subcommand_from ") + command +
                                       "' -l " + flag.substr(2) + " "));
    }
  scratch.write("_ddpsim", zsh);
  scratch.write("ddpsim.fish", fish);
  for (const auto& [shell, file] :
       {std::pair("zsh", "_ddpsim"), std::pair("fish", "ddpsim.fish")}) {
    if (execute({"sh", "-c", std::string("command -v ") + shell}).code != 0) continue;
    const Outcome outcome = execute({shell, "-n", file}, scratch.folder());
    CAPTURE(shell, outcome.err);
    CHECK(outcome.code == 0);
  }
}

TEST_CASE("completion of an unknown shell is refused", "[tools][completion]") {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"completion"}, {"completion", "csh"}}) {
    const Outcome outcome = ddpsim(arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Catch::Contains("bash, zsh"));
  }
}

}  // namespace
}  // namespace ddpsim
