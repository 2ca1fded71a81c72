// What a command runs on: links that join nodes, ready clusters, heads of tables, notes.

#include <filesystem>

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/calibrations.hpp"
#include "tests/tools/answers.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// A workload profile with 1 GiB of gradients, all ready at the end of backward.
std::string large_profile(const Scratch& scratch) {
  return scratch
      .write("profile.yaml",
             "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 2 ms\noptimizer: 1 ms\n"
             "parameters:\n"
             "  - {name: weight, shape: [16384, 16384], dtype: fp32, ready: 2 ms}\n")
      .string();
}

/// The time of the step that is not computation, in seconds.
double communication_of(const Json& tuned) {
  return (tuned["default_step_ms"].get<double>() -
          tuned["without_communication_ms"].get<double>()) *
         1e-3;
}

TEST_CASE("Gloo's law takes one NIC of a node, and says so where there are more",
          "[tools][cluster]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: resnet50, batch: 8, optimizer: sgd}\ncluster: {device: "
                 "generic-cpu, nodes: 2, ranks_per_node: 2, intra_node: {kind: plain, latency: 30 "
                 "us, bandwidth: 10 GB/s}, inter_node: {base: ethernet-10g, nics: 4}, collectives: "
                 "{law: gloo}}\n")
          .string();
  const Outcome four = ddpsim({"run", file, "--why"}),
                one = ddpsim({"run", file, "--set", "cluster.inter_node.nics=1"});
  REQUIRE(four.code == 0);
  CHECK_THAT(four.err, Catch::Contains("note: 4 NICs a node (ethernet-10g): Gloo's law "
                                       "takes one of them, which the ranks of a node share; the "
                                       "others make nothing shorter\n"));
  CHECK_THAT(one.err, !Catch::Contains("Gloo's law"));
}

TEST_CASE("a network given by --link joins nodes, whose NICs the step goes at the rate of",
          "[tools][cluster]") {
  const Scratch scratch;
  const Json tuned = json_of({"tune", large_profile(scratch), "--link", "ethernet-10g", "--ranks",
                              "8", "--device", "a100-80"});
  const Json& cluster = tuned["cluster"];
  CHECK(cluster["nodes"] == 8);
  CHECK(cluster["ranks_per_node"] == 1);
  CHECK(cluster["inter_node"] == "ethernet-10g");
  CHECK(cluster["intra_node"].is_null());
  CHECK(cluster["nics_per_node"] == 1);
  CHECK(cluster["line_rate_bytes_per_second"] == 1.25e9);
  CHECK(cluster["law"] == "nccl");
  // A ring of 8 sends 2 x 7/8 of 1 GiB through each NIC of 1.25 GB/s: 1.503 s.
  const double line_rate = 2.0 * 7 / 8 * 1024 * 1024 * 1024 / 1.25e9;
  CHECK(communication_of(tuned) >= line_rate);
  CHECK(communication_of(tuned) <= 1.35 * line_rate);
}

TEST_CASE("several ranks of a node share its NICs", "[tools][cluster]") {
  const Scratch scratch;
  const std::string profile = large_profile(scratch);
  const auto tuned = [&](const std::vector<std::string>& size) {
    std::vector<std::string> arguments{"tune",   profile,   "--device", "a100-80",
                                       "--link", "nvlink3", "--link",   "ethernet-10g"};
    arguments.insert(arguments.end(), size.begin(), size.end());
    return json_of(arguments);
  };
  const Json by_nodes = tuned({"--ranks", "8", "--nodes", "2"});
  CHECK(by_nodes["cluster"]["ranks_per_node"] == 4);
  CHECK(by_nodes["cluster"]["intra_node"] == "nvlink3");
  // A quarter of 1.25 GB/s each.
  CHECK(by_nodes["cluster"]["line_rate_bytes_per_second"] == 0.3125e9);
  for (const std::vector<std::string>& same :
       {std::vector<std::string>{"--ranks", "8", "--ranks-per-node", "4"},
        {"--nodes", "2", "--ranks-per-node", "4"}})
    CHECK(tuned(same) == by_nodes);
  // Two nodes: at the least 1 GiB must leave each through its NIC.
  CHECK(communication_of(by_nodes) >= 1024.0 * 1024 * 1024 / 1.25e9);
}

TEST_CASE("NVLink, PCIe and link profiles given by --link stay inside one node",
          "[tools][cluster]") {
  const Scratch scratch;
  const std::string profile = large_profile(scratch);
  for (const std::string& link :
       {std::string("nvlink3"), std::string("pcie4"), shipped("examples/profiles/link.yaml")}) {
    CAPTURE(link);
    const Json cluster = json_of(
        {"tune", profile, "--link", link, "--ranks", "2", "--device", "a100-80"})["cluster"];
    CHECK(cluster["nodes"] == 1);
    CHECK(cluster["ranks_per_node"] == 2);
  }
}

