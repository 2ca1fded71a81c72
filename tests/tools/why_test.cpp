#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

Json why_run(const std::string& file, const Words& flags = {}) {
  Words arguments{"run", file, "--why", "--json", "-"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

TEST_CASE("run --why adds an object to each result, and nothing else changes", "[tools][why]") {
  const std::string file = shipped("examples/first.yaml");
  Json with = why_run(file);
  const Json without = ddpsim({"run", file, "--json", "-"}).json();
  for (Json& result : with["results"]) {
    CHECK(keys_of(result["why"]) == Words{"one_rank_ms", "lost_slowest_rank_ms",
                                          "lost_interference_ms", "lost_transfer_ms",
                                          "lost_latency_ms", "lost_copies_ms", "lost_launches_ms",
                                          "lost_input_ms", "lost_rest_ms", "exposed_in_buckets_ms",
                                          "exposed_elsewhere_ms", "buckets", "what_if"});
    result.erase("why");
  }
  CHECK(with == without);
}

TEST_CASE("copies through the host are in communication, the reasons and the chart",
          "[tools][why]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: gpt2, batch: 4, sequence: 512}\n"
                 "cluster: {device: rtx3090, nodes: 2, ranks: 2, inter_node: ethernet-10g, "
                 "through_host: 12 GB/s, collectives: gloo}\n")
          .string();
  for (const Json& result : why_run(file)["results"]) {
    CAPTURE(result["strategy"]);
    const double exposed = result["exposed_ms"], communication = result["communication_ms"];
    CHECK(result["bound"] == "bandwidth");
    // Nothing hides what naive and flat send.
    if (result["strategy"] == "naive" || result["strategy"] == "flat")
      CHECK(communication == Approx(exposed).epsilon(0.01));
    CHECK(communication >= 0.98 * exposed);
    CHECK(result["why"]["exposed_elsewhere_ms"].get<double>() < 0.06 * exposed);
    CHECK(result["why"]["buckets"][0]["exposed_by_ms"]["host_copies"].get<double>() > 0);
  }
  const std::string text = ddpsim({"run", file, "--why"}).out;
  CHECK_THAT(text, Catch::Contains("\n                   host copies "));
  CHECK_THAT(text, Catch::Contains("host copies   it waited for its copy to the host"));
  CHECK_THAT(ddpsim({"run", first_example, "--why"}).out, !Catch::Contains("host copies"));
}

TEST_CASE("every exposed bucket has a reason, and their sum is part of the exposed time",
          "[tools][why]") {
  for (const char* name : {"examples/first.yaml", "examples/mlp-2ranks.yaml"}) {
    const Json answer = why_run(shipped(name));
    for (const Json& result : answer["results"]) {
      CAPTURE(name, result["strategy"]);
      double sum = 0;
      std::size_t listed = 0, exposed_buckets = 0;
      for (const Json& bucket : result["buckets"])
        exposed_buckets += bucket["exposed_ms"].get<double>() > 0;
      for (const Json& bucket : result["why"]["buckets"]) {
        ++listed;
        double shares = 0;
        for (const auto& item : bucket["exposed_by_ms"].items())
          shares += item.value().get<double>();
        CHECK(shares == Approx(bucket["exposed_ms"].get<double>()));
        sum += shares;
        const Json& same = result["buckets"][bucket["index"].get<std::size_t>()];
        for (const char* key : {"ready_ms", "start_ms", "end_ms", "exposed_ms"})
          CHECK(bucket[key] == same[key]);
        // It begins with the latest of these.
        for (const char* key : {"ready_ms", "called_ms", "launched_ms", "previous_end_ms"})
          if (!bucket[key].is_null())
            CHECK(bucket[key].get<double>() <= bucket["start_ms"].get<double>() + 1e-9);
      }
      CHECK(listed == exposed_buckets);
      CHECK(result["why"]["exposed_in_buckets_ms"].get<double>() == Approx(sum).margin(1e-9));
      CHECK(result["why"]["exposed_elsewhere_ms"].get<double>() + sum ==
            Approx(result["exposed_ms"].get<double>()).margin(1e-9));
    }
  }
}

/// All that a step loses.
double lost(const Json& why) {
  double sum = 0;
  for (const auto& item : why.items())
    if (item.key().rfind("lost_", 0) == 0) sum += item.value().get<double>();
  return sum;
}

TEST_CASE("what a step loses sums to what it takes beyond one rank by itself", "[tools][why]") {
  for (const char* name : {"examples/first.yaml", "seeds/cs336-xl-2xh100.yaml",
                           "examples/mlp-2ranks.yaml", "examples/own-profile.yaml"}) {
    const Words all{"--set", "compare=[none, naive, flat, overlap, bucketed]"};
    const Json answer = why_run(shipped(name), all);
    for (const Json& result : answer["results"]) {
      CAPTURE(name, result["strategy"]);
      const Json& why = result["why"];
      CHECK(why["one_rank_ms"].get<double>() + lost(why) ==
            Approx(result["step_ms"].get<double>()).margin(1e-8));
      CHECK(why["one_rank_ms"].get<double>() / result["step_ms"].get<double>() ==
            Approx(result["scaling_efficiency"].get<double>()));
      if (result["strategy"] == "none")
        CHECK(why["lost_slowest_rank_ms"].get<double>() == Approx(lost(why)).margin(1e-8));
    }
  }
}

TEST_CASE("of two causes either of which would be hidden none is told as nothing", "[tools][why]") {
  // The gradient is there at 7 ms and kernels run until 11: 1 ms is exposed of an all-reduce of
  // 2 ms latency and 3 ms transfer. To take out either would save that.
  const Scratch scratch;
  scratch.write("p.yaml",
                "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 10 ms\nparameters:\n"
                "  - {name: w, shape: [750000], dtype: fp32, ready: 6 ms}\n");
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: p.yaml}\ncompare: [overlap]\n"
                 "cluster: {device: a100-80, ranks_per_node: 2, skew: 0 %, interference: {}, "
                 "intra_node: {kind: pcie, latency: 1 ms, bandwidth: 1 GB/s}, "
                 "collectives: alpha-beta}\n")
          .string();
  const Json result = why_run(file)["results"][0];
  const Json& why = result["why"];
  CHECK(why["lost_transfer_ms"].get<double>() == Approx(0.5));
  CHECK(why["lost_latency_ms"].get<double>() == Approx(0.5));
  CHECK(why["what_if"][1]["change"] == "no_latency");
  CHECK(why["what_if"][1]["step_ms"].get<double>() == Approx(result["step_ms"].get<double>() - 1));
  CHECK_THAT(ddpsim({"run", file, "--why", "--wide"}).out,
             Catch::Contains("\nwhat either of two causes would take away counts half for each, so "
                             "that a change below may save more or less than the part here\n"));
}

