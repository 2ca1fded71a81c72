// Setting one key changes that key alone, wherever the value that holds it comes from: a name of
// the catalogue, a ready cluster, a file that is based on another.

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

const std::string of_system =
    "workload: {model: resnet18, batch: 8}\n"
    "cluster: {system: dgx-h100, nodes: 4}\n"
    "compare: [bucketed]\n";
const std::string of_names =
    "workload: {model: resnet18, batch: 8}\n"
    "cluster: {device: h100-sxm, nodes: 4, ranks_per_node: 8, intra_node: nvlink4, inter_node: "
    "ib-ndr}\n"
    "compare: [bucketed]\n";

Outcome run(const std::string& file, std::vector<std::string> flags,
            const std::filesystem::path& folder = {}) {
  flags.insert(flags.begin(), {"run", file});
  flags.insert(flags.end(), {"--json", "-"});
  return ddpsim(flags, folder);
}

Json all_of(const std::string& file, const std::vector<std::string>& flags,
            const std::filesystem::path& folder = {}) {
  const Outcome outcome = run(file, flags, folder);
  CAPTURE(flags, outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

/// The cluster and the results, without what tells of the command line.
Json answer(const std::string& file, const std::vector<std::string>& flags,
            const std::filesystem::path& folder = {}) {
  const Json whole = all_of(file, flags, folder);
  return {{"cluster", whole["cluster"]}, {"results", whole["results"]}};
}

/// What the steps take, and over how many NICs.
Json steps(const std::string& file, const std::vector<std::string>& flags) {
  const Json whole = all_of(file, flags);
  Json found = {whole["cluster"]["nics_per_node"]};
  for (const Json& result : whole["results"])
    found.push_back({result["step_ms"], result["communication_ms"], result["exposed_ms"]});
  return found;
}

TEST_CASE("a key of a link, a device or a model set to its own value changes nothing",
          "[tools][set_keys]") {
  const Scratch scratch;
  for (const std::string& text : {of_system, of_names}) {
    const std::string file = scratch.write("s.yaml", text).string();
    const Json before = steps(file, {});
    for (const char* own :
         {"cluster.inter_node.bandwidth=50GB/s", "cluster.inter_node.latency=14us",
          "cluster.inter_node.kind=infiniband", "cluster.inter_node.nics=8",
          "cluster.intra_node.bandwidth=450GB/s", "cluster.intra_node.nvswitch=true",
          "cluster.device.memory_bandwidth=3350GB/s", "cluster.device.multiprocessors=132",
          "cluster.device.base=h100-sxm", "workload.model.base=resnet18",
          "workload.model.bottleneck=false", "cluster.launch.kernel=6us",
          "cluster.host.base=reference", "cluster.collectives.law=auto"}) {
      CAPTURE(text, own);
      CHECK(steps(file, {"--set", own}) == before);
    }
  }
}

TEST_CASE("a key that is set over a name, and one written out with the name as base, are the same",
          "[tools][set_keys]") {
  const Scratch scratch;
  const std::string named = scratch.write("named.yaml", of_names).string();
  const std::string system = scratch.write("system.yaml", of_system).string();
  const std::string written =
      scratch
          .write("written.yaml",
                 "workload: {model: resnet18, batch: 8}\n"
                 "cluster: {device: h100-sxm, nodes: 4, ranks_per_node: 8, intra_node: nvlink4,\n"
                 "  inter_node: {base: ib-ndr, nics: 4}}\n"
                 "compare: [bucketed]\n")
          .string();
  const std::string beside = scratch
                                 .write("beside.yaml",
                                        "workload: {model: resnet18, batch: 8}\n"
                                        "cluster: {system: dgx-h100, nodes: 4,\n"
                                        "  inter_node: {nics: 4}}\n"
                                        "compare: [bucketed]\n")
                                 .string();
  const Json expected = answer(written, {});
  CHECK(expected["cluster"]["nics_per_node"] == 4);
  CHECK(answer(named, {"--set", "cluster.inter_node.nics=4"}) == expected);
  CHECK(answer(system, {"--set", "cluster.inter_node.nics=4"}) == expected);
  CHECK(answer(beside, {}) == expected);
}

TEST_CASE("of a mapping in a file that a cluster is based on, the keys that are not set stay",
          "[tools][set_keys]") {
  const Scratch scratch;
  scratch.write("table.csv", "bytes,time_us\n1024,40\n1048576,90\n104857600,900\n");
  scratch.write("link.yaml", "kind: ethernet\nbandwidth: 10 GB/s\nall_reduce: table.csv\n");
  std::filesystem::create_directory(scratch.path("clusters"));
  scratch.write("clusters/own.yaml",
                "system: dgx-h100\nnodes: 2\ninter_node: {base: ../link.yaml, nics: 2}\n"
                "launch: {kernel: 5 us, collective: 20 us}\n");
  const std::string file = scratch
                               .write("s.yaml",
                                      "workload: {model: resnet18, batch: 8}\n"
                                      "cluster: clusters/own.yaml\ncompare: [bucketed]\n")
                               .string();
  const Json before = answer(file, {});
  CHECK(before["cluster"]["law"] == "table");
  CHECK(answer(file, {"--set", "cluster.inter_node.nics=2"}) == before);
  CHECK(answer(file, {"--set", "cluster.launch.kernel=5us"}) == before);
  CHECK(answer(file, {"--set", "cluster.launch.kernel=50us"})["results"] != before["results"]);
}

TEST_CASE("a part of a word that is no mapping is refused, and so is a part of a number",
          "[tools][set_keys]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", of_names).string();
  const Outcome number = run(file, {"--set", "cluster.nodes.x=1"});
  CHECK(number.code == 2);
  CHECK_THAT(number.err, Catch::Contains("nodes is not a mapping"));
  const Outcome word =
      run(file, {"--set", "cluster.launch=sync", "--set", "cluster.launch.hook=1us"});
  CHECK(word.code == 2);
  CHECK_THAT(word.err, Catch::Contains("launch is not a mapping"));
}

TEST_CASE("another ready cluster keeps the number of nodes, another link the number of NICs",
          "[tools][set_keys]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", of_system).string();
  for (const Json& run : all_of(file, {"--vary", "cluster=dgx-h100,aws-p4d"}))
    CHECK(run["cluster"]["nodes"] == 4);
  for (const Json& run : all_of(file, {"--vary", "cluster.inter_node=ib-ndr,ethernet-400g"}))
    CHECK(run["cluster"]["nics_per_node"] == 8);
  CHECK(answer(file, {"--cluster", "aws-p4d", "--nodes", "2"})["cluster"]["nodes"] == 2);
  CHECK(answer(file, {"--cluster", "aws-p4d", "--ranks", "8"})["cluster"]["nodes"] == 1);
  const std::string own = scratch.write("two.yaml", "system: dgx-a100\nnodes: 2\n").string();
  CHECK(answer(file, {"--cluster", own})["cluster"]["nodes"] == 2);  // as that file says
}