TEST_CASE("a ready cluster is the same by flag, by --set and in the file", "[tools][cluster]") {
  const Scratch scratch;
  const std::string workload = "workload: {model: gpt2, batch: 2, sequence: 256}\n";
  const std::string bare = scratch.write("s.yaml", workload + "cluster: dgx-h100\n").string();
  const std::string map =
      scratch.write("s2.yaml", workload + "cluster: {system: dgx-h100, nodes: 4}\n").string();
  const std::string out = scratch
                              .write("s3.yaml", workload +
                                                    "cluster: {device: h100-sxm, nodes: 4, "
                                                    "ranks_per_node: 8, intra_node: nvlink4, "
                                                    "inter_node: {base: ib-ndr, nics: 8}}\n")
                              .string();
  const std::string other = scratch.write("s4.yaml", workload + "cluster: {device: t4}\n").string();
  const auto results = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments{"run"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Json run = json_of(arguments);
    return Json{{"cluster", run["cluster"]}, {"results", run["results"]}};
  };
  const Json expected = results({map});
  CHECK(expected["cluster"]["nodes"] == 4);
  CHECK(expected["cluster"]["nics_per_node"] == 8);
  CHECK(results({out}) == expected);
  CHECK(results({bare, "--nodes", "4"}) == expected);
  CHECK(results({bare, "--set", "cluster.nodes=4"}) == expected);
  CHECK(results({bare, "--ranks", "32"}) == expected);
  CHECK(results({other, "--cluster", "dgx-h100", "--nodes", "4"}) == expected);
  CHECK(results({other, "--set", "cluster.nodes=4", "--set", "cluster=dgx-h100"}) == expected);
  CHECK(results({bare})["cluster"]["nodes"] == 1);
  // Keys beside the system go before it; how many NICs a host has stays.
  const Json slower = results({map, "--set", "cluster.inter_node=ethernet-10g"});
  CHECK(slower["cluster"]["nics_per_node"] == 8);
  CHECK(slower["results"][0]["step_ms"] > expected["results"][0]["step_ms"]);
  refused({"run", bare, "--cluster", "dgx-h10"}, "did you mean \"dgx-h100\"?");
  refused({"run", bare, "--ranks", "12"}, "write nodes and ranks_per_node");
}

TEST_CASE("a flag and a setting that give one key two values are refused, in the user's words",
          "[tools][cluster]") {
  const auto both = [](std::vector<std::string> flag, const std::string& setting,
                       const std::string& says) {
    for (const char* command : {"run", "tune", "schedule", "explore"}) {
      std::vector<std::string> words{command, first_example};
      words.insert(words.end(), flag.begin(), flag.end());
      words.insert(words.end(), {"--set", setting});
      refused(words, says);
    }
  };
  both({"--nodes", "4"}, "cluster.nodes=2",
       "--nodes 4 and --set cluster.nodes=2 give cluster.nodes two values: leave one of them out");
  both({"--cluster", "dgx-h100"}, "cluster.system=dgx-a100",
       "--cluster dgx-h100 and --set cluster.system=dgx-a100");
  both({"--link", "nvlink4"}, "cluster.intra_node=pcie4",
       "--link nvlink4 and --set cluster.intra_node=pcie4");
  both({"--nodes", "4"}, "cluster={system: dgx-h100, nodes: 2}",
       "--nodes 4 and --set cluster={system: dgx-h100, nodes: 2} give cluster.nodes two values");
  refused({"run", first_example, "--phase", "first", "--set", "training.phase=steady"},
          "--phase first and --set training.phase=steady");
  for (const char* command : {"run", "sweep"})
    refused({command, first_example, "--nodes", "4", "--vary", "cluster.nodes=1,2"},
            "cluster.nodes is given by --nodes 4 and by --vary: leave one out");
  refused({"run", first_example, "--set", "training.bucket_cap=1MiB", "--vary",
           "training.bucket_cap=1MiB,2MiB"},
          "training.bucket_cap is given by --set training.bucket_cap=1MiB and by --vary");
  // A mapping that varies says its keys itself.
  for (const char* command : {"run", "sweep"}) {
    refused({command, first_example, "--nodes", "8", "--vary",
             "cluster={system: dgx-a100},{system: dgx-h100, nodes: 4}"},
            "cluster.nodes is given by --nodes 8 and by --vary cluster={system: dgx-h100, nodes: "
            "4}: leave one out");
    refused({command, first_example, "--set", "cluster.inter_node.nics=4", "--vary",
             "cluster={system: dgx-h100, inter_node: {base: ib-ndr, nics: 8}}"},
            "cluster.inter_node.nics is given by --set cluster.inter_node.nics=4 and by --vary ");
    refused({command, first_example, "--vary", "cluster.nodes=4,8", "--vary",
             "cluster={system: dgx-h100, nodes: 4}"},
            "cluster.nodes is given by --vary cluster.nodes=... and by --vary cluster=");
  }
  CHECK(json_of({"run", first_example, "--nodes", "8", "--vary",
                 "cluster={system: dgx-h100}"})[0]["cluster"]["nodes"] == 8);
  CHECK(json_of({"run", first_example, "--nodes", "4", "--set",
                 "cluster={system: dgx-h100, nodes: 4}"})["cluster"]["nodes"] == 4);
  // Agreement is none, and a key of what a flag names is a change of it.
  CHECK(json_of({"run", first_example, "--cluster", "dgx-h100", "--nodes", "4", "--set",
                 "cluster.nodes=4"})["cluster"]["nodes"] == 4);
  CHECK(json_of({"run", first_example, "--cluster", "dgx-h100", "--nodes", "2", "--set",
                 "cluster.inter_node.nics=1"})["cluster"]["nics_per_node"] == 1);
}

TEST_CASE("what a flag's value is refused for is told of the flag", "[tools][cluster]") {
  const Scratch scratch;
  const std::string site =
      scratch.write("site.yaml", "device: h100-sxm\nranks_per_node: many\n").string();
  refused({"run", first_example, "--cluster", "dgx-h1000"},
          "ddpsim: --cluster dgx-h1000: unknown name \"dgx-h1000\"; did you mean \"dgx-h100\"?");
  refused({"run", first_example, "--device", "h101-sxm"}, "ddpsim: --device h101-sxm: unknown");
  refused({"run", first_example, "--phase", "last"}, "ddpsim: --phase last: ");
  refused({"run", first_example, "--vary", "cluster.device=h101-sxm,h102-sxm"},
          "ddpsim: --vary cluster.device=h101-sxm: unknown name");
  refused({"run", first_example, "--set", "cluster.device=h101-sxm"},
          "ddpsim: --set cluster.device=h101-sxm: unknown name");
  refused({"run", first_example, "--cluster", site}, "site.yaml:2:17: ");
}