TEST_CASE("a handover is a part of what launches cost, wherever they are told", "[tools][why]") {
  // Gradients at 7 and 11 ms, handed over for 2 ms each, from 9 and 13 on; an all-reduce takes 3.2.
  // The first ends at 12.2, of which 1.2 are exposed, by its launch; 0.8 of the second one's wait
  // is its launch's, behind the first one's end. Of two handovers 2 ms are seen in both tables.
  const Scratch scratch;
  scratch.write("p.yaml",
                "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 10 ms\nparameters:\n"
                "  - {name: a, shape: [750000], dtype: fp32, ready: 6 ms}\n"
                "  - {name: b, shape: [750000], dtype: fp32, ready: 10 ms}\n");
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: p.yaml}\ncompare: [overlap]\n"
                 "cluster: {device: generic-cpu, nodes: 2, skew: 0 %, interference: {}, launch: "
                 "{handover: 2 ms}, inter_node: {kind: ethernet, latency: 100 us, bandwidth: 1 "
                 "GB/s}, collectives: alpha-beta}\n")
          .string();
  const Json with = why_run(file)["results"][0];
  const Json without = why_run(file, {"--set", "cluster.launch.handover=0 us"})["results"][0];
  const auto launches = [](const Json& result) {
    return result["why"]["lost_launches_ms"].get<double>();
  };
  CHECK(launches(with) - launches(without) == Approx(2).epsilon(1e-3));
  const Json& free_launch = with["why"]["what_if"][2];
  CHECK(free_launch["change"] == "free_launch");
  CHECK(with["step_ms"].get<double>() - free_launch["step_ms"].get<double>() ==
        Approx(launches(with)));
  double told = 0;
  for (const Json& bucket : with["why"]["buckets"])
    told += bucket["exposed_by_ms"]["launch"].get<double>();
  CHECK(told == Approx(2).epsilon(0.05));
}

