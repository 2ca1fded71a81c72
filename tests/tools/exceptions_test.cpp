// Ranks that differ (cluster.exceptions), through the program.

#include <algorithm>
#include <tuple>

#include <catch2/catch.hpp>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/tools/jobs.hpp"
#include "tools/study/slowed_ranks.hpp"
#include "tools/study/step_jobs.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

const std::string straggler = shipped("examples/straggler.yaml");

Words words_and(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Json straggler_json(const Words& flags, const std::string& command = "run") {
  const Outcome outcome = ddpsim(words_and({command, straggler, "--json", "-"}, flags));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

std::string straggler_text(const Words& flags) {
  const Outcome outcome = ddpsim(words_and({"run", straggler, "--wide"}, flags));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.out;
}

std::string straggler_notes(const Words& flags) {
  const Outcome outcome = ddpsim(words_and({"run", straggler}, flags));
  REQUIRE(outcome.code == 0);
  return outcome.err;
}

Words set_exceptions(const std::string& list) {
  return {"--set", "cluster.exceptions=" + list};
}

TEST_CASE("a rank that is known to be slower makes no step shorter, however much ranks differ",
          "[tools][exceptions]") {
  const Scratch scratch;
  const std::string file = scratch
                               .write("s.yaml",
                                      "workload: {model: gpt2, batch: 4, sequence: 512}\n"
                                      "cluster: {device: a100-80, nodes: 1, ranks: 2, "
                                      "intra_node: nvlink3, skew: 5 %}\n")
                               .string();
  const auto step = [&](const std::string& exceptions) {
    const Outcome outcome =
        ddpsim({"run", file, "--json", "-", "--why", "--set", "cluster.exceptions=" + exceptions});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const Json result = outcome.json()["results"].back();
    double without = result["step_ms"];
    for (const Json& change : result["why"]["what_if"])
      if (change["change"] == "no exceptions") without = change["step_ms"];
    CHECK(without <= result["step_ms"]);
    return static_cast<double>(result["step_ms"]);
  };
  const double even = step("[]");
  CHECK(step("[{rank: 1, compute: 1.001x}]") >= even);
  CHECK(step("[{rank: 1, compute: 1.01x}]") >= even);
  CHECK(step("[{rank: 1, compute: 1.2x}]") > 1.1 * even);
}

TEST_CASE("the head and JSON name the exceptions", "[tools][exceptions]") {
  CHECK_THAT(straggler_text({}), Catch::Contains("rank 5 computes 1.3 times as long"));
  const Json cluster = straggler_json({})["cluster"];
  REQUIRE(cluster["exceptions"].size() == 1);
  CHECK(cluster["exceptions"][0] == Json{{"rank", 5}, {"compute", 1.3}});
  const Words several =
      set_exceptions("[{node: 1, compute: 2, nic: 10 GB/s}, {rank: 3, pause: 20 ms, at: 40 %}]");
  CHECK_THAT(straggler_text(several),
             Catch::Contains("the ranks of node 1 compute 2 times as long and the NICs of node 1 "
                             "carry 10 GB/s, which sets the pace of the network; rank 3 pauses for "
                             "20 ms at 40 % of its computation"));
  CHECK(straggler_json(several)["cluster"]["exceptions"] ==
        Json::array({{{"node", 1}, {"compute", 2.0}, {"nic_bytes_per_second", 10e9}},
                     {{"rank", 3}, {"compute", 1.0}, {"pause_ms", 20.0}, {"at", 0.4}}}));
  CHECK(!straggler_json(set_exceptions("[]"))["cluster"].contains("exceptions"));
}

TEST_CASE("why names the rank that each bucket waits for", "[tools][exceptions]") {
  const Json why = straggler_json({"--why"});
  std::size_t waiting = 0;
  for (const Json& result : why["results"])
    for (const Json& bucket : result["why"]["buckets"]) {
      REQUIRE(bucket.contains("waits_for"));
      waiting += bucket["waits_for"] == "rank 5" ? 1 : 0;
    }
  CHECK(waiting > 0);
  const std::string text = straggler_text({"--why"});
  CHECK_THAT(text, Catch::Contains("waits for"));
  CHECK_THAT(text, Catch::Contains("slowest rank: rank 5 computes 1.3 times as long"));
  CHECK_THAT(text, Catch::Contains("no exceptions"));
  const auto waits_for = [&](const Words& flags) {
    return straggler_json(words_and(
        flags,
        {"--why", "--set", "compare=[flat]"}))["results"][0]["why"]["buckets"][0]["waits_for"];
  };
  CHECK(waits_for({}) == "rank 5");
  CHECK(waits_for(set_exceptions("[{node: 1, compute: 1.5}]")) == "a rank of node 1");
  CHECK(waits_for(set_exceptions("[{rank: 5, compute: 0.5}]")) == "the slowest rank");
  CHECK(
      waits_for(words_and(set_exceptions("[{rank: 5, compute: 0.5}]"), {"--set", "cluster.skew=0"}))
          .is_null());
  // Without exceptions there is no such key.
  const Json alike = straggler_json(words_and(set_exceptions("[]"), {"--why"}));
  CHECK(!alike["results"][0]["why"]["buckets"][0].contains("waits_for"));
  CHECK_THAT(straggler_text(words_and(set_exceptions("[]"), {"--why"})),
             !Catch::Contains("waits for"));
}

TEST_CASE("why says what the step would be without exceptions", "[tools][exceptions]") {
  for (const char* list : {"[{rank: 5, compute: 1.3}]", "[{rank: 0, pause: 30 ms, at: 40 %}]",
                           "[{node: 1, nic: 5 GB/s}]"}) {
    CAPTURE(list);
    const Json with_them = straggler_json(words_and(set_exceptions(list), {"--why"})),
               without = straggler_json(set_exceptions("[]"));
    for (std::size_t r = 0; r < without["results"].size(); ++r) {
      const Json& changes = with_them["results"][r]["why"]["what_if"];
      CHECK(changes.back()["change"] == "no_exceptions");
      CHECK(changes.back()["step_ms"] == without["results"][r]["step_ms"]);
      CHECK(with_them["results"][r]["step_ms"] > without["results"][r]["step_ms"]);
    }
  }
}

TEST_CASE("a slow NIC is the whole network's", "[tools][exceptions]") {
  const Json node = straggler_json(set_exceptions("[{node: 1, nic: 10 GB/s}]")),
             network = straggler_json(words_and(set_exceptions("[]"),
                                                {"--set", "cluster.inter_node.bandwidth=10 GB/s"}));
  for (std::size_t r = 0; r < node["results"].size(); ++r)
    CHECK(node["results"][r]["step_ms"] == network["results"][r]["step_ms"]);
  CHECK_THAT(
      straggler_notes(set_exceptions("[{node: 1, nic: 900 GB/s}]")),
      Catch::Contains("cluster.exceptions: nic of node 1 has no effect: the NICs of inter_node "
                      "carry no more (50 GB/s)"));
  CHECK_THAT(straggler_notes(words_and(
                 set_exceptions("[{node: 1, nic: 10 GB/s}]"),
                 {"--set", "cluster.inter_node.all_reduce=[{bytes: 1 MiB, time: 1 ms}]"})),
             Catch::Contains("cluster.exceptions: nic of node 1 has no effect: all-reduces take "
                             "what was measured"));
}

TEST_CASE("a slow NIC slows what was measured over others", "[tools][exceptions]") {
  const Scratch scratch;
  scratch.write("c.yaml",
                std::string("format: ddpsim.calibration/1\nranks: 2\nsynchronous: true\n") +
                    "tasks: [{operation: forward, traffic: 2 MB, time: 200 us}]\n"
                    "all_reduce: [{bytes: 4 KiB, time: 200 us}, {bytes: 64 MiB, time: 562 "
                    "ms}]\nend: ddpsim.calibration/1\n");
  const auto run = [&](const std::string& nic) {
    scratch.write("s.yaml",
                  "workload: {model: resnet18, batch: 8}\ntraining: {strategy: flat}\n"
                  "cluster: {device: generic-cpu, calibration: c.yaml, nodes: 2, ranks_per_node: "
                  "1, exceptions: [{node: "
                  "1, nic: " +
                      nic + "}]}\n");
    return ddpsim({"run", "s.yaml"}, scratch.folder());
  };
  const std::string idle = "cluster.exceptions: nic of node 1 has no effect: all-reduces of 1 MiB";
  const Outcome slow = run("500 Mbit/s");
  CHECK(slow.code == 0);
  CHECK_THAT(slow.out, Catch::Contains("the NICs of node 1 carry 62.5 MB/s, which sets the pace"));
  CHECK_THAT(slow.err, !Catch::Contains("has no effect"));
  CHECK_THAT(run("1 Gbit/s").err, Catch::Contains(idle));
}

TEST_CASE("a slower NIC that bounds nothing sets no pace", "[tools][exceptions]") {
  const auto run = [](const std::string& exceptions) {
    const Outcome outcome = ddpsim(
        {"run", first_example, "--wide", "--why", "--set", "compare=[flat]", "--set",
         "workload.compute=fp16", "--set", "workload.batch=4", "--set",
         "cluster={device: rtx2080ti, nodes: 2, ranks_per_node: 8, intra_node: pcie3, inter_node: "
         "ethernet-100g, exceptions: " +
             exceptions + "}"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  };
  const std::string pace = "which sets the pace of the network",
                    note =
                        "note: cluster.exceptions: nic of node 0 has no effect: all-reduces of 1 "
                        "MiB and more take as long over the NICs of the other nodes\n";
  // The host's memory lets 2.6 GB/s through, NICs of 50 Gbit/s twice as much.
  const Outcome idle = run("[{node: 0, nic: 50 Gbit/s}]");
  CHECK_THAT(idle.out, !Catch::Contains(pace));
  CHECK_THAT(idle.err, Catch::Contains(note));
  const Outcome slow = run("[{node: 0, nic: 10 Gbit/s}]");
  CHECK_THAT(slow.out, Catch::Contains("the NICs of node 0 carry 1.25 GB/s, " + pace));
  CHECK_THAT(slow.err, !Catch::Contains("has no effect"));
}

TEST_CASE("a slower NIC that lengthens all-reduces a little does not set their pace",
          "[tools][exceptions]") {
  // NVLink bounds large all-reduces of two nodes with eight NICs of 50 GB/s each.
  const auto head = [](const std::string& nic) {
    const Outcome outcome =
        ddpsim({"run", first_example, "--wide", "--cluster", "dgx-h100", "--nodes", "2", "--set",
                "compare=[flat]", "--set", "cluster.exceptions=[{node: 1, nic: " + nic + "}]"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  CHECK_THAT(head("45 GB/s"), Catch::Contains("the NICs of node 1 carry 45 GB/s, of which "
                                              "all-reduces of 1 GiB take 0"));
  CHECK_THAT(head("20 GB/s"),
             Catch::Contains("the NICs of node 1 carry 20 GB/s, which sets the pace"));
}

TEST_CASE("the line rate is the slowest NIC's", "[tools][exceptions]") {
  // A NIC of 50 GB/s for each GPU; those of one node carry 10 GB/s.
  const Words slow = set_exceptions("[{node: 1, nic: 10 GB/s}]");
  CHECK_THAT(straggler_text({}), Catch::Contains(", 50 GB/s of line rate per GPU"));
  CHECK_THAT(straggler_text(slow), Catch::Contains(", 10 GB/s of line rate per GPU"));
  CHECK(straggler_json(slow)["cluster"]["line_rate_bytes_per_second"] == 10e9);
  // A NIC that is faster than the others' changes nothing.
  CHECK(straggler_json(set_exceptions(
            "[{node: 1, nic: 900 GB/s}]"))["cluster"]["line_rate_bytes_per_second"] == 50e9);
}

TEST_CASE("what is said of the host's memory is left out where a slow NIC bounds",
          "[tools][exceptions]") {
  const auto head = [](const std::string& nic) {
    const Outcome outcome = ddpsim(
        {"run", first_example, "--wide", "--set", "compare=[flat]", "--set",
         "workload.compute=fp16", "--set", "workload.batch=4", "--set",
         "cluster={device: rtx2080ti, nodes: 2, ranks_per_node: 8, intra_node: pcie3, inter_node: "
         "ethernet-100g, exceptions: [{node: 0, nic: " +
             nic + "}]}"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  // One NIC for eight GPUs.
  CHECK_THAT(head("10 Gbit/s"), Catch::Contains(", 156.2 MB/s of line rate per GPU; all-reduce"));
  CHECK_THAT(head("50 Gbit/s"), Catch::Contains(", 781.2 MB/s of line rate per GPU, but large "
                                                "messages are assumed to reach 2.6 GB/s on the "
                                                "bus ("));
}

TEST_CASE("a slow rank and the slow NICs of its node are an entry each", "[tools][exceptions]") {
  const Json both = straggler_json(set_exceptions("[{rank: 15, compute: 1.3}, {node: 1, nic: 5 "
                                                  "GB/s}]")),
             network = straggler_json(words_and(set_exceptions("[{rank: 15, compute: 1.3}]"),
                                                {"--set", "cluster.inter_node.bandwidth=5 GB/s"}));
  for (std::size_t r = 0; r < both["results"].size(); ++r)
    CHECK(both["results"][r]["step_ms"] == network["results"][r]["step_ms"]);
  const std::string text = straggler_text(
      words_and(set_exceptions("[{node: 1, nic: 5 GB/s}, {rank: 15, compute: 1.3}]"), {"--why"}));
  CHECK_THAT(text, Catch::Contains("the NICs of node 1 carry 5 GB/s, which sets the pace of the "
                                   "network; rank 15 computes 1.3 times as long"));
  CHECK_THAT(text, Catch::Contains("slowest rank: rank 15 computes 1.3 times as long\n"));
}

TEST_CASE("a NIC without effect is in the note alone, and one with effect is a matter of transfer",
          "[tools][exceptions]") {
  const Words idle = set_exceptions("[{node: 1, nic: 900 GB/s}]"),
              slow = set_exceptions("[{node: 1, nic: 10 GB/s}]"),
              both =
                  set_exceptions("[{node: 0, compute: 2, nic: 900 GB/s}, {node: 1, nic: 5 GB/s}]");
  const std::string says = "the NICs of node 1 carry 10 GB/s, which sets the pace of the network";
  CHECK_THAT(straggler_notes(idle), Catch::Contains("nic of node 1 has no effect"));
  CHECK_THAT(straggler_text(words_and(idle, {"--why"})), !Catch::Contains("the NICs of node 1"));
  const std::string why = straggler_text(words_and(slow, {"--why"}));
  CHECK_THAT(why, Catch::Contains("; " + says));  // the head
  CHECK_THAT(why, Catch::Contains("\ntransfer: " + says + "\n"));
  CHECK_THAT(why, !Catch::Contains("slowest rank: the NICs"));
  CHECK_THAT(straggler_text(words_and(both, {"--why"})),
             Catch::Contains("slowest rank: the ranks of node 0 compute 2 times as long\n") &&
                 Catch::Contains("\ntransfer: the NICs of node 1 carry 5 GB/s, which sets the pace "
                                 "of the network\n") &&
                 !Catch::Contains("the NICs of node 0"));
}

TEST_CASE("whichever rank is slow, the step is as long", "[tools][exceptions]") {
  const Json fifth = straggler_json({}),
             first = straggler_json(set_exceptions("[{rank: 0, compute: 1.3}]"));
  for (std::size_t r = 0; r < fifth["results"].size(); ++r)
    CHECK(fifth["results"][r]["step_ms"] == first["results"][r]["step_ms"]);
}

TEST_CASE("tune and run know the same step of ranks that differ", "[tools][exceptions]") {
  for (const char* list : {"[{rank: 5, compute: 1.3}]", "[{rank: 5, pause: 10 ms, at: 70 %}]"}) {
    CAPTURE(list);
    const Json tuned = straggler_json(set_exceptions(list), "tune");
    const Json run =
        straggler_json(words_and(set_exceptions(list), {"--set", "compare=[bucketed]"}));
    CHECK(tuned["default_step_ms"] == run["results"][0]["step_ms"]);
  }
}

TEST_CASE("exceptions of another cluster are left out, with a note", "[tools][exceptions]") {
  CHECK_THAT(straggler_notes({"--cluster", "dgx-a100"}),
             Catch::Contains("cluster.exceptions of the scenario's own cluster is left out"));
}

TEST_CASE("a file's exceptions that are of more ranks than a flag leaves say how to go without",
          "[tools][exceptions]") {
  const Scratch scratch;
  scratch.write("slow.yaml",
                "system: dgx-h100\nnodes: 2\nexceptions: [{node: 1, compute: 1.5x}]\n");
  const auto answer = [&](const std::string& cluster, const Words& flags) {
    const std::string file =
        scratch
            .write("s.yaml", "workload: {model: resnet18, batch: 8}\ncluster: " + cluster +
                                 "\ncompare: [bucketed]\n")
            .string();
    return ddpsim(words_and({"run", file}, flags));
  };
  const std::string advice = "; --set cluster.exceptions=[] leaves the exceptions out\n";
  for (const char* cluster :
       {"slow.yaml", "{system: dgx-h100, nodes: 2, exceptions: [{node: 1, compute: 1.5x}]}"}) {
    CAPTURE(cluster);
    for (const Words& flags :
         std::vector<Words>{{"--nodes", "1"}, {"--ranks", "8"}, {"--set", "cluster.nodes=1"}}) {
      const Outcome outcome = answer(cluster, flags);
      CHECK(outcome.code == 2);
      CHECK_THAT(outcome.err,
                 Catch::Contains("expected a node from 0 to 0, as there is 1, got 1" + advice));
    }
    CHECK(answer(cluster, {"--nodes", "1", "--set", "cluster.exceptions=[]"}).code == 0);
    // Who writes both is told what does not go together.
    CHECK_THAT(
        answer(cluster, {"--nodes", "1", "--set", "cluster.exceptions=[{rank: 9, compute: 2x}]"})
            .err,
        Catch::Contains("got 9\n"));
  }
  CHECK_THAT(
      answer("{system: dgx-h100, nodes: 2, exceptions: [{rank: 9, compute: 2x}]}", {"--nodes", "1"})
          .err,
      Catch::Contains("expected a rank from 0 to 7, as there are 8, got 9" + advice));
  CHECK_THAT(answer("{system: dgx-h100, nodes: 2, exceptions: [{node: 0, nic: 10 GB/s}]}",
                    {"--nodes", "1"})
                 .err,
             Catch::Contains("or write nodes and inter_node" + advice));
  CHECK_THAT(
      answer("{system: dgx-h100, nodes: 2, exceptions: [{node: 0, compute: 2x}]}", {"--nodes", "1"})
          .err,
      Catch::Contains("and leave these out" + advice));
}

TEST_CASE("where the one node that steps are held against has a slow rank, a note says so",
          "[tools][exceptions]") {
  const Scratch scratch;
  const std::string file = scratch
                               .write("s.yaml",
                                      "workload: {model: resnet18, batch: 8}\n"
                                      "cluster: {system: dgx-h100, nodes: 2}\n"
                                      "compare: [bucketed]\n")
                               .string();
  const auto notes = [&](const std::string& list, const Words& flags = {}) {
    const Outcome outcome =
        ddpsim(words_and(words_and({"run", file, "--json", "-"}, set_exceptions(list)), flags));
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.json()["notes"].dump();
  };
  const auto note = [](const std::string& which) {
    return "of 1 node (scaling_efficiency_node): the node that steps are held against has " +
           which + " (cluster.exceptions) in it, so that this share does not show what ";
  };
  CHECK_THAT(notes("[{rank: 5, compute: 1.3}]"), Catch::Contains(note("rank 5")));
  CHECK_THAT(notes("[{rank: 5, compute: 1.3}, {rank: 6, pause: 1 ms}, {rank: 9, compute: 2}]"),
             Catch::Contains(note("rank 5 and 1 other")));
  CHECK_THAT(notes("[{node: 0, compute: 1.3}]"), Catch::Contains(note("node 0")));
  const std::string any = "scaling_efficiency_node";
  CHECK_THAT(notes("[{rank: 9, compute: 1.3}]"), !Catch::Contains(any));
  // NICs do not count where nothing leaves the node.
  CHECK_THAT(notes("[{node: 0, nic: 10 GB/s}]"), !Catch::Contains(any));
  CHECK_THAT(notes("[{rank: 5, compute: 1.3}]", {"--nodes", "1"}), !Catch::Contains(any));
}

/// Two real ranks, or what `flags` say, some of which are exceptions.
Outcome validated(const Scratch& scratch, const std::string& exceptions, const Words& flags) {
  const std::string file = scratch.write("s.yaml", small_mlp).string();
  return ddpsim(
      words_and(words_and({"validate", file, "--backend", "threads", "--steps", "3", "--warm-up",
                           "1", "--repeats", "2", "--set", "cluster.exceptions=" + exceptions},
                          quickly_calibrated(file)),
                flags));
}

TEST_CASE("real ranks are as slow as a scenario says", "[tools][exceptions][validate][waits]") {
  const Scratch scratch;
  const std::string json = scratch.path("a.json").string(),
                    trace = scratch.path("trace.json").string(),
                    page = scratch.path("page.html").string();
  // Longer than anything else that keeps a rank waiting.
  const Outcome outcome =
      validated(scratch, "[{rank: 1, pause: 400 ms, at: 10 %}]",
                {"--ranks", "2", "--json", json, "--trace", trace, "--report", page});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("rank 1 pauses for 400 ms at 10 % of its computation"));
  CHECK_THAT(outcome.out, Catch::Contains("whom a rank that is no exception waits for"));
  const Json found = Json::parse(content_of(json));
  CHECK(found["cluster"]["exceptions"][0]["rank"] == 1);
  std::size_t reduced = 0;
  for (const Json& each : found["results"]) {
    CAPTURE(each.dump());
    for (const char* side : {"predicted", "measured"}) {
      CHECK(each[side]["step_ms"] > 400.0);
      if (each["strategy"] == "none") continue;
      CHECK(each[side]["waited_for"] == "rank 1");
      ++reduced;
    }
    if (each["strategy"] != "none") {
      // The rank's own work, which takes less than a millisecond, comes before the wait or in it.
      CHECK(each["predicted"]["waited_ms"].get<double>() == Approx(400.0).epsilon(0.05));
      // Other programs may keep the waiting rank from its work meanwhile, which shortens its wait;
      // without the pause it waits for less than a millisecond.
      CHECK(each["measured"]["waited_ms"] > 100.0);
    }
    CHECK(each["gradients"]["identical"] == true);
    // The figures are of the other rank, whose passes have no pause.
    CHECK(each["predicted"]["forward_ms"] < 400.0);
    CHECK(each["measured"]["forward_ms"] < 400.0);
  }
  CHECK(reduced > 4);
  const Json traced = Json::parse(content_of(trace));
  Words names;
  for (const Json& rank : traced["ddpsim"]["ranks"]) names.push_back(rank["name"]);
  CHECK(std::ranges::count_if(
            names, [](const std::string& name) { return name.ends_with("measured: rank 1"); }) > 0);
  CHECK_THAT(content_of(page), Catch::Contains("rank 1"));
}

TEST_CASE("whichever real rank is slow, figures are those of the others",
          "[tools][exceptions][validate]") {
  const Scratch scratch;
  const Outcome outcome = validated(scratch, "[{rank: 0, pause: 400 ms}]",
                                    {"--ranks", "3", "--set", "compare=[flat]", "--json", "-"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json flat = outcome.json()["results"][1];
  for (const char* side : {"predicted", "measured"}) {
    CHECK(flat[side]["waited_for"] == "rank 0");
    CHECK(flat[side]["step_ms"] > 400.0);
    CHECK(flat[side]["forward_ms"] < 400.0);
  }
  CHECK(!validated(scratch, "[]", {"--ranks", "2", "--set", "compare=[flat]", "--json", "-"})
             .json()["results"][1]["measured"]
             .contains("waited_for"));
}

TEST_CASE("what real ranks cannot be made is refused", "[tools][exceptions]") {
  const Scratch scratch;
  for (const auto& [list, ranks, said] :
       {std::tuple{"[{rank: 1, compute: 0.5}]", "2",
                   "rank 1: real ranks can be made slower and not quicker: expected a compute of "
                   "at least 1, got 0.5"},
        std::tuple{"[{rank: 1, compute: 2}]", "1",
                   "rank 1: expected a rank from 0 to 0, for 1 rank runs"}}) {
    CAPTURE(list);
    const Outcome refused = validated(scratch, list, {"--ranks", ranks});
    CHECK(refused.code == 2);
    REQUIRE(lines_of(refused.err).size() == 1);
    CHECK_THAT(refused.err, Catch::Contains(std::string("cluster.exceptions: ") + said));
  }
  const std::string file = scratch.write("two.yaml", std::string(small_mlp)).string();
  const Outcome nic = ddpsim({"validate", file, "--backend", "threads", "--ranks", "4", "--set",
                              "cluster={device: generic-cpu, nodes: 2, ranks_per_node: 2, "
                              "inter_node: ethernet-100g, intra_node: {kind: plain, latency: 1 us, "
                              "bandwidth: 5 GB/s}, exceptions: [{node: 1, nic: 1 GB/s}]}"});
  CHECK(nic.code == 2);
  CHECK_THAT(nic.err, Catch::Contains("node 1: real NICs keep their rate: take nic out"));
}

TEST_CASE("another cluster takes the exceptions and the price with it, of any kind of workload",
          "[tools][exceptions]") {
  const Scratch scratch;
  for (const std::string& workload :
       {std::string("{model: gpt2, batch: 2, sequence: 256}"),
        "{model: " + std::string(DDPSIM_TEST_DATA) + "/descriptions/gpt2.yaml}"}) {
    CAPTURE(workload);
    const auto file =
        scratch.write("s.yaml", "workload: " + workload +
                                    "\ncluster: {system: dgx-h100, nodes: 2, price: 3 "
                                    "USD/h, exceptions: [{node: 1, nic: 10 GB/s}]}\n");
    const Outcome outcome = ddpsim({"run", file.string(), "--cluster", "dgx-b200"});
    REQUIRE(outcome.code == 0);
    for (const std::string key : {"exceptions", "price"})
      CHECK_THAT(outcome.err, Catch::Contains("cluster." + key +
                                              " of the scenario's own cluster is "
                                              "left out"));
  }
}

TEST_CASE("a trace shows the exceptions by their ranks", "[tools][exceptions]") {
  const Scratch scratch;
  const auto ranks = [&](const Words& flags) {
    const std::string file = scratch.path("trace.json").string();
    const Outcome outcome = ddpsim(words_and(
        {"run", straggler, "--set", "compare=[flat]", "--trace", file, "--quiet"}, flags));
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    Words names;
    const Json trace = Json::parse(content_of(file));
    for (const Json& rank : trace["ddpsim"]["ranks"]) names.push_back(rank["name"]);
    return names;
  };
  CHECK(ranks({}) == Words{"flat: rank 0 (and all others)", "flat: rank 5",
                           "flat: rank 15 (the slowest of the others)"});
  CHECK(ranks(set_exceptions("[{rank: 0, compute: 2}, {node: 1, pause: 1 ms}]")) ==
        Words{"flat: rank 0", "flat: rank 1 (and all others)",
              "flat: rank 7 (the slowest of the others)", "flat: rank 8 (and all of node 1)"});
  CHECK(ranks({"--all-ranks"}).size() == 16);
}

TEST_CASE("a scaling curve has the exceptions among the ranks it counts", "[tools][exceptions]") {
  const auto steps = [&](const Words& flags) {
    std::vector<double> found;
    const Json run =
        straggler_json(words_and(flags, {"--scaling", "16", "--set", "compare=[bucketed]"}));
    for (const Json& point : run["results"][0]["scaling"]) found.push_back(point["step_ms"]);
    return found;
  };
  const std::vector<double> slow = steps({}), alike = steps(set_exceptions("[]"));
  // 1, 2, 4, 8 and 16 ranks: the one that is slow is the sixth.
  REQUIRE(slow.size() == 5);
  REQUIRE(alike.size() == 5);
  for (std::size_t i = 0; i < 3; ++i) CHECK(slow[i] == alike[i]);
  for (std::size_t i = 3; i < 5; ++i) CHECK(slow[i] > alike[i]);
  CHECK_THAT(straggler_notes({"--scaling", "16"}),
             Catch::Contains("--scaling: rank 5 (cluster.exceptions) is in the curve from 8 ranks "
                             "on, and the points before are without it"));
  CHECK_THAT(straggler_notes({"--scaling", "4"}),
             Catch::Contains("rank 5 (cluster.exceptions) is in no point of the curve"));
  CHECK_THAT(
      straggler_notes(words_and(set_exceptions("[{rank: 0, compute: 2}]"), {"--scaling", "16"})),
      !Catch::Contains("--scaling"));
  CHECK_THAT(straggler_notes({}), !Catch::Contains("--scaling"));
}

TEST_CASE("a page has the notes of its run, and those on the curve that it draws",
          "[tools][exceptions]") {
  const Scratch scratch;
  const std::string file = scratch.path("report.html").string();
  for (const char* quiet : {"--quiet", "--wide"}) {
    const Outcome outcome =
        ddpsim({"run", straggler, "--report", file, quiet, "--set",
                "cluster.exceptions=[{rank: 5, compute: 1.3x}, {node: 0, nic: 900 GB/s}]"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const std::string page = content_of(file);
    CHECK_THAT(page, Catch::Contains("nic of node 0 has no effect"));
    CHECK_THAT(page, Catch::Contains("rank 5 (cluster.exceptions) is in the curve from 8 ranks"));
  }
}

}  // namespace
TEST_CASE("a rank pauses before a kernel of its own, and one without inputs not at all",
          "[tools][exceptions]") {
  Scenario scenario =
      read_scenario(straggler, {{"cluster.exceptions", "[{rank: 1, pause: 20 ms, at: 80 %}]"}});
  scenario.cluster.device.synchronous = true;
  const auto pace_of = [&](int joined) {
    scenario.training.join = Join{};
    scenario.training.join->joined_ranks = joined;
    const std::vector<program::Job> jobs = jobs_of(scenario, {scenario.training});
    const RunOptions pace = paces_of(scenario, jobs, 1).front();
    const program::Program& program = jobs.front().programs[jobs.front().program_of.at(1)];
    if (pace.pause > Duration::zero())
      CHECK(is_training(jobs.front().works[program.tasks[pace.pause_before].work].operation));
    return pace.pause;
  };
  CHECK(pace_of(0) == std::chrono::milliseconds{20});
  CHECK(pace_of(scenario.cluster.ranks() - 1) == Duration::zero());
}

}  // namespace ddpsim
