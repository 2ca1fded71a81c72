// Jobs on nodes with unequal numbers of ranks, through the program.

#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// `ranks`: what `ranks_per_node` says, and other keys of the cluster.
std::string job(const std::string& ranks) {
  return "name: a job\nworkload: {model: gpt2, batch: 2, sequence: 256}\n"
         "cluster: {device: a100-80, intra_node: nvlink3, inter_node: ib-hdr, price: 2 USD/h, "
         "ranks_per_node: " +
         ranks + "}\ncompare: [none, flat, bucketed]\n";
}

struct Jobs {
  Scratch scratch;

  Outcome run(const std::string& ranks, std::vector<std::string> flags) const {
    scratch.write("s.yaml", job(ranks));
    flags.insert(flags.begin() + 1, "s.yaml");
    const Outcome outcome = ddpsim(flags, scratch.folder());
    CAPTURE(ranks, flags, outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  }
  Json json(const std::string& ranks, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> flags{"run", "--json", "-", "-q"};
    flags.insert(flags.end(), more.begin(), more.end());
    return run(ranks, flags).json();
  }
};

TEST_CASE("a list of equal nodes prints what the number prints, to the byte",
          "[tools][unequal_nodes]") {
  const Jobs jobs;
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"run", "--why", "--scaling", "8"}, {"run", "--json", "-"}}) {
    const Outcome list = jobs.run("[4, 4]", flags), number = jobs.run("4, nodes: 2", flags);
    CHECK(list.out == number.out);
    CHECK(list.err == number.err);
  }
}

TEST_CASE("a run on unequal nodes says which there are", "[tools][unequal_nodes]") {
  const Jobs jobs;
  const std::string text = jobs.run("[8, 4]", {"run"}).out;
  CHECK_THAT(text, Catch::Contains("2 nodes of 8 + 4 a100-80 by nvlink3; 4 NICs or more a node"));
  CHECK_THAT(text, Catch::Contains("the slowest of 12 ranks"));
  const Json cluster = jobs.json("[8, 4]")["cluster"];
  CHECK(cluster["nodes"] == 2);
  CHECK(cluster["ranks_per_node"] == Json::array({8, 4}));
  CHECK(cluster["nics_per_node"] == 4);
  CHECK(cluster["line_rate_bytes_per_second"] == 25e9);
}

TEST_CASE("that nobody measured the law of unequal nodes is noted where the law prices them",
          "[tools][unequal_nodes]") {
  const Jobs jobs;
  const std::string says =
      "the narrowest is taken to set the pace between nodes, which no known "
      "measurement confirms";
  CHECK_THAT(jobs.run("[8, 4]", {"run"}).err, Catch::Contains("nodes of 8 + 4 ranks: " + says));
  jobs.scratch.write("table.yaml",
                     "kind: infiniband\nranks: 12\nnodes: 2\nall_reduce:\n"
                     "  - {bytes: 1 MiB, time: 100 us}\n  - {bytes: 1 GiB, time: 12 ms}\n");
  CHECK_THAT(jobs.run("[8, 4]", {"run", "--link", "table.yaml"}).err, !Catch::Contains(says));
}

TEST_CASE("a ready cluster in place of unequal nodes keeps their number",
          "[tools][unequal_nodes]") {
  const Jobs jobs;
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--cluster", "dgx-h100"}, {"--set", "cluster=dgx-h100"}}) {
    const Json cluster = jobs.json("[8, 4, 4]", flags)["cluster"];
    CHECK(cluster["nodes"] == 3);
    CHECK(cluster["ranks_per_node"] == 8);
  }
}