TEST_CASE("the wait for the slowest rank is told as assumed, given, or nothing", "[tools][why]") {
  const std::string file = shipped("examples/first.yaml");
  const auto text = [&](const Words& flags) {
    Words words{"run", file, "--why", "--wide", "--set", "compare=[flat]"};
    words.insert(words.end(), flags.begin(), flags.end());
    return ddpsim(words).out;
  };
  CHECK_THAT(text({}), Catch::Contains("the slowest of 8 ranks is assumed to compute 0.7 % longer "
                                       "(cluster.skew is not given)"));
  CHECK_THAT(text({"--set", "cluster.skew=3 %"}),
             Catch::Contains("slowest rank: the slowest of 8 ranks is expected to compute 4.3 % "
                             "longer (cluster.skew)"));
  const Json given = why_run(file, {"--set", "cluster.skew=3 %", "--set", "compare=[flat]"});
  CHECK(given["cluster"]["slowest_rank_from"] == "scenario");
  CHECK(given["results"][0]["why"]["lost_slowest_rank_ms"].get<double>() > 1);
  const Json even = why_run(file, {"--set", "cluster.skew=0 %", "--set", "compare=[flat]"});
  CHECK(even["cluster"]["slowest_rank_from"].is_null());
  CHECK(even["results"][0]["why"]["lost_slowest_rank_ms"] == 0);
  CHECK_THAT(text({"--set", "cluster.skew=0 %"}), !Catch::Contains("the slowest of 8"));
  // Flat hides nothing, however late the slowest rank: none of its all-reduce is that rank's.
  for (const Json& run : {given, even})
    CHECK(run["results"][0]["why"]["buckets"][0]["exposed_by_ms"]["slowest_rank"] == 0);
}

TEST_CASE("CSV has what a step loses where it is asked why", "[tools][why]") {
  const std::string file = shipped("examples/first.yaml");
  const std::string with = ddpsim({"run", file, "--why", "--csv", "-"}).out;
  CHECK_THAT(lines_of(with).front(), Catch::Contains(",one_rank_ms,lost_slowest_rank_ms,"));
  CHECK_THAT(lines_of(ddpsim({"run", file, "--csv", "-"}).out).front(), !Catch::Contains("lost_"));
}

TEST_CASE("a step that a faster link makes longer is explained", "[tools][why]") {
  const auto text = [](const char* strategy) {
    return ddpsim({"run", shipped("examples/first.yaml"), "--why", "--set",
                   std::string("compare=[") + strategy + "]"})
        .out;
  };
  const std::string note = "a faster link takes more of the memory's bandwidth from kernels";
  CHECK_THAT(text("overlap"), Catch::Contains(note));
  CHECK_THAT(text("flat"), !Catch::Contains(note));
}

TEST_CASE("all-reduces that the host's memory bounds are said to be", "[tools][why]") {
  const auto why = [](const std::string& link) {
    return ddpsim({"run", shipped("examples/first.yaml"), "--why", "--set", "compare=[flat]",
                   "--set",
                   "cluster={device: rtx3090, ranks_per_node: 2, intra_node: " + link + "}"})
        .out;
  };
  const std::string note = "link x 2: the host's memory bounds these all-reduces, not the link";
  CHECK_THAT(why("pcie4"), Catch::Contains(", by host memory") && Catch::Contains(note));
  // A share of the link grows with the link.
  CHECK_THAT(why("{base: pcie4, carries: 20 %}"),
             Catch::Contains(", by port") && !Catch::Contains(note));
  CHECK_THAT(ddpsim({"explain", "bound"}).out, Catch::Contains("host memory"));
}

