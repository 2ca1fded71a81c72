// A link whose all-reduces were measured, or that says what it carries, beside the laws.
#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// 32 ranks on 4 nodes, 180 GB/s on the bus: 1.9375 S / 180 GB/s and 60 us.
const char* measured_ring =
    "format: ddpsim.link/1\nsource: a test\nlatency: 1 us\nbandwidth: 180 GB/s\nranks: 32\n"
    "all_reduce: [{bytes: 1 MiB, time: 71.3 us}, {bytes: 64 MiB, time: 782 us},\n"
    "  {bytes: 1 GiB, time: 11.6 ms}]\n";

const char* nic_job =
    "workload: {model: gpt2-xl, batch: 4, sequence: 1024, dtype: bf16}\ncompare: [flat]\n"
    "cluster: {device: h100-sxm, nodes: 4, ranks_per_node: 8, intra_node: nvlink4,\n"
    "  inter_node: {base: ring.yaml, nics: 4}}\n";

const std::string xl_seed = shipped("seeds/cs336-xl-2xh100.yaml");

double communication_ms(const Outcome& outcome) {
  return outcome.json()["results"][0]["communication_ms"];
}

TEST_CASE("a ring of latency and bandwidth takes a measured network as a whole, and says so",
          "[tools][links_beside_laws]") {
  const Scratch scratch;
  scratch.write("ring.yaml", measured_ring);
  scratch.write("s.yaml", nic_job);
  const auto run = [&](const std::string& law) {
    const Outcome outcome = ddpsim(
        {"run", "s.yaml", "--set", "cluster.collectives=" + law, "--json", "-"}, scratch.folder());
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  };
  const Outcome table = run("auto"), ring = run("alpha-beta");
  // Whatever its NICs are, the bandwidth is that of the ring.
  CHECK(communication_ms(ring) == Approx(communication_ms(table)).epsilon(0.01));
  CHECK_THAT(table.err, !Catch::Contains("left out"));
  CHECK_THAT(ring.err, Catch::Contains("the measured all-reduces of ring are left out, as "
                                       "cluster.collectives says law: alpha-beta; law: auto"));
}

TEST_CASE("a ready cluster's measured network has no line rate of a NIC",
          "[tools][links_beside_laws]") {
  const Scratch scratch;
  const std::filesystem::path catalogue = scratch.path("catalogue");
  std::filesystem::copy(shipped("catalogue"), catalogue, std::filesystem::copy_options::recursive);
  scratch.write("catalogue/links/ring.yaml", measured_ring);
  scratch.write("catalogue/clusters/ours.yaml",
                "device: h100-sxm\nranks_per_node: 8\nintra_node: nvlink4\ninter_node: ring\n"
                "source: a test\n");
  const Outcome outcome = execute({DDPSIM_PROGRAM, "list", "clusters", "--json", "-", "-q"},
                                  scratch.folder(), {{"DDPSIM_CATALOGUE", catalogue.string()}});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  int found = 0;
  for (const Json& each : outcome.json()) {
    if (each["cluster"] == "dgx-h100") CHECK(each["line rate of each"] == "50 GB/s");
    if (each["cluster"] != "ours") continue;
    ++found;
    CHECK(each["line rate of each"].is_null());
    CHECK(each["NICs"].is_null());
  }
  CHECK(found == 1);
}

TEST_CASE("what NVLink carries holds for NVLS as for a ring", "[tools][links_beside_laws]") {
  const auto carrying = [](const std::string& share) {
    return communication_ms(
        ddpsim({"run", xl_seed, "--laws-only", "--set", "cluster.intra_node.carries=" + share,
                "--set", "compare=[flat]", "--json", "-", "-q"}));
  };
  const double half = carrying("0.5"), tenth = carrying("0.1");
  CHECK(tenth == Approx(5 * half).epsilon(0.01));  // but for latencies
  // Of eight H100 all-reduces are NVLS's.
  const auto of_eight = [](const std::string& share) {
    return communication_ms(ddpsim({"run", shipped("examples/first.yaml"), "--set",
                                    "cluster.intra_node.carries=" + share, "--set",
                                    "compare=[flat]", "--json", "-", "-q"}));
  };
  CHECK(of_eight("0.1") > 4 * of_eight("0.5"));
}

