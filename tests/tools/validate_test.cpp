#include <cmath>
#include <map>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "backend/measure/steal.hpp"
#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "tests/tools/jobs.hpp"
#include "tools/report/reports/calibration_file.hpp"
#include "tools/report/reports/validation_report.hpp"
#include "tools/study/other_machine.hpp"

namespace ddpsim {
namespace {

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// A run that measures the machine first, and little of it.
std::vector<std::string> measuring(const std::string& scenario) {
  return {"validate", scenario,    "--steps", "3",         "--warm-up",
          "1",        "--repeats", "2",       "--timeout", "30 s"};
}

/// A run that is over sooner; its times mean little.
std::vector<std::string> quick(const std::string& scenario) {
  return with(measuring(scenario), quickly_calibrated(scenario));
}

const Json& answer_of(const Json& json, const std::string& strategy, std::int64_t cap = 0) {
  for (const Json& each : json.at("results"))
    if (each.at("strategy") == strategy && (cap == 0 || each.at("bucket_cap_bytes") == cap))
      return each;
  throw std::runtime_error("no result of " + strategy);
}

/// What holds of every validation, whatever the machine does meanwhile.
void check_validation(const Json& json, int ranks) {
  CHECK(json.at("format") == "ddpsim.validate/1");
  CHECK(json.at("ranks") == ranks);
  std::map<std::string, std::string> strategies;  // [schedule]
  for (const Json& each : json.at("results")) {
    CAPTURE(each.at("strategy"));
    // One fingerprint, of a schedule that no other strategy has.
    const std::string schedule = each.at("schedule");
    CHECK(schedule.size() == 16);
    CHECK(schedule.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(strategies.emplace(schedule, each.at("strategy")).first->second == each.at("strategy"));
    const Json &predicted = each.at("predicted"), &measured = each.at("measured");
    // The same shape as `run`'s results, and the same schedule on both sides.
    for (const char* key : {"strategy", "bucket_cap_bytes", "collectives", "wire_bytes"})
      CHECK(predicted.at(key) == measured.at(key));
    for (const Json* side : {&predicted, &measured}) {
      const double step = side->at("step_ms");
      CHECK(step > 0);
      double passes = 0;
      for (const char* key : {"forward_ms", "backward_ms", "optimizer_ms"}) {
        CHECK(side->at(key) > 0);
        passes += side->at(key).get<double>();
      }
      CHECK(side->at("overlap_ratio") >= 0);
      CHECK(side->at("overlap_ratio") <= 1);
      double last = 0;
      for (const Json& bucket : side->at("buckets")) {
        CHECK(bucket.at("start_ms") <= bucket.at("end_ms"));
        CHECK(bucket.at("start_ms") >= last);            // one at a time, in order
        last = bucket.at("end_ms").get<double>() * 0.5;  // medians of different steps
      }
      const Json& parts = side->at("parts");
      double sum = 0;
      for (const char* key : {"compute_ms", "communication_ms", "waiting_ms", "launch_ms"}) {
        CHECK(parts.at(key) >= 0);
        sum += parts.at(key).get<double>();
      }
      if (side == &predicted) CHECK(sum == Approx(step));
    }
    const double p = predicted.at("step_ms"), m = measured.at("step_ms");
    CHECK(each.at("error").at("step_ms").get<double>() == Approx((p - m) / m));
    CHECK(each.at("error").at("overlap_ratio").get<double>() ==
          Approx(predicted.at("overlap_ratio").get<double>() -
                 measured.at("overlap_ratio").get<double>())
              .margin(1e-9));
    CHECK(measured.at("spread").at("step_low_ms") <= measured.at("spread").at("step_high_ms"));
    CHECK(each.at("gradients").at("identical") == true);
    CHECK(each.at("gradients").at("worst_over_tolerance") <= 1);
    CHECK(each.at("gradients").at("wrong") == 0);
    CHECK(each.at("gradients").at("first_wrong").is_null());
  }
}

}  // namespace

TEST_CASE("validate writes a row for each strategy as CSV", "[tools][validate]") {
  const Scratch scratch;
  const std::string file = scratch.write("s.yaml", small_mlp).string();
  const std::string csv = scratch.path("rows.csv").string();
  const Outcome outcome = ddpsim(with(
      quick(file), {"--backend", "threads", "--ranks", "2", "-q", "--csv", csv, "--json", "-"}));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::vector<std::string> rows = lines_of(content_of(csv));
  const Json results = outcome.json().at("results");
  REQUIRE(rows.size() == results.size() + 1);
  CHECK(rows[0] == "label,predicted_step_ms,measured_step_ms,step_error,step_low_ms,step_high_ms");
  for (std::size_t r = 0; r < results.size(); ++r) {
    const std::vector<double> sides{results[r].at("predicted").at("step_ms"),
                                    results[r].at("measured").at("step_ms")};
    // A label such as "bucketed, 4 MiB" holds a comma.
    const std::size_t label =
        rows[r + 1].find(rows[r + 1][0] == '"' ? "\"," : ",") + (rows[r + 1][0] == '"' ? 2 : 1);
    std::istringstream numbers(rows[r + 1].substr(label));
    double predicted = 0, measured = 0;
    char comma = 0;
    numbers >> predicted >> comma >> measured;
    CHECK(predicted == Approx(sides[0]));
    CHECK(measured == Approx(sides[1]));
  }
}

TEST_CASE("an optimizer that no backend computes is refused in one line, before ranks start",
          "[tools][validate]") {
  const Scratch scratch;
  scratch.write("s.yaml", small_mlp);
  const std::string file = (scratch.folder() / "s.yaml").string();
  for (const std::string optimizer :
       {"sgd-plain", "lamb", "adafactor", "muon", "rmsprop", "novograd", "lion", "adam-8bit"}) {
    for (const char* backend : {"gloo", "threads"}) {
      CAPTURE(optimizer, backend);
      const Outcome outcome = ddpsim(
          {"validate", file, "--backend", backend, "--set", "workload.optimizer=" + optimizer});
      CHECK(outcome.code == 2);
      CHECK(outcome.out.empty());
      CHECK(outcome.err == "ddpsim: no backend computes " + optimizer +
                               "'s update: choose another optimizer, or give its time\n");
    }
  }
}

TEST_CASE("input that is made at a pace is refused on real ranks, which load no data",
          "[tools][validate]") {
  const Scratch scratch;
  scratch.write("s.yaml", small_mlp);
  const std::string file = (scratch.folder() / "s.yaml").string();
  const Outcome outcome = ddpsim({"validate", file, "--backend", "threads", "--set",
                                  "training.input={time: 480 ms, cores: 4}"});
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err ==
        "ddpsim: " + file +
            ": training.input: real ranks load no data: write ready, or take it out\n");
}

TEST_CASE("validate predicts and runs every strategy and every cap", "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const std::string backend = GENERATE("gloo", "threads");
  CAPTURE(backend);
  const Outcome outcome = ddpsim(
      with(backend == "gloo" ? measuring(scenario) : quick(scenario),
           {"--backend", backend, "--ranks", "2", "--caps", "4KiB,16KiB,1MiB", "--json", "-"}));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  for (const std::string& line : lines_of(outcome.err))
    CHECK_THAT(line, Catch::StartsWith("after ") ||  // how far it is, where others delay it
                         Catch::StartsWith("note: negative exposed times are noise") ||
                         Catch::Contains(" is doubtful: "));
  const Json json = outcome.json();
  check_validation(json, 2);
  CHECK(json.at("mode") == backend + ", 2 ranks, TCP over loopback");
  CHECK(json.at("busy_kernels") == false);
  const double stolen = json.at("stolen_share");
  CHECK((stolen >= 0 && stolen <= 1));
  REQUIRE(json.at("results").size() == 7);  // none, naive, flat, overlap, three caps
  // 4 tensors of gradients in 4 KiB buckets, one after the other, up to all in one.
  CHECK(answer_of(json, "naive").at("measured").at("collectives") == 6);
  CHECK(answer_of(json, "flat").at("measured").at("collectives") == 1);
  CHECK(answer_of(json, "bucketed", 4 << 10).at("measured").at("collectives") >
        answer_of(json, "bucketed", 1 << 20).at("measured").at("collectives"));
}

TEST_CASE("validate runs comm hooks and other trainings in turns", "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const std::string file = scratch.path("all.json").string();
  const std::string log = scratch.path("hooks.csv").string();
  const Outcome outcome = ddpsim(with(
      measuring(scenario),
      {"--backend", "threads", "--ranks", "2", "--set", "compare=[flat, bucketed]", "--set",
       "training.micro_batches=2", "--vary",
       "training.comm_hook=none,fp16_compress,{powersgd: {rank: 1}},{powersgd: {rank: 1, seed: 7}}",
       "--vary", "training.no_sync=false,true", "--json", file, "--hooks-log", log}));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json json = Json::parse(content_of(file));
  check_validation(json, 2);
  const Json& results = json.at("results");
  REQUIRE(results.size() == 2 + 8);  // none and flat once
  for (const std::size_t once : {0, 1}) CHECK_FALSE(results[once].contains("set"));
  CHECK(results[0].at("strategy") == "none");
  CHECK(results[1].at("strategy") == "flat");
  const auto bytes = [&](std::size_t which) {
    return results[which].at("measured").at("wire_bytes").get<std::int64_t>();
  };
  const char* hooks[] = {"none", "fp16_compress", "{powersgd: {rank: 1}}",
                         "{powersgd: {rank: 1, seed: 7}}"};
  for (std::size_t hook = 0; hook < 4; ++hook) {
    const std::size_t synced = 2 + 2 * hook, once = synced + 1;
    for (const std::size_t which : {synced, once}) {
      CHECK(results[which].at("set").at("training.comm_hook") == hooks[hook]);
      CHECK(results[which].at("set").at("training.no_sync") == (which == once ? "true" : "false"));
      CHECK_THAT(outcome.out,
                 Catch::Contains(fmt::format("bucketed, 4+16 KiB, comm_hook: {}, no_sync: {} ",
                                             hooks[hook], which == once)));
    }
    CHECK(bytes(synced) == 2 * bytes(once));  // both micro-batches communicate, or the last one
  }
  CHECK(bytes(4) == bytes(2) / 2);
  CHECK(bytes(6) < bytes(4));
  CHECK(bytes(8) == bytes(6));
  CHECK_THAT(content_of(log),
             Catch::Contains("\"bucketed, 4+16 KiB, comm_hook: fp16_compress, no_sync: true\""));
}

TEST_CASE("validate says how many gradients are wrong, how, and which comes first",
          "[tools][validate]") {
  Validation validation;
  validation.scenario.workload.parameters.resize(6);
  for (const Strategy strategy : {Strategy::none, Strategy::naive, Strategy::flat}) {
    validation.steps.emplace_back().measured.training.strategy = strategy;
    validation.steps.back().gradients.worst = 0.25;
  }
  CHECK_THAT(gradients_text(validation), Catch::StartsWith("gradients: identical on all ranks") &&
                                             Catch::Contains("is 0.25 of what rounding allows"));
  GradientCheck& check = validation.steps.back().gradients;
  check.wrong = 2;
  check.first_wrong = "fc1.weight";
  check.worst = 31.4159;
  CHECK(gradients_text(validation) ==
        "gradients WRONG under flat: 2 of 6 differ from the mean by up to 31.4 times what rounding "
        "allows; the first is that of fc1.weight\n");
  check.identical = false;
  CHECK(gradients_text(validation) ==
        "gradients WRONG under flat: 2 of 6 differ between ranks; the first is that of "
        "fc1.weight\n");
  check.wrong = 1;
  CHECK_THAT(gradients_text(validation), Catch::Contains("1 of 6 differs between ranks; "));
}

TEST_CASE("validate varies nothing but how gradients are averaged", "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const auto refused = [&](const std::vector<std::string>& more) {
    const Outcome outcome =
        ddpsim(with(measuring(scenario), with({"--backend", "threads", "--ranks", "2"}, more)));
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK_THAT(refused({"--vary", "cluster.nodes=1,2"}),
             Catch::Contains("--vary cluster.nodes: validate varies keys of `training` alone"));
  CHECK_THAT(refused({"--vary", "training.micro_batches=1,2"}),
             Catch::Contains("--vary training.micro_batches=2: the step without communication"));
  CHECK_THAT(refused({"--vary",
                      "training.hooks=[scale: {parameter: \"*\", factor: 0.5}],"
                      "[scale: {parameter: \"*\", factor: 0.25}]"}),
             Catch::Contains("the step without communication"));
  for (const char* key :
       {"bucket_cap=1MiB,2MiB", "bucket_caps=[1MiB],[2MiB]", "parameter_groups=1,2"})
    CHECK_THAT(refused({"--caps", "1MiB", "--vary", std::string("training.") + key}),
               Catch::Contains("and --caps both set the buckets"));
  CHECK_THAT(refused({"--caps", "1MiB", "--set", "training.bucket_cap=2MiB"}),
             Catch::Contains("--set training.bucket_cap=2MiB and --caps both set the buckets"));
  CHECK_THAT(refused({"--set", "training.no_sync=true", "--vary", "training.no_sync=false,true"}),
             Catch::Contains("training.no_sync is given by --set training.no_sync=true and by "));
  CHECK_THAT(refused({"--vary", "training.bucket_cap=1KiB..200KiB"}),
             Catch::Contains("validate runs at most 100"));
  CHECK_THAT(refused({"--vary", "training.no_sync=false,true", "--set", "compare=[flat]", "--set",
                      "training.micro_batches=2"}),
             Catch::Contains("--vary varies `bucketed`, which is not in the scenario's `compare`"));
  CHECK_THAT(refused({"--vary", "training.comm_hook=fp17_compress"}),
             Catch::Contains("fp17_compress"));
}

TEST_CASE("validate names no link of the scenario, as ranks use what is here",
          "[tools][validate]") {
  const Scratch scratch;
  std::string text = small_mlp;
  const std::string own = "{latency: 30 us, bandwidth: 1 GB/s}";
  text.replace(text.find(own), own.size(), "nvlink4");
  const std::string scenario = scratch.write("small.yaml", text).string();
  const std::string json = scratch.path("v.json").string();
  const Outcome outcome =
      ddpsim({"validate", scenario, "--backend", "threads", "--ranks", "2", "--steps", "1",
              "--warm-up", "0", "--repeats", "1", "--set", "compare=[bucketed]", "--json", json});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, !Catch::Contains("nvlink4") && !Catch::Contains("450 GB/s") &&
                              Catch::Contains("by links as measured, line rate not known"));
  const Json cluster = Json::parse(content_of(json))["cluster"];
  CHECK(cluster["intra_node"].is_null());
  CHECK(cluster["line_rate_bytes_per_second"].is_null());
}