TEST_CASE("whole nodes of a cluster's file are filled by --ranks as of a ready cluster",
          "[tools][set_keys]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", of_system).string();
  const std::string system = scratch.write("h100.yaml", "system: dgx-h100\nnodes: 4\n").string();
  const std::string own = scratch
                              .write("a100.yaml",
                                     "device: a100-40\nnodes: 6\nranks_per_node: 4\n"
                                     "intra_node: nvlink3\ninter_node: {base: ib-hdr, nics: 4}\n")
                              .string();
  const auto check = [&](const std::string& cluster, const std::vector<std::string>& flags,
                         int nodes, int each, const std::string& note) {
    std::vector<std::string> words{"--cluster", cluster};
    words.insert(words.end(), flags.begin(), flags.end());
    CAPTURE(words);
    const Json parts = answer(file, words)["cluster"];
    CHECK(parts["nodes"] == nodes);
    CHECK(parts["ranks_per_node"] == each);
    const std::string err = run(file, words).err;
    if (note.empty())
      CHECK_THAT(err, !Catch::Contains("these ranks fill"));
    else
      CHECK_THAT(err, Catch::Contains("note: " + note));
  };
  const std::string spread =
      " used, as these ranks fill no more: --nodes N (cluster.nodes) spreads them over N";
  check("dgx-h100", {"--ranks", "4"}, 1, 4, "");
  check(system, {"--ranks", "4"}, 1, 4, "1 of the 4 nodes of h100 is" + spread);
  check(system, {"--ranks", "24"}, 3, 8, "3 of the 4 nodes of h100 are" + spread);
  check(system, {"--ranks", "32"}, 4, 8, "");
  check(system, {"--ranks", "64"}, 8, 8, "h100 has 4 nodes, and these ranks fill 8");
  check(own, {"--ranks", "12"}, 3, 4, "3 of the 6 nodes of a100 are" + spread);
  check(own, {"--ranks", "12", "--nodes", "6"}, 6, 2, "");
  check(own, {"--ranks", "12", "--ranks-per-node", "2"}, 6, 2, "");
}

