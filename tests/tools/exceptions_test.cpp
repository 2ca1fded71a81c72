// Ranks that differ (cluster.exceptions), through the program.

#include <catch2/catch.hpp>

#include "tests/tools/jobs.hpp"

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

TEST_CASE("real ranks cannot be made to differ, and validate says what to write",
          "[tools][exceptions]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", small_mlp).string();
  const Outcome refused = ddpsim({"validate", file, "--backend", "threads", "--ranks", "2", "--set",
                                  "cluster.exceptions=[{rank: 1, compute: 2}]"});
  CHECK(refused.code == 2);
  CHECK(lines_of(refused.err).size() == 1);
  CHECK_THAT(refused.err, Catch::Contains("cluster.exceptions: real ranks cannot be made to "
                                          "differ: write --set cluster.exceptions=[]"));
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
}

}  // namespace
}  // namespace ddpsim