TEST_CASE("the flag --ranks-per-node takes a number for each node", "[tools][unequal_nodes]") {
  const Jobs jobs;
  CHECK(jobs.json("4", {"--ranks-per-node", "8,4"})["cluster"] == jobs.json("[8, 4]")["cluster"]);
  CHECK(jobs.json("4", {"--cluster", "dgx-h100", "--ranks-per-node",
                        "8,4"})["cluster"]["ranks_per_node"] == Json::array({8, 4}));
  CHECK(jobs.json("4", {"--ranks-per-node", "8,4", "--nodes", "2", "--ranks", "12"})["ranks"] ==
        12);
  const auto refused = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words{"run", first_example};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = ddpsim(words);
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    return outcome.err;
  };
  CHECK_THAT(refused({"--ranks-per-node", "8,4", "--nodes", "3"}),
             Catch::Contains("--ranks-per-node 8,4 lists 2 nodes, not the 3 of --nodes"));
  CHECK_THAT(refused({"--ranks-per-node", "8,4", "--ranks", "16"}),
             Catch::Contains("--ranks 16 is not the sum of --ranks-per-node 8,4"));
  for (const char* wrong : {"8,", "8,,4", ",", "8;4", "8,0", "8,-4", "8,x", "2000", "[8,4]"})
    CHECK_THAT(refused({"--ranks-per-node", wrong}),
               Catch::Contains(std::string("--ranks-per-node ") + wrong +
                               ": expected a whole number from 1 to 1024, or one for each node"));
}

TEST_CASE("a list from elsewhere goes before the nodes of the scenario's file",
          "[tools][unequal_nodes]") {
  const Jobs jobs;
  jobs.scratch.write("site.yaml",
                     "ranks_per_node: [8, 4]\ndevice: h100-sxm\nintra_node: nvlink4\n"
                     "inter_node: {base: ib-ndr, nics: 8}\n");
  const std::string one_node = "8, nodes: 1";  // as init writes it
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--ranks-per-node", "8,4"},
        {"--cluster", "dgx-h100", "--ranks-per-node", "8,4"},
        {"--set", "cluster=dgx-h100", "--set", "cluster.ranks_per_node=[8,4]"},
        {"--cluster", "site.yaml"}}) {
    CAPTURE(flags);
    const Json cluster = jobs.json(one_node, flags)["cluster"];
    CHECK(cluster["nodes"] == 2);
    CHECK(cluster["ranks_per_node"] == Json::array({8, 4}));
  }
  const Json tuned = jobs.run(one_node, {"tune", "--cluster", "dgx-h100", "--ranks-per-node", "8,4",
                                         "--json", "-", "-q"})
                         .json();
  CHECK(tuned["cluster"]["ranks_per_node"] == Json::array({8, 4}));
  CHECK_NOTHROW(jobs.run(one_node, {"run", "--vary", "cluster.ranks_per_node=[8,4],[8,8]", "-q"}));
  // A number of ranks for each node of a file that lists them leaves the scenario's nodes.
  CHECK(jobs.json("8, nodes: 3", {"--cluster", "site.yaml", "--ranks-per-node", "4"})["ranks"] ==
        12);
}