TEST_CASE("what falls away with the scenario's own cluster is told", "[tools][set_keys]") {
  const Scratch scratch;
  const std::string file = scratch
                               .write("s.yaml",
                                      "workload: {model: resnet18, batch: 8}\n"
                                      "cluster: {system: dgx-h100, skew: 2 %, price: 3 USD/h}\n"
                                      "compare: [bucketed]\n")
                               .string();
  const std::string err = run(file, {"--cluster", "dgx-a100", "--set", "cluster.skew=2%"}).err;
  CHECK_THAT(err, Catch::Contains("cluster.price of the scenario's own cluster is left out"));
  CHECK_THAT(err, !Catch::Contains("cluster.skew"));
  // Where mappings say it themselves nothing falls away; where one does not, it is told how.
  const auto varied = [&](const std::string& second) {
    return run(file, {"--set", "cluster.skew=2%", "--vary",
                      "cluster={system: dgx-a100, price: 2 USD/h}," + second})
        .err;
  };
  CHECK_THAT(varied("{system: dgx-h100, price: 4 USD/h}"), !Catch::Contains("is left out"));
  CHECK_THAT(varied("{system: dgx-h100}"),
             Catch::Contains("cluster.price of the scenario's own cluster is left out, as another "
                             "cluster takes its place: price: ... in its mapping keeps it"));
}