TEST_CASE("measured rows are of what a link carries and of how collectives run",
          "[tools][links_beside_laws]") {
  for (const char* setting : {"cluster.intra_node.carries=0.3", "cluster.collectives.channels=4"}) {
    const Outcome outcome = ddpsim({"run", xl_seed, "--set", setting});
    CAPTURE(setting, outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.err, Catch::Contains("the measured rows are of ") &&
                                Catch::Contains("(here with other figures)"));
  }
}

TEST_CASE("laws alone beside measured rows say that these are not used",
          "[tools][links_beside_laws]") {
  const char* unused = "The file's own measured rows are not used: `ddpsim score FILE --laws-only`";
  CHECK_THAT(ddpsim({"run", xl_seed, "--laws-only"}).out, Catch::Contains(unused));
  CHECK_THAT(ddpsim({"run", xl_seed}).out, !Catch::Contains(unused));
}

TEST_CASE("a bound in which no collectives are says so", "[tools][links_beside_laws]") {
  const auto tuned = [](const std::vector<std::string>& settings) {
    std::vector<std::string> words{"tune", shipped("examples/own-profile.yaml")};
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    const Outcome outcome = ddpsim(words);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.out;
  };
  const auto says_so = Catch::Contains("the step's passes alone: no collective is in it");
  CHECK_THAT(tuned({"training.comm_hook=allreduce"}), says_so);
  CHECK_THAT(tuned({"training.input={time: 100 ms, cores: 1}"}),
             says_so);  // simulated as a whole, too
  CHECK_THAT(tuned({}), !says_so);
}

TEST_CASE("advice is never more from the best cap than it says", "[tools][links_beside_laws]") {
  const Scratch scratch;
  scratch.write(
      "s.yaml",
      "workload: {model: {family: gpt2, layers: 24, d_model: 1024, d_ff: 4096, heads: 16,\n"
      "  vocabulary: 50257, positions: 1024}, batch: 8, sequence: 1024, dtype: fp32,\n"
      "  compute: bf16, optimizer: adamw-fused}\n"
      "cluster: {system: dgx-h100, nodes: 4, inter_node: ethernet-25g}\n"
      "training: {micro_batches: 4, no_sync: true}\n");
  const std::vector<std::string> command{"tune", "s.yaml", "--uncertainty", "10%"};
  const Outcome table = ddpsim(command, scratch.folder());
  std::vector<std::string> as_json = command;
  as_json.insert(as_json.end(), {"--json", "-", "--quiet"});
  const double regret = ddpsim(as_json, scratch.folder()).json()["regret"];
  const std::string promise = "and never more than ";
  const std::size_t at = table.out.find(promise);
  INFO(table.out);
  REQUIRE(at != std::string::npos);
  const double said = std::stod(table.out.substr(at + promise.size()));
  CHECK(said >= 100 * regret);
  CHECK(said < 100 * regret + 0.1);
}

TEST_CASE("devices that hold a step are those of all makers", "[tools][links_beside_laws]") {
  const Scratch scratch;
  scratch.write(
      "s.yaml",
      "workload: {model: llama3-8b, batch: 1, sequence: 1024, dtype: fp32, compute: bf16,\n"
      "  optimizer: adamw}\ncluster: {system: aws-p4d, nodes: 4}\ncompare: [bucketed]\n");
  const Outcome outcome = ddpsim({"run", "s.yaml"}, scratch.folder());
  CAPTURE(outcome.err, outcome.out);
  CHECK_THAT(outcome.err + outcome.out, Catch::Contains("mi300x"));
}

}  // namespace
}  // namespace ddpsim
