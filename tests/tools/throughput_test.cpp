// What a step amounts to: samples and tokens per second, MFU, scaling, cost; the curve over ranks.

#include "tools/study/throughput.hpp"

#include <cctype>
#include <cmath>
#include <sstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/tools/program.hpp"
#include "tools/study/comparison.hpp"
#include "tools/study/known_accuracy.hpp"
#include "tools/study/scaling.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

Json figures_of_run(const Words& more, const std::string& scenario = first_example) {
  Words words{"run", scenario, "--json", "-"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = ddpsim(words);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

const std::string two_nodes =
    "workload: {model: {family: mlp, widths: [512, 512, 512]}, batch: 64}\n"
    "cluster: {device: a100-80, nodes: 2, ranks_per_node: 4, intra_node: nvlink3, inter_node: "
    "ib-hdr}\n";

TEST_CASE("tables of what is varied say tokens a second, MFU and peak memory",
          "[tools][throughput]") {
  const Words vary{"--vary", "training.bucket_cap=1MiB,25MiB", "--set", "compare=[bucketed]"};
  const auto table = [&](const std::string& command, const std::string& file) {
    Words words{command, file, "--wide"};
    words.insert(words.end(), vary.begin(), vary.end());
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  Words json{"run", first_example, "--json", "-"};
  json.insert(json.end(), vary.begin(), vary.end());
  const Json result = ddpsim(json).json()[0]["results"][0];
  const std::string figures =
      fmt::format("  {:.0f}  {:.1f} %  ", result["tokens_per_second"].get<double>(),
                  100 * result["mfu"].get<double>());
  const std::string memory = to_string(Bytes{result["memory"]["peak_bytes"].get<std::int64_t>()});
  for (const char* command : {"run", "sweep"}) {
    CAPTURE(command);
    const std::string text = table(command, first_example);
    CHECK_THAT(text, Catch::Contains("  tokens/s") && Catch::Contains("     MFU") &&
                         Catch::Contains("  peak memory") && !Catch::Contains("samples/s"));
    CHECK_THAT(text, Catch::Contains(figures) && Catch::Contains("  " + memory + "  "));
    // The samples of a network that takes no sequences; a profile's are not known, nor is its MFU.
    const Scratch scratch;
    const std::string samples = table(command, scratch.write("two-nodes.yaml", two_nodes).string());
    CHECK_THAT(samples, Catch::Contains("  samples/s") && !Catch::Contains("tokens/s"));
  }
}

TEST_CASE("throughput is the samples and tokens of a step over its time", "[tools][throughput]") {
  // first.yaml: GPT-2 on eight ranks; three micro-batches are three times the samples.
  const Scenario scenario = read_scenario(first_example);
  const Json run = figures_of_run({"--set", "training.micro_batches=3"});
  for (const Json& result : run["results"]) {
    const double seconds = result["step_ms"].get<double>() / 1000;
    const double samples = 3.0 * 8 * scenario.batch;
    CHECK(result["samples_per_second"].get<double>() == Approx(samples / seconds));
    CHECK(result["samples_per_second_per_device"].get<double>() == Approx(samples / seconds / 8));
    const double tokens = samples * scenario.sequence;
    CHECK(result["tokens_per_second"].get<double>() == Approx(tokens / seconds));
    CHECK(result["tokens_per_second_per_device"].get<double>() == Approx(tokens / seconds / 8));
    CHECK(result["communication_share"].get<double>() ==
          Approx(result["exposed_ms"].get<double>() / result["step_ms"].get<double>()));
    // With 5 % and half a GiB to spare.
    CHECK(result["fits_device"] ==
          (1.05 * result["memory"]["peak_bytes"].get<double>() + (512 << 20) <=
           result["memory"]["device_bytes"].get<double>()));
    // Eight devices for the steps that a billion tokens are.
    CHECK(result["device_hours_per_billion_tokens"].get<double>() ==
          Approx(1e9 / tokens * seconds * 8 / 3600));
    CHECK(result["device_hours_per_million_samples"].get<double>() ==
          Approx(1e6 / samples * seconds * 8 / 3600));
    CHECK(result["cost_per_billion_tokens"].is_null());
    CHECK(result["currency"].is_null());
  }
}

TEST_CASE("model FLOPs of a transformer are 6 for each weight and token, and attention's",
          "[tools][throughput]") {
  // GPT-2 without fused attention: a block has 12 d^2 weights in its matrices, and the tied head
  // d x vocabulary; queries x keys and scores x values are 2 x 2 s d a token and layer forward, and
  // twice that backward. The first layer's inputs are trained too, so no product is left out.
  const Scenario scenario = read_scenario(first_example);
  const double d = 768, layers = 12, vocabulary = 50257, s = scenario.sequence;
  const double tokens = static_cast<double>(scenario.batch) * s;
  const double weights = layers * 12 * d * d + vocabulary * d;
  const double least = 6 * weights * tokens;
  const auto flops = step_flops(scenario.workload, scenario.cluster.device, 1);
  REQUIRE(flops);
  REQUIRE(flops->model);
  // Fused attention of a causal mask: half of the scores; 2 products forward and 4 backward, and a
  // fifth that computes the scores again.
  const double model = flops->model->flops, executed = flops->executed.flops;
  const double of_attention = layers * 2 * s * d * tokens / 2;  // one product
  CHECK(model == Approx(least + 6 * of_attention).epsilon(0.01));
  CHECK(executed - model == Approx(of_attention).epsilon(0.01));
  CHECK(step_flops(scenario.workload, scenario.cluster.device, 4)->model->flops == 4 * model);
  const Json run = figures_of_run({});
  const double peak = scenario.cluster.device.peak_of(DType::bf16).flops_per_second;
  for (const Json& result : run["results"]) {
    const double seconds = result["step_ms"].get<double>() / 1000;
    CHECK(result["model_flops"].get<double>() == model);
    CHECK(result["hardware_flops"].get<double>() == executed);
    CHECK(result["mfu"].get<double>() == Approx(model / peak / seconds));
    CHECK(result["hfu"].get<double>() == Approx(executed / peak / seconds));
  }
  CHECK_THAT(ddpsim({"run", first_example, "--wide"}).out, Catch::Contains("MFU     HFU"));
}

TEST_CASE("where nothing is computed twice MFU and HFU are one figure", "[tools][throughput]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", two_nodes).string();
  const Json answer = figures_of_run({}, file);
  for (const Json& result : answer["results"]) {
    CHECK(result["mfu"].is_number());
    CHECK(result["mfu"] == result["hfu"]);
  }
  const std::string out = ddpsim({"run", file, "--wide"}).out;
  CHECK_THAT(out, Catch::Contains("MFU") && !Catch::Contains("HFU"));
}

/// A layer whose forward product the backward pass runs again, `marked` or not.
std::string checkpointed(bool marked) {
  const std::string mark = marked ? ", recomputed: true" : "";
  return std::string("format: ddpsim.workload/2\nbatch: 8\n") +
         (marked ? "marks_recomputed: true\n" : "") +
         "kernels:\n"
         "  - {op: mm, kind: gemm, gemm: {m: 8, n: 64, k: 32}, read: 9216, written: 2048}\n"
         "  - {op: mm, kind: gemm, gemm: {m: 8, n: 64, k: 32}, read: 9216, written: 2048" +
         mark +
         "}\n"
         "  - {op: mm, kind: gemm, gemm: {m: 64, n: 32, k: 8}, read: 3072, written: 8192}\n"
         "layers:\n  - {name: a, forward: [0], backward: [1, 2], kept: 4096}\n"
         "parameters:\n  - {name: a.weight, shape: [64, 32], layer: 0, after: 1}\n";
}

TEST_CASE("MFU leaves out the kernels of a description that run again", "[tools][throughput]") {
  const Scratch scratch;
  const auto figures = [&](bool marked) {
    const std::string file = scratch.write("m.yaml", checkpointed(marked)).string();
    return figures_of_run({"--cluster", "dgx-h100"}, file);
  };
  const double one = 2.0 * 8 * 64 * 32;
  const Json run = figures(true);
  CHECK(run["results"][0]["model_flops"].get<double>() == 2 * one);
  CHECK(run["results"][0]["hardware_flops"].get<double>() == 3 * one);
  CHECK(run["described"]["notes"].empty());
  // One that was written before kernels were marked cannot tell.
  const Json before = figures(false);
  CHECK(before["results"][0]["hardware_flops"].get<double>() == 3 * one);
  for (const char* key : {"model_flops", "mfu"}) CHECK(before["results"][0][key].is_null());
  CHECK(before["results"][0]["hfu"].is_number());
  CHECK_THAT(before["described"]["notes"].dump(), Catch::Contains("MFU is not known"));
}

/// "label 1.23" of a line of parts: the number behind each label.
double sum_of_parts(const std::string& line) {
  double sum = 0;
  std::istringstream words(line.substr(line.find("): ") + 3));
  for (std::string word; words >> word;)
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) sum += std::stod(word);
  return sum;
}

TEST_CASE("the parts of a rank's memory sum to what it takes, in the table and in JSON",
          "[tools][throughput]") {
  for (const char* name : {"examples/first.yaml", "seeds/cs336-xl-2xh100.yaml",
                           "seeds/comm-hooks-slow-link.yaml", "examples/mlp-2ranks.yaml"}) {
    CAPTURE(name);
    const std::string file = shipped(name);
    double most = 0;
    const Json figures = figures_of_run({}, file);
    for (const Json& result : figures["results"]) {
      std::int64_t sum = 0;
      for (const auto& part : result["memory"]["at_peak"].items())
        sum += part.value().get<std::int64_t>();
      CHECK(sum == result["memory"]["peak_bytes"].get<std::int64_t>());
      most = std::max(most, result["memory"]["peak_bytes"].get<double>());
    }
    for (const std::string& line : lines_of(ddpsim({"run", file, "--wide"}).out)) {
      if (line.rfind("memory per rank: ", 0) != 0) continue;
      // Three digits of each of at most twelve parts.
      const double gib = most / (1024.0 * 1024 * 1024);
      CHECK(sum_of_parts(line) == Approx(gib).epsilon(0.01));
      most = 0;
    }
    CHECK(most == 0);  // the line was there
  }
}

TEST_CASE("a workload profile tells neither samples nor FLOPs", "[tools][throughput]") {
  const Scratch scratch;
  scratch.write("p.yaml",
                "format: ddpsim.workload/1\nforward: 5 ms\nbackward: 10 ms\n"
                "parameters: [{name: w, shape: [1024, 1024], dtype: fp32, ready: 10 ms}]\n");
  const std::string file = scratch
                               .write("s.yaml",
                                      "workload: {model: p.yaml}\ncluster: {device: t4, "
                                      "ranks_per_node: 2, intra_node: pcie3, price: 1 EUR/h}\n")
                               .string();
  const Json result = figures_of_run({}, file)["results"][0];
  for (const char* key : {"samples_per_second", "tokens_per_second", "model_flops", "mfu",
                          "device_hours_per_million_samples", "cost_per_million_samples"}) {
    CAPTURE(key);
    CHECK(result[key].is_null());
  }
  CHECK(result["scaling_efficiency"].is_number());
  CHECK(ddpsim({"run", file}).out.find("samples/s") == std::string::npos);
}

TEST_CASE("scaling efficiency is held against one rank by itself and against one node",
          "[tools][throughput]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", two_nodes).string();
  const Json all = figures_of_run({}, file);
  const Json one =
      figures_of_run({"--set", "cluster={device: a100-80}", "--set", "compare=[none]"}, file);
  const Json node = figures_of_run({"--set", "cluster.nodes=1"}, file);
  const double alone = one["results"][0]["step_ms"];
  for (std::size_t i = 0; i < all["results"].size(); ++i) {
    const Json& result = all["results"][i];
    const double step = result["step_ms"];
    CHECK(result["scaling_efficiency"].get<double>() == Approx(alone / step));
    CHECK(result["scaling_efficiency_node"].get<double>() ==
          Approx(node["results"][i]["step_ms"].get<double>() / step));
    CHECK(node["results"][i]["scaling_efficiency_node"].is_null());
  }
}