TEST_CASE("validate prints both sides and draws both timelines", "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const std::string trace = scratch.path("trace.json").string();
  const Outcome outcome =
      ddpsim(with(quick(scenario), {"--backend", "threads", "--ranks", "2", "--trace", trace,
                                    "--all-ranks", "--json", scratch.path("all.json").string()}));
  REQUIRE(outcome.code == 0);
  const double stolen = Json::parse(content_of(scratch.path("all.json"))).at("stolen_share");
  CHECK((outcome.out.find("the host of this virtual machine took") != std::string::npos) ==
        (stolen > most_stolen));
  for (const char* text :
       {"predicted ms  measured ms", "overlap", "compute  communication  waiting  launch",
        "buckets of bucketed, 4+16 KiB: predicted | measured", "predicted compute",
        "measured  compute", "gradients: identical on all ranks to the bit under every strategy",
        "schedules, by fingerprint, simulated and executed by every rank: none "})
    CHECK_THAT(outcome.out, Catch::Contains(text));
  const Json events = Json::parse(content_of(trace)).at("traceEvents");
  std::vector<std::string> processes;
  for (const Json& event : events)
    if (event.at("name") == "process_name") processes.push_back(event.at("args").at("name"));
  CHECK(processes.size() == 5 * 2 * 2);  // strategies, sides, ranks
  CHECK(std::count(processes.begin(), processes.end(), "overlap, predicted: rank 1") == 1);
  CHECK(std::count(processes.begin(), processes.end(), "overlap, measured: rank 1") == 1);
}