TEST_CASE("what a file said that the scenario's cluster names falls away no more quietly",
          "[tools][set_keys]") {
  const Scratch scratch;
  scratch.write("site.yaml",
                "device: h100-sxm\nranks_per_node: 8\nnodes: 4\nintra_node: nvlink4\n"
                "inter_node: {base: ib-ndr, nics: 8}\nskew: 2 %\n"
                "host: {base: reference, factor: 1.2}\nprice: 2.5 USD/h\n");
  scratch.write("other.yaml", "system: dgx-a100\nnodes: 2\nprice: 1 USD/h\n");
  const auto of = [&](const std::string& cluster) {
    return scratch
        .write("s.yaml", "workload: {model: resnet18, batch: 8}\ncluster: " + cluster +
                             "\ncompare: [bucketed]\n")
        .string();
  };
  const auto note = [](const std::string& key) {
    return "cluster." + key +
           " of the scenario's own cluster (site.yaml) is left out, as another cluster takes its "
           "place: --set cluster." +
           key + "=... beside it keeps it";
  };
  for (const char* cluster : {"site.yaml", "{system: site.yaml}"}) {
    CAPTURE(cluster);
    const std::string file = of(cluster);
    const Outcome found = run(file, {"--cluster", "dgx-a100"});
    for (const char* key : {"skew", "host", "price"})
      CHECK_THAT(found.err, Catch::Contains(note(key)));
    // As of one that is written in the scenario, the number of nodes stays.
    CHECK(found.json()["cluster"]["nodes"] == 4);
    CHECK_THAT(found.err, !Catch::Contains("cluster.nodes of the scenario"));
    const Outcome varied = run(file, {"--vary", "cluster=dgx-a100,dgx-h100"});
    CHECK_THAT(varied.err, Catch::Contains(note("price")));
    // A price of its own is no loss, and one that is set neither.
    const Outcome other = run(file, {"--cluster", "other.yaml", "--set", "cluster.skew=2%"});
    CHECK_THAT(other.err, Catch::Contains(note("host")) && !Catch::Contains(note("price")) &&
                              !Catch::Contains(note("skew")));
    CHECK(other.json()["cluster"]["nodes"] == 2);
    CHECK_THAT(other.err, Catch::Contains("cluster.nodes of the scenario, 4, is left out, as the "
                                          "cluster that takes the place of its own has 2: --nodes "
                                          "4 keeps it"));
    // A mapping says its own size, or has one node, as has another system under the same keys.
    for (const char* setting : {"cluster={system: dgx-a100}", "cluster.system=dgx-a100"}) {
      CAPTURE(setting);
      const Outcome one = run(file, {"--set", setting});
      CHECK(one.json()["cluster"]["nodes"] == 1);
      CHECK_THAT(one.err, Catch::Contains("cluster.nodes of the scenario, 4, is left out") &&
                              Catch::Contains("cluster.price of the scenario's own cluster (site"));
    }
  }
  // Of keys beside the file and in it each is told, and the nearest number of nodes stays.
  const Outcome both =
      run(of("{system: site.yaml, nodes: 3, jitter: 3%}"), {"--cluster", "dgx-a100"});
  CHECK_THAT(both.err,
             Catch::Contains("cluster.jitter of the scenario's own cluster is left out") &&
                 Catch::Contains(note("price")));
  CHECK(both.json()["cluster"]["nodes"] == 3);
  // Nobody needs a file that is not there, once another cluster takes its place.
  CHECK(run(of("gone.yaml"), {"--cluster", "dgx-a100"}).code == 0);
}

TEST_CASE("a path of --set or --cluster is looked for in the current folder, then the scenario's",
          "[tools][set_keys]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("scenarios"));
  std::filesystem::create_directory(scratch.path("here"));
  std::filesystem::create_directory(scratch.path("elsewhere"));
  const std::string file = scratch.write("scenarios/s.yaml", of_system).string();
  scratch.write("scenarios/clu.yaml", "system: dgx-a100\nnodes: 2\n");
  scratch.write("here/clu.yaml", "system: dgx-h100\nnodes: 3\n");
  for (const auto& [folder, nodes] :
       {std::pair{scratch.path("here"), 3}, {scratch.path("elsewhere"), 2}}) {
    const Json set = answer(file, {"--set", "cluster=clu.yaml"}, folder);
    CHECK(set["cluster"]["nodes"] == nodes);
    CHECK(answer(file, {"--cluster", "clu.yaml"}, folder) == set);
    CHECK(answer(file, {"--set", "cluster={system: clu.yaml}"}, folder) == set);
  }
}