TEST_CASE("costs in several currencies are told apart, and none is the best",
          "[tools][throughput]") {
  const std::string axis = "cluster.price=1 USD/h,0.95 EUR/h";
  const auto asked = [&](const char* command, std::vector<std::string> more) {
    more.insert(more.begin(),
                {command, first_example, "--set", "compare=[bucketed]", "--vary", axis, "--wide"});
    return ddpsim(more);
  };
  const Outcome refused = asked("run", {"--best", "cost_per_billion_tokens"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("--best: no row is the best by cost_per_billion_tokens: "
                                          "prices are in EUR and USD, which are not converted"));
  const Outcome both = asked("run", {});
  CHECK(both.code == 0);
  CHECK_THAT(both.out, Catch::Contains("currency") && Catch::Contains("EUR"));
  // A sweep has computed its rows by then, and prints them in the order of the grid.
  const Outcome swept = asked("sweep", {"--best", "cost_per_billion_tokens"});
  CHECK(swept.code == 2);
  CHECK_THAT(swept.err, Catch::Contains("ddpsim: --best: no row is the best by cost_per_billion"));
  CHECK_THAT(swept.out, Catch::Contains("no row is the best by cost_per_billion_tokens") &&
                            Catch::Contains("currency") && !Catch::Contains("sorted by") &&
                            !Catch::Contains("best bucketed"));
  const Outcome one =
      ddpsim({"run", first_example, "--set", "compare=[bucketed]", "--set", "cluster.price=1 USD/h",
              "--vary", "workload.batch=4,8", "--best", "cost_per_billion_tokens"});
  CHECK(one.code == 0);
  CHECK_THAT(one.out, Catch::Contains("costs in USD") && !Catch::Contains("currency"));
}

TEST_CASE("no row is the best by a cost that no cluster has", "[tools][throughput]") {
  const std::vector<std::string> asked{
      first_example,        "--set",  "compare=[bucketed]",     "--vary",
      "workload.batch=4,8", "--best", "cost_per_billion_tokens"};
  const std::string why =
      "--best: no row is the best by cost_per_billion_tokens: no cluster here has a price: give "
      "each cluster its price, such as 2 USD/h (cluster.price)";
  for (const char* command : {"run", "sweep"}) {
    CAPTURE(command);
    std::vector<std::string> words = asked;
    words.insert(words.begin(), command);
    const Outcome outcome = ddpsim(words);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains(why));
    CHECK_THAT(outcome.out, !Catch::Contains("sorted by") && !Catch::Contains("best bucketed"));
  }
}