TEST_CASE("validate says that ranks take turns before it measures", "[tools][validate]") {
  const Scratch scratch;
  scratch.write("s.yaml", small_mlp);
  const std::string ranks = std::to_string(sysconf(_SC_NPROCESSORS_ONLN) + 1);
  Running running({DDPSIM_PROGRAM, "validate", "s.yaml", "--backend", "threads", "--ranks", ranks},
                  scratch.folder());
  CHECK(eventually([&] {
    return said_by(running).find("note: " + ranks + " ranks share ") != std::string::npos;
  }));
  CHECK_THAT(said_by(running), Catch::Contains("take turns"));
}

TEST_CASE("validate names in what a calibration is of other ranks than those that run",
          "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const std::string file = quickly_calibrated(scenario).back();  // two ranks, threads
  const auto said = [&](const std::string& calibration, const std::string& ranks,
                        const std::vector<std::string>& more = {}) {
    const Outcome outcome =
        ddpsim(with(with(measuring(scenario),
                         {"--backend", "threads", "--ranks", ranks, "--calibration", calibration}),
                    more));
    CAPTURE(ranks, outcome.err);
    CHECK(outcome.code == 0);
    std::vector<std::string> notes;
    for (const std::string& line : lines_of(outcome.err))
      if (line.find("was measured elsewhere") != std::string::npos) notes.push_back(line);
    return notes;
  };
  CHECK(said(file, "2").empty());
  const auto three = said(file, "3");
  REQUIRE(three.size() == 1);
  CHECK_THAT(three[0], Catch::StartsWith("note: " + file) &&
                           Catch::Contains("those of this job (2 ranks there, 3 here)"));
  CHECK(said(file, "3", {"--quiet"}).empty());
  // Of another machine, by another library: an edited file has no checksum.
  Calibration other = read_calibration(file);
  const std::string processor = other.cpu;
  other.cpu = "another CPU, 3 cores";
  other.machine = "elsewhere, Linux 2";
  other.versions = "ddpsim 0.0.9, Gloo 0.4.0";
  const auto both = said(scratch.write("other.yaml", calibration_yaml(other)).string(), "2");
  REQUIRE(both.size() == 1);
  CHECK_THAT(both[0], Catch::Contains("machine: elsewhere, Linux 2 there, ") &&
                          Catch::Contains("processor: another CPU, 3 cores there, " + processor) &&
                          Catch::Contains("libraries: ddpsim 0.0.9, Gloo 0.4.0 there, ddpsim ") &&
                          !Catch::Contains("ranks there"));
  other.doubts = {"other programs were at work"};
  const std::string busy = scratch.write("busy.yaml", calibration_yaml(other)).string();
  const Outcome outcome = ddpsim(
      with(measuring(scenario), {"--backend", "threads", "--ranks", "2", "--calibration", busy}));
  CHECK_THAT(outcome.err,
             Catch::Contains("note: " + busy + " is doubtful: other programs were at work\n"));
}