TEST_CASE("a name that the catalogue has is the catalogue's, also beside a file of that name",
          "[tools][set_keys]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", of_names).string();
  const std::string note = " is the catalogue's: the file of that name in the current folder is ./";
  scratch.write("dgx-a100", "system: dgx-h100\nnodes: 3\n");
  scratch.write("a100-80", "no device\n");
  scratch.write("ib-hdr", "kind: ethernet\nbandwidth: 1 GB/s\n");
  const auto here = [&](const std::vector<std::string>& flags) {
    return run(file, flags, scratch.folder());
  };
  for (const auto& [flag, key, name] : {std::tuple{"--cluster", "cluster", "dgx-a100"},
                                        {"--device", "cluster.device", "a100-80"},
                                        {"--link", "cluster.inter_node", "ib-hdr"}}) {
    const std::string setting = std::string(key) + "=" + name;
    const Outcome by_flag = here({flag, name}), by_set = here({"--set", setting});
    CAPTURE(by_flag.err, by_set.err);
    REQUIRE(by_flag.code == 0);
    REQUIRE(by_set.code == 0);
    const Json without_file = answer(file, {flag, name});
    for (const Outcome& each : {by_flag, by_set}) {
      CHECK(each.json()["cluster"] == without_file["cluster"]);
      CHECK(each.json()["results"] == without_file["results"]);
    }
    CHECK_THAT(by_flag.err,
               Catch::Contains(std::string("note: ") + flag + " " + name + note + name));
    CHECK_THAT(by_set.err, Catch::Contains("note: --set " + setting + note + name));
  }
  // With a slash the file is meant, and so it is where the catalogue has no such name.
  scratch.write("our-site", "system: dgx-h100\nnodes: 3\n");
  scratch.write("our-site.json", "{\"system\": \"dgx-h100\", \"nodes\": 3}\n");
  for (const char* path : {"./dgx-a100", "our-site", "our-site.json"}) {
    CAPTURE(path);
    const Json by_flag = answer(file, {"--cluster", path}, scratch.folder());
    CHECK(by_flag["cluster"]["nodes"] == 3);
    CHECK(answer(file, {"--set", std::string("cluster=") + path}, scratch.folder()) == by_flag);
    const std::string scenario =
        scratch
            .write("names.yaml", std::string("workload: {model: resnet18, batch: 8}\ncluster: ") +
                                     path + "\ncompare: [bucketed]\n")
            .string();
    CHECK(answer(scenario, {}) == by_flag);
  }
  // What init writes is what it checked.
  CHECK(ddpsim({"init", "--cluster", "dgx-a100", "made.yaml"}, scratch.folder()).code == 0);
  CHECK_THAT(content_of(scratch.path("made.yaml")), Catch::Contains("system: dgx-a100 "));
}

TEST_CASE("another cluster without a network is told which nodes are kept", "[tools][set_keys]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", of_system).string();
  scratch.write("ws.yaml", "device: rtx4090\nranks_per_node: 2\nintra_node: pcie4\n");
  const Outcome refused = run(file, {"--cluster", "ws.yaml"}, scratch.folder());
  CHECK(refused.code == 2);
  CHECK(lines_of(refused.err).size() == 1);
  CHECK_THAT(refused.err,
             Catch::Contains("--cluster ws.yaml: missing key \"inter_node\": what links the nodes, "
                             "such as ib-ndr or ethernet-100g; the scenario's 4 nodes are kept: "
                             "--nodes 1 predicts one machine"));
  CHECK(answer(file, {"--cluster", "ws.yaml", "--nodes", "1"},
               scratch.folder())["cluster"]["nodes"] == 1);
  CHECK(answer(file, {"--cluster", "ws.yaml", "--link", "ib-ndr"},
               scratch.folder())["cluster"]["nodes"] == 4);
  scratch.write("slip.yaml",
                "device: rtx4090\nranks_per_node: 2\nintra_node: pcie4\ninter_nod: ib-ndr\n");
  CHECK_THAT(run(file, {"--cluster", "slip.yaml"}, scratch.folder()).err,
             Catch::Contains("did you mean \"inter_node\""));
  scratch.write("sized.yaml",
                "device: rtx4090\nranks_per_node: 2\nnodes: 2\nintra_node: pcie4\n"
                "inter_nod: ib-ndr\n");
  CHECK_THAT(run(file, {"--cluster", "sized.yaml"}, scratch.folder()).err,
             Catch::Contains("did you mean \"inter_node\""));
}