TEST_CASE("what is made better never makes these steps longer", "[tools][why]") {
  for (const char* name : {"examples/first.yaml", "seeds/cs336-xl-2xh100.yaml",
                           "examples/mlp-2ranks.yaml", "examples/own-profile.yaml"}) {
    const Json whole =
        why_run(shipped(name), {"--set", "compare=[none, naive, flat, overlap, bucketed]"});
    for (const Json& result : whole.at("results")) {
      CAPTURE(name, result["strategy"]);
      const double step = result["step_ms"];
      Words changes;
      for (const Json& each : result["why"]["what_if"]) {
        changes.push_back(each["change"]);
        CAPTURE(changes.back());
        // A faster link takes more of the memory from kernels beside it.
        if (changes.back() != "link_twice_as_fast") CHECK(each["step_ms"].get<double>() <= step);
        // Without communication the host and the slowest rank still cost time.
        if (result["strategy"] == "none" && changes.back() != "free_launch" &&
            changes.back() != "even_ranks")
          CHECK(each["step_ms"] == step);
      }
      CHECK(changes == Words{"link_twice_as_fast", "no_latency", "free_launch", "no_interference",
                             "even_ranks"});
      // Nothing hides a flat all-reduce: half of what it moves is saved.
      if (result["strategy"] == "flat")
        CHECK(result["why"]["what_if"][0]["step_ms"].get<double>() < step);
    }
  }
}

TEST_CASE("the table names the largest exposed buckets and what would remove them",
          "[tools][why]") {
  const Outcome outcome = ddpsim({"run", shipped("examples/first.yaml"), "--why"});
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::StartsWith(ddpsim({"run", shipped("examples/first.yaml")}).out));
  // GPT-2 has 148 tensors; naive hides none, and a dozen are shown.
  CHECK_THAT(outcome.out, Catch::Contains("naive: 148 of 148 buckets are exposed"));
  CHECK_THAT(outcome.out, Catch::Contains("\nand 136 more, "));
  CHECK_THAT(outcome.out, Catch::Contains("flat: 1 of 1 buckets are exposed"));
  CHECK_THAT(outcome.out, Catch::Contains("what would remove it:\nstep ms"));
}

/// A scenario of two GPUs whose update a comm hook shares out.
std::string sharing_scenario(const Scratch& scratch, const std::string& cluster) {
  return scratch
      .write("s.yaml",
             "name: two GPUs\n"
             "workload: {model: cs336-small, batch: 4, sequence: 256, dtype: fp32, "
             "optimizer: adamw-loop}\ncluster: {" +
                 cluster + "}\ncompare: [bucketed]\ntraining: {comm_hook: zero_step}\n")
      .string();
}
const std::string two_t4 = "device: t4, ranks_per_node: 2, intra_node: pcie3";
const std::string two_a100 = "device: a100-40, ranks_per_node: 2, intra_node: nvlink3";

TEST_CASE("under ZeRO's hooks a row is of one collective, and its causes are those of its wait",
          "[tools][why]") {
  const Scratch scratch;
  for (const std::string& cluster : {two_t4, two_a100})
    for (const std::string hook : {"zero_step", "zero_step_interleaved"}) {
      CAPTURE(cluster, hook);
      const Json answer =
          why_run(sharing_scenario(scratch, cluster), {"--set", "training.comm_hook=" + hook});
      const Json& result = answer["results"][0];
      for (const Json& bucket : result["why"]["buckets"]) {
        CAPTURE(bucket.dump());
        const double start = bucket["start_ms"], end = bucket["end_ms"];
        double arrived = 0, shares = 0;
        for (const char* key : {"ready_ms", "called_ms", "launched_ms", "previous_end_ms"})
          if (!bucket[key].is_null()) arrived = std::max(arrived, bucket[key].get<double>());
        CHECK(arrived <= start + 1e-9);
        for (const auto& item : bucket["exposed_by_ms"].items())
          shares += item.value().get<double>();
        CHECK(shares == Approx(bucket["exposed_ms"].get<double>()));
        CHECK(bucket["exposed_by_ms"].contains("hook"));
        // A broadcast that began later than its gradients were ready by more than it takes would
        // have been hidden by then: nothing of it is the gradients'.
        const Json& times = result["buckets"][bucket["index"].get<std::size_t>()];
        const bool broadcast = start > times["start_ms"].get<double>() + 1e-9;
        if (broadcast && start - bucket["ready_ms"].get<double>() > end - start &&
            bucket["exposed_ms"].get<double>() <= end - start)
          CHECK(bucket["exposed_by_ms"]["gradients"] == Approx(0).margin(1e-9));
      }
    }
  // Over NVLink broadcasts wait for updates rather than for one another.
  const Json quick = why_run(sharing_scenario(scratch, two_a100))["results"][0]["why"]["buckets"];
  CHECK(std::any_of(quick.begin(), quick.end(),
                    [](const Json& bucket) { return bucket["reason"] == "hook"; }));
}

