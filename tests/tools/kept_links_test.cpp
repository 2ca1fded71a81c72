// Another device beside links that stay what they were.

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

std::vector<std::string> in_fp32(std::vector<std::string> command,
                                 const std::vector<std::string>& more) {
  command.insert(command.end(), {"--set", "compare=[flat]", "--set", "workload.compute=fp32"});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

/// The lines that say that a link stays.
std::vector<std::string> kept(const std::vector<std::string>& command,
                              const std::filesystem::path& folder = {}) {
  const Outcome outcome = ddpsim(command, folder);
  CAPTURE(command, outcome.err);
  CHECK(outcome.code == 0);
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(outcome.err))
    if (line.find(" stays ") != std::string::npos) lines.push_back(line);
  return lines;
}

std::vector<std::string> notes_of_run(const std::vector<std::string>& more) {
  return kept(in_fp32({"run", first_example}, more));
}

TEST_CASE("a device of one's own that has no NVLink, or a bridge alone, gets the catalogue's note",
          "[tools][kept_links]") {
  const Scratch scratch;
  scratch.write("none.yaml", "base: a100-80\nnvlink: false\n");
  scratch.write("derived.yaml", "base: none.yaml\n");
  scratch.write("bridge.yaml", "base: a100-80\nnvlink_bridge: true\n");
  const auto notes = [&](const std::vector<std::string>& more) {
    const Outcome outcome = ddpsim(in_fp32({"run", first_example}, more), scratch.folder());
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  const std::string none = " has no NVLink: such devices are never joined by nvlink3";
  CHECK_THAT(notes({"--device", "none.yaml"}), Catch::Contains("note: none" + none));
  CHECK_THAT(notes({"--device", "derived.yaml"}), Catch::Contains("note: derived" + none));
  CHECK_THAT(notes({"--set", "cluster.device.nvlink=false"}), Catch::Contains(none));
  CHECK_THAT(notes({"--device", "bridge.yaml"}),
             Catch::Contains("note: NVLink between bridges is a bridge that joins two"));
  CHECK_THAT(notes({}), !Catch::Contains("NVLink:"));
}

TEST_CASE("another device beside links that it is not joined by gets one note",
          "[tools][kept_links]") {
  const auto check = [](const std::vector<std::string>& lines, const std::string& begin) {
    CAPTURE(lines);
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], Catch::StartsWith("note: " + begin) && Catch::Contains("--cluster NAME") &&
                             Catch::Contains("--vary cluster=") && Catch::Contains("--link NAME"));
  };
  const std::string of_file = "intra_node stays nvlink3, as the scenario has it";
  check(notes_of_run({"--device", "t4"}), of_file);
  check(notes_of_run({"--device", "h100-sxm"}), of_file);
  check(notes_of_run({"--set", "cluster.device=rtx4090"}), of_file);
  check(notes_of_run({"--cluster", "dgx-h100", "--device", "t4"}),
        "intra_node stays nvlink4, as dgx-h100 has it");
  check(notes_of_run({"--cluster", "dgx-h100", "--device", "t4", "--nodes", "2"}),
        "intra_node stays nvlink4 and inter_node ib-ndr, as dgx-h100 has it");
  check(kept(in_fp32({"tune", first_example}, {"--device", "t4"})), of_file);
  check(kept(in_fp32({"schedule", first_example}, {"--device", "t4"})), of_file);
  for (const char* command : {"run", "sweep"}) {
    const auto lines =
        kept(in_fp32({command, first_example}, {"--vary", "cluster.device=a100-80,t4,l4"}));
    check(lines, of_file);
    CHECK_THAT(lines[0], Catch::EndsWith("(at 2 of 3 points, the first cluster.device=t4)"));
  }
}

TEST_CASE("a device that goes with the links, or links that were said too, get none",
          "[tools][kept_links]") {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {},
           {"--device", "a100-80"},  // NVLink 3, as the A100 of 40 GB has
           {"--cluster", "dgx-h100"},
           {"--cluster", "dgx-h100", "--device", "h200"},
           {"--device", "t4", "--link", "pcie3"},
           {"--device", "t4", "--link", "nvlink4"},  // said so
           {"--device", "t4", "--set", "cluster.intra_node.bandwidth=200 GB/s"},
           {"--set", "cluster={ranks_per_node: 4, intra_node: pcie5}", "--device", "t4"},
           {"--device", "t4", "--ranks-per-node", "1"},
           {"--vary", "cluster=dgx-a100,dgx-h100"}}) {
    CAPTURE(more);
    CHECK(notes_of_run(more).empty());
  }
  CHECK(kept(in_fp32({"run", first_example}, {"--device", "t4", "--quiet"})).empty());
}

TEST_CASE("a file of links names no device, and any that is set beside it is meant",
          "[tools][kept_links]") {
  const Scratch scratch;
  const std::string links = "ranks_per_node: 8\nintra_node: nvlink4\n";
  scratch.write("site.yaml", links);
  scratch.write("own.yaml", "device: h100-sxm\n" + links);
  scratch.write("pcie.yaml", "device: a100-pcie-40\nranks_per_node: 2\nintra_node: pcie4\n");
  const auto on = [&](const std::string& cluster, const std::string& device) {
    return kept(in_fp32({"run", first_example}, {"--cluster", cluster, "--device", device}),
                scratch.folder());
  };
  CHECK(on("site.yaml", "t4").empty());
  REQUIRE(on("own.yaml", "t4").size() == 1);
  CHECK_THAT(on("own.yaml", "t4")[0], Catch::Contains("nvlink4, as own has it"));
  CHECK(on("own.yaml", "gh200").empty());
  CHECK(on("pcie.yaml", "h100-pcie").empty());  // a card of PCIe 5 in a slot of PCIe 4
  CHECK(on("pcie.yaml", "t4").size() == 1);     // PCIe 3 is all that a T4 has
}

}  // namespace
}  // namespace ddpsim
