#include <catch2/catch.hpp>

#include "tests/tools/jobs.hpp"

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
}

TEST_CASE("what can be written is, even if another result fails in the end", "[tools][output]") {
  const Scratch scratch;
  const Outcome outcome =
      ddpsim({"run", first_example, "--trace", "/dev/full", "--json", "a.json", "--csv", "b.csv"},
             scratch.folder());
  CHECK(outcome.code == 4);
  CHECK(outcome.err == "ddpsim: /dev/full: cannot be written: No space left on device\n");
  CHECK_THAT(outcome.out, Catch::Contains("bucketed"));
  CHECK(Json::parse(content_of(scratch.path("a.json")))["format"] == "ddpsim.run/1");
  CHECK_THAT(content_of(scratch.path("b.csv")), Catch::Contains("overlap_individual"));
}

TEST_CASE("a job's results are tried before anything is measured", "[tools][output]") {
  // Measuring takes longer than any test may: a hundred thousand steps, ten thousand repeats.
  const Scratch scratch;
  scratch.write("s.yaml", small_mlp);
  const std::string missing = "none/x: cannot be written: No such file or directory";
  for (const char* flag : {"--json", "--trace", "--hooks-log"})
    check_unwritable({"validate", "s.yaml", "--backend", "threads", "--ranks", "2", "--steps",
                      "100000", flag, "none/x"},
                     scratch, missing);
  check_unwritable({"calibrate", "s.yaml", "--backend", "threads", "--ranks", "2", "--repeats",
                    "10000", "-o", "none/x"},
                   scratch, missing);
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

TEST_CASE("two results cannot go to one file under two names", "[tools][output]") {
  const Scratch scratch;
  scratch.write("old.json", "old\n");
  std::filesystem::create_symlink("old.json", scratch.path("link.json"));
  const auto one_file = [](const std::string& first, const std::string& second) {
    return first + " and " + second + " are one file: two results cannot both be written there";
  };
  check_unwritable({"run", first_example, "--json", "x", "--csv", "./x"}, scratch,
                   one_file("--json x", "--csv ./x"));
  check_unwritable({"run", first_example, "--json", "old.json", "--trace", "link.json"}, scratch,
                   one_file("--json old.json", "--trace link.json"));
  check_unwritable({"run", first_example, "--hooks-log", scratch.path("y").string(), "--csv", "y"},
                   scratch, one_file("--csv y", "--hooks-log " + scratch.path("y").string()));
  check_unwritable({"tune", first_example, "--json", "x", "--buckets", "x"}, scratch,
                   "two results cannot both be written to x");
  CHECK(content_of(scratch.path("old.json")) == "old\n");
  CHECK(!std::filesystem::exists(scratch.path("x")));
  const Outcome shell =
      execute({"/bin/sh", "-c",
               std::string(DDPSIM_PROGRAM) + " run " + first_example + " --json z.json > z.json"},
              scratch.folder());
  CHECK(shell.code == 2);
  CHECK(shell.err ==
        "ddpsim: --json z.json: stdout goes there already: write - or name another file\n");
  // Nobody minds what a device swallows.
  CHECK(ddpsim({"run", first_example, "-q", "--json", "/dev/null", "--csv", "/dev/../dev/null"})
            .code == 0);
}

TEST_CASE("a result cannot overwrite what is read, whatever names it", "[tools][output]") {
  const Scratch scratch;
  const std::string profile = content_of(shipped("examples/profiles/profile.yaml"));
  const std::string scenario =
      "workload: {model: sub/profile.yaml}\n"
      "cluster:\n"
      "  device: t4\n"
      "  ranks_per_node: 2\n"
      "  intra_node: {all_reduce: sub/table.csv}\n"
      "measured:\n"
      "  rows: [{strategy: naive, step: 500 ms}, {strategy: overlap, step: 450 ms}]\n";
  const std::string table = content_of(shipped("examples/profiles/all_reduce.csv"));
  const std::string calibration =
      "format: ddpsim.calibration/1\nranks: 2\nsynchronous: true\nend: ddpsim.calibration/1\n";
  std::filesystem::create_directory(scratch.path("sub"));
  scratch.write("s.yaml", scenario);
  scratch.write("sub/profile.yaml", profile);
  scratch.write("sub/table.csv", table);
  scratch.write("c.yaml", calibration);
  scratch.write("small.yaml", small_mlp);
  std::filesystem::create_symlink("s.yaml", scratch.path("link"));
  const auto check = [&](std::vector<std::string> words, const std::string& flag,
                         const std::string& path, const std::string& read) {
    words.insert(words.end(), {flag, path});
    check_unwritable(words, scratch,
                     flag + " " + path + ": this would overwrite " + read +
                         ", which is read; name another file");
  };
  for (const char* flag : {"--json", "--csv", "--trace", "--hooks-log"})
    check({"run", "s.yaml"}, flag, "s.yaml", "a file");
  check({"run", "s.yaml"}, "--json", "./s.yaml", "s.yaml");
  check({"run", "s.yaml"}, "--json", "link", "s.yaml");
  check({"run", "s.yaml"}, "--json", "sub/profile.yaml", "a file");
  check({"run", "s.yaml"}, "--csv", "sub/../sub/table.csv", "sub/table.csv");
  check({"run", "s.yaml", "--set", "cluster.calibration=c.yaml"}, "--json", "c.yaml", "a file");
  check({"run", "s.yaml", "--vary", "cluster.calibration=c.yaml"}, "--json", "c.yaml", "a file");
  check({"schedule", "s.yaml"}, "--trace", "s.yaml", "a file");
  check({"score", "s.yaml"}, "--csv", "s.yaml", "a file");
  check({"tune", "s.yaml"}, "--buckets", "s.yaml", "a file");
  check({"tune", "sub/profile.yaml", "--device", "t4", "--ranks", "2", "--link", "c.yaml"},
        "--json", "c.yaml", "a file");
  check({"sweep", "s.yaml", "--vary", "training.bucket_cap=1MiB,2MiB"}, "--csv", "s.yaml",
        "a file");
  check({"sweep", "s.yaml", "--vary", "workload.model=sub/profile.yaml"}, "--json",
        "sub/profile.yaml", "a file");
  check({"import", "torch-profile", "sub/profile.yaml"}, "-o", "sub/profile.yaml", "a file");
  const std::vector<std::string> job{"--backend", "threads", "--ranks", "2"};
  const auto real = [&](std::vector<std::string> words) {
    words.insert(words.end(), job.begin(), job.end());
    return words;
  };
  check(real({"validate", "small.yaml"}), "--json", "small.yaml", "a file");
  check(real({"validate", "small.yaml", "--calibration", "c.yaml"}), "--trace", "c.yaml", "a file");
  check(real({"calibrate", "small.yaml"}), "-o", "small.yaml", "a file");
  CHECK(content_of(scratch.path("s.yaml")) == scenario);
  CHECK(content_of(scratch.path("sub/profile.yaml")) == profile);
  CHECK(content_of(scratch.path("sub/table.csv")) == table);
  CHECK(content_of(scratch.path("c.yaml")) == calibration);
  CHECK(content_of(scratch.path("small.yaml")) == small_mlp);
}

TEST_CASE("a stdout that takes nothing is a failure, not a success", "[tools][output]") {
  const std::string program = DDPSIM_PROGRAM;
  const std::vector<std::string> lines{" run " + first_example + " > /dev/full",
                                       " list devices --json - > /dev/full",
                                       " schedule " + first_example + " >&-"};
  for (const std::string& rest : lines) {
    CAPTURE(rest);
    const Outcome outcome = execute({"/bin/sh", "-c", program + rest});
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.err, Catch::StartsWith("ddpsim: stdout cannot be written: "));
    CHECK(lines_of(outcome.err).size() == 1);
  }
}

