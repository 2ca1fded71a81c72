#include <filesystem>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// What a Python says that has torch and the package.
constexpr const char* complete = "3.11.2\\n2.13.0\\nyes";

/// A stand-in for Python that says `answer` where it is asked for what it has; otherwise it says
/// its words and where it looks for packages, and exits with 7.
std::string stand_in(const Scratch& scratch, const std::string& answer) {
  const std::filesystem::path file =
      scratch.write("python", fmt::format("#!/bin/sh\n"
                                          "if [ \"$1\" = -c ]; then printf '{}\\n'; exit; fi\n"
                                          "echo \"$@\"\necho \"path $PYTHONPATH\"\nexit 7\n",
                                          answer));
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file.string();
}

Outcome describe_with(const std::string& python, const Scratch& scratch, const std::string& words) {
  return execute({"/bin/sh", "-c",
                  fmt::format("DDPSIM_PYTHON='{}' {} describe {}", python, DDPSIM_PROGRAM, words)},
                 scratch.folder());
}

TEST_CASE("describe hands its words to Python and its exit code back",
          "[tools][describe_command]") {
  const Scratch scratch;
  const Outcome outcome =
      describe_with(stand_in(scratch, complete), scratch, "'my model.py:make' -o x.yaml --batch 4");
  CHECK(outcome.code == 7);
  CHECK_THAT(outcome.out,
             Catch::StartsWith("-m ddpsim.describe my model.py:make -o x.yaml --batch 4\npath /"));
  CHECK(outcome.err.empty());
}

TEST_CASE("describe runs the Python of the virtual environment that the program is installed in",
          "[tools][describe_command]") {
  const Scratch scratch;
  for (const char* folder : {"bin", "on-path"})
    std::filesystem::create_directory(scratch.path(folder));
  std::filesystem::copy_file(DDPSIM_PROGRAM, scratch.path("bin/ddpsim"));
  const std::filesystem::path own = scratch.path("bin/python3");
  std::filesystem::rename(stand_in(scratch, complete), own);
  std::filesystem::rename(stand_in(scratch, "3.11.2\\n\\nno"), scratch.path("on-path/python3"));
  const auto run = [&](const std::string& set) {
    return execute(
        {"/bin/sh", "-c", set + " DDPSIM_PYTHON= PATH=on-path:$PATH bin/ddpsim describe m.py"},
        scratch.folder());
  };
  CHECK_THAT(run("VIRTUAL_ENV=").err, Catch::Contains("on-path/python3 has no module torch"));
  scratch.write("pyvenv.cfg", "");
  CHECK_THAT(run("VIRTUAL_ENV=").out, Catch::StartsWith("-m ddpsim.describe m.py\n"));
  // One that is active goes before.
  std::filesystem::create_directories(scratch.path("active/bin"));
  std::filesystem::rename(scratch.path("on-path/python3"), scratch.path("active/bin/python3"));
  CHECK_THAT(run("VIRTUAL_ENV=active").err, Catch::Contains("active/bin/python3 has no module"));
}

TEST_CASE("describe says in a line what is missing", "[tools][describe_command]") {
  const Scratch scratch;
  const auto said = [&](const std::string& python, const std::string& words = "m.py") {
    const Outcome outcome = describe_with(python, scratch, words);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    return outcome.err;
  };
  CHECK_THAT(
      said(stand_in(scratch, "3.11.2\\n\\nyes")),
      Catch::Contains("has no module torch; run") && Catch::Contains("or set DDPSIM_PYTHON"));
  CHECK_THAT(said(stand_in(scratch, "3.11.2\\n2.13.0\\nno")),
             Catch::Contains("needs the Python package ddpsim"));
  CHECK_THAT(said(stand_in(scratch, "Usage: python FILE")),
             Catch::Contains("is no Python: it does not answer as one does"));
  CHECK_THAT(said("no-such-python"), Catch::Contains("DDPSIM_PYTHON=no-such-python: no such"));
  CHECK_THAT(said(stand_in(scratch, complete), ""), Catch::Contains("describe needs a model"));
}

TEST_CASE("describe tells its flags without Python", "[tools][describe_command]") {
  const Scratch scratch;
  const Outcome outcome = describe_with("no-such-python", scratch, "--help");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::StartsWith("usage: ddpsim describe ") &&
                              Catch::Contains("--allow-unknown") &&
                              Catch::Contains("example: ddpsim describe scenarios/examples/"));
}

const std::string description =
    "format: ddpsim.workload/2\nsource: by hand\nmarks_recomputed: true\nbatch: 8\nsequence: "
    "4\nattention: flash\n"
    "notes: [dropout is fused]\npartial: [mylib::op x 3]\nkernels:\n"
    "  - {op: mm, kind: gemm, gemm: {m: 8, n: 64, k: 32}, read: 9216, written: 2048}\n"
    "  - {op: flash, kind: attention, attention: {batch: 8, heads: 2, queries: 4, keys: 4, size: "
    "16, "
    "causal: true}, type: bf16, read: 9, written: 2}\n"
    "layers:\n  - {name: a, forward: [0, 1], backward: [0], kept: 4096}\n"
    "parameters:\n  - {name: a.weight, shape: [64, 32], layer: 0, after: 0}\n";

TEST_CASE("run says what was described, what a mask leaves out, and what is partial",
          "[tools][describe_command]") {
  const Scratch scratch;
  scratch.write("m.yaml", description);
  const Outcome outcome = execute(
      {DDPSIM_PROGRAM, "run", "m.yaml", "--cluster", "dgx-h100", "--json", "r.json", "--wide"},
      scratch.folder());
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("described by by hand; 4 tokens a sample; attention as "
                                          "flash") &&
                              Catch::Contains("a causal mask leaves out") &&
                              Catch::Contains("- dropout is fused") &&
                              Catch::Contains("partial results") &&
                              Catch::Contains("partial: no rule prices mylib::op x 3"));
  CHECK_THAT(outcome.err, Catch::Contains("note: partial: no rule prices mylib::op x 3"));
  const auto json = Json::parse(content_of(scratch.path("r.json")));
  CHECK(json.at("described").at("partial") == Json{"mylib::op x 3"});
  CHECK(json.at("described").at("notes") == Json{"dropout is fused"});
  CHECK(json.at("described").at("batch") == 8);
  // 2 x 2 x 16 operations for each of 8 x 2 x 16 scores, of which 6 of 16 are masked.
  CHECK(json.at("described").at("attention_flops") == 2 * 2 * 16 * 8 * 2 * 16);
  CHECK(json.at("described").at("masked_flops") == 2 * 2 * 16 * 8 * 2 * 6);
  for (const std::string command : {"schedule", "tune"})
    CHECK(execute({DDPSIM_PROGRAM, command, "m.yaml", "--cluster", "dgx-h100"}, scratch.folder())
              .code == 0);
  const Outcome nowhere = execute({DDPSIM_PROGRAM, "run", "m.yaml"}, scratch.folder());
  CHECK(nowhere.code == 2);
  CHECK_THAT(nowhere.err, Catch::Contains("say what it is to run on"));
}

}  // namespace
}  // namespace ddpsim
