// Errors that say what to write: a line for each mistake that a trial of the program found badly
// told.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

const std::string workload = "workload: {model: gpt2, batch: 1, sequence: 64}\n";
const std::string cluster = "cluster: {device: a100-80, ranks_per_node: 2, intra_node: nvlink3}\n";

const std::string timed_profile =
    "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 2 ms\nparameters:\n"
    "  - {name: w, shape: [1000], ready: 2 ms}\n";

const std::string a_calibration =
    "format: ddpsim.calibration/1\nranks: 2\nsynchronous: true\nend: ddpsim.calibration/1\n";

struct Slip {
  std::string what;
  std::string content;                 ///< of s.yaml
  std::vector<std::string> arguments;  ///< of the program
  std::string told;                    ///< the line on stderr begins with this after "ddpsim: "
};

const std::vector<Slip>& slips() {
  static const std::vector<Slip> all{
      {"an uncertainty beyond everything",
       workload + cluster,
       {"tune", "s.yaml", "--uncertainty", "200%"},
       "--uncertainty 200%: expected a share below 100%"},
      {"a unit in small letters",
       workload + cluster,
       {"run", "s.yaml", "--set", "training.bucket_cap=50mib"},
       "--set training.bucket_cap=50mib: expected a size with its unit, such as \"25 MiB\" or "
       "\"10 MB\" and above zero, got \"50mib\"; did you mean \"50 MiB\"?"},
      {"a rate as vendors write it",
       workload + cluster,
       {"run", "s.yaml", "--set", "cluster.intra_node={kind: nvlink, bandwidth: 400Gbps}"},
       "--set cluster.intra_node={kind: nvlink, bandwidth: 400Gbps}: expected a rate with its "
       "unit, "
       "such as \"450 GB/s\" or \"400 Gbit/s\" and above zero, got \"400Gbps\"; did you mean "
       "\"400 Gbit/s\"?"},
      {"a share without its sign",
       workload + cluster,
       {"run", "s.yaml", "--set", "cluster.skew=5"},
       "--set cluster.skew=5: expected a share from 0 to 1, got 5: write \"5 %\" or 0.05"},
      {"a release between those that are named",
       workload + cluster,
       {"run", "s.yaml", "--set", "training.pytorch=2.4"},
       "--set training.pytorch=2.4: torch 2.4 makes buckets as 2.0 does: write 2.0"},
      {"another release",
       workload + cluster,
       {"run", "s.yaml", "--set", "training.pytorch=2.10"},
       "--set training.pytorch=2.10: torch 2.10 makes buckets as 2.13 does: write 2.13"},
      {"another word for ranks",
       workload + cluster,
       {"run", "s.yaml", "--set", "cluster.gpus=8"},
       "--set cluster.gpus=8: unknown key; Lightning's gpus is cluster.ranks_per_node here: write "
       "ranks_per_node: 8"},
      {"what is not modelled",
       workload + cluster,
       {"run", "s.yaml", "--set", "cluster.tensor_parallel=2"},
       "--set cluster.tensor_parallel=2: unknown key; it is not modelled: leave it out"},
      {"a setting of one of two alike hooks",
       workload + cluster,
       {"run", "s.yaml", "--set", "training.comm_hook={powersgd: {matrix_approximation_rank: 4}}"},
       "--set training.comm_hook={powersgd: {matrix_approximation_rank: 4}}: unknown key; "
       "PowerSGDState's matrix_approximation_rank is training.comm_hook.powersgd.rank here: write "
       "rank: 4"},
      {"a key by another's name, explained",
       workload + cluster,
       {"explain", "bucket_cap_mb"},
       "unknown key \"bucket_cap_mb\": DistributedDataParallel's bucket_cap_mb is "
       "training.bucket_cap here"},
      {"a picture by another's name",
       workload + cluster,
       {"run", "s.yaml", "--svg", "x.png"},
       "--svg x.png: what is written is an SVG picture: name the file x.svg"},
      {"a measured row of two strategies",
       workload + cluster +
           "measured: {rows: [{strategy: naive, step: 90 ms, set: {training.strategy: flat}}]}\n",
       {"run", "s.yaml"},
       "s.yaml:3:75: measured.rows.set.training.strategy: the row's strategy is naive: take this "
       "key out, or write `strategy: flat` in the row"},
      {"a measured row of two caps",
       workload + cluster +
           "measured: {rows: [{strategy: bucketed, step: 90 ms, bucket_cap: 10 MiB, set: "
           "{training.bucket_cap: 25 MiB}}]}\n",
       {"score", "s.yaml"},
       "s.yaml:3:100: measured.rows.set.training.bucket_cap: the row's bucket_cap is 10 MiB: take "
       "one of the two out"},
      {"communication of a step without any",
       workload + cluster +
           "measured: {rows: [{strategy: none, step: 90 ms, communication: 5 ms}]}\n",
       {"run", "s.yaml"},
       "s.yaml:3:64: measured.rows.communication: a step of none has no communication: take the "
       "key out, or write the strategy that was measured"},
      {"a line indented too deep",
       workload + "cluster:\n  device: a100-80\n    nodes: 1\n",
       {"run", "s.yaml"},
       "s.yaml:4:5: not YAML: this line is indented deeper than the key above it, which has a "
       "value already"},
      {"a line indented like none",
       "workload:\n  model: gpt2\n sequence: 64\n",
       {"run", "s.yaml"},
       "s.yaml:3:2: not YAML: this line is indented like no line above it"},
      {"a colon left out, noticed a line later",
       "workload:\n  model gpt2\n  batch: 1\n",
       {"run", "s.yaml"},
       "s.yaml:2:3: not YAML: expected \"key: value\", such as \"model: gpt2\": there is no colon"},
      {"a bracket that is not closed",
       "workload: {model: gpt2\ncluster: {device: a100-80}\n",
       {"run", "s.yaml"},
       "s.yaml:1:11: not YAML: this { is not closed: its } is missing"},
      {"a bracket closed by another",
       "workload: {model: gpt2, layers: [1, it's}\n",
       {"run", "s.yaml"},
       "s.yaml:1:33: not YAML: this [ is not closed: its ] is missing"},
      {"a tab",
       workload + "cluster:\n\tdevice: a100-80\n",
       {"run", "s.yaml"},
       "s.yaml:3:1: not YAML: a tab: indent with spaces"},
      {"a colon in a value",
       "name: GPT: the small one\n" + workload,
       {"run", "s.yaml"},
       "s.yaml:1:10: not YAML: a value that holds \": \" has to stand in quotes"},
      {"a gradient ready after the end",
       "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 98.38 ms\nparameters:\n"
       "  - {name: w, shape: [4], ready: 98.5 ms}\n",
       {"tune", "s.yaml", "--device", "a100-80", "--ranks", "2", "--link", "nvlink3"},
       "s.yaml:5:34: parameters.ready: a gradient cannot be ready after the backward pass has "
       "ended (98.380000 ms)"},
      {"a link nobody knows",
       timed_profile,
       {"tune", "s.yaml", "--device", "a100-80", "--ranks", "2", "--link", "nosuch"},
       "--link nosuch: unknown name \"nosuch\"; known: "},
      {"a device of run that nobody knows",
       workload + "cluster: {device: a100-80}\n",
       {"run", "s.yaml", "--device", "nosuch"},
       "--device nosuch: unknown name \"nosuch\"; known: "},
      {"a cluster nobody knows",
       workload + "cluster: {device: a100-80}\n",
       {"sweep", "s.yaml", "--vary", "workload.batch=1", "--cluster=nosuch"},
       "--cluster nosuch: unknown name \"nosuch\"; known: "},
      {"a scenario as the cluster",
       workload + "cluster: {device: a100-80}\n",
       {"run", "s.yaml", "--cluster", "./s.yaml"},
       "--cluster ./s.yaml: ./s.yaml is a scenario, not a cluster: put what its key \"cluster\" "
       "holds into a file of its own"},
      {"a file without a device as the cluster",
       "ranks_per_node: 2\n",
       {"run", first_example, "--cluster", "s.yaml"},
       "--cluster s.yaml: missing key \"device\""},
      {"a scenario as the model",
       workload + cluster,
       {"run", "s.yaml", "--set", "workload.model=s.yaml"},
       "--set workload.model=s.yaml: s.yaml is a scenario, not a model: a command takes it by "
       "itself, such as `ddpsim run s.yaml`"},
      {"a calibration as the link",
       a_calibration,
       {"run", first_example, "--link", "s.yaml"},
       "--link s.yaml: s.yaml is a calibration, not a link: give it as --set "
       "cluster.calibration=s.yaml, or to validate as --calibration s.yaml"},
      {"a calibration as the device",
       a_calibration,
       {"run", first_example, "--device", "s.yaml"},
       "--device s.yaml: s.yaml is a calibration, not a device: give it as --set "
       "cluster.calibration=s.yaml, or to validate as --calibration s.yaml"},
      {"a calibration as the scenario",
       a_calibration,
       {"run", "s.yaml"},
       "s.yaml is a calibration, not a scenario: give it beside a scenario, as --set "
       "cluster.calibration=s.yaml, or to validate as --calibration s.yaml"},
      {"a calibration to tune",
       a_calibration,
       {"tune", "s.yaml"},
       "s.yaml is a calibration, not a scenario: give it beside a scenario, as --set "},
      {"a link without its mark as the scenario",
       "kind: ethernet\nbandwidth: 1 GB/s\n",
       {"run", "s.yaml"},
       "s.yaml is a link, not a scenario: give it beside a scenario, as --link s.yaml"},
      {"a link as the device",
       "source: a switch\nkind: ethernet\nbandwidth: 1 GB/s\n",
       {"run", first_example, "--device", "s.yaml"},
       "--device s.yaml: s.yaml is a link, not a device: give it as --link s.yaml"},
      {"a link as the calibration",
       "kind: ethernet\nbandwidth: 1 GB/s\n",
       {"run", first_example, "--set", "cluster.calibration=s.yaml"},
       "--set cluster.calibration=s.yaml: s.yaml is a link, not a calibration: give it as --link "
       "s.yaml"},
      {"a device as the scenario",
       "base: h100-sxm\nmemory: 100 GiB\nmemory_bandwidth: 4 TB/s\n",
       {"run", "s.yaml"},
       "s.yaml is a device, not a scenario: give it beside a scenario, as --device s.yaml"},
      {"a cluster as the scenario",
       "device: h100-sxm\nranks_per_node: 8\nintra_node: nvlink4\n",
       {"run", "s.yaml"},
       "s.yaml is a cluster, not a scenario: give it beside a scenario, as --cluster s.yaml"},
      {"a model as the scenario",
       "family: mlp\nwidths: [8, 8]\n",
       {"run", "s.yaml"},
       "s.yaml is a model, not a scenario: give it beside a scenario, as --set "
       "workload.model=s.yaml"},
      {"a profile as the link",
       timed_profile,
       {"run", first_example, "--link", "s.yaml"},
       "--link s.yaml: s.yaml is a workload profile, not a link: give it as --set "
       "workload.model=s.yaml"},
      {"a result as the scenario",
       "{\"format\": \"ddpsim.run/1\", \"scenario\": \"x\"}\n",
       {"run", "s.yaml"},
       "s.yaml is a file of the format ddpsim.run/1, not a scenario"},
      {"a device with a slip stays a device",
       "base: h100-sxm\nmemroy: 80 GiB\n",
       {"run", first_example, "--device", "s.yaml"},
       "s.yaml:2:1: memroy: unknown key; did you mean \"memory\"?"},
      {"ranks that fill no whole nodes",
       workload + "cluster: {device: a100-80}\n",
       {"run", "s.yaml", "--cluster", "dgx-h100", "--ranks", "12"},
       "--ranks 12: 12 ranks do not divide by the system's ranks_per_node = 8"},
      {"the same by --set",
       workload + "cluster: {device: a100-80}\n",
       {"run", "s.yaml", "--cluster", "dgx-h100", "--set", "cluster.ranks=12"},
       "--set cluster.ranks=12: 12 ranks do not divide by the system's ranks_per_node = 8"},
      {"a model for a command without --cluster",
       timed_profile,
       {"validate", "s.yaml"},
       "s.yaml is a model: say what it is to run on, such as --set cluster=dgx-h100 or --set "},
      {"a model for validate, which runs on processors",
       timed_profile,
       {"validate", "s.yaml"},
       "s.yaml is a model: say what it is to run on, such as --set cluster=dgx-h100 or --set "
       "cluster.device=h100-sxm (run, tune, sweep, schedule and explore have --cluster and "
       "--device; validate and calibrate on processors take --set 'cluster={device: generic-cpu, "},
      {"a link as the cluster",
       "format: ddpsim.link/1\nbandwidth: 1 GB/s\nend: ddpsim.link/1\n",
       {"run", first_example, "--cluster", "s.yaml"},
       "--cluster s.yaml: s.yaml is a link, not a cluster: give it as --link s.yaml"},
      {"a tag that nothing knows",
       "name: !foo bar\n" + workload + cluster,
       {"run", "s.yaml"},
       "s.yaml:1:7: the tag !foo means nothing here: leave it out"},
      {"a tag that does not fit",
       "workload: {model: gpt2, batch: !!int eight, sequence: 64}\n" + cluster,
       {"run", "s.yaml"},
       "s.yaml:1:32: the tag !!int does not fit the value behind it: leave it out"},
      {"a tag in a setting",
       workload + cluster,
       {"run", "s.yaml", "--set", "workload.batch=!!float 2x"},
       "--set workload.batch=!!float 2x: the tag !!float does not fit the value behind it: leave "
       "it out"},
      {"a folder for a result that is not there",
       workload + cluster,
       {"run", "s.yaml", "--csv", "nowhere/x.csv"},
       "nowhere/x.csv: cannot be written: No such file or directory"},
      {"a device nobody knows",
       timed_profile,
       {"tune", "s.yaml", "--device", "nosuch", "--ranks", "2", "--link", "nvlink3"},
       "--device nosuch: unknown name \"nosuch\"; known: "}};
  return all;
}