TEST_CASE("clusters without a price are named where others are the best by their costs",
          "[tools][throughput]") {
  const std::string clusters =
      "cluster={system: dgx-a100, nodes: 2, price: 2 USD/h},{system: dgx-h100, nodes: 2}";
  for (const char* command : {"run", "sweep"}) {
    CAPTURE(command);
    const auto asked = [&](const char* best) {
      return ddpsim({command, first_example, "--set", "compare=[bucketed]", "--vary", clusters,
                     "--vary", "workload.batch=4,8", "--best", best});
    };
    const Outcome priced = asked("cost_per_billion_tokens");
    CHECK(priced.code == 0);
    // Each cluster stands once, however many points there are of it.
    CHECK_THAT(priced.err,
               Catch::Contains("note: the best by cost_per_billion_tokens is of the clusters that "
                               "have a price; give these one too: cluster: {system: dgx-h100, "
                               "nodes: 2}\n"));
    CHECK_THAT(asked("step").err, !Catch::Contains("have a price"));
    if (command == std::string("run"))
      CHECK_THAT(priced.out,
                 Catch::Contains("best by cost_per_billion_tokens of the clusters with a price: "));
  }
}

TEST_CASE("a price makes costs of device-hours", "[tools][throughput]") {
  const Json plain = figures_of_run({})["results"][0];
  const Json priced = figures_of_run({"--set", "cluster.price=2.5 USD/h"})["results"][0];
  CHECK(priced["step_ms"] == plain["step_ms"]);
  CHECK(priced["cost_per_billion_tokens"].get<double>() ==
        Approx(2.5 * plain["device_hours_per_billion_tokens"].get<double>()));
  CHECK(priced["cost_per_million_samples"].get<double>() ==
        Approx(2.5 * plain["device_hours_per_million_samples"].get<double>()));
  CHECK(priced["currency"] == "USD");
  CHECK_THAT(ddpsim({"run", first_example, "--wide", "--set", "cluster.price=2.5 USD/h"}).out,
             Catch::Contains("cost in USD, at 2.5 for an hour of each device"));
  for (const char* wrong : {"2.5", "2.5 USD", "2.5 usd/h", "0 USD/h", "-1 USD/h", "x USD/h",
                            "1e999 USD/h", "USD/h", "2.5 $/h", "2.5 USD/hour"}) {
    const Outcome outcome =
        ddpsim({"run", first_example, "--set", std::string("cluster.price=") + wrong});
    CAPTURE(wrong, outcome.err);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains("expected a price per hour, such as \"2.5 USD/h\""));
  }
}