TEST_CASE("what the machine fails at has an exit code of its own", "[tools][output]") {
  const Scratch scratch;
  const auto code_of = [&](const std::string& rest) {
    return execute({"/bin/sh", "-c", std::string(DDPSIM_PROGRAM) + " " + rest}, scratch.folder())
        .code;
  };
  const std::string run = "run " + first_example + " -q ";
  CHECK(code_of(run + "--json /dev/full") == 4);  // a full disk
  CHECK(code_of(run + "--json none/x") == 2);     // a wrong name
  CHECK(code_of(run + "--json .") == 2);
}

TEST_CASE("a stderr that takes nothing changes no exit code", "[tools][output]") {
  const Scratch scratch;
  const auto code_of = [&](const std::string& rest) {
    return execute({"/bin/sh", "-c", std::string(DDPSIM_PROGRAM) + " " + rest}, scratch.folder())
        .code;
  };
  scratch.write("s.yaml", small_mlp);
  CHECK(code_of("run /nope 2> /dev/full") == 2);
  CHECK(code_of("run /nope 2>&-") == 2);
  CHECK(code_of("nonsense 2> /dev/full") == 2);
  CHECK(code_of("sweep s.yaml --vary training.bucket_cap=1KiB,4KiB --csv a.csv 2> /dev/full") == 0);
  CHECK(lines_of(content_of(scratch.path("a.csv"))).size() == 1 + 2 * 4);
  CHECK(code_of("sweep s.yaml --vary training.bucket_cap=1KiB,none --csv b.csv 2> /dev/full") == 2);
  CHECK(code_of("score " + measured + " --tolerance 0.000001 2> /dev/full") == 3);
  CHECK(code_of("validate none.yaml --backend threads --ranks 2 2> /dev/full") == 2);
  // Both at once: stdout counts.
  CHECK(code_of("run " + first_example + " > /dev/full 2> /dev/full") == 4);
  CHECK(code_of("--version > /dev/full 2> /dev/full") == 4);
  CHECK(code_of("--help > /dev/full") == 4);
  CHECK(code_of("run --help > /dev/full") == 4);
}