TEST_CASE("errors say what to write", "[tools][bad_input]") {
  const Scratch scratch;
  for (const Slip& slip : slips()) {
    CAPTURE(slip.what);
    scratch.write("s.yaml", slip.content);
    const Outcome outcome = ddpsim(slip.arguments, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK_THAT(scratch.without_folder(outcome.err), Catch::StartsWith("ddpsim: " + slip.told));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
}

TEST_CASE("a file of another kind is told at the place that names it", "[tools][bad_input]") {
  const Scratch scratch;
  scratch.write("c.yaml", a_calibration);
  scratch.write("s.yaml", workload +
                              "cluster: {device: a100-80, ranks_per_node: 2, intra_node: "
                              "c.yaml}\n");
  const Outcome outcome = ddpsim({"run", "s.yaml"}, scratch.folder());
  CHECK(outcome.code == 2);
  CHECK_THAT(scratch.without_folder(outcome.err),
             Catch::StartsWith("ddpsim: s.yaml:2:59: cluster.intra_node: c.yaml is a calibration, "
                               "not a link: give it as "));
}

TEST_CASE("what a scenario is made of is told with the command that makes one",
          "[tools][bad_input]") {
  const Scratch scratch;
  scratch.write("my.py", "def make():\n    return None\n");
  const auto said = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = ddpsim(arguments, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  const auto made = [](const std::string& name, const std::string& what, const std::string& flag) {
    return fmt::format(
        "ddpsim: {0}: no such file, but the name of {1}: `ddpsim init --{2} {0} {0}.yaml` writes a "
        "scenario with it\n",
        name, what, flag);
  };
  for (const char* command : {"run", "tune", "schedule", "validate", "score", "init"}) {
    CAPTURE(command);
    CHECK(said({command, "gpt2"}) == made("gpt2", "a model", "model"));
  }
  CHECK(said({"run", "dgx-h100"}) == made("dgx-h100", "a ready cluster", "cluster"));
  CHECK(said({"run", "h100-sxm"}) == made("h100-sxm", "a device", "device"));
  CHECK(said({"sweep", "gpt2", "--vary", "training.bucket_cap=1MiB,2MiB"}) ==
        made("gpt2", "a model", "model"));
  const auto meant = [](const std::string& given, const std::string& name, const std::string& what,
                        const std::string& flag) {
    return fmt::format(
        "ddpsim: {0}: no such file, but {1} is the name of {2}: `ddpsim init --{3} {1} {1}.yaml` "
        "writes a scenario with it\n",
        given, name, what, flag);
  };
  CHECK(said({"run", "GPT2"}) == meant("GPT2", "gpt2", "a model", "model"));
  CHECK(said({"run", "gpt-2"}) == meant("gpt-2", "gpt2", "a model", "model"));
  CHECK(said({"tune", "ResNet-50"}) == meant("ResNet-50", "resnet50", "a model", "model"));
  CHECK(said({"run", "DGX_H100"}) == meant("DGX_H100", "dgx-h100", "a ready cluster", "cluster"));
  CHECK(said({"run", "H100-SXM"}) == meant("H100-SXM", "h100-sxm", "a device", "device"));
  CHECK(said({"run", "gpt3"}) == "ddpsim: gpt3: no such file\n");
  // The command that is told does it.
  CHECK(ddpsim({"init", "--model", "gpt2", "gpt2.yaml"}, scratch.folder()).code == 0);
  CHECK(ddpsim({"run", "gpt2.yaml"}, scratch.folder()).code == 0);
  // A file of such a name is one like others.
  scratch.write("gpt2", workload + cluster);
  CHECK(ddpsim({"run", "gpt2"}, scratch.folder()).code == 0);
  const std::string make =
      ": a Python file is no scenario: describe the model that its function make returns, with its "
      "batch and loss, by `ddpsim describe my.py:make -o my.yaml`, then give my.yaml in its place, "
      "with --cluster\n";
  CHECK(said({"run", "my.py"}) == "ddpsim: my.py" + make);
  CHECK(said({"tune", "my.py:make"}) == "ddpsim: my.py:make" + make);
  CHECK(said({"run", "none.py"}) == "ddpsim: none.py: no such file\n");
}

TEST_CASE("what was refused for its spelling is taken", "[tools]") {
  const Scratch scratch;
  scratch.write("true.yaml", workload + cluster + "training: {micro_batches: 2, no_sync: True}\n");
  CHECK(ddpsim({"run", "true.yaml"}, scratch.folder()).code == 0);
  scratch.write("merged.yaml",
                "workload: {model: gpt2, batch: 1, sequence: 64}\n"
                "cluster: {<<: {device: a100-80, ranks_per_node: 2}, intra_node: nvlink3}\n");
  CHECK(ddpsim({"run", "merged.yaml"}, scratch.folder()).code == 0);
  // A profile's figures are rounded, each by itself; an optimizer of no time is none.
  scratch.write("p.yaml",
                "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 98.38 ms\noptimizer: 0 ms\n"
                "parameters:\n  - {name: w, shape: [4], ready: 98.3804 ms}\n");
  const Outcome tuned =
      ddpsim({"tune", "p.yaml", "--device", "a100-80", "--ranks", "2", "--link", "nvlink3"},
             scratch.folder());
  INFO(tuned.err);
  CHECK(tuned.code == 0);
}

TEST_CASE("a cap that makes no bucket is noted", "[tools]") {
  const Scratch scratch;
  const auto said = [&](const std::string& training) {
    scratch.write("s.yaml", workload + cluster + "training: {" + training + "}\n");
    const Outcome run = ddpsim({"run", "s.yaml"}, scratch.folder());
    CHECK(run.code == 0);
    return run.out + run.err;
  };
  for (const auto& [key, value] :
       {std::pair("parameter_groups", "2"), std::pair("bucket_caps", "[1 MiB, 4 MiB]")}) {
    const std::string set = fmt::format("{}: {}", key, value);
    CHECK_THAT(said("bucket_cap: 5 MiB, " + set),
               Catch::Contains(fmt::format(
                   "bucket_cap: 5 MiB makes no bucket: {} says what the buckets are", key)));
    CHECK_THAT(said(set), !Catch::Contains("makes no bucket"));
  }
  CHECK_THAT(said("bucket_cap: 5 MiB"), !Catch::Contains("makes no bucket"));
}

TEST_CASE("help of a command is that command's", "[tools]") {
  CHECK(ddpsim({"help", "run"}).out == ddpsim({"run", "--help"}).out);
  CHECK(ddpsim({"help", "rnu"}).code == 2);
  CHECK(ddpsim({"help"}).out == ddpsim({"--help"}).out);
}

TEST_CASE("a calibration without rows is not called one", "[tools][run]") {
  const Scratch scratch;
  scratch.write("s.yaml", workload + cluster +
                              "measured: {calibrate_on: [naive], rows: [{strategy: bucketed, "
                              "step: 50 ms}]}\n");
  const Outcome run = ddpsim({"run", "s.yaml"}, scratch.folder());
  CHECK_THAT(run.out, Catch::Contains("note: no row to calibrate on"));
  CHECK_THAT(run.out, !Catch::Contains("calibrated on the measured rows"));
}

TEST_CASE("one rank sends nothing and overlaps nothing", "[tools][run]") {
  const Scratch scratch;
  scratch.write("s.yaml", workload + cluster);
  const std::vector<std::string> one{"run", "s.yaml", "--set", "cluster.ranks_per_node=1"};
  CHECK_THAT(ddpsim(one, scratch.folder()).out, !Catch::Contains("100 %"));
  std::vector<std::string> json = one;
  json.insert(json.end(), {"--quiet", "--json", "-"});
  const Json answer = ddpsim(json, scratch.folder()).json();
  for (const Json& result : answer["results"]) CHECK(result["wire_bytes"] == 0);
}

TEST_CASE("a bad value of the one key of a sweep is a row", "[tools][sweep]") {
  const Scratch scratch;
  scratch.write("s.yaml", workload + cluster + "compare: [bucketed]\n");
  const Outcome sweep = ddpsim({"sweep", "s.yaml", "--vary", "training.bucket_cap=1MiB,x,25MiB",
                                "--csv", "out.csv", "--quiet"},
                               scratch.folder());
  CHECK(sweep.code == 2);
  const std::string csv = content_of(scratch.path("out.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
  CHECK_THAT(csv, Catch::Contains("expected a size with its unit"));
  // A key that no value suits is a slip of the key.
  CHECK(ddpsim({"sweep", "s.yaml", "--vary", "training.bucket_cpa=1MiB,2MiB", "--csv", "o.csv"},
               scratch.folder())
            .code == 2);
  CHECK(!std::filesystem::exists(scratch.path("o.csv")));
}

TEST_CASE("a layer that is named as its parameter is gets told, with names that are known",
          "[tools][run]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("s.yaml", "workload: {model: cs336-small, batch: 4, sequence: 256}\n" + cluster)
          .string();
  const auto refused = [&](const std::string& layer) {
    const Outcome outcome =
        ddpsim({"run", file, "--set",
                "training.hooks=[{chunks: {layer: " + layer + ", count: 4, threads: 4}}]"});
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK_THAT(refused("lm_head"),
             Catch::Contains("no layer is named \"lm_head\"; parameter \"lm_head.weight\" is of "
                             "layer \"head\"; known: ") &&
                 Catch::Contains(" names, embedding, ") && Catch::EndsWith(", head\n"));
  CHECK_THAT(refused("haed"), Catch::Contains("no layer is named \"haed\"; did you mean \"head\"?; "
                                              "known: "));
}

TEST_CASE("times that no device can reach are noticed", "[tools][run]") {
  const Scratch scratch;
  scratch.write("s.yaml", workload + cluster + "compare: [bucketed]\n");
  const Outcome quick =
      ddpsim({"run", "s.yaml", "--set", "workload.times={forward: 1 ms, backward: 2 ms}", "--set",
              "workload.batch=16", "--set", "workload.sequence=1024"},
             scratch.folder());
  CHECK(quick.code == 0);
  CHECK_THAT(quick.err, Catch::Contains("more than a100-80 can compute"));
  const Outcome odd =
      ddpsim({"run", "s.yaml", "--set",
              "measured={calibrate_on: [naive], rows: [{strategy: naive, step: 900 ms}]}"},
             scratch.folder());
  CHECK(odd.code == 0);
  CHECK_THAT(odd.out, Catch::Contains("times as long as the laws have it"));
  CHECK_THAT(odd.out, !Catch::Contains("Predictions "));
}

}  // namespace
}  // namespace ddpsim