TEST_CASE("what a hook's later collectives wait for is said where there are some", "[tools][why]") {
  const Scratch scratch;
  const std::string file = sharing_scenario(scratch, two_t4);
  const std::string with = ddpsim({"run", file, "--why"}).out;
  CHECK_THAT(with, Catch::Contains("\n  hook          a later collective of a comm hook waited") &&
                       Catch::Contains("called to end and how are of the one that is exposed"));
  const std::string schedule = ddpsim({"schedule", file}).out;
  CHECK_THAT(schedule, Catch::Contains("start and how are of the first, end is of the last"));
  const Words plain{"--set", "training.comm_hook=none"};
  CHECK_THAT(ddpsim({"run", file, "--why", plain[0], plain[1]}).out,
             !Catch::Contains("  hook          "));
  CHECK_THAT(ddpsim({"schedule", file, plain[0], plain[1]}).out,
             !Catch::Contains("are of the first"));
}

/// The number behind these words, in what was printed.
double number_behind(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  CAPTURE(words, text);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + words.size()));
}

TEST_CASE("what a shared update saves is told beside what communication costs", "[tools][why]") {
  const Scratch scratch;
  // Without interference the update takes what it would without broadcasts beside it.
  const std::string file = sharing_scenario(scratch, two_a100 + ", interference: {}");
  const Outcome outcome = ddpsim({"run", file, "--why", "--set", "compare=[none, naive, bucketed]",
                                  "--report", scratch.path("z.html").string()});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const double saved = number_behind(outcome.err, "share of the parameters, which takes ");
  const double costs = number_behind(outcome.err, "against communication, which by itself costs ");
  const Json answer =
      ddpsim({"run", file, "--set", "compare=[none, bucketed]", "--json", "-"}).json();
  const Json &none = answer["results"][0], &bucketed = answer["results"][1];
  // Of two ranks each has about half of what is to update.
  CHECK(saved / none["optimizer_ms"].get<double>() == Approx(0.5).epsilon(0.2));
  CHECK(costs - saved == Approx(bucketed["exposed_ms"].get<double>()).margin(2e-3));
  CHECK_THAT(answer["notes"].dump(), Catch::Contains("each rank updates only its share"));
  // Strategies without comm hooks update everything.
  CHECK(outcome.err.find("each rank updates") == outcome.err.rfind("each rank updates"));
  CHECK_THAT(outcome.out,
             Catch::Contains("ms shorter than without communication, whose update takes ") &&
                 Catch::Contains("under ZeRO's hooks its share. But for that, a\n"));
  CHECK_THAT(content_of(scratch.path("z.html")),
             Catch::Contains("But each rank updates only its share of the parameters"));
  // Nobody updates in the first iterations.
  CHECK_THAT(ddpsim({"run", file, "--set", "training.iteration=1"}).err,
             Catch::Contains("no rank updates parameters yet (training.iteration)"));
  CHECK_THAT(ddpsim({"run", file, "--set", "training.comm_hook=none"}).err,
             !Catch::Contains("share of the parameters"));
}

TEST_CASE("where nothing is reduced there is nothing to explain", "[tools][why]") {
  const Outcome outcome =
      ddpsim({"run", shipped("examples/first.yaml"), "--why", "--set", "compare=[none]"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("none: nothing is reduced"));
  const Json alone = why_run(shipped("examples/first.yaml"),
                             {"--set", "cluster.ranks_per_node=1", "--set", "compare=[flat]"});
  CHECK(alone["results"][0]["why"]["exposed_elsewhere_ms"].is_number());
}

}  // namespace
}  // namespace ddpsim
