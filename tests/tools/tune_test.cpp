#include <algorithm>
#include <regex>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

const std::string workstations = shipped("examples/two-workstations.yaml");

double step_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> run{"run", "--json", "-", "--set", "compare=[bucketed]"};
  run.insert(run.end(), arguments.begin(), arguments.end());
  const Outcome outcome = ddpsim(run);
  REQUIRE(outcome.code == 0);
  const Json json = outcome.json();
  for (const Json& result : json["results"])
    if (result["strategy"] == "bucketed") return result["step_ms"];
  FAIL("no bucketed result");
  return 0;
}

Json tuned(const std::string& file, const std::vector<std::string>& flags = {}) {
  std::vector<std::string> tune{"tune", file, "--json", "-"};
  tune.insert(tune.end(), flags.begin(), flags.end());
  const Outcome outcome = ddpsim(tune);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

/// 292 gradients over a network that hides few of them.
const std::string gpt_on_l40s =
    "name: GPT 350M on L40S\n"
    "workload:\n"
    "  model: {family: gpt2, layers: 24, d_model: 1024, d_ff: 4096, heads: 16, vocabulary: 50257,\n"
    "          positions: 1024}\n"
    "  batch: 8\n"
    "  sequence: 1024\n"
    "  dtype: fp32\n"
    "  compute: bf16\n"
    "  optimizer: adamw-fused\n"
    "cluster: {device: l40s, nodes: 4, ranks_per_node: 8, intra_node: pcie4,\n"
    "          inter_node: ethernet-100g}\n";

std::string printed(std::vector<std::string> words) {
  words.insert(words.begin(), "tune");
  const Outcome outcome = ddpsim(words);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.out;
}

}  // namespace

