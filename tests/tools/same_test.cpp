// Ways to say the same thing give the same bytes.

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// A mapping moved to the right.
std::string indented(const std::string& yaml) {
  std::string text;
  for (const std::string& line : lines_of(yaml)) text += "\n    " + line;
  return text;
}

std::string json_of(const std::string& file, const std::vector<std::string>& flags = {}) {
  std::vector<std::string> arguments{"run", file, "--json", "-"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.out;
}

TEST_CASE("two runs give the same bytes of table, JSON, CSV and trace", "[tools][same]") {
  const Scratch scratch;
  for (const char* name :
       {"examples/first.yaml", "examples/own-profile.yaml", "seeds/cs336-xl-2xh100.yaml"}) {
    CAPTURE(name);
    std::string before;
    for (const char* round : {"1", "2"}) {
      const auto path = [&](const char* kind) {
        return scratch.path(std::string(kind) + round).string();
      };
      const Outcome outcome = ddpsim({"run", shipped(name), "--json", path("json"), "--csv",
                                      path("csv"), "--trace", path("trace")});
      REQUIRE(outcome.code == 0);
      const std::string all = outcome.out + content_of(path("json")) + content_of(path("csv")) +
                              content_of(path("trace"));
      CHECK(all.size() > 10'000);
      if (!before.empty()) CHECK((all == before));
      before = all;
    }
  }
}

TEST_CASE("results do not depend on the folder one is in", "[tools][same]") {
  const Scratch scratch;
  const Outcome here = ddpsim({"run", "own-profile.yaml", "--json", "-"}, shipped("examples"));
  REQUIRE(here.code == 0);
  CHECK(here.out == json_of(shipped("examples/own-profile.yaml")));
}

TEST_CASE("a device, link or model is the same by name, from a file, as a base and written out",
          "[tools][same]") {
  const Scratch scratch;
  const auto results_of = [](const std::string& file) {  // what a cluster is called aside
    return Json::parse(json_of(file))["results"];
  };
  const std::string text = content_of(first_example);
  const Json expected = results_of(first_example);
  const auto same = [&](const std::string& from, const std::string& to) {
    CAPTURE(to);
    CHECK((results_of(scratch.write("s.yaml", replaced(text, from, to)).string()) == expected));
  };
  const std::string devices = shipped("catalogue/devices/"), links = shipped("catalogue/links/");
  same("device: a100-40", "device: " + devices + "a100-40.yaml");
  same("device: a100-40", "device: {base: a100-40}");
  same("device: a100-40", "device:" + indented(content_of(devices + "a100-40.yaml")) + "\n ");
  same("intra_node: nvlink3", "intra_node: " + links + "nvlink3.yaml");
  same("intra_node: nvlink3", "intra_node: {base: nvlink3}");
  same("intra_node: nvlink3", "intra_node:" + indented(content_of(links + "nvlink3.yaml")) + "\n ");
  same("model: gpt2 ", "model: {base: gpt2} ");
  same("model: gpt2 ",
       "model:" + indented(content_of(shipped("catalogue/models/gpt2.yaml"))) + "\n ");
}

TEST_CASE("the flag --set gives what editing the file gives", "[tools][same]") {
  const Scratch scratch;
  const std::string text = content_of(first_example);
  const auto same = [&](const std::vector<std::string>& flags, const std::string& from,
                        const std::string& to) {
    CAPTURE(to);
    const std::string edited = json_of(scratch.write("s.yaml", replaced(text, from, to)).string());
    CHECK(json_of(first_example, flags) == edited);
    CHECK(edited != json_of(first_example));
  };
  same({"--set", "workload.batch=4"}, "batch: 8", "batch: 4");
  same({"--set", "cluster.ranks_per_node=2"}, "ranks_per_node: 8", "ranks_per_node: 2");
  same({"--set", "compare=[flat]"}, "compare: [naive, flat, overlap, bucketed]", "compare: [flat]");
  same({"--set", "training.bucket_cap=50MiB"},
       "compare:", "training: {bucket_cap: 50 MiB}\ncompare:");
  same({"--set=workload.batch=4", "--set=workload.sequence=512"},
       "batch: 8                      # per rank\n  sequence: 1024", "batch: 4\n  sequence: 512");
}

}  // namespace
}  // namespace ddpsim