TEST_CASE("no accuracy is quoted for a link that is not known to join such devices",
          "[tools][cluster]") {
  const auto quoted = [](const char* device, const char* link) {
    const Outcome outcome =
        ddpsim({"run", first_example, "--device", device, "--link", link, "--set",
                "workload.compute=fp16", "--set", "compare=[bucketed]"});
    CAPTURE(device, link, outcome.err);
    CHECK(outcome.code == 0);
    return outcome.out.find("off in the median") != std::string::npos;
  };
  CHECK(quoted("t4", "pcie3"));
  CHECK(quoted("h100-sxm", "nvlink4"));
  CHECK_FALSE(quoted("t4", "nvlink3"));        // it has none
  CHECK_FALSE(quoted("t4", "pcie5"));          // of later generations
  CHECK_FALSE(quoted("h100-sxm", "nvlink3"));  // of an earlier one
}

TEST_CASE("every ready cluster predicts several nodes, and tune takes one for a profile",
          "[tools][cluster]") {
  const Scratch scratch;
  const std::string profile = large_profile(scratch);
  for (const std::string& file : shipped_files("catalogue/clusters")) {
    const std::string name = std::filesystem::path(file).stem().string();
    CAPTURE(name);
    const Json one = json_of({"run", first_example, "--cluster", name});
    const Json two = json_of({"run", first_example, "--cluster", name, "--nodes", "2"});
    CHECK(two["ranks"].get<int>() == 2 * one["ranks"].get<int>());
    CHECK(two["results"][0]["communication_ms"] > one["results"][0]["communication_ms"]);
  }
  CHECK(json_of({"tune", profile, "--cluster", "dgx-a100", "--nodes", "2"})["cluster"]["nodes"] ==
        2);
}

TEST_CASE("the head of every table says nodes, ranks, device, NICs, line rate and law",
          "[tools][cluster]") {
  const std::vector<std::string> on{"--cluster", "aws-p4d", "--nodes", "2", "--wide"};
  for (std::vector<std::string> command :
       {std::vector<std::string>{"run", first_example},
        {"tune", first_example},
        {"schedule", first_example},
        {"sweep", first_example, "--vary", "training.bucket_cap=25MiB"},
        {"run", first_example, "--vary", "training.bucket_cap=25MiB"}}) {
    command.insert(command.end(), on.begin(), on.end());
    CAPTURE(command);
    const Outcome outcome = ddpsim(command);
    REQUIRE(outcome.code == 0);
    // Four NICs of 12.5 GB/s for eight GPUs.
    CHECK_THAT(outcome.out,
               Catch::Contains("2 nodes x 8 a100-40 by nvlink3; 4 NICs a node by efa-100g, 6.25 "
                               "GB/s of line rate per GPU; all-reduce law: nccl"));
  }
  CHECK_THAT(ddpsim({"run", first_example, "--wide"}).out,
             Catch::Contains("1 node x 8 a100-40 by nvlink3, 300 GB/s of line rate per GPU"));
}

TEST_CASE("a link of which more than its place was changed is told so", "[tools][cluster]") {
  const auto links = [](const std::string& cluster) {
    const std::vector<std::string> words{"run",
                                         first_example,
                                         "--wide",
                                         "--set",
                                         "compare=[flat]",
                                         "--set",
                                         "cluster={" + cluster + "}"};
    const Json said = json_of(words)["cluster"];
    const std::string intra = said["intra_node"], inter = said["inter_node"];
    CHECK_THAT(ddpsim(words).out, Catch::Contains(" by " + intra + "; ") &&
                                      Catch::Contains(" NICs a node by " + inter + ", "));
    return std::pair(intra, inter);
  };
  const std::string dgx = "system: dgx-h100, nodes: 2, ";
  using Names = std::pair<std::string, std::string>;
  // Another network in place of InfiniBand; a rate; a latency; a switch that is not there.
  CHECK(links(dgx + "inter_node: {kind: ethernet, bandwidth: 100 Gbit/s, nics: 2}") ==
        Names("nvlink4", "ib-ndr (changed)"));
  CHECK(links(dgx + "inter_node: {bandwidth: 25 GB/s}") == Names("nvlink4", "ib-ndr (changed)"));
  CHECK(links(dgx + "inter_node: {base: ib-hdr, latency: 30 us}") ==
        Names("nvlink4", "ib-hdr (changed)"));
  CHECK(links(dgx + "intra_node: {nvswitch: false}") == Names("nvlink4 (changed)", "ib-ndr"));
  // As it was, and where it stands.
  CHECK(links(dgx + "inter_node: {nics: 4, carries: 0.7}") == Names("nvlink4", "ib-ndr"));
  CHECK(links(dgx + "inter_node: {kind: infiniband, bandwidth: 400 Gbit/s}") ==
        Names("nvlink4", "ib-ndr"));
  CHECK(links(dgx + "inter_node: {base: ib-hdr}") == Names("nvlink4", "ib-hdr"));
}

TEST_CASE("a changed NVLink joins the devices that it joined", "[tools][cluster]") {
  const Outcome outcome = ddpsim({"run", first_example, "--cluster", "dgx-h100", "--set",
                                  "cluster.intra_node.bandwidth=400 GB/s"});
  CHECK_THAT(outcome.out, Catch::Contains(" by nvlink4 (changed), "));
  CHECK_THAT(outcome.err, !Catch::Contains("is known to be joined"));
}

