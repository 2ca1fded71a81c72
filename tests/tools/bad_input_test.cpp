// Bad input through the program: exit code 2, nothing on stdout, one line on stderr, no file
// touched. What the lines say of each mistake is tested closer to the readers (tests/scenarios);
// here are the ways they reach the user.

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/refusal.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

/// Runs in a folder with files of results that are there already, and some that are not: after a
/// refusal both are as before.
class Refusals {
 public:
  Refusals() { scratch_.write("old.json", "old\n"); }

  const Scratch& scratch() const { return scratch_; }

  /// What the line says after "ddpsim: ".
  std::string of(const Words& arguments) const {
    CAPTURE(arguments);
    const Words before = files();
    const Outcome outcome = ddpsim(arguments, scratch_.folder());
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(content_of(scratch_.path("old.json")) == "old\n");
    CHECK(files() == before);
    REQUIRE(outcome.err.rfind("ddpsim: ", 0) == 0);
    REQUIRE(outcome.err.back() == '\n');
    return outcome.err.substr(8, outcome.err.size() - 9);
  }

  /// What every command that reads a scenario says of this content.
  std::string of_scenario(const std::string& content) const {
    scratch_.write("s.yaml", content);
    const std::string run =
        of({"run", "s.yaml", "--json", "old.json", "--csv", "new.csv", "--trace", "new.trace"});
    CHECK(of({"schedule", "s.yaml", "--json", "old.json", "--trace", "new.trace"}) == run);
    CHECK(of({"score", "s.yaml", "--json", "old.json", "--csv", "new.csv"}) == run);
    return run;
  }