TEST_CASE("a chain of files that are based on each other has an end", "[tools][set_keys]") {
  const Scratch scratch;
  scratch.write("link0.yaml", "kind: ethernet\nbandwidth: 10 GB/s\n");
  for (int i = 1; i <= 40; ++i)
    scratch.write("link" + std::to_string(i) + ".yaml",
                  "base: link" + std::to_string(i - 1) + ".yaml\n");
  const std::string file = scratch.write("s.yaml", of_names).string();
  CHECK(run(file, {"--set", "cluster.inter_node=" + scratch.path("link30.yaml").string()}).code ==
        0);
  const Outcome refused =
      run(file, {"--set", "cluster.inter_node=" + scratch.path("link40.yaml").string()});
  CHECK(refused.code == 2);
  CHECK(lines_of(refused.err).size() == 1);
  CHECK_THAT(refused.err, Catch::Contains("more than 32 files are based on each other"));
}

TEST_CASE("run takes --device and --link as --set does", "[tools][set_keys]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", of_names).string();
  CHECK(answer(file, {"--device", "h200", "--link", "nvlink4", "--link", "ethernet-400g"}) ==
        answer(file, {"--set", "cluster.device=h200", "--set", "cluster.intra_node=nvlink4",
                      "--set", "cluster.inter_node=ethernet-400g"}));
}

TEST_CASE("every command that predicts one scenario takes --device and --link",
          "[tools][set_keys]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", of_names).string();
  const std::vector<std::string> flags{"--device", "h200", "--link", "nvlink4"},
      settings{"--set", "cluster.device=h200", "--set", "cluster.intra_node=nvlink4"};
  for (const std::vector<std::string>& command : {std::vector<std::string>{"schedule"},
                                                  {"tune"},
                                                  {"sweep", "--vary", "workload.batch=4,8"}}) {
    const auto rows = [&](const std::vector<std::string>& more) {
      std::vector<std::string> line = command;
      line.push_back(file);
      line.insert(line.end(), more.begin(), more.end());
      line.insert(line.end(), {"-q", "--csv", "-"});
      const Outcome outcome = ddpsim(line);
      CAPTURE(command.front(), outcome.err);
      CHECK(outcome.code == 0);
      std::string text;  // of a sweep without what its rows were computed from, which is the words
      for (const std::string& row : lines_of(outcome.out))
        text += row.substr(0, command.front() == "sweep" ? row.rfind(',') : row.size()) + "\n";
      return text;
    };
    CHECK(rows(flags) == rows(settings));
    CHECK(rows(flags) != rows({}));
  }
}

TEST_CASE("what stands behind a setting's value is refused", "[tools][set_keys]") {
  const Scratch scratch;
  scratch.write("s.yaml", of_system);
  for (const auto& [value, behind] : {std::pair{"cluster.ranks_per_node=[8,4],[4,4]", ",[4,4]"},
                                      {"cluster.ranks_per_node=[8,4]..[8,8]", "..[8,8]"},
                                      {"compare=[bucketed]junk", "junk"},
                                      {"cluster={system: dgx-h100}xx", "xx"},
                                      {"name=\"abc\"def", "def"}}) {
    const Outcome outcome = ddpsim({"run", "s.yaml", "--set", value}, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(outcome.err == "ddpsim: --set " + std::string(value) + ": the value ends before \"" +
                             behind + "\": expected one value\n");
  }
  CHECK(run("s.yaml", {"--set", "compare=[flat] # all"}, scratch.folder()).code == 0);
  const Outcome grid =
      run("s.yaml", {"--vary", "cluster.ranks_per_node=[8,4]..[8,8]"}, scratch.folder());
  CHECK(grid.code == 2);
  CHECK_THAT(grid.err, Catch::Contains("the value ends before \"..[8,8]\""));
}

}  // namespace
}  // namespace ddpsim
