#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// What `ddpsim backends` says of NCCL here; "ready" on a machine with a GPU.
std::string nccl_status() {
  const Outcome outcome = ddpsim({"backends", "--json", "-"});
  REQUIRE(outcome.code == 0);
  for (const auto& row : outcome.json())
    if (row.at("backend") == "nccl") return row.at("status");
  FAIL("no nccl in the list");
  return "";
}

}  // namespace

TEST_CASE("backends says what is ready and what is missing", "[tools][gpu_flags]") {
  const Outcome outcome = ddpsim({"backends"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out == ddpsim({"list", "backends"}).out);
  CHECK_THAT(nccl_status(), Catch::Equals("ready") ||
                                Catch::Contains("when this was built") ||
                                Catch::Contains("no NVIDIA") || Catch::Contains("driver") ||
                                Catch::StartsWith("CUDA: "));
}

TEST_CASE("without a GPU validate and calibrate say in one line what is missing",
          "[tools][gpu_flags]") {
  const std::string status = nccl_status();
  if (status == "ready") return;
  const std::string scenario = shipped("examples/gpu-loopback.yaml");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"validate", scenario, "--backend", "nccl", "--ranks", "2"},
        {"validate", scenario, "--backend", "nccl", "--loopback", "8"},
        {"calibrate", "--backend", "nccl", "-o", "never.yaml"}}) {
    const Outcome outcome = ddpsim(command);
    CHECK(outcome.code == 2);
    CHECK(outcome.err == "ddpsim: --backend nccl: " + status + "\n");
    CHECK_FALSE(std::filesystem::exists("never.yaml"));
  }
}

TEST_CASE("flags of GPUs that contradict are refused", "[tools][gpu_flags]") {
  const std::string scenario = shipped("examples/gpu-loopback.yaml");
  const auto refused = [&](const std::vector<std::string>& flags, const std::string& why) {
    std::vector<std::string> command{"validate", scenario};
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome outcome = ddpsim(command);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains(why));
    CHECK(lines_of(outcome.err).size() == 1);
  };
  refused({"--backend", "gloo", "--loopback", "8"},
          "are for --backend nccl");
  refused({"--backend", "threads", "--gpus-share"},
          "are for --backend nccl");
  refused({"--backend", "nccl", "--loopback", "8", "--gpus-share"}, "take one of them");
  refused({"--backend", "nccl", "--loopback", "8", "--ranks", "2"}, "no --ranks");
  refused({"--backend", "nccl", "--loopback", "1"}, "--loopback");
  refused({"--backend", "nccl", "--channels", "65"}, "--channels");
}

}  // namespace ddpsim