TEST_CASE("tune warns where the recommended buckets do not fit, as run does", "[tools][tune]") {
  // Of 8.03 billion in bf16, parameters, gradients, buckets and momentum alone take 64.2 GB.
  const std::vector<std::string> too_large{
      "--set", "workload.model=llama3-8b", "--set", "workload.batch=1",
      "--set", "workload.sequence=16",     "--set", "cluster.device=a100-40"};
  const auto notes = [&](const std::string& command, const std::vector<std::string>& more) {
    std::vector<std::string> words{command, workstations};
    words.insert(words.end(), too_large.begin(), too_large.end());
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  const std::string warned = notes("tune", {});
  const std::regex line(
      ": bucketed as recommended does not fit: it takes ([0-9.]+) GiB of a rank, "
      "and a100-40 has");
  std::smatch match;
  REQUIRE(std::regex_search(warned, match, line));
  CHECK(std::stod(match[1]) > 64.2);
  CHECK_THAT(notes("run", {}), Catch::Contains(" does not fit: it takes "));
  CHECK_THAT(notes("tune", {"--quiet"}), !Catch::Contains("does not fit"));
  CHECK_THAT(ddpsim({"tune", workstations}).err, !Catch::Contains("does not fit"));
}

TEST_CASE("tune says what run says of the caps it names", "[tools][tune]") {
  const std::string cluster = shipped("examples/cpu-cluster.yaml");
  const Json json = tuned(cluster);
  CHECK(json["format"] == "ddpsim.tune/1");
  const auto cap = [](const Json& bytes) {
    return "--set=training.bucket_cap=" + std::to_string(bytes.get<std::int64_t>()) + "B";
  };
  CHECK(step_of({cluster, cap(json["best_cap_bytes"])}) ==
        Approx(json["best_cap_step_ms"].get<double>()).epsilon(1e-12));
  CHECK(step_of(
            {cluster, "--set=training.bucket_cap=25MiB", "--set=training.first_bucket_cap=1MiB"}) ==
        Approx(json["default_step_ms"].get<double>()).epsilon(1e-12));
  const Json& pair = json["best_pair"];
  CHECK(step_of({cluster, cap(pair["cap_bytes"]),
                 "--set=training.first_bucket_cap=" +
                     std::to_string(pair["first_cap_bytes"].get<std::int64_t>()) + "B"}) ==
        Approx(pair["step_ms"].get<double>()).epsilon(1e-12));
  CHECK(json["lower_bound_ms"] <= json["best_partition_step_ms"]);
  CHECK(json["best_partition_step_ms"] <= pair["step_ms"]);
  CHECK(pair["step_ms"] <= json["best_cap_step_ms"]);
  CHECK(json["best_cap_step_ms"] < json["default_step_ms"]);
  CHECK(json["evaluated"].get<int>() > static_cast<int>(json["caps"].size()));
}

TEST_CASE("every cap of the table is what run says of it", "[tools][tune]") {
  const Json json = tuned(shipped("examples/cpu-cluster.yaml"));
  const Json& caps = json["caps"];
  REQUIRE(caps.size() > 5);
  for (const std::size_t i : {std::size_t{0}, caps.size() / 2, caps.size() - 1}) {
    const auto cap = std::to_string(caps[i]["cap_bytes"].get<std::int64_t>());
    CHECK(step_of({shipped("examples/cpu-cluster.yaml"), "--set",
                   "training.bucket_cap=" + cap + "B"}) ==
          Approx(caps[i]["step_ms"].get<double>()).epsilon(1e-12));
  }
}

TEST_CASE("the partition pasted into a scenario has the step that was promised", "[tools][tune]") {
  const Scratch scratch;
  const std::string file = scratch.path("buckets.yaml").string();
  const std::string untrained = shipped("examples/first.yaml");
  const Json json = tuned(untrained, {"--buckets", file});
  REQUIRE(content_of(untrained).find("\ntraining:") == std::string::npos);
  const std::string pasted = content_of(untrained) + "\n" + content_of(file);
  const std::string scenario = scratch.write("pasted.yaml", pasted).string();
  CHECK(step_of({scenario}) == Approx(json["best_partition_step_ms"].get<double>()).epsilon(1e-12));
}

TEST_CASE("what gains more than noise pays, whatever has fewer buckets and gains less",
          "[tools][tune]") {
  // 81 MiB saves 1.005 %, and 100 MiB, with fewer buckets, 0.97 %.
  const Scratch scratch;
  std::string text = gpt_on_l40s;
  text.replace(text.find("cluster:"), std::string::npos, "cluster: {system: dgx-h100, nodes: 4}\n");
  const std::string file = scratch.write("gpt.yaml", text).string();
  const std::vector<std::string> slow{"--set", "cluster.inter_node=ethernet-100g", "--set",
                                      "cluster.inter_node.nics=1"};
  const Json alone = tuned(file, slow);
  const double gain =
      1 - alone["best_cap_step_ms"].get<double>() / alone["default_step_ms"].get<double>();
  REQUIRE(gain > 0);
  for (const double noise : {0.2 * gain, 0.97 * gain, 0.999 * gain, 1.001 * gain, 1.2 * gain}) {
    CAPTURE(noise, gain);
    std::vector<std::string> flags = slow;
    flags.insert(flags.end(), {"--noise", fmt::format("{}", noise)});
    CHECK(tuned(file, flags)["pays"] == (gain > noise));
    flags.insert(flags.begin(), file);
    CHECK_THAT(printed(flags), !Catch::Contains("errors allowed for"));
  }
}

TEST_CASE("tune ends with what to paste", "[tools][tune]") {
  const Outcome pays = ddpsim({"tune", workstations});
  REQUIRE(pays.code == 0);
  for (const char* line :
       {"lower bound", "MG-WFBP's merge rule", "one per gradient", "verdict: ", "bucket_cap_mb=",
        "HOROVOD_FUSION_THRESHOLD=", "reduce_bucket_size", "PyTorch from about 2.5"}) {
    INFO(line);
    CHECK(pays.out.find(line) != std::string::npos);
  }
  // Here another first bucket is worth its own lines.
  const Outcome first = ddpsim({"tune", workstations, "--set", "workload.dtype=fp32", "--set",
                                "workload.compute=tf32", "--set", "workload.batch=512", "--set",
                                "cluster.inter_node.bandwidth=5Gbit/s"});
  REQUIRE(first.code == 0);
  for (const char* line : {"_DEFAULT_FIRST_BUCKET_BYTES = ", "bucket_cap_mb_list=["}) {
    INFO(line);
    CHECK(first.out.find(line) != std::string::npos);
  }
  const Outcome flat = ddpsim({"tune", shipped("examples/first.yaml")});
  REQUIRE(flat.code == 0);
  CHECK(flat.out.find("tuning does not pay") != std::string::npos);
  CHECK(flat.out.find("keep 25 MiB") != std::string::npos);
  CHECK(flat.out.find("DistributedDataParallel(model)\n") != std::string::npos);
}

TEST_CASE("each line to paste has the step that stands beside it", "[tools][tune]") {
  const std::regex line(
      "# ([^\n]*): ([0-9.]+) ms\n(?:  torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = "
      "([0-9]+)[^\n]*\n)?"
      "  model = DistributedDataParallel\\(model, bucket_cap_mb=([0-9.]+)\\)");
  int lines = 0;
  for (const std::string first : {"1MiB", "2MiB", "none"}) {
    // Its own caps would go before the cap that is set: they go out of the file.
    const Scratch scratch;
    std::string text = content_of(workstations);
    const std::string caps = "bucket_caps:";
    REQUIRE(text.find(caps) != std::string::npos);
    text.replace(text.find(caps), text.find('\n', text.find(caps)) - text.find(caps),
                 "broadcast_buffers: true");
    const std::string scenario = scratch.write("scenario.yaml", text).string();
    const Outcome outcome =
        ddpsim({"tune", scenario, "--set", "training.first_bucket_cap=" + first});
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    for (std::sregex_iterator found(outcome.out.begin(), outcome.out.end(), line), end;
         found != end; ++found) {
      const std::smatch& match = *found;
      const bool newer = match[1].str().find("from about 2.5") != std::string::npos;
      const std::string first_cap = newer              ? "none"
                                    : match[3].matched ? match[3].str() + "B"
                                                       : "1MiB";
      CAPTURE(match.str());
      CHECK(step_of({scenario, "--set", "training.first_bucket_cap=" + first_cap, "--set",
                     "training.bucket_cap=" + match[4].str() + "MiB"}) ==
            Approx(std::stod(match[2].str())).margin(0.0051));
      ++lines;
    }
  }
  CHECK(lines >= 6);
}

TEST_CASE("buckets that close before they overflow are no setting of DDP's", "[tools][tune]") {
  const Outcome outcome = ddpsim({"tune", shipped("examples/cpu-cluster.yaml"), "--set",
                                  "training.bucket_rule=before_overflow"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.find("bucket_cap_mb=") == std::string::npos);
  CHECK(outcome.out.find("close before they overflow") != std::string::npos);
}

TEST_CASE("under another rule savings and what is to paste are of buckets by that rule",
          "[tools][tune]") {
  const Scratch scratch;
  const std::string file = scratch.write("l40s.yaml", gpt_on_l40s).string();
  const std::string rule = "training.bucket_rule=before_overflow";
  const double own = step_of({file, "--set", rule});
  const std::regex paste(
      "close before they overflow [^\n]*: ([0-9.]+) ms\n  bucket_cap = ([0-9]+)  # bytes");
  const auto pasted = [&](const std::string& out) {
    std::smatch match;
    REQUIRE(std::regex_search(out, match, paste));
    const double beside = std::stod(match[1]);
    CHECK(step_of({file, "--set", rule, "--set", "training.bucket_cap=" + match[2].str() + "B"}) ==
          Approx(beside).margin(0.0051));
    return beside;
  };
  const std::string out = printed({file, "--set", rule});
  const double advised = pasted(out);
  REQUIRE(advised < 0.99 * own);
  CHECK_THAT(out, Catch::Contains(fmt::format(
                      " instead of this scenario's 25 MiB saves {:.1f} % of the step ({:.2f} -> "
                      "{:.2f} ms)",
                      100 * (1 - advised / own), own, advised)));
  const Json json = tuned(file, {"--set", rule});
  CHECK(json["pays"] == true);
  CHECK(json["recommended_step_ms"].get<double>() == Approx(advised).margin(0.0051));
  // Where nothing saves enough, what the scenario has stays.
  const std::string kept = printed({file, "--set", rule, "--noise", "50%"});
  CHECK_THAT(kept, Catch::Contains("within noise: keep this scenario's 25 MiB") &&
                       Catch::Contains("# nothing to change: buckets of your own that close"));
  CHECK(pasted(kept) == Approx(own).margin(0.0051));
}

TEST_CASE("the verdict does not deny a cap that the table shows to be a little shorter",
          "[tools][tune]") {
  // In a step of 859 ms communication is 5 ms, of which buckets save 0.2 ms at best.
  const Scratch scratch;
  const std::string file =
      scratch
          .write("long.yaml",
                 "workload: {model: resnet50, batch: 512}\n"
                 "cluster: {device: rtx4090, ranks_per_node: 2, intra_node: nvlink4}\n")
          .string();
  const Outcome outcome = ddpsim({"tune", file});
  REQUIRE(outcome.code == 0);
  // In the table the best cap is 0.01 to 0.04 % under the default.
  REQUIRE(std::regex_search(outcome.out, std::regex("\nbest cap +[^\n]* -0\\.0[1-4] % ")));
  CHECK_THAT(outcome.out, Catch::Contains("verdict: tuning does not pay: no single cap beats the "
                                          "default by more than 0.05 %: keep 25 MiB\n"));
}

TEST_CASE("the verdict weighs what the scenario has, not what it has left", "[tools][tune]") {
  const Scratch scratch;
  const std::string file = scratch.write("l40s.yaml", gpt_on_l40s).string();
  const std::string huge = "training.bucket_cap=1GiB";
  const double own = step_of({file, "--set", huge}), standard = step_of({file});
  REQUIRE(own > 1.1 * standard);
  const std::string out = printed({file, "--set", huge});
  CHECK_THAT(
      out,
      Catch::Contains(fmt::format("verdict: 1+25 MiB (DDP's default) instead of this scenario's "
                                  "1024 MiB saves {:.1f} % of the step ({:.2f} -> {:.2f} ms)",
                                  100 * (1 - standard / own), own, standard)) &&
          Catch::Contains(fmt::format("  # leave bucket_cap_mb out, for DistributedDataParallel's "
                                      "default, bucket_cap_mb=25 with a first bucket of 1 MiB: "
                                      "{:.2f} ms\n  model = DistributedDataParallel(model)\n",
                                      standard)) &&
          !Catch::Contains("nothing to change") && !Catch::Contains("does not pay"));
  // A cap that is as good as the default, or better, stays.
  const std::string good = "training.bucket_cap=35MiB";
  const double kept = step_of({file, "--set", good});
  REQUIRE(standard > 0.99 * kept);
  CHECK_THAT(printed({file, "--set", good}),
             Catch::Contains("verdict: tuning does not pay: ") &&
                 Catch::Contains(": keep this scenario's 35 MiB\n") &&
                 Catch::Contains(
                     fmt::format("  # nothing to change: this scenario's 35 MiB: {:.2f} ms\n"
                                 "  model = DistributedDataParallel(model, bucket_cap_mb=35)\n",
                                 kept)));
  // One that is too large for what is allowed does not.
  CHECK_THAT(printed({file, "--set", huge, "--largest-bucket", "300MiB"}),
             Catch::Contains("verdict: this scenario's 1024 MiB has a bucket of 1.001 GiB, more "
                             "than allowed; 1 MiB, 25 MiB keeps within "));
  // The page says the same.
  printed({file, "--set", huge, "--report", scratch.path("t.html").string()});
  CHECK_THAT(content_of(scratch.path("t.html")),
             Catch::Contains(" buckets to DDP") && !Catch::Contains("Keep DDP"));
}

TEST_CASE("what is to paste for a wrapper of one's own is its cap", "[tools][tune]") {
  const Scratch scratch;
  const std::string file = scratch.write("l40s.yaml", gpt_on_l40s).string();
  const std::vector<std::string> wrapper{file, "--set", "training.flattened_buckets=true"};
  const std::string out = printed(wrapper);
  CHECK_THAT(out, Catch::Contains(fmt::format("# nothing to change: buckets of a wrapper of your "
                                              "own: {:.2f} ms\n"
                                              "  first_bucket_cap = 1048576  # bytes; 1 MiB\n"
                                              "  bucket_cap = 26214400  # bytes; 25 MiB\n",
                                              step_of(wrapper))) &&
                      !Catch::Contains("DistributedDataParallel(model") &&
                      !Catch::Contains("bucket_cap_mb"));
}

TEST_CASE("why no pairs of caps are searched is told", "[tools][tune]") {
  const Scratch scratch;
  const std::string file = scratch.write("l40s.yaml", gpt_on_l40s).string();
  CHECK_THAT(printed({file}), Catch::Contains(" and all pairs of caps were searched"));
  // As many gradients, whose pairs take too long.
  CHECK_THAT(printed({file, "--set", "training.comm_hook=bf16_compress"}),
             Catch::Contains(", but no pairs of them, were searched (") &&
                 Catch::Contains(" steps simulated): with a comm hook every step is simulated as a "
                                 "whole, and pairs are searched for up to 40 gradients;\n") &&
                 !Catch::Contains("too many gradients"));
}

TEST_CASE("tune says that it is of a steady step under bucketed", "[tools][tune]") {
  const std::string file = shipped("examples/first.yaml");
  const auto notes = [&](const std::string& setting) {
    const Outcome outcome = ddpsim({"tune", file, "--set", setting});
    CAPTURE(setting, outcome.err);
    CHECK(outcome.code == 0);
    CHECK(outcome.out == printed({file}));
    return outcome.err;
  };
  for (const std::string strategy : {"naive", "flat", "overlap"})
    CHECK_THAT(notes("training.strategy=" + strategy),
               Catch::Contains("tune is of `bucketed`, whatever training.strategy says (" +
                               strategy + ")"));
  CHECK_THAT(notes("training.phase=first"),
             Catch::Contains("tune is of a steady step: training.phase (or iteration) has no"));
  CHECK_THAT(notes("training.iteration=7"),
             Catch::Contains("tune is of a steady step: training.iteration has no effect"));
  for (const char* setting : {"training.strategy=bucketed", "training.phase=steady"})
    CHECK_THAT(notes(setting), !Catch::Contains("tune is of"));
  CHECK(tuned(file, {"--set", "training.strategy=flat"})["notes"].dump().find("tune is of") !=
        std::string::npos);
}

TEST_CASE("a default that is not allowed is not what the verdict keeps", "[tools][tune]") {
  const Outcome outcome =
      ddpsim({"tune", shipped("examples/first.yaml"), "--largest-bucket", "150MiB"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.find("keep 25 MiB") == std::string::npos);
  CHECK(outcome.out.find("more than allowed") != std::string::npos);
}

TEST_CASE("uncertainty gives the range of the gain and the cap that regrets least",
          "[tools][tune]") {
  const Json json = tuned(workstations, {"--uncertainty", "20%"});
  REQUIRE(json["corners"].size() == 9);
  double regret = 0;
  for (const Json& corner : json["corners"])
    regret = std::max(
        regret,
        corner["recommended_step_ms"].get<double>() / corner["best_cap_step_ms"].get<double>() - 1);
  CHECK(json["regret"].get<double>() == Approx(regret));
  CHECK(tuned(workstations)["corners"].empty());
  const Outcome text = ddpsim({"tune", workstations, "--uncertainty", "20%"});
  CHECK(text.out.find("with errors of 20 % in the link and 20 % in the kernels") !=
        std::string::npos);
}

TEST_CASE("a round cap is recommended where tables show no difference, and why it is not the best",
          "[tools][tune]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: gpt2-xl, batch: 4, sequence: 1024, compute: bf16}\n"
                 "cluster: {system: dgx-h100, nodes: 4}\n")
          .string();
  // 742.705 MiB regrets least, in a range of 6 KiB; the 750 MiB beside it take no longer.
  const Json json = tuned(file, {"--uncertainty", "10%"});
  CHECK(json["recommended_cap_bytes"] == 750 * MiB.count);
  CHECK(json["best_cap_bytes"] != json["recommended_cap_bytes"]);
  const std::string text = printed({file, "--uncertainty", "10%"});
  CHECK_THAT(text, Catch::Contains("bucket_cap_mb=750)") &&
                       Catch::Contains("in the worst of these cases it "));
  const std::string alone = printed({file});
  CHECK_THAT(alone, Catch::Contains("it makes the fewest buckets") &&
                        !Catch::Contains("in the worst of these cases"));
}

TEST_CASE("pairs and partitions whose gain the errors can take away are told and not offered",
          "[tools][tune]") {
  const std::vector<std::string> words{shipped("seeds/comm-hooks-slow-link.yaml")};
  const std::string gain = "the best partition would save 1.7 %",
                    paste = "# the free partition, PyTorch of 2026 with a list of caps";
  const std::string certain = printed(words);
  CHECK_THAT(certain, Catch::Contains("but " + gain + ": below is how\n"));
  CHECK_THAT(certain, Catch::Contains(paste));
  const std::string uncertain = printed({words[0], "--uncertainty", "20%"});
  CHECK_THAT(uncertain,
             Catch::Contains("\nless than the errors allowed for can take away: " + gain + "\n"));
  CHECK_THAT(uncertain, !Catch::Contains("below is how") && !Catch::Contains(paste));
}

TEST_CASE("no partition of larger buckets is offered where the largest is to be small",
          "[tools][tune]") {
  const std::string file = shipped("seeds/comm-hooks-slow-link.yaml"),
                    paste = "# the free partition, PyTorch of 2026 with a list of caps";
  CHECK_THAT(printed({file}), Catch::Contains(paste));
  CHECK_THAT(printed({file, "--objective", "memory"}), !Catch::Contains(paste));
  // What is saved is not said to cost a negative share.
  CHECK_THAT(printed({file, "--objective", "memory"}),
             Catch::Matches("(.|\n)*buckets of at most [^\n]* (cost|save) [0-9](.|\n)*"));
}

TEST_CASE("the verdict for less memory keeps the default where no cap takes less",
          "[tools][tune]") {
  const std::string file = shipped("examples/gpu-loopback.yaml");
  CHECK_THAT(printed({file, "--objective", "memory"}),
             Catch::Contains("verdict: no cap within 1 % of the shortest step makes a largest "
                             "bucket below the 32 MiB of DDP's default: keep 25 MiB\n"));
  const Json tuning = tuned(file, {"--objective", "memory"});
  CHECK(tuning["pays"] == false);
  CHECK(tuning["recommended_cap_bytes"] == 25 << 20);
  // Where more time is accepted a cap takes less.
  CHECK_THAT(printed({file, "--objective", "memory", "--within", "50%"}),
             Catch::Contains("verdict: buckets of at most "));
}

TEST_CASE("a calibration's spread is the uncertainty unless one is given", "[tools][tune]") {
  const Scratch scratch;
  scratch.write("machine.yaml",
                "format: ddpsim.calibration/1\nranks: 2\nsynchronous: true\n"
                "tasks:\n"
                "  - {operation: copy in, traffic: 1 MiB, time: 100 us, low: 90 us, high: 104 us}\n"
                "all_reduce:\n"
                "  - {bytes: 1 MiB, time: 1 ms, low: 900 us, high: 1.2 ms}\n"
                "end: ddpsim.calibration/1\n");
  const std::string scenario =
      scratch
          .write("scenario.yaml", "workload: {model: " + shipped("examples/profiles/profile.yaml") +
                                      "}\ncluster: {calibration: machine.yaml}\n")
          .string();
  // All-reduces: 1.2 against 1 / 0.9; copies: 1.04 against 1 / 0.9.
  const Json json = tuned(scenario);
  double link = 0, compute = 0;
  for (const Json& corner : json["corners"]) {
    link = std::max(link, corner["link"].get<double>());
    compute = std::max(compute, corner["compute"].get<double>());
  }
  CHECK(link == Approx(1.2));
  CHECK(compute == Approx(1 / 0.9));
}

TEST_CASE("a workload profile is tuned on the link it is told", "[tools][tune]") {
  const std::string profile = shipped("examples/profiles/profile.yaml");
  const std::string link = shipped("examples/profiles/link.yaml");
  const Json json = tuned(profile, {"--link", link, "--ranks", "2", "--device", "rtx-pro-6000"});
  const Scratch scratch;
  const std::string same =
      scratch
          .write("same.yaml",
                 "workload: {model: " + profile +
                     "}\ncluster: {device: rtx-pro-6000, ranks_per_node: 2, intra_node: " + link +
                     "}\n")
          .string();
  CHECK(json["default_step_ms"] == tuned(same)["default_step_ms"]);
  CHECK(json["best_partition"] == tuned(same)["best_partition"]);
}

TEST_CASE("tune refuses in one line what it cannot use", "[tools][tune]") {
  const std::string profile = shipped("examples/profiles/profile.yaml");
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& says) {
    const Outcome outcome = ddpsim(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(outcome.err.find(says) != std::string::npos);
    CHECK(outcome.out.empty());
  };
  refused({"tune"}, "tune needs one scenario");
  refused({"tune", workstations, profile}, "tune needs one scenario");
  refused({"tune", profile}, "--device generic-cpu --ranks 2 --link link.yaml");
  refused({"tune", profile, "--link", "nowhere.yaml", "--ranks", "2", "--device", "t4"},
          "nowhere.yaml");
  refused({"tune", profile, "--link", "pcie4", "--ranks", "1", "--device", "t4"}, "from 2 to");
  const auto with_links = [&](std::vector<std::string> flags, const std::string& says) {
    flags.insert(flags.begin(), {"tune", profile, "--device", "a100-80"});
    refused(flags, says);
  };
  with_links({"--link", "ethernet-10g", "--ranks", "8", "--ranks-per-node", "4"},
             "several ranks on a node need a link inside it as well");
  with_links({"--link", "nvlink3", "--ranks", "8", "--nodes", "2"},
             "several nodes need a network as well");
  with_links({"--link", "nvlink3", "--link", "ib-hdr", "--ranks", "8"},
             "say --nodes or --ranks-per-node");
  with_links({"--link", "nvlink3", "--link", "pcie4", "--ranks", "8"}, "give one of each kind");
  with_links({"--link", "ib-hdr", "--link", "ethernet-10g", "--ranks", "8"}, "both join nodes");
  with_links({"--link", "nvlink3", "--link", "ib-hdr", "--ranks", "8", "--nodes", "3"},
             "does not divide by --nodes 3");
  with_links({"--link", "nvlink3", "--link", "ib-hdr", "--ranks", "8", "--nodes", "3",
              "--ranks-per-node", "2"},
             "--ranks 8 is not --nodes 3 x --ranks-per-node 2");
  with_links({"--link", "ib-hdr"}, "say how many ranks there are");
  refused({"tune", workstations, "--uncertainty", "much"}, "--uncertainty much");
  refused({"tune", workstations, "--objective", "fun"}, "expected step, exposed or memory");
  refused({"tune", workstations, "--largest-bucket", "1KiB"}, "the largest gradient alone is");
  refused({"tune", workstations, "--set", "cluster.nodes=1", "--set", "cluster.ranks_per_node=1"},
          "nothing to tune");
  refused({"tune", "missing.yaml"}, "missing.yaml: no such file");
}

TEST_CASE("caps as CSV, one line each", "[tools][tune]") {
  const Outcome outcome = ddpsim({"tune", workstations, "--csv", "-"});
  REQUIRE(outcome.code == 0);
  const auto lines = lines_of(outcome.out);
  CHECK(lines[0] == "cap_bytes,highest_cap_bytes,buckets,largest_bucket_bytes,step_ms");
  CHECK(lines.size() == tuned(workstations)["caps"].size() + 1);
}

TEST_CASE("a verdict over a network that says no kind rests on the same assumption",
          "[tools][tune]") {
  // In a table of several nodes nothing tells the number of NICs, which sets what kernels lose.
  const Scratch scratch;
  scratch.write("table.yaml",
                "ranks: 16\nnodes: 2\nall_reduce:\n"
                "  - {bytes: 1 MiB, time: 60 us}\n  - {bytes: 256 MiB, time: 2 ms}\n");
  const auto out = [&](const std::string& network, std::vector<std::string> words) {
    for (const std::string word :
         {"--device", "h100-sxm", "--nodes", "2", "--set", "cluster.intra_node=nvlink4", "--set"})
      words.push_back(word);
    words.push_back("cluster.inter_node=" + network);
    words.insert(words.begin() + 1, shipped("examples/first.yaml"));
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const std::string says = "an all-reduce over NICs is assumed to lose 45 % of its bandwidth",
                    verdict = "The verdict rests on an assumption: " + says,
                    nics = "as over 1 NIC a node (inter_node.nics is not given)";
  const std::string table = scratch.path("table.yaml").string(),
                    plain = "{latency: 14 us, bandwidth: 50 GB/s}";
  CHECK_THAT(out(table, {"run"}), Catch::Contains(says) && Catch::Contains(nics) &&
                                      Catch::Contains("; nodes by table,") &&
                                      !Catch::Contains("1 NIC a node by"));
  CHECK_THAT(out(table, {"tune"}), Catch::Contains(verdict) && Catch::Contains(nics));
  const std::vector<std::string> without{"tune", "--set", "cluster.interference={}"};
  CHECK_THAT(out(table, without), !Catch::Contains("assumption"));
  // Told, it is in the head. What a network of so many bytes/s for each NIC has is one, by rule.
  CHECK_THAT(out("{base: " + table + ", nics: 4}", {"run"}),
             Catch::Contains("; 4 NICs a node by") && !Catch::Contains(nics));
  CHECK_THAT(out(plain, {"tune"}), Catch::Contains(verdict) && !Catch::Contains(nics) &&
                                       Catch::Contains("; 1 NIC a node by"));
}

TEST_CASE("a verdict that rests on assumed interference says so first", "[tools][tune]") {
  const auto out = [](std::vector<std::string> words) {
    words.insert(words.begin() + 1, shipped("examples/first.yaml"));
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const std::string says = "an all-reduce over NICs is assumed to lose 45 % of its bandwidth";
  const std::string nodes = out({"tune", "--cluster", "dgx-h100", "--nodes", "4"});
  const std::size_t assumed = nodes.find("The verdict rests on an assumption: " + says);
  CHECK(assumed != std::string::npos);
  CHECK(assumed < nodes.find("verdict: "));
  CHECK_THAT(out({"run", "--cluster", "dgx-h100", "--nodes", "4", "--why"}),
             Catch::Contains("\ninterference: " + says));
  // In one node it was published, and given factors are no assumption.
  CHECK_THAT(out({"tune"}), !Catch::Contains("assumption"));
  CHECK_THAT(
      out({"tune", "--cluster", "dgx-h100", "--nodes", "4", "--set", "cluster.interference={}"}),
      !Catch::Contains("assumption"));
  const Scratch scratch;
  out({"tune", "--cluster", "dgx-h100", "--nodes", "4", "-q", "--report",
       scratch.path("t.html").string()});
  CHECK_THAT(content_of(scratch.path("t.html")),
             Catch::Contains("The verdict rests on an assumption: " + says));
}

TEST_CASE("a saving that rests on where NCCL takes NVLS trees says so first", "[tools][tune]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: gpt2-xl, batch: 4, sequence: 1024, compute: bf16}\n"
                 "cluster: {device: h100-sxm, ranks_per_node: 8, nodes: 16, intra_node: nvlink4, "
                 "inter_node: {base: ethernet-25g, nics: 8}}\n")
          .string();
  const auto out = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"tune", file});
    const Outcome outcome = ddpsim(more);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const std::string nodes = out({});
  const std::size_t said = nodes.find("NCCL is taken to run all-reduces of ");
  CHECK(said < nodes.find("verdict: "));
  // Where an algorithm is given there is no choice, and one node has no such trees.
  CHECK_THAT(out({"--set", "cluster.collectives={algorithm: tree}"}),
             !Catch::Contains("is taken to run"));
  CHECK_THAT(out({"--nodes", "1"}), !Catch::Contains("is taken to run"));
}

}  // namespace ddpsim