TEST_CASE("CSV has the new figures behind the old ones", "[tools][throughput]") {
  const std::string header = lines_of(ddpsim({"run", first_example, "--csv", "-"}).out)[0];
  CHECK_THAT(header, Catch::StartsWith("implementation,model_size,d_model,num_layers,world_size,"
                                       "step_ms,speedup_vs_naive,") &&
                         Catch::Contains(",bound,peak_memory_bytes,samples_per_second,") &&
                         Catch::EndsWith(",cost_per_million_samples,currency,step_low_ms,"
                                         "step_high_ms,known_from"));
}

TEST_CASE("a scaling curve holds what run predicts at each number of ranks", "[tools][scaling]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", two_nodes).string();
  const Json run = figures_of_run({"--scaling", "16", "--set", "compare=[bucketed, flat]"}, file);
  for (const Json& result : run["results"]) {
    std::vector<int> ranks;
    double alone = 0;
    for (const Json& point : result["scaling"]) {
      ranks.push_back(point["ranks"]);
      const bool one = ranks.back() == 1;
      const std::string strategy = one ? "none" : result["strategy"].get<std::string>();
      const Json same = figures_of_run({"--set", "cluster.nodes=" + point["nodes"].dump(), "--set",
                                        "cluster.ranks_per_node=" + point["ranks_per_node"].dump(),
                                        "--set", "compare=[" + strategy + "]"},
                                       file);
      CHECK(point["step_ms"] == same["results"][0]["step_ms"]);
      CHECK(point["samples_per_second"] == same["results"][0]["samples_per_second"]);
      CHECK(point["nodes"] == same["cluster"]["nodes"]);
      if (one) alone = point["step_ms"];
      CHECK(point["scaling_efficiency"].get<double>() ==
            Approx(alone / point["step_ms"].get<double>()));
    }
    CHECK(ranks == std::vector<int>{1, 2, 4, 8, 16});
    CHECK(result["scaling_missing"].is_null());
  }
}