TEST_CASE("what another program calibrated is compared by its processor alone",
          "[tools][validate]") {
  Calibration torch, here;
  torch.backend = "torch gloo";
  torch.cpu = "AMD EPYC, 1 thread";
  torch.versions = "torch 2.13";
  torch.link = "eth0, 2 machines";
  torch.ranks = here.ranks = 2;
  here.backend = "gloo";
  here.cpu = "AMD EPYC, 2 cores";
  here.versions = "ddpsim 1, in turns with other programs";
  CHECK(differences_from(torch, here) == "backend: torch gloo there, gloo here");
  here.cpu = "Intel, 2 cores";
  CHECK_THAT(differences_from(torch, here),
             Catch::EndsWith("processor: AMD EPYC there, Intel here"));
  Calibration before = here;
  before.versions = "ddpsim 1";
  CHECK(differences_from(before, here).empty());
  before.versions = "";  // it does not say
  CHECK(differences_from(before, here).empty());
}

TEST_CASE("validate and calibrate note a batch job whose launcher started no ranks",
          "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const auto calibration = quickly_calibrated(scenario);
  const auto said = [&](std::vector<std::string> command, const Environment& environment) {
    command.insert(command.begin(), DDPSIM_PROGRAM);
    const Outcome outcome = execute(command, {}, environment);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    std::vector<std::string> notes;
    for (const std::string& line : lines_of(outcome.err))
      if (line.find(" job has ") != std::string::npos) notes.push_back(line);
    return notes;
  };
  const Environment two_nodes{
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_NTASKS", "4"}};
  const Environment one_node{
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NUM_NODES", "1"}, {"SLURM_NTASKS", "4"}};
  const std::vector<std::string> validate = with(measuring(scenario), calibration);
  const auto notes = said(with(validate, {"--ranks", "2"}), two_nodes);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::StartsWith("note: this Slurm job has 2 nodes, and srun started "
                                         "nothing on them: the ranks of this command (2) all run "
                                         "on this node") &&
                           Catch::Contains("`srun ddpsim validate ... --rendezvous file:DIR "
                                           "--interface NAME`"));
  CHECK(said(with(validate, {"--ranks", "2", "--quiet"}), two_nodes).empty());
  CHECK(said(with(validate, {"--ranks", "2", "--backend", "threads"}), two_nodes).empty());
  CHECK(said(with(validate, {"--ranks", "2"}), {}).empty());
  const auto tasks = said(validate, one_node);
  REQUIRE(tasks.size() == 1);
  CHECK_THAT(tasks[0], Catch::Contains("this Slurm job has 4 tasks, and srun started none of them: "
                                       "this process starts 2 ranks by itself") &&
                           Catch::Contains("or --ranks 4"));
  CHECK(said(with(validate, {"--ranks", "2"}), one_node).empty());  // as was asked for
  const auto calibrated = said(
      {"calibrate", scenario, "--ranks", "2", "--repeats", "1", "--smallest", "128 KiB",
       "--largest", "256 KiB", "--set", "training.hooks=[]", "-o", scratch.path("c.yaml").string()},
      two_nodes);
  REQUIRE(calibrated.size() == 1);
  CHECK_THAT(calibrated[0], Catch::Contains("`srun ddpsim calibrate ... "));
}

TEST_CASE("negative exposed times are said to be noise, with the largest difference",
          "[tools][validate]") {
  Validation validation;
  const auto add = [&](Strategy strategy, Duration length) {
    ValidatedStep& step = validation.steps.emplace_back();
    step.measured.training.strategy = strategy;
    step.measured.metrics.step = length;
  };
  using std::chrono::microseconds;
  add(Strategy::none, microseconds{20'000});
  add(Strategy::naive, microseconds{21'000});
  add(Strategy::flat, microseconds{19'996});  // 0.00 ms
  CHECK(validation_notes(validation).empty());
  add(Strategy::flat, microseconds{19'900});
  add(Strategy::overlap, microseconds{19'500});
  CHECK_THAT(validation_notes(validation).at(0),
             Catch::Contains("2 of 4 strategies measured shorter than `none`") &&
                 Catch::Contains("; overlap by 0.50 ms (2.5 % of the step)"));
}

TEST_CASE("the note on noise comes with negative exposed times, which stay as they are",
          "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const Outcome outcome =
      ddpsim(with(quick(scenario), {"--backend", "threads", "--ranks", "2", "--json", "-"}));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json results = outcome.json().at("results");
  const double none = results[0].at("measured").at("step_ms");
  bool negative = false;
  for (const Json& each : results) {
    const double exposed = each.at("measured").at("exposed_ms");
    CHECK(exposed == Approx(each.at("measured").at("step_ms").get<double>() - none).margin(1e-6));
    negative = negative || exposed <= -0.005;
  }
  CHECK((outcome.err.find("negative exposed times are noise") != std::string::npos) == negative);
}

TEST_CASE("a calibration file stands in for measuring, in validate and in run",
          "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const std::string file = scratch.path("machine.yaml").string();
  const Outcome calibrated =
      ddpsim({"calibrate", scenario, "--backend", "threads", "--ranks", "2", "--repeats", "3",
              "--smallest", "64 KiB", "--largest", "1 MiB", "-o", file});
  CAPTURE(calibrated.err);
  REQUIRE(calibrated.code == 0);
  for (const char* text : {"forward 8 x 96 x 64", "all-reduce of 1 MiB", "beside all-reduces of",
                           "issuing a collective"})
    CHECK_THAT(calibrated.out, Catch::Contains(text));
  const Outcome validated =
      ddpsim(with(measuring(scenario),
                  {"--backend", "threads", "--ranks", "2", "--calibration", file, "--json", "-"}));
  CAPTURE(validated.err);
  REQUIRE(validated.code == 0);
  const Json json = validated.json();
  check_validation(json, 2);
  const std::string elsewhere =
      scratch
          .write("elsewhere.yaml",
                 "workload: {model: {family: mlp, widths: [64, 96, 64, 32]}, batch: 8, dtype: "
                 "fp32, optimizer: sgd}\ncluster: {calibration: machine.yaml}\n")
          .string();
  const Outcome run = ddpsim({"run", elsewhere, "--json", "-"});
  CAPTURE(run.err);
  REQUIRE(run.code == 0);
  // The same calibration, the same prediction.
  CHECK(run.json().at("results").at(0).at("communication_ms").get<double>() ==
        Approx(answer_of(json, "naive").at("predicted").at("communication_ms").get<double>()));
}

TEST_CASE("validate measures for about as long as it may, and what was asked for in full",
          "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const auto validated = [&](const std::vector<std::string>& more) {
    Outcome outcome = ddpsim(
        with({"validate", scenario, "--backend", "threads", "--ranks", "2", "--json", "-"}, more));
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    for (const Json& each : outcome.json().at("results"))
      CHECK(each.at("measured").at("spread").at("repeats") ==
            outcome.json().at("results").at(0).at("measured").at("spread").at("repeats"));
    return outcome;
  };
  const auto steps = [](const Outcome& outcome) {
    return outcome.json().at("results").at(0).at("measured").at("spread").at("repeats").get<int>();
  };
  const auto cut_short = Catch::Contains("steps of each strategy were measured instead of 20");
  // No time at all: the fewest.
  const std::string page = scratch.path("held.html").string();
  const Outcome fewest = validated({"--within", "1 ms", "--report", page});
  CHECK(steps(fewest) == 5);
  CHECK_THAT(fewest.err,
             Catch::Contains("note: 5 ") && cut_short && Catch::Contains("about 1 ms (--within)"));
  CHECK_THAT(content_of(page), cut_short);
  const Outcome asked = validated(
      with({"--within", "1 ms", "--steps", "7", "--warm-up", "2"}, quickly_calibrated(scenario)));
  CHECK(steps(asked) == 7);
  CHECK_THAT(asked.err, !Catch::Contains("were measured instead of"));
  const Outcome all = validated(with({"--within", "10min"}, quickly_calibrated(scenario)));
  CHECK(steps(all) == 20);
  CHECK_THAT(all.err, !Catch::Contains("were measured instead of"));
}

TEST_CASE("by itself calibrate measures all-reduces of up to 64 MiB", "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const Outcome outcome =
      ddpsim({"calibrate", scenario, "--backend", "threads", "--ranks", "2", "--repeats", "1",
              "--smallest", "64 MiB", "-o", scratch.path("machine.yaml").string()});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("all-reduce of 64 MiB"));
  CHECK_THAT(outcome.out, !Catch::Contains("all-reduce of 128 MiB"));
}

TEST_CASE("a workload profile without shapes runs with busy work, and validate says so",
          "[tools][validate]") {
  const Scratch scratch;
  scratch.write("profile.yaml",
                "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 2 ms\noptimizer: 0.5 ms\n"
                "parameters:\n  - {name: w, shape: [64, 64], dtype: fp32, ready: 1.5 ms}\n");
  std::string text = small_mlp;
  text.replace(text.find("{family"), text.find("}") + 1 - text.find("{family"), "profile.yaml");
  for (const char* line : {"  batch: 8\n", "  dtype: fp32\n", "  optimizer: sgd\n"})
    text.erase(text.find(line), std::string(line).size());
  const std::string scenario = scratch.write("own.yaml", text).string();
  const Outcome outcome = ddpsim(with(quick(scenario), {"--backend", "threads", "--ranks", "2"}));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("busy work that takes the"));
}

TEST_CASE("micro-batches, with and without no_sync, and bucket views are validated too",
          "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const std::string no_sync = GENERATE("true", "false");
  const Outcome outcome = ddpsim(
      with(quick(scenario), {"--backend", "threads", "--ranks", "2", "--set",
                             "training.micro_batches=3", "--set", "training.no_sync=" + no_sync,
                             "--set", "training.gradient_as_bucket_view=true", "--json", "-"}));
  CAPTURE(no_sync, outcome.err);
  REQUIRE(outcome.code == 0);
  check_validation(outcome.json(), 2);
  CHECK(answer_of(outcome.json(), "flat").at("measured").at("collectives") ==
        (no_sync == "true" ? 1 : 3));
}

TEST_CASE("a network with buffers broadcasts them", "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario =
      scratch
          .write("net.yaml",
                 "workload: {model: {family: resnet, blocks: [1, 1, 1, 1], bottleneck: false,\n"
                 "  classes: 10}, batch: 1, image: 32, dtype: fp32, optimizer: sgd}\n"
                 "cluster: {device: generic-cpu, launch: sync, ranks_per_node: 2,\n"
                 "  intra_node: {latency: 30 us, bandwidth: 1 GB/s}}\n"
                 "training: {bucket_cap: 4 MiB}\n"
                 "compare: [bucketed]\n")
          .string();
  std::vector<std::string> arguments{"validate", scenario, "--backend", "threads", "--ranks", "2",
                                     "--steps",  "1",      "--warm-up", "0",       "--json",  "-"};
  const Outcome outcome = ddpsim(with(arguments, quickly_calibrated(scenario)));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  check_validation(outcome.json(), 2);
}

TEST_CASE("an error beyond the tolerance is exit code 3", "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  // No run repeats to a billionth.
  const Outcome outcome = ddpsim(with(quick(scenario), {"--backend", "threads", "--ranks", "2",
                                                        "--tolerance", "0.0000001%", "--quiet"}));
  CHECK(outcome.code == 3);
  CHECK_THAT(outcome.err, Catch::Contains("is beyond the tolerance of 1e-07 %"));
  CHECK(outcome.out.empty());
}

TEST_CASE("what validate and calibrate cannot do is one line", "[tools][validate]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{"validate"}, "validate needs one scenario"},
      {{"validate", scenario, "--backend", "mpi"},
       "--backend mpi: unknown; known: gloo, threads, nccl"},
      {{"validate", scenario, "--backend", "nccl"}, "--backend nccl: "},
      {{"validate", scenario, "--ranks", "0"}, "--ranks 0: expected a whole number from 1 to 1024"},
      {{"validate", scenario, "--ranks", "2x"}, "--ranks 2x: expected a whole number"},
      {{"validate", scenario, "--timeout", "60"},
       "--timeout 60: expected a time with its unit, such as \"60 s\"; of seconds write \"60 s\""},
      {{"validate", scenario, "--timeout", "5 ms"}, "--timeout 5 ms: expected from 1 s to 24 h"},
      {{"validate", scenario, "--caps", "1MiB,x"}, "--caps 1MiB,x: expected sizes"},
      {{"validate", scenario, "--steps", "-1"}, "--steps -1: expected"},
      {{"validate", scenario, "--within", "0 s"}, "--within 0 s: expected"},
      {{"validate", scenario, "--ranks", "2", "--rendezvous", "tcp://x"},
       "expected file:DIR or redis://host:port"},
      {{"validate", scenario, "--rendezvous", "file:/tmp"}, "this process is none"},
      {{"validate", scenario, "--backend", "threads", "--set", "workload.dtype=bf16", "--set",
        "cluster.device=h100-sxm"},
       "computes in fp32"},
      {{"calibrate", scenario}, "calibrate needs -o FILE"},
      {{"calibrate", scenario, "-o", "/nowhere/file.yaml"},
       "/nowhere/file.yaml: cannot be written"},
      {{"calibrate", scenario, "-o", scratch.path("x").string(), "--smallest", "1GiB"},
       "expected sizes that grow"}};
  for (const auto& [arguments, said] : refused) {
    const Outcome outcome = ddpsim(arguments);
    CAPTURE(said, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, Catch::Contains(said));
    for (const std::string& line : lines_of(outcome.err))
      CHECK_THAT(line, Catch::StartsWith("ddpsim: "));
  }
}

}  // namespace ddpsim