TEST_CASE("the head says what large messages reach through the host's memory", "[tools][cluster]") {
  const auto head = [](const std::string& cluster) {
    const Outcome outcome =
        ddpsim({"run", first_example, "--wide", "--set", "compare=[flat]", "--set",
                "cluster={device: {base: l40s, peer_to_peer: false}, " + cluster + "}"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  // Measured on this host.
  CHECK_THAT(
      head("ranks_per_node: 4, intra_node: {kind: pcie, latency: 5.7 us, bandwidth: 18 GB/s, "
           "carries: 1}"),
      Catch::Contains("through the host's memory, 18 GB/s that large messages reach per "
                      "GPU; all-reduce law: nccl"));
  CHECK_THAT(head("ranks_per_node: 4, intra_node: {base: pcie4, carries: 20 %}"),
             Catch::Contains("31.5 GB/s of line rate per GPU, but large messages reach 6.3 GB/s on "
                             "the bus; all-reduce law: nccl"));
  CHECK_THAT(head("nodes: 2, ranks_per_node: 4, intra_node: pcie4, inter_node: {base: "
                  "ethernet-100g, carries: 1}"),
             Catch::Contains(", large messages are assumed to reach 2.6 GB/s on the bus ("));
  // Nobody said what this host moves.
  CHECK_THAT(head("ranks_per_node: 4, intra_node: pcie4"),
             Catch::Contains("31.5 GB/s of line rate per GPU, but large messages are assumed to "
                             "reach 2.6 GB/s on the bus (hosts differ, 2.2 to 9.8 GB/s: write what "
                             "yours do as intra_node.carries, or import nccl-tests); all-reduce "
                             "law: nccl"));
  // The lanes of PCIe 3 carry less than the quickest host: 0.9 of 15.75 GB/s, twice.
  CHECK_THAT(head("ranks_per_node: 4, intra_node: pcie3"),
             Catch::Contains("(hosts differ, 2.2 to 7.1 GB/s: "));
  CHECK_THAT(head("nodes: 2, ranks_per_node: 4, intra_node: pcie4, inter_node: ethernet-100g"),
             Catch::Contains("but large messages are assumed to reach 2.6 GB/s on the bus"));
  CHECK_THAT(head("nodes: 2, ranks_per_node: 4, intra_node: pcie4, inter_node: {latency: 10 us, "
                  "bandwidth: 12.5 GB/s}"),
             Catch::Contains("but large messages are assumed to reach 2.6 GB/s on the bus (") &&
                 Catch::Contains("); all-reduce law: alpha-beta"));
  // A NIC of 10 Gbit/s carries less than that.
  CHECK_THAT(head("nodes: 2, ranks_per_node: 4, intra_node: pcie4, inter_node: ethernet-10g"),
             !Catch::Contains("large messages"));
}

TEST_CASE("the head of one node's table says what the table reaches, not the ring fitted to it",
          "[tools][cluster]") {
  const Scratch scratch;
  // 1.75 x 1 GiB / 4 ms is 469.8 GB/s on the bus; the ring that is nearest to both points has less.
  const std::string table =
      "latency: 3 us\nbandwidth: 430 GB/s\nranks: 8\nnodes: 1\nall_reduce:\n"
      "  - {bytes: 1 MiB, time: 50 us}\n  - {bytes: 1 GiB, time: 4 ms}\n";
  const auto asked = [&](const std::string& link) {
    return ddpsim({"run", first_example, "--wide", "--cluster", "dgx-h100", "--link",
                   scratch.write("nv.yaml", link + table).string(), "--set", "compare=[flat]",
                   "--json", scratch.path("run.json").string()});
  };
  for (const char* kind : {"", "kind: nvlink\nnvswitch: true\n"}) {
    CAPTURE(kind);
    const Outcome outcome = asked(kind);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.out,
               Catch::Contains("1 node x 8 h100-sxm by nv, 469.8 GB/s that large messages reach on "
                               "the bus; all-reduce law: table"));
    CHECK(Json::parse(content_of(scratch.path("run.json")))["cluster"]["line_rate_bytes_per_second"]
              .is_null());
  }
}

TEST_CASE("a measured rate through the host's memory is written as what the link carries",
          "[tools][cluster]") {
  const auto communication = [](const std::string& carries) {
    const Json run = json_of({"run", first_example, "-q", "--set", "compare=[flat]", "--set",
                              "workload.compute=fp16", "--set",
                              "cluster={device: t4, ranks_per_node: 8, intra_node: {base: pcie3, "
                              "carries: " +
                                  carries + "}}"});
    return run["results"][0]["communication_ms"].get<double>();
  };
  // One message of many MiB, whose time is all but its bytes: 0.6 / 0.2 times as long.
  CHECK(communication("20 %") / communication("60 %") == Approx(3).epsilon(0.02));
  CHECK(communication("60 %") > communication("100 %"));
}

TEST_CASE("collectives on the hosts do not ask whether GPUs copy to each other",
          "[tools][cluster]") {
  const auto run = [](const std::string& peers, const std::string& more) {
    const Outcome outcome =
        ddpsim({"run", first_example, "--set", "compare=[flat]", "--set", "workload.compute=fp16",
                "--set", "workload.batch=4", "--set",
                "cluster={device: {base: rtx2080ti, peer_to_peer: " + peers +
                    "}, nodes: 2, ranks_per_node: 8, intra_node: pcie3, inter_node: "
                    "ethernet-100g, " +
                    more + "}",
                "--json", "-"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.err, !Catch::Contains("the host's memory, through which"));
    return outcome.json()["results"][0];
  };
  const std::string hosts = "through_host: 5 GB/s";
  CHECK(run("false", hosts)["communication_ms"] == run("true", hosts)["communication_ms"]);
  CHECK(run("false", hosts)["step_ms"] == run("true", hosts)["step_ms"]);
  // Nor does a ring of the links' own figures, of 12.5 GB/s here.
  const std::string ring = "collectives: alpha-beta, interference: {compute_slowdown: 1}";
  CHECK(run("false", ring)["communication_ms"] == run("true", ring)["communication_ms"]);
}

TEST_CASE("what a link carries is said to have no effect where the law has no such share",
          "[tools][cluster]") {
  const auto notes = [](const std::string& cluster) {
    const Outcome outcome = ddpsim({"run", first_example, "--set", "compare=[flat]", "--set",
                                    "workload.compute=fp32", "--set", "cluster={" + cluster + "}"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.err;
  };
  const std::string own = "latency: 10 us, bandwidth: 10 GB/s, carries: 50 %";
  CHECK_THAT(notes("device: v100, ranks_per_node: 8, intra_node: {" + own + "}"),
             Catch::Contains("note: intra_node.carries has no effect under the alpha-beta law: it "
                             "knows no such share; write as intra_node.bandwidth what large "
                             "messages reach\n") &&
                 !Catch::Contains("inter_node.carries"));
  CHECK_THAT(notes("device: generic-cpu, nodes: 4, inter_node: {kind: ethernet, " + own +
                   "}, collectives: gloo"),
             Catch::Contains("note: inter_node.carries has no effect under the gloo law: ") &&
                 !Catch::Contains("intra_node.carries"));
  // The host's memory bounds a ring over a network that does not say its kind as it does NCCL's.
  const std::string hosts =
      "device: t4, nodes: 2, ranks_per_node: 4, intra_node: {base: pcie3, carries: 20 %}, "
      "inter_node: {latency: 10 us, bandwidth: 10 GB/s}";
  CHECK_THAT(notes(hosts), !Catch::Contains("carries"));
  CHECK_THAT(notes(hosts + ", collectives: alpha-beta"),
             Catch::Contains("note: intra_node.carries has no effect under the alpha-beta law: "));
  // Where nothing is lost, or the law has the share, there is nothing to say.
  CHECK_THAT(notes("device: v100, ranks_per_node: 8, intra_node: {latency: 10 us, bandwidth: 10 "
                   "GB/s, carries: 1}"),
             !Catch::Contains("carries"));
  CHECK_THAT(notes("device: v100, ranks_per_node: 8, intra_node: {kind: nvlink, " + own + "}"),
             !Catch::Contains("carries"));
}

TEST_CASE("a link's share beside its measured table is said to have no effect",
          "[tools][cluster]") {
  const Scratch scratch;
  const std::string table = scratch
                                .write("t.yaml",
                                       "kind: nvlink\nlatency: 2 us\nbandwidth: 100 GB/s\n"
                                       "all_reduce: [{bytes: 1 KiB, time: 20 us}, {bytes: 1 GiB, "
                                       "time: 20 ms}]\n")
                                .string();
  const Outcome outcome = ddpsim({"run", first_example, "--link", table, "--set",
                                  "cluster.intra_node.carries=50 %", "--set", "compare=[flat]"});
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("intra_node.carries has no effect: all-reduces are taken "
                                          "from the link's measured table"));
}

TEST_CASE("more nodes of GPUs without peer-to-peer take no shorter steps", "[tools][cluster]") {
  // The hop in a node is the same: two nodes of four T4 came out faster than one.
  const auto step = [](const std::string& nodes) {
    const Json run = json_of({"run", first_example, "-q", "--set", "compare=[bucketed]", "--set",
                              "workload.compute=fp16", "--set",
                              "cluster={device: t4, nodes: " + nodes +
                                  ", ranks_per_node: 4, intra_node: pcie3, inter_node: "
                                  "ethernet-25g}"});
    return run["results"][0]["step_ms"].get<double>();
  };
  const double one = step("1"), two = step("2"), four = step("4");
  CHECK(one < two);
  CHECK(two < four);
}

TEST_CASE("a setting that does nothing is noted", "[tools][cluster]") {
  const Scratch scratch;
  const std::string profile = large_profile(scratch);
  const auto notes = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = ddpsim(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  CHECK_THAT(notes({"tune", profile, "--link", "nvlink3", "--ranks", "2", "--device", "a100-80"}),
             Catch::Contains("note: forward and backward of profile were measured"));
  CHECK(notes({"run", first_example}).empty());
  CHECK(notes({"run", first_example, "--set", "cluster.device=a100-80"}).empty());
  CHECK_THAT(notes({"run", first_example, "--set", "cluster.inter_node=ib-hdr"}),
             Catch::Contains("note: inter_node has no effect: there is one node"));
  CHECK_THAT(
      notes({"run", first_example, "--set",
             "cluster.intra_node={bandwidth: 1 GB/s, all_reduce: [{bytes: 1 MiB, time: 1 ms}]}",
             "--set", "cluster.intra_node.bandwidth=2 GB/s"}),
      Catch::Contains("intra_node.bandwidth has no effect"));
  CHECK(notes({"run", first_example, "--quiet", "--set", "cluster.inter_node=ib-hdr"}).empty());
}

TEST_CASE("a GPU whose kernels are said to run on the host thread is noted", "[tools][cluster]") {
  using Words = std::vector<std::string>;
  // The device of the note; "": there is none.
  const auto noted = [](const Words& arguments) -> std::string {
    const Outcome outcome = ddpsim(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.code == 0);
    for (const std::string& line : lines_of(outcome.err))
      if (const auto at = line.find(" is a GPU, and `launch: sync`"); at != std::string::npos) {
        CHECK_THAT(line, Catch::StartsWith("note: ") &&
                             Catch::Contains("prices it as a CPU, whose kernels run on the host") &&
                             Catch::Contains("without the 6 us of a launch") &&
                             Catch::Contains("is not CUDA_LAUNCH_BLOCKING=1"));
        return line.substr(6, at - 6);
      }
    return "";
  };
  const auto of_first = [&](const std::string& setting) {
    return noted({"run", first_example, "--set", setting});
  };
  CHECK(of_first("cluster.launch=sync") == "a100-40");
  // Each command that has notes on the cluster.
  for (const std::string command : {"tune", "schedule"})
    CHECK(noted({command, first_example, "--set", "cluster.launch=sync"}) == "a100-40");
  for (const std::string command : {"run", "sweep"})
    CHECK(noted({command, first_example, "--vary", "cluster.launch=sync,5us"}) == "a100-40");
  // Said of the device; a GPU that is not CUDA's, and one that no catalogue has, are GPUs too.
  CHECK(of_first("cluster.device={base: rtx3090, synchronous: true}") == "rtx3090 (changed)");
  const std::string joined = "ranks_per_node: 2, intra_node: pcie4";
  CHECK(of_first("cluster={device: mi300x, launch: sync, " + joined + "}") == "mi300x");
  CHECK(of_first("cluster={device: {base: mi300x, synchronous: true}, " + joined + "}") ==
        "mi300x (changed)");
  const std::string sheet =
      "memory_bandwidth: 80 GB/s, peak: {fp32: 1 TFLOP/s, bf16: 1 TFLOP/s}, synchronous: true";
  CHECK(of_first("cluster={device: {compute_capability: 9.0, " + sheet + "}, " + joined + "}") !=
        "");
  // None: launches of a GPU, and a CPU, of the catalogue or written out.
  CHECK(of_first("cluster.launch=5us") == "");
  CHECK(noted({"run", shipped("examples/mlp-2ranks.yaml")}) == "");
  CHECK(of_first("cluster={device: {" + sheet + "}, " + joined + "}") == "");
}

TEST_CASE("a link inside nodes beside a table of several nodes is said to do what it does",
          "[tools][cluster]") {
  // NCCL opens fewer channels over PCIe than over NVLink, each of which takes a multiprocessor from
  // kernels: all-reduces that take as long cost a step less there.
  const Scratch scratch;
  scratch.write("table.yaml",
                "kind: infiniband\nranks: 16\nnodes: 2\nall_reduce:\n"
                "  - {bytes: 1 MiB, time: 100 us}\n  - {bytes: 256 MiB, time: 3 ms}\n");
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: gpt2, batch: 8, sequence: 1024, dtype: bf16}\n"
                 "cluster: {device: a100-80, nodes: 2, ranks_per_node: 8, inter_node: ib-hdr, "
                 "intra_node: nvlink3}\ncompare: [bucketed]\n")
          .string();
  const auto predicted = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"run", file,     "--link", scratch.path("table.yaml").string(),
                                   "-q",  "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    const Json run = ddpsim(words).json();
    return std::pair{run["results"][0]["step_ms"].get<double>(), run["notes"].dump()};
  };
  const std::string does_something =
                        "intra_node changes no all-reduce, as these are taken from "
                        "inter_node's measured table, only how much",
                    idle =
                        "intra_node has no effect on these steps: all-reduces are taken from "
                        "inter_node's measured table; it prices the step of one node";
  const auto [step, notes] = predicted({});
  CHECK_THAT(notes, !Catch::Contains("intra_node"));
  const auto [same_step, same_notes] = predicted({"--link", "nvlink3"});
  CHECK(same_step == step);
  CHECK_THAT(same_notes, Catch::Contains(idle));
  // What it does price: how a step compares with that of one node.
  const auto of_one_node = [&](const std::string& link) {
    return ddpsim({"run", file, "--link", scratch.path("table.yaml").string(), "--link", link, "-q",
                   "--json", "-"})
        .json()["results"][0]["scaling_efficiency_node"]
        .get<double>();
  };
  const std::string slow =
      scratch.write("slow.yaml", "kind: nvlink\nlatency: 1 ms\nbandwidth: 1 GB/s\n").string();
  CHECK(of_one_node("nvlink3") < of_one_node(slow));
  const auto [pcie_step, pcie_notes] = predicted({"--link", "pcie4"});
  CHECK(pcie_step < step);
  CHECK_THAT(pcie_notes, Catch::Contains(does_something) && !Catch::Contains(idle));
  const std::vector<std::string> given{"--set", "cluster.interference={compute_slowdown: 1.1}"};
  const double given_step = predicted(given).first;
  const auto [fixed_step, fixed_notes] = predicted({"--link", "pcie4", given[0], given[1]});
  CHECK(fixed_step == given_step);
  CHECK_THAT(fixed_notes, Catch::Contains(idle));
}

TEST_CASE("where the network is not what bounds all-reduces the port that does is named",
          "[tools][cluster]") {
  const auto run = [](const std::string& link) {
    return ddpsim({"run", first_example, "--set", "compare=[flat]", "--set",
                   "cluster={device: a100-80, nodes: 2, inter_node: ethernet-" + link + "}",
                   "--json", "-"});
  };
  // PCIe 4.0 x16 carries 31.5 GB/s: more than 200 Gbit/s, less than 400.
  CHECK(run("200g").err.empty());
  CHECK_THAT(run("400g").err,
             Catch::Contains("a GPU's PCIe, its way to the NICs, bounds all-reduces "
                             "of 1 MiB and more, not the NIC of a node"));
  CHECK(run("400g").json()["results"][0]["communication_ms"] ==
        run("800g").json()["results"][0]["communication_ms"]);
}

TEST_CASE("a card of more than its slot carries is told, and is no faster than the slot",
          "[tools][cluster]") {
  const auto run = [](const std::string& link) {
    return ddpsim({"run", first_example, "--set", "compare=[flat]", "--set",
                   "cluster={device: a100-80, nodes: 4, ranks_per_node: 8, intra_node: nvlink3, "
                   "inter_node: ethernet-" +
                       link + "}",
                   "--json", "-"});
  };
  // PCIe 4.0 x16 carries 31.5 GB/s: more than 200 Gbit/s, less than 400.
  CHECK(run("200g").err.empty());
  const Outcome wide = run("800g");
  CHECK_THAT(wide.err, Catch::Contains("a card's PCIe slot (31.5 GB/s) bounds all-reduces of 1 MiB "
                                       "and more, not the NIC of a node (ethernet-800g): a network "
                                       "of more bandwidth would not make them shorter"));
  CHECK(wide.json()["results"][0]["communication_ms"] ==
        run("400g").json()["results"][0]["communication_ms"]);
}

TEST_CASE("a GPU that is not CUDA's is priced by its link's latency and bandwidth",
          "[tools][cluster]") {
  const Json run =
      json_of({"run", first_example, "--set", "compare=[flat]", "--set",
               "cluster={device: mi300x, ranks_per_node: 8, intra_node: infinity-fabric-mi300x}"});
  CHECK(run["cluster"]["law"] == "alpha-beta");
  // 14 steps of 3.4 us, and 2 x 7/8 of 124,439,808 fp32 gradients at 336 GB/s.
  CHECK(run["results"][0]["communication_ms"].get<double>() ==
        Approx(14 * 3.4e-3 + 1.75 * 124'439'808 * 4 / 336e6));
}

TEST_CASE("a calibration in a cluster's place is told as one, and taken as told",
          "[tools][cluster]") {
  const Scratch scratch;
  scratch.write("c.yaml", good_calibration);
  const std::vector<std::string> two{"run", first_example, "--ranks-per-node", "2"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = two;
    words.insert(words.end(), more.begin(), more.end());
    return ddpsim(words, scratch.folder());
  };
  const Outcome refusal = run({"--cluster", "c.yaml"});
  CHECK(refusal.code == 2);
  CHECK(scratch.without_folder(refusal.err) ==
        "ddpsim: --cluster c.yaml: c.yaml is a calibration, not a cluster: give it as --set "
        "'cluster={calibration: c.yaml}', or to validate as --calibration c.yaml\n");
  CHECK(run({"--set", "cluster={calibration: c.yaml, device: generic-cpu}", "--set",
             "workload.compute=fp32"})
            .code == 0);
}

TEST_CASE("networks of other NICs are noted as the user writes them, links of files too",
          "[tools][cluster][vary]") {
  const Scratch scratch;
  for (const char* folder : {"a", "b"}) std::filesystem::create_directory(scratch.path(folder));
  const std::string link = "kind: ethernet\nbandwidth: 12.5 GB/s\n";
  scratch.write("a/link.yaml", link);
  scratch.write("b/link.yaml", link + "nics: 2\n");
  scratch.write("table.yaml",
                "all_reduce: [{bytes: 1 MiB, time: 300 us}, {bytes: 512 MiB, time: 20 ms}]\n");
  const auto notes = [&](const std::vector<std::string>& vary) {
    std::vector<std::string> words{"run", first_example, "--nodes", "2", "--set", "compare=[flat]"};
    for (const std::string& each : vary) words.insert(words.end(), {"--vary", each});
    const Outcome outcome = ddpsim(words, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.err;
  };
  // Ethernet has one NIC a node unless the link says otherwise, InfiniBand one a rank.
  CHECK_THAT(
      notes({"cluster.inter_node=a/link.yaml,b/link.yaml,ib-ndr"}),
      Catch::Contains("note: the networks differ in NICs of a node: a/link.yaml has 1, b/link.yaml "
                      "has 2, ib-ndr has 8; cluster.inter_node.nics makes them alike\n"));
  CHECK_THAT(notes({"cluster.inter_node=a/link.yaml,{base: a/link.yaml, nics: 4}"}),
             Catch::Contains("a/link.yaml has 1, {base: a/link.yaml, nics: 4} has 4;"));
  CHECK_THAT(notes({"cluster.inter_node=a/link.yaml,ib-ndr", "cluster.ranks_per_node=4,8"}),
             Catch::Contains("a/link.yaml has 1, ib-ndr has 4 or 8;"));
  // A measured table holds for whatever NICs there were, and who varies NICs knows that they vary.
  CHECK_THAT(notes({"cluster.inter_node=table.yaml,ib-ndr"}), !Catch::Contains("differ in NICs"));
  CHECK_THAT(notes({"cluster.inter_node=a/link.yaml,ib-ndr", "cluster.inter_node.nics=4,8"}),
             !Catch::Contains("differ in NICs"));
}

TEST_CASE("micro-batches that each send their gradients are noted", "[tools][cluster]") {
  const auto notes = [](std::vector<std::string> settings) {
    std::vector<std::string> words{"run", first_example};
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    const Outcome outcome = ddpsim(words);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  CHECK_THAT(notes({"training.micro_batches=4"}),
             Catch::Contains("note: every one of the 4 micro-batches sends its gradients: "
                             "training.no_sync: true sends those of the last alone"));
  CHECK(notes({"training.micro_batches=4", "training.no_sync=true"}).empty());
  // Stage 2 of DeepSpeed would refuse it.
  CHECK(notes({"training.micro_batches=4", "compare=[bucketed, zero2]"}).empty());
  CHECK(notes({"training.micro_batches=4", "cluster.ranks_per_node=1"}).empty());
}

TEST_CASE("a table of other ranks than those it serves is noted", "[tools][cluster]") {
  const auto notes = [](const std::string& ranks, const std::string& more) {
    const Outcome outcome =
        ddpsim({"run", first_example, "--ranks", ranks, "--set",
                "cluster.intra_node={all_reduce: [{bytes: 4 KiB, time: 20 us}, {bytes: 512 MiB, "
                "time: 9 ms}]" +
                    more + "}"});
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  const std::string said =
      "note: all-reduces were measured with 4 ranks: for 32 they are scaled by the law of a ring";
  CHECK_THAT(notes("32", ", ranks: 4"), Catch::Contains(said));
  CHECK_THAT(notes("4", ", ranks: 4"), !Catch::Contains("scaled by the law"));
  CHECK_THAT(notes("32", ""), !Catch::Contains("scaled by the law"));
}

TEST_CASE("what a log says of NCCL drops no measured table in silence", "[tools][cluster]") {
  const Scratch scratch;
  scratch.write("t16.yaml",
                "latency: 2 us\nbandwidth: 40 GB/s\nranks: 16\nnodes: 2\nall_reduce: [{bytes: 4 "
                "KiB, time: 60 us}, {bytes: 1 GiB, time: 50 ms}]\n");
  const auto run = [&](const std::string& collectives) {
    const Outcome outcome =
        ddpsim({"run", first_example, "--cluster", "dgx-h100", "--nodes", "2", "--link", "t16.yaml",
                "--set", "cluster.collectives={" + collectives + "}", "--json", "-"},
               scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  };
  const Outcome forced = run("release: 2.26, algorithm: ring, channels: 16, protocol: simple");
  CHECK(forced.json()["cluster"]["law"] == "table");
  CHECK_THAT(forced.err,
             Catch::Contains("note: algorithm, protocol and channels of cluster.collectives are "
                             "not used: all-reduces are those that t16 measured, which have them "
                             "in them; law: nccl leaves the measurement out"));
  const Outcome release = run("release: 2.26");
  CHECK(release.json()["cluster"]["law"] == "table");
  CHECK_THAT(release.err, !Catch::Contains("cluster.collectives"));
  for (std::size_t r = 0; r < 4; ++r)
    for (const char* figure : {"step_ms", "communication_ms"})
      CHECK(forced.json()["results"][r][figure] == release.json()["results"][r][figure]);
  const Outcome law = run("law: nccl, algorithm: ring");
  CHECK(law.json()["cluster"]["law"] == "nccl");
  CHECK_THAT(law.err, Catch::Contains("note: the measured all-reduces of t16 are left out, as "
                                      "cluster.collectives says law: nccl, and its 40 GB/s are "
                                      "taken for each NIC, though a log of nccl-tests tells what "
                                      "the whole ring carries; law: auto takes them"));
}

TEST_CASE("a table's bandwidth that a kind makes one of each NIC is noted", "[tools][cluster]") {
  const Scratch scratch;
  scratch.write("t16.yaml",
                "latency: 2 us\nbandwidth: 40 GB/s\nranks: 16\nnodes: 2\nall_reduce: [{bytes: 4 "
                "KiB, time: 60 us}, {bytes: 1 GiB, time: 50 ms}]\n");
  const auto notes = [&](const std::string& network) {
    const Outcome outcome = ddpsim({"run", first_example, "--cluster", "dgx-h100", "--nodes", "2",
                                    "--set", "cluster.inter_node=" + network},
                                   scratch.folder());
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  const auto of_ring = Catch::Contains(
      "says 40 GB/s of each of a node's 8 NICs, and its table reaches 40.27 GB/s "
      "over all of them");
  CHECK_THAT(notes("{base: t16.yaml, kind: infiniband, nics: 8}"), of_ring);
  const auto any = Catch::Contains("and its table reaches");
  CHECK_THAT(notes("{base: t16.yaml, kind: infiniband, nics: 8, bandwidth: 25 GB/s}"), !any);
  CHECK_THAT(notes("{base: t16.yaml, kind: infiniband, nics: 1}"), !any);
  CHECK_THAT(notes("t16.yaml"), !any);
}

TEST_CASE("a link that goes before a calibration's all-reduces is noted", "[tools][cluster]") {
  const Scratch scratch;
  std::string calibration = good_calibration;
  calibration.replace(calibration.find("complete: false"), 15, "complete: true");
  scratch.write("c.yaml", calibration);
  const auto notes = [&](const std::string& more) {
    scratch.write("s.yaml", calibrated_scenario);
    std::vector<std::string> words{"run", "s.yaml", "--set", "cluster.ranks_per_node=2"};
    if (!more.empty()) words.insert(words.end(), {"--set", more});
    const Outcome outcome = ddpsim(words, scratch.folder());
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  CHECK_THAT(notes("cluster.intra_node={latency: 5 us, bandwidth: 1 GB/s}"),
             Catch::Contains("note: all-reduces are those of the link that the cluster names (the "
                             "scenario's own link), not those that the calibration measured: leave "
                             "cluster.intra_node (--link) out to have these"));
  CHECK_THAT(notes(""), !Catch::Contains("not those that the calibration measured"));
}

TEST_CASE("NCCL before 2.5 takes no NVLS", "[tools][cluster]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: gpt2-xl, batch: 1, sequence: 256}\ncluster: "
                 "{system: dgx-h100, nodes: 8}\ncompare: [bucketed]\n")
          .string();
  const auto schedule = [&](const std::string& release) {
    const Outcome outcome =
        ddpsim({"schedule", file, "--set", "cluster.collectives={release: " + release + "}"});
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.out;
  };
  CHECK_THAT(schedule("2.28"), Catch::Contains("nvls"));
  CHECK_THAT(schedule("2.4"), Catch::Contains("ring") && !Catch::Contains("nvls"));
}

TEST_CASE("more devices than a link joins get a note, of any kind of link", "[tools][cluster]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: resnet18, batch: 8}\ncluster: {device: v100, "
                 "ranks_per_node: 4, intra_node: pcie3}\ncompare: [naive]\n")
          .string();
  const auto notes = [&](const std::string& link) {
    return ddpsim({"run", file, "--set", "cluster.intra_node=" + link}).err;
  };
  for (const char* link :
       {"{base: pcie3, joins: 2}", "{bandwidth: 50 GB/s, latency: 5 us, joins: 2}"})
    CHECK_THAT(notes(link), Catch::Contains(" joins 2 devices, and a node has 4 ranks"));
  CHECK_THAT(notes("{base: pcie3, joins: 4}"), !Catch::Contains(" joins "));
}

}  // namespace
}  // namespace ddpsim