TEST_CASE("a scaling curve ends where no link goes on, and takes the cluster's own size in",
          "[tools][scaling]") {
  const auto ranks_of = [](const ScalingCurve& curve) {
    std::vector<int> ranks;
    for (const ScalingPoint& point : curve.points) ranks.push_back(point.ranks());
    return ranks;
  };
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", two_nodes).string();
  const Scenario three = read_scenario(file, {{"cluster.nodes", "3"}});
  const auto flat = [&](std::optional<int> most_ranks) {
    return ranks_of(scaling_curves(three, {Strategy::flat}, {}, most_ranks).front());
  };
  CHECK(flat({}) == std::vector<int>{1, 2, 4, 8, 12});
  CHECK(flat(17) == std::vector<int>{1, 2, 4, 8, 12, 16});
  CHECK(flat(3) == std::vector<int>{1, 2, 3});
  const Scenario one_node = read_scenario(first_example);
  const ScalingCurve ended = scaling_curves(one_node, {Strategy::bucketed}, {}, 64).front();
  CHECK(ranks_of(ended) == std::vector<int>{1, 2, 4, 8});
  CHECK_THAT(ended.missing, Catch::Contains("no link between nodes"));
  for (const char* wrong : {"0", "-4", "1048577", "many"}) {
    const Outcome outcome = ddpsim({"run", first_example, "--scaling", wrong});
    CAPTURE(wrong, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
  }
}

KnownErrors errors_of(const char* device, const char* link, int ranks, std::vector<double> errors,
                      FittedOn fitted = FittedOn::laws) {
  return {std::string(device) + link + std::to_string(ranks),
          device,
          link,
          ranks,
          fitted,
          std::move(errors)};
}

TEST_CASE("known accuracy is of the rows most like a prediction that are enough",
          "[tools][known_accuracy]") {
  const std::vector<double> eight{0.01, -0.02, 0.03, -0.04, 0.05, -0.06, 0.07, -0.08};
  const std::vector<double> two{0.5, 0.5};
  const std::vector<KnownErrors> all{
      errors_of("h100", "nvlink", 2, eight), errors_of("h100", "nvlink", 8, two),
      errors_of("a100", "nvlink", 4, eight), errors_of("a100", "pcie", 2, two),
      errors_of("h100", "nvlink", 8, eight, FittedOn::naive)};
  const auto rows = [&](const char* device, const char* link, int ranks,
                        FittedOn fitted = FittedOn::laws) {
    const auto found = known_accuracy(all, {device, link, ranks, fitted});
    return found ? found->rows : 0;
  };
  CHECK(rows("h100", "nvlink", 2) == 8);
  CHECK(rows("h100", "nvlink", 8) == 10);   // two are too few: any ranks
  CHECK(rows("v100", "nvlink", 4) == 8);    // any device
  CHECK(rows("v100", "nvlink", 16) == 18);  // any device and ranks
  CHECK(rows("a100", "pcie", 2) == 20);     // all there are
  CHECK(rows("a100", "pcie", 2, FittedOn::naive) == 8);
  CHECK(rows("h100", "nvlink", 2, FittedOn::both) == 0);
  // Halfway between the fourth and the fifth; 0.9 x 7 = 6.3, between the seventh and the eighth.
  const auto found = known_accuracy(all, {"h100", "nvlink", 2, FittedOn::laws});
  REQUIRE(found);
  CHECK(found->median_error == Approx(0.045));
  CHECK(found->ninth_decile_error == Approx(0.073));
  // From 1 / 1.07 = 0.935 to 1 / 0.92 = 1.087.
  CHECK(sentence(*found) ==
        "Predictions of this kind were 4.5 % off in the median (9 in 10 within 7.3 %) on 8 "
        "measured rows of 1 setup: h100, nvlink, 2 ranks, nothing fitted. All of these steps took "
        "0.93 to 1.09 times what was predicted.");
}

TEST_CASE("the catalogue's known errors are those that score finds", "[tools][known_accuracy]") {
  const std::string file = shipped("measured/damek-b4-s512.yaml");
  const Json score = ddpsim({"score", file, "--calibrate-on", "naive", "--json", "-", "-q"}).json();
  std::vector<double> expected;
  for (const Json& row : score["rows"])
    if (!row["calibration"]) expected.push_back(row["error"]);
  bool found = false;
  for (const KnownErrors& known : read_known_errors()) {
    CHECK((known.ranks == 1) == known.link.empty());
    CHECK(known.compute);
    if (known.fitted == FittedOn::sharded) CHECK(known.sharded);
    if (known.setup != "damek-b4-s512" || known.fitted != FittedOn::naive) continue;
    found = true;
    CHECK(known.device == "a100-80");
    CHECK(known.link == "pcie");
    CHECK(known.compute == DType::tf32);
    REQUIRE(known.errors.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(known.errors[i] == Approx(expected[i]).margin(0.00006));
  }
  CHECK(found);
  CHECK_THAT(ddpsim({"run", shipped("measured/christine8888-b2.yaml")}).out,
             Catch::Contains("Predictions of this kind were "));
}

TEST_CASE("what is known of predictions on CPUs is of calibrations and profiles",
          "[tools][known_accuracy]") {
  const Scratch scratch;
  scratch.write("c.yaml",
                "format: ddpsim.calibration/1\nranks: 2\nsynchronous: true\n"
                "end: ddpsim.calibration/1\n");
  const auto known = [&](const std::string& file) {
    const auto accuracy = accuracy_of(read_scenario(file), std::nullopt);
    const std::string printed = ddpsim({"run", file}).out;
    CHECK((printed.find("Predictions of this kind were ") != std::string::npos) ==
          accuracy.has_value());
    return accuracy;
  };
  const auto on_cpu = [&](const std::string& workload, const std::string& more) {
    return known(scratch.write("s.yaml",
                               "workload: {model: " + workload +
                                   "}\ncluster: {device: generic-cpu, nodes: 2, ranks_per_node: 1, "
                                   "inter_node: ethernet-10g" +
                                   more + "}\n"));
  };
  const auto profiled = on_cpu(shipped("examples/profiles/profile.yaml"), "");
  REQUIRE(profiled);
  CHECK(profiled->rows_of == "cpu, ethernet, 2 ranks, from a profile of the model");
  CHECK(profiled->rows >= 8);
  const auto calibrated = on_cpu("resnet18, batch: 2", ", calibration: c.yaml");
  REQUIRE(calibrated);
  CHECK(calibrated->rows_of == "cpu, ethernet, 2 ranks, from a calibration of the machine");
  CHECK(calibrated->rows >= 8);
  // Neither the laws alone on a CPU nor a profile on a GPU were held against anything.
  CHECK_FALSE(on_cpu("resnet18, batch: 2", ""));
  CHECK_FALSE(known(shipped("examples/own-profile.yaml")));
}

TEST_CASE("one price for several devices is noted", "[tools][throughput][vary]") {
  const auto notes = [](const Words& more) {
    Words words{"run", first_example, "--set", "compare=[bucketed]"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.err;
  };
  const std::string both = "cluster=dgx-a100,dgx-h100";
  CHECK_THAT(
      notes({"--vary", both, "--set", "cluster.price=2 USD/h"}),
      Catch::Contains("note: cluster.price, 2 USD an hour, is taken for a100-80 and h100-sxm "
                      "alike: give each a price of its own"));
  CHECK_THAT(notes({"--vary", both}), !Catch::Contains("cluster.price"));
  CHECK_THAT(notes({"--vary",
                    "cluster={system: dgx-a100, price: 2 USD/h},{system: dgx-h100, "
                    "price: 2 USD/h}"}),
             !Catch::Contains("cluster.price"));
  CHECK_THAT(notes({"--vary", "cluster.nodes=1,2", "--cluster", "dgx-a100", "--set",
                    "cluster.price=2 USD/h"}),
             !Catch::Contains("cluster.price"));
}

TEST_CASE("a price of each cluster's own file is no one price, one that a device keeps is noted",
          "[tools][throughput][vary]") {
  const Scratch scratch;
  scratch.write("one.yaml", "system: dgx-a100\nnodes: 2\nprice: 2 USD/h\n");
  scratch.write("two.yaml", "system: dgx-h100\nnodes: 2\nprice: 3 EUR/h\n");
  scratch.write("s.yaml",
                "workload: {model: resnet18, batch: 8}\ncluster: one.yaml\ncompare: [bucketed]\n");
  const auto notes = [&](const Words& more) {
    Words words{"run", "s.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words, scratch.folder());
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  CHECK_THAT(notes({"--vary", "cluster=one.yaml,two.yaml"}), !Catch::Contains("cluster.price"));
  CHECK_THAT(notes({"--cluster", "two.yaml"}), !Catch::Contains("cluster.price"));
  const std::string kept =
      "note: cluster.price, 2 USD an hour, was given for a100-80 and is taken for h100-sxm: --set "
      "cluster.price=... says another";
  CHECK_THAT(notes({"--device", "h100-sxm"}), Catch::Contains(kept));
  CHECK_THAT(notes({"--set", "cluster.device=h100-sxm"}), Catch::Contains(kept));
  CHECK_THAT(notes({"--vary", "cluster.device=a100-80,h100-sxm"}),
             Catch::Contains(kept) && !Catch::Contains("alike"));
  CHECK_THAT(notes({"--device", "a100-80"}), !Catch::Contains("cluster.price"));
  CHECK_THAT(notes({"--device", "h100-sxm", "--set", "cluster.price=3 USD/h"}),
             !Catch::Contains("cluster.price"));
}

TEST_CASE("what the note on one price recommends keeps the scenario's nodes",
          "[tools][throughput][vary]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: gpt2, batch: 2, sequence: 256}\ncluster: {system: dgx-a100, "
                 "nodes: 4, price: 2 USD/h}\ncompare: [bucketed]\n")
          .string();
  const std::string said =
      ddpsim({"run", file, "--vary", "cluster=dgx-a100,dgx-h100", "--set", "cluster.price=2 USD/h"})
          .err;
  CAPTURE(said);
  const std::string flag = "--vary '";
  const std::size_t begin = said.find(flag);
  REQUIRE(begin != std::string::npos);
  const std::size_t from = begin + flag.size();
  const Json priced = ddpsim({"run", file, "--vary",
                              said.substr(from, said.find('\'', from) - from), "--json", "-", "-q"})
                          .json();
  REQUIRE(priced.size() == 2);
  for (const Json& each : priced) {
    CHECK(each["cluster"]["nodes"] == 4);
    CHECK(each["results"][0]["currency"] == "USD");
  }
}

}  // namespace
}  // namespace ddpsim