TEST_CASE("a terminal obeys nothing in a name from a file", "[tools][output]") {
  const Scratch scratch;
  const std::string escape =
      "\x1b]0;owned\x07\xc2\x9b"
      "31m\x7f";
  const std::string shown = "\\x1b]0;owned\\x07\\u009b31m\\x7f";
  const std::string quoted = "\\e]0;owned\\x07\\x9b31m\\x7f";  // as YAML spells it
  scratch.write("p.yaml", "format: ddpsim.workload/1\nsource: \"" + quoted +
                              "\"\nforward: 1 ms\nbackward: 2 ms\n"
                              "parameters:\n  - {name: \"" +
                              quoted + "\", shape: [100000], ready: 2 ms}\n");
  scratch.write("s.yaml",
                "name: \"" + quoted +
                    "\"\nworkload: {model: p.yaml}\n"
                    "cluster: {device: t4, ranks_per_node: 2, intra_node: pcie3}\n"
                    "measured:\n  source: \"" +
                    quoted +
                    "\"\n  calibrate_on: [naive]\n"
                    "  rows: [{strategy: naive, step: 5 ms}, {strategy: overlap, step: 4 ms}]\n");
  std::filesystem::copy(scratch.path("s.yaml"), scratch.path("\x1b]0;owned\x07.yaml"));
  scratch.write("bad.yaml", "name: x\nworkload: {model: p.yaml, \"" + quoted +
                                "\": 1}\n"
                                "cluster: {device: t4}\n");
  const std::string named = "\x1b]0;owned\x07.yaml";
  const std::vector<std::vector<std::string>> commands{
      {"run", "s.yaml", "--why", "--steps", "3", "--ddp-statistics"},
      {"run", "s.yaml", "--csv", "-"},
      {"run", named, "--vary", "name=a,\x1b"},
      {"run", "s.yaml", "--hooks-log", "/dev/stdout"},
      {"schedule", "s.yaml", "--tasks"},
      {"tune", "s.yaml"},
      {"tune", "s.yaml", "--csv", "-"},
      {"score", "s.yaml", named},
      {"score", named, "--csv", "-"},
      {"sweep", "s.yaml", "--vary", "name=a,\x1b"},
      {"sweep", "s.yaml", "--vary", "name=a,\x1b", "--csv", "-"},
      {"import", "torch-profile", "p.yaml"},
      {"run", "bad.yaml"},
      {"run", "\x1b[2J"},
      {"\x1b[2J"}};
  for (const auto& words : commands) {
    CAPTURE(words);
    const Outcome outcome = ddpsim(words, scratch.folder());
    const std::string said = outcome.out + outcome.err;
    CHECK(!said.empty());
    CHECK(said.find_first_of("\x1b\x07\x7f") == std::string::npos);
    CHECK(said.find("\xc2\x9b") == std::string::npos);
  }
  const Outcome run = ddpsim({"run", "s.yaml"}, scratch.folder());
  CHECK_THAT(run.out, Catch::StartsWith(shown + "\n"));
  // JSON spells names itself, and gives them back as they are.
  CHECK(ddpsim({"run", "s.yaml", "--json", "-"}, scratch.folder()).json()["scenario"] == escape);
}

TEST_CASE("a sweep of values with control characters goes on where it was", "[tools][output]") {
  const Scratch scratch;
  scratch.write("s.yaml", small_mlp);
  const std::vector<std::string> words{"sweep", "s.yaml", "--vary", "name=\"a\\e\",b",
                                       "--csv", "a.csv",  "-q"};
  const int code = ddpsim(words, scratch.folder()).code;
  const std::string before = content_of(scratch.path("a.csv"));
  CHECK(before.find('\x1b') == std::string::npos);
  const Outcome again = ddpsim(words, scratch.folder());
  CAPTURE(again.err);
  CHECK(again.code == code);
  CHECK_THAT(again.err, !Catch::Contains("is no point of this grid"));
  CHECK(content_of(scratch.path("a.csv")) == before);
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
        "ddpsim: /none/devices: no catalogue of devices there; DDPSIM_CATALOGUE names that folder: "
        "unset it to have the installed catalogue, or let it name a copy of that\n");
}

}  // namespace
}  // namespace ddpsim