 private:
  Words files() const {
    Words names;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.folder()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  Scratch scratch_;
};

TEST_CASE("a mistake in a scenario is one line with its place, and touches nothing",
          "[tools][bad_input]") {
  const Refusals refusals;
  CHECK(refusals.of_scenario(spoiled(3, "  batch: eight")) ==
        "s.yaml:3:10: workload.batch: expected a whole number from 1 to 10000000, got \"eight\"");
  CHECK(refusals.of_scenario(spoiled(10, "  bucket_cap: 25")) ==
        "s.yaml:10:15: training.bucket_cap: expected a size with its unit, such as \"25 MiB\" or "
        "\"10 MB\" "
        "and above zero, got \"25\"");
  CHECK(refusals.of_scenario(spoiled(4, "  dytpe: fp32")) ==
        "s.yaml:4:3: workload.dytpe: unknown key; did you mean \"dtype\"?; known: model, batch, "
        "sequence, image, channels_last, activation_checkpointing, frozen, dtype, compute, "
        "optimizer, "
        "clip_gradients, times");
  CHECK(refusals.of_scenario(spoiled(4, "  batch: 9")) ==
        "s.yaml:4:3: workload: repeated key \"batch\"");
  CHECK(refusals.of_scenario(spoiled(12, "\"a\\nb\\e[31m\": 1")) ==
        "s.yaml:12:1: a\\nb\\x1b[31m: unknown key; known: name, cluster, workload, training, "
        "compare, measured");
  CHECK_THAT(
      refusals.of_scenario(spoiled(2, "  model: resnet5")),
      Catch::StartsWith("s.yaml:2:10: workload.model: unknown name \"resnet5\"; did you mean "
                        "\"resnet50\"?; known: "));
  CHECK(refusals.of_scenario("") ==
        "s.yaml:1:1: empty file: expected a mapping such as \"name: my first scenario\"");
  CHECK(
      refusals.of_scenario("- a\n") ==
      "s.yaml:1:1: expected a mapping of keys to values, such as \"workload: {model: resnet50}\"");
}

TEST_CASE("what is not built yet says so", "[tools][bad_input]") {
  const Refusals refusals;
  CHECK_THAT(refusals.of_scenario(spoiled(8, "  intra_node: nvlink4\n  collectives: steps")),
             Catch::Contains("s.yaml:9:16: cluster.collectives: steps") &&
                 Catch::Contains("not built yet"));
}

TEST_CASE("files made to break a parser are refused in good time", "[tools][bad_input]") {
  const Refusals refusals;
  const auto refused = [&](const std::string& content) {
    refusals.scratch().write("s.yaml", content);
    return refusals.of({"run", "s.yaml", "--json", "old.json"});
  };
  for (const std::string opening : {"[", "{a: ", "- "}) {
    std::string deep, many;
    for (int i = 0; i < 1'400'000; ++i) deep += opening;
    for (int i = 0; i < 1'600'000; ++i) many += opening;
    CHECK_THAT(refused(deep), Catch::EndsWith("nested too deeply: is this a scenario?"));
    CHECK_THAT(refused(many), Catch::EndsWith("at most 1500000 are read; is this a scenario?") ||
                                  Catch::EndsWith("nested too deeply: is this a scenario?"));
  }
  CHECK(refused(std::string(10'000'000, '[')) == "s.yaml:1:1: larger than 8 MiB");
  CHECK_THAT(refused(std::string("a\0b", 3)), Catch::StartsWith("s.yaml:1:1: "));
  // Which yaml-cpp takes for documents without end.
  CHECK_THAT(refused(", a"), Catch::StartsWith("s.yaml:1:1: "));
}

TEST_CASE("a file that is not there, or no file, is refused", "[tools][bad_input]") {
  const Refusals refusals;
  std::filesystem::create_directory(refusals.scratch().path("folder"));
  for (const char* command : {"run", "schedule", "score"}) {
    CHECK(refusals.of({command, "none.yaml", "--json", "old.json"}) == "none.yaml: no such file");
    CHECK(refusals.of({command, "folder", "--json", "old.json"}) == "folder: not a file");
    CHECK(refusals.of({command, "/dev/zero", "--json", "old.json"}) == "/dev/zero: not a file");
    CHECK(refusals.of({command, "two\nlines", "--json", "old.json"}) ==
          "two\\nlines: no such file");
  }
  // A good scenario before the bad one does not get its results written.
  const std::string good = shipped("examples/first.yaml");
  CHECK(refusals.of({"run", good, "none.yaml", "--json", "old.json", "--csv", "new.csv"}) ==
        "none.yaml: no such file");
}

TEST_CASE("a bad --set is told by its own text", "[tools][bad_input]") {
  const Refusals refusals;
  const std::string example = "expected KEY=VALUE, such as training.bucket_cap=50MiB";
  const auto set = [&](const std::string& text) {
    return refusals.of(
        {"run", shipped("examples/first.yaml"), "--json", "old.json", "--set", text});
  };
  CHECK(set("bucket_cap") == "--set bucket_cap: " + example);
  CHECK(set("=1") == "--set =1: " + example);
  CHECK(set("name=") == "--set name=: " + example);
  CHECK(set("a..b=1") == "--set a..b=1: " + example);
  CHECK(set("workload.btach=4") ==
        "--set workload.btach=4: unknown key; did you mean \"batch\"?; known: model, batch, "
        "sequence, image, channels_last, activation_checkpointing, frozen, dtype, compute, "
        "optimizer, "
        "clip_gradients, times");
  CHECK(set("workload.batch=0") ==
        "--set workload.batch=0: expected a whole number from 1 to 10000000, got \"0\"");
  CHECK(set("a\nb=1") ==
        "--set a\\nb=1: unknown key; known: name, cluster, workload, training, compare, measured");
}

TEST_CASE("unknown commands and flags are refused with the nearest", "[tools][bad_input]") {
  const Refusals refusals;
  const std::string file = shipped("examples/first.yaml");
  CHECK(refusals.of({"rnu"}) ==
        "unknown command \"rnu\"; did you mean \"run\"?; see ddpsim --help");
  CHECK(refusals.of({"optimise", file}) == "unknown command \"optimise\"; see ddpsim --help");
  CHECK(refusals.of({"r\nn"}) ==
        "unknown command \"r\\nn\"; did you mean \"run\"?; see ddpsim --help");
  CHECK(refusals.of({"run", file, "--jsn", "old.json"}) ==
        "unknown flag \"--jsn\"; did you mean \"--json\"?; see ddpsim run --help");
  CHECK(refusals.of({"run", file, "--jsn=old.json"}) ==
        "unknown flag \"--jsn\"; did you mean \"--json\"?; see ddpsim run --help");
  CHECK(refusals.of({"schedule", file, "--report", "x"}) ==
        "unknown flag \"--report\": ddpsim run, ddpsim sweep, ddpsim tune, ddpsim score or ddpsim "
        "validate has it, ddpsim schedule does not; see ddpsim schedule --help");
  CHECK(refusals.of({"run", file, "-x"}) == "unknown flag \"-x\"; see ddpsim run --help");
}

TEST_CASE("missing arguments are refused with an example", "[tools][bad_input]") {
  const Refusals refusals;
  const std::string file = shipped("examples/first.yaml");
  CHECK(refusals.of({"run"}) == "run needs a scenario: ddpsim run scenarios/examples/first.yaml");
  CHECK(refusals.of({"schedule"}) ==
        "schedule needs one scenario: ddpsim schedule scenarios/examples/first.yaml");
  CHECK(refusals.of({"schedule", file, file}) ==
        "schedule needs one scenario: ddpsim schedule scenarios/examples/first.yaml");
  CHECK(refusals.of({"score"}) == "score needs files: ddpsim score scenarios/measured/*.yaml");
  CHECK(refusals.of({"run", file, "--json"}) ==
        "the required argument for option '--json' is missing; see ddpsim run --help");
  CHECK(refusals.of({"run", file, "--json", "old.json", "--json", "b.json"}) ==
        "option '--json' cannot be specified more than once; see ddpsim run --help");
  CHECK(refusals.of({"run", file, file, "--trace", "t.json"}) ==
        "--trace and --hooks-log take one scenario at a time");
}

TEST_CASE("a scenario that asks for more than can be computed is refused, not wrapped around",
          "[tools][bad_input]") {
  const Refusals refusals;
  const auto set = [&](const std::string& text) {
    return refusals.of(
        {"run", shipped("examples/first.yaml"), "--json", "old.json", "--set", text});
  };
  CHECK(!set("cluster.intra_node={latency: 5 us, bandwidth: 1 B/s}").empty());
  CHECK(!set("cluster.intra_node={latency: 5 us, bandwidth: 1e-300 B/s}").empty());
  CHECK(!set("cluster.intra_node={latency: 86400 s, bandwidth: 1 GB/s}").empty());
  CHECK(!set("cluster.device={base: a100-40, memory_bandwidth: 1 B/s}").empty());
  CHECK(!set("cluster.device={base: a100-40, peak: {fp32: 1 FLOP/s, bf16: 1e-9 FLOP/s}}").empty());
  CHECK(!set("cluster.launch=1440 min").empty());
  CHECK(!set("workload.times={forward: 1440 min}").empty());
}

TEST_CASE("a flag whose value is an empty text is refused", "[tools][bad_input]") {
  for (const char* flag : {"--json", "--csv", "--report", "--cluster"}) {
    const Outcome outcome = ddpsim({"run", shipped("examples/first.yaml"), flag, ""});
    CHECK(outcome.code == 2);
    CHECK(outcome.err ==
          std::string("ddpsim: ") + flag + ": expected a value, got an empty text\n");
  }
}

TEST_CASE("a flag in the place of another flag's file is refused", "[tools][bad_input]") {
  const Scratch scratch;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& says) {
    std::vector<std::string> arguments{DDPSIM_PROGRAM};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Outcome outcome = execute(arguments, scratch.folder());
    CAPTURE(words);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err == "ddpsim: " + says + "\n");
  };
  const std::string or_stdout = " needs a file, or - for standard output; got ";
  refused({"run", first_example, "--json", "--wide"}, "--json" + or_stdout + "--wide");
  refused({"run", first_example, "--csv", "--set", "compare=[bucketed]"},
          "--csv" + or_stdout + "--set");
  refused({"run", first_example, "--json=--wide"}, "--json" + or_stdout + "--wide");
  refused({"run", first_example, "--markdown=-q"}, "--markdown" + or_stdout + "-q");
  refused({"run", first_example, "--trace", "--wide"},
          "--trace needs a file, a folder/, or - for standard output; got --wide");
  for (const char* flag : {"--report", "--svg", "--hooks-log"})
    refused({"run", first_example, flag, "--wide"},
            std::string(flag) + " needs a file; got --wide");
  refused({"tune", first_example, "--buckets", "--quiet"}, "--buckets" + or_stdout + "--quiet");
  refused({"import", "torch", "x.json", "-o", "--link-profile"},
          "--output" + or_stdout + "--link-profile");
  CHECK(std::filesystem::is_empty(scratch.folder()));
  // Standard output, and a file that is really called so.
  CHECK(ddpsim({"run", first_example, "--json", "-"}).json().is_object());
  CHECK(ddpsim({"run", first_example, "-q", "--json", "./--wide"}, scratch.folder()).code == 0);
  CHECK(std::filesystem::exists(scratch.path("--wide")));
}

}  // namespace
}  // namespace ddpsim