TEST_CASE("nodes that a list contradicts are refused where they stand", "[tools][unequal_nodes]") {
  const Scratch scratch;
  scratch.write("site.yaml",
                "ranks_per_node: [8, 4]\ndevice: h100-sxm\nintra_node: nvlink4\n"
                "inter_node: {base: ib-ndr, nics: 8}\n");
  const auto refused = [&](const std::string& ranks, const std::vector<std::string>& flags) {
    scratch.write("s.yaml", job(ranks));
    std::vector<std::string> words{"run", "s.yaml"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = ddpsim(words, scratch.folder());
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  const std::string why = ": ranks_per_node lists 2 nodes: write nodes: 2, or leave nodes out\n";
  CHECK(refused("8, nodes: 1", {"--cluster", "site.yaml", "--nodes", "3"}) ==
        "ddpsim: --nodes 3" + why);
  CHECK(refused("8, nodes: 1", {"--cluster", "dgx-h100", "--set", "cluster.nodes=3", "--set",
                                "cluster.ranks_per_node=[8,4]"}) ==
        "ddpsim: --set cluster.nodes=3" + why);
  const std::string whole = "cluster={system: dgx-h100, nodes: 3}";
  CHECK(refused("8", {"--set", whole, "--ranks-per-node", "8,4"}) ==
        "ddpsim: --set " + whole + why);
  const std::size_t column = job("[8, 4], nodes: ").find("}\ncompare") - job("").find("cluster:");
  CHECK(refused("[8, 4], nodes: 3", {"--cluster", "dgx-h100"}) ==
        "ddpsim: s.yaml:3:" + std::to_string(column + 1) + ": cluster.nodes" + why);
}

TEST_CASE("throughput and prices count the ranks that are there", "[tools][unequal_nodes]") {
  const Json run = Jobs().json("[8, 4]");
  for (const Json& result : run["results"]) {
    const double step = result["step_ms"].get<double>() * 1e-3;
    // Twelve ranks of two samples of 256 tokens, and twelve devices to pay for.
    CHECK(result["samples_per_second"].get<double>() == Approx(24 / step));
    const double tokens = result["tokens_per_second"].get<double>();
    CHECK(tokens == Approx(24 * 256 / step));
    CHECK(result["tokens_per_second_per_device"].get<double>() == Approx(tokens / 12));
    CHECK(result["cost_per_billion_tokens"].get<double>() == Approx(1e9 / tokens / 3600 * 12 * 2));
  }
}

TEST_CASE("the smaller of two nodes bounds what NICs of ranks carry, and no steps are lost",
          "[tools][unequal_nodes]") {
  const Jobs jobs;
  const auto flat_ms = [&](const std::string& ranks) {
    return jobs.json(ranks)["results"][1]["communication_ms"].get<double>();
  };
  const double mixed = flat_ms("[8, 4]");
  CHECK(mixed >= flat_ms("[4, 4]"));
  CHECK(mixed > flat_ms("[8, 8]"));
  // GPT-2's 124.4 M parameters in fp32 enter the smaller node through four NICs of 25 GB/s.
  CHECK(mixed >= 124.4e6 * 4 / 100e9 * 1e3);
  CHECK(flat_ms("[4, 8]") == mixed);
}

TEST_CASE("a scaling curve takes unequal nodes in their order", "[tools][unequal_nodes]") {
  const auto sizes = [](const std::string& ranks, const std::vector<std::string>& flags) {
    std::vector<Json> found;
    const Json run = Jobs().json(ranks, flags);
    for (const Json& point : run["results"][2]["scaling"])
      found.push_back(Json::array({point["ranks"], point["nodes"], point["ranks_per_node"]}));
    return found;
  };
  using Sizes = std::vector<Json>;
  const auto size = [](int ranks, int nodes, Json each) {
    return Json::array({ranks, nodes, std::move(each)});
  };
  const Sizes whole{size(1, 1, 1), size(2, 1, 2),  size(4, 1, 4),
                    size(8, 1, 8), size(16, 2, 8), size(20, 3, Json::array({8, 8, 4}))};
  CHECK(sizes("[8, 8, 4]", {"--scaling", "20"}) == whole);
  CHECK(sizes("[8, 8, 4]", {"--scaling", "18"}) == Sizes(whole.begin(), whole.end() - 1));
  const Json run = Jobs().json("[8, 4]", {"--scaling", "24"});
  CHECK_THAT(run["results"][2]["scaling_missing"].get<std::string>(),
             Catch::Contains("the curve ends at 12 ranks: 24 are not the first nodes of 8 + 4"));
}

TEST_CASE("grids, traces and tuning take unequal nodes", "[tools][unequal_nodes]") {
  const Jobs jobs;
  const Json mixed = jobs.json("[8, 4]");
  const Json grid =
      jobs.run("8", {"sweep", "--vary", "cluster.ranks_per_node=[8,4],[8,8]", "--json", "-", "-q"})
          .json();
  CHECK(grid["rows"][0]["step_ms"] == mixed["results"][0]["step_ms"]);
  const Json tuned = jobs.run("[8, 4]", {"tune", "--json", "-", "-q"}).json();
  CHECK(tuned["cluster"]["ranks_per_node"] == Json::array({8, 4}));
  jobs.run("[8, 4]", {"run", "-q", "--all-ranks", "--trace", "t.json", "--set", "compare=[flat]"});
  const std::string trace = content_of(jobs.scratch.path("t.json").string());
  // Rank 8 is the second node's first, rank 11 its last.
  const Json events = Json::parse(trace)["traceEvents"];
  std::map<std::string, int> devices;
  for (const Json& event : events)
    if (event["name"] == "process_labels") ++devices[event["args"]["labels"].get<std::string>()];
  CHECK(devices["GPU 3"] == 2);
  CHECK(devices["GPU 7"] == 1);
}

}  // namespace
}  // namespace ddpsim
