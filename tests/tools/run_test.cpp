#include <cstdint>
#include <set>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"
#include "tools/report/writers/csv.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

Json run_json(const std::string& file, const Words& flags = {}) {
  Words arguments{"run", file, "--json", "-"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

/// The result of one strategy.
Json result(const Json& run, const std::string& strategy) {
  for (const Json& each : run.at("results"))
    if (each.at("strategy") == strategy) return each;
  FAIL("no result for " + strategy);
  return {};
}

TEST_CASE("run --json has exactly the fields of ddpsim.run/1", "[tools][run]") {
  const Json run = run_json(shipped("examples/first.yaml"));
  CHECK(keys_of(run) ==
        Words{"format", "version", "scenario", "ranks", "cluster", "notes", "results"});
  CHECK(run["format"] == "ddpsim.run/1");
  CHECK(run["scenario"] == "GPT-2 on eight A100");
  CHECK(run["ranks"] == 8);
  REQUIRE(run["results"].size() == 4);
  Words strategies;
  for (const Json& each : run["results"]) {
    strategies.push_back(each["strategy"]);
    CHECK(keys_of(each) == Words{"strategy",
                                 "label",
                                 "bucket_cap_bytes",
                                 "step_ms",
                                 "forward_ms",
                                 "backward_ms",
                                 "optimizer_ms",
                                 "communication_ms",
                                 "exposed_ms",
                                 "overlap_ratio",
                                 "collectives",
                                 "wire_bytes",
                                 "speedup_vs_naive",
                                 "bound",
                                 "memory",
                                 "buckets",
                                 "samples_per_second",
                                 "samples_per_second_per_device",
                                 "tokens_per_second",
                                 "tokens_per_second_per_device",
                                 "model_flops",
                                 "mfu",
                                 "hardware_flops",
                                 "hfu",
                                 "scaling_efficiency",
                                 "scaling_efficiency_node",
                                 "communication_share",
                                 "fits_device",
                                 "device_hours_per_billion_tokens",
                                 "device_hours_per_million_samples",
                                 "cost_per_billion_tokens",
                                 "cost_per_million_samples",
                                 "currency",
                                 "step_low_ms",
                                 "step_high_ms",
                                 "known_from"});
    for (const char* number :
         {"step_ms", "forward_ms", "backward_ms", "optimizer_ms", "communication_ms", "exposed_ms",
          "overlap_ratio", "speedup_vs_naive"})
      CHECK(each[number].is_number_float());
    for (const char* count : {"collectives", "wire_bytes"}) CHECK(each[count].is_number_integer());
    if (each["strategy"] == "bucketed")
      CHECK(each["bucket_cap_bytes"] == 25 * 1024 * 1024);
    else
      CHECK(each["bucket_cap_bytes"].is_null());
    CHECK(std::set<std::string>{"compute", "bandwidth", "latency", "launch"}.count(each["bound"]) ==
          1);
    CHECK(each["buckets"].is_array());
  }
  CHECK(strategies == Words{"naive", "flat", "overlap", "bucketed"});
}

TEST_CASE("buckets come in order, hold every parameter once, and keep time", "[tools][run]") {
  const Json run = run_json(shipped("examples/first.yaml"));
  for (const Json& each : run["results"]) {
    CAPTURE(each["strategy"]);
    std::set<std::string> parameters;
    std::int64_t bytes = 0;
    int index = 0;
    double before = 0;
    for (const Json& bucket : each["buckets"]) {
      CHECK(keys_of(bucket) == Words{"index", "bytes", "parameters", "ready_ms", "start_ms",
                                     "end_ms", "exposed_ms", "algorithm", "protocol", "channels",
                                     "bound"});
      // One node: there is no NIC.
      CHECK(std::set<std::string>{"latency", "port", "sms"}.count(bucket["bound"]) == 1);
      CHECK(bucket["channels"] >= 1);
      CHECK(bucket["index"] == index++);
      CHECK(bucket["ready_ms"] <= bucket["start_ms"]);
      CHECK(bucket["start_ms"] < bucket["end_ms"]);
      CHECK(bucket["end_ms"] <= each["step_ms"]);
      CHECK(bucket["start_ms"] >= before);  // one communicator: one after the other
      CHECK(bucket["exposed_ms"] >= 0);
      before = bucket["end_ms"];
      bytes += bucket["bytes"].get<std::int64_t>();
      for (const Json& name : bucket["parameters"]) CHECK(parameters.insert(name).second);
    }
    // GPT-2: 148 tensors of 124,439,808 elements, four bytes each.
    CHECK(parameters.size() == 148);
    CHECK(bytes == 497'759'232);
  }
}

TEST_CASE("what is forced upon NCCL runs, and between nodes the NICs are said", "[tools][run]") {
  const Json run = run_json(
      shipped("examples/first.yaml"),
      {"--set", "cluster.collectives={algorithm: ring, protocol: simple, channels: 1}", "--set",
       "cluster.nodes=2", "--set", "cluster.inter_node=ethernet-100g", "--set", "compare=[flat]"});
  const Json bucket = result(run, "flat")["buckets"][0];
  CHECK(bucket["algorithm"] == "ring");
  CHECK(bucket["protocol"] == "simple");
  CHECK(bucket["channels"] == 1);  // two where nobody says how many at most
  CHECK(bucket["nics"] == 1);
  CHECK(bucket["bound"] == "nic");
}

TEST_CASE("exposed time, overlap and speedup follow from the steps", "[tools][run]") {
  const Json run = run_json(shipped("examples/first.yaml"),
                            {"--set", "compare=[none, naive, flat, overlap, bucketed]"});
  const double none = result(run, "none")["step_ms"], naive = result(run, "naive")["step_ms"];
  CHECK(result(run, "none")["collectives"] == 0);
  CHECK(result(run, "naive")["speedup_vs_naive"] == 1.0);
  for (const Json& each : run["results"]) {
    CAPTURE(each["strategy"]);
    const double step = each["step_ms"], exposed = each["exposed_ms"],
                 communication = each["communication_ms"];
    CHECK(exposed == Approx(step - none).margin(1e-9));
    CHECK(each["speedup_vs_naive"].get<double>() == Approx(naive / step));
    if (communication > 0)
      CHECK(each["overlap_ratio"].get<double>() ==
            Approx(std::max(0.0, 1 - exposed / communication)));
    CHECK(each["forward_ms"].get<double>() + each["backward_ms"].get<double>() +
              each["optimizer_ms"].get<double>() <=
          step + 1e-9);
  }
}

TEST_CASE("several scenarios make an array, in the order given", "[tools][run]") {
  const Outcome outcome = ddpsim({"run", shipped("seeds/parameter-groups-2.yaml"),
                                  shipped("seeds/parameter-groups-default.yaml"), "--json", "-"});
  REQUIRE(outcome.code == 0);
  const Json runs = outcome.json();
  REQUIRE(runs.is_array());
  REQUIRE(runs.size() == 2);
  CHECK(runs[0]["scenario"] == "two parameter groups");
  CHECK(runs[1]["scenario"] == "default buckets");
  // Two groups are two buckets.
  CHECK(runs[0]["results"][0]["buckets"].size() == 2);
}

TEST_CASE("run --csv begins with the columns of the CS336 tables", "[tools][run]") {
  const Outcome outcome = ddpsim({"run", shipped("seeds/cs336-xl-2xh100.yaml"), "--csv", "-"});
  REQUIRE(outcome.code == 0);
  const Words lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 5);
  CHECK_THAT(lines[0], Catch::StartsWith("implementation,model_size,d_model,num_layers,world_size,"
                                         "step_ms,speedup_vs_naive,"));
  // CS336 XL (2025): d_model 1600, 48 layers; two ranks.
  CHECK_THAT(lines[1], Catch::StartsWith("naive,cs336-xl-2025,1600,48,2,"));
  CHECK_THAT(lines[2], Catch::StartsWith("flat,cs336-xl-2025,1600,48,2,"));
  CHECK_THAT(lines[3], Catch::StartsWith("overlap_individual,cs336-xl-2025,1600,48,2,"));
  CHECK_THAT(lines[4], Catch::StartsWith("bucketed,cs336-xl-2025,1600,48,2,"));
}

TEST_CASE("run --csv has the strategy by our name behind those columns", "[tools][run]") {
  const Words names{"none", "naive", "flat", "overlap", "bucketed"};
  const Outcome outcome = ddpsim({"run", first_example, "--csv", "-", "--set",
                                  "compare=[none, naive, flat, overlap, bucketed]"});
  REQUIRE(outcome.code == 0);
  CsvReader reader(outcome.out);
  CsvRecord record;
  REQUIRE(reader.next(record));
  CHECK(record.fields.at(7) == "strategy");
  for (const std::string& name : names) {
    REQUIRE(reader.next(record));
    CHECK(record.fields.at(7) == name);
    CHECK(record.fields.at(0) == (name == "overlap" ? "overlap_individual" : name));
  }
}

TEST_CASE("run --csv holds the numbers of run --json, to the bit", "[tools][run]") {
  const Json results = run_json(first_example)["results"];
  const Outcome outcome = ddpsim({"run", first_example, "--csv", "-"});
  CsvReader reader(outcome.out);
  CsvRecord header, record;
  REQUIRE(reader.next(header));
  for (const Json& result : results) {
    REQUIRE(reader.next(record));
    int numbers = 0;
    for (std::size_t c = 0; c < header.fields.size(); ++c) {
      const std::string& key = header.fields[c];
      if (!result.contains(key) || !result[key].is_number_float()) continue;
      CAPTURE(key);
      CHECK(std::stod(record.fields[c]) == result[key].get<double>());
      ++numbers;
    }
    CHECK(numbers ==
          22);  // 8 of the step, 12 of what it amounts to (one node, no price), 2 of the band
  }
}

TEST_CASE("a name with commas, quotes and line breaks is one CSV field", "[tools][run]") {
  const Outcome outcome = ddpsim({"run", shipped("examples/first.yaml"), "--csv", "-", "--set",
                                  "compare=[flat]", "--set", R"(name="a, \"b\"\nc")"});
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains(",\"a, \"\"b\"\"\nc\","));
}

TEST_CASE("CSV of several scenarios has one header", "[tools][run]") {
  const std::string file = shipped("seeds/parameter-groups-2.yaml");
  const Outcome outcome = ddpsim({"run", file, file, "--csv", "-"});
  REQUIRE(outcome.code == 0);
  const Words lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[1] == lines[2]);
}

TEST_CASE("the CS336 XL seed: collectives by strategy and bytes on the wire", "[tools][run]") {
  const Json run = run_json(shipped("seeds/cs336-xl-2xh100.yaml"));
  CHECK(result(run, "naive")["collectives"] == 435);
  CHECK(result(run, "flat")["collectives"] == 1);
  CHECK(result(run, "overlap")["collectives"] == 435);
  // 1,998,235,200 gradients of four bytes; between two ranks a ring moves each once: 2 (n - 1) / n
  // = 1.
  for (const char* strategy : {"naive", "flat", "overlap", "bucketed"})
    CHECK(result(run, strategy)["wire_bytes"] == 7'992'940'800);
}

TEST_CASE("the CS336 XL seed, calibrated on its naive row, has overlap where it is expected",
          "[tools][run]") {
  const Json run = run_json(shipped("seeds/cs336-xl-2xh100.yaml"));
  CHECK(result(run, "naive")["step_ms"].get<double>() == Approx(1061.42).epsilon(1e-4));
  CHECK(result(run, "flat")["step_ms"].get<double>() == Approx(1010.45).epsilon(0.03));
  const double overlap = result(run, "overlap")["step_ms"];
  CHECK(overlap > 950);
  CHECK(overlap < 1000);
}

TEST_CASE(
    "a naive row alone that is far from the laws is noted, unless it tells communication apart",
    "[tools][run]") {
  const Scratch scratch;
  const auto said = [&](const std::string& rows, const std::string& more = "") {
    const std::string file = scratch
                                 .write("s.yaml",
                                        "name: s\nworkload: {model: resnet50, batch: 32}\n"
                                        "cluster: {system: dgx-h100}\ncompare: [bucketed]\n"
                                        "measured: {rows: [" +
                                            rows + "]" + more + "}\n")
                                 .string();
    const Outcome outcome = ddpsim({"run", file, "--wide"});
    CAPTURE(rows, more, outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out + outcome.err;
  };
  const std::string far = "is far from the laws: a host, a network or links that differ";
  CHECK_THAT(said("{strategy: naive, step: 400 ms}"), Catch::Contains(far));
  CHECK_THAT(said("{strategy: naive, step: 400 ms, communication: 5 ms}"), !Catch::Contains(far));
  const std::string both = "{strategy: naive, step: 400 ms}, {strategy: none, step: 390 ms}";
  CHECK_THAT(said(both), !Catch::Contains(far));  // computation is that of none
  CHECK_THAT(said(both, ", calibrate_on: [naive]"), Catch::Contains(far));
}

TEST_CASE("the flag --laws-only leaves the measured rows aside", "[tools][run]") {
  const std::string file = shipped("seeds/cs336-xl-2xh100.yaml");
  const Outcome laws = ddpsim({"run", file, "--laws-only"});
  const Outcome calibrated = ddpsim({"run", file});
  CHECK_THAT(calibrated.out, Catch::Contains("calibrated on the measured rows"));
  CHECK_THAT(laws.out, !Catch::Contains("calibrated on the measured rows"));
  CHECK(result(run_json(file, {"--laws-only"}), "naive")["step_ms"] !=
        result(run_json(file), "naive")["step_ms"]);
}

TEST_CASE("measured times of a workload are met", "[tools][run]") {
  const Json none =
      result(run_json(shipped("examples/first.yaml"),
                      {"--set", "compare=[none]", "--set",
                       "workload.times={forward: 250 ms, backward: 507 ms, optimizer: 106 ms}"}),
             "none");
  CHECK(none["forward_ms"].get<double>() == Approx(250).epsilon(0.01));
  CHECK(none["backward_ms"].get<double>() == Approx(507).epsilon(0.01));
  CHECK(none["optimizer_ms"].get<double>() == Approx(106).epsilon(0.01));
}

TEST_CASE("a workload profile and a link profile are predicted from", "[tools][run]") {
  const Json run = run_json(shipped("examples/own-profile.yaml"));
  const Json none = result(run, "none");
  CHECK(none["forward_ms"].get<double>() == Approx(26).epsilon(0.01));
  CHECK(none["backward_ms"].get<double>() == Approx(40).epsilon(0.01));
  CHECK(none["optimizer_ms"].get<double>() == Approx(4).epsilon(0.01));
  // One all-reduce of 553,734,144 bytes, log-log between 100 MB in 2.7923 ms and 1 GB in 27.7618
  // ms: 2.7923 x 5.53734144 ^ log10(27.7618 / 2.7923) = 2.7923 x 5.53734144 ^ 0.997487 = 15.395 ms.
  CHECK(result(run, "flat")["communication_ms"].get<double>() == Approx(15.395).epsilon(1e-3));
  CHECK(result(run, "bucketed")["buckets"][0]["parameters"] == Json({"4.bias", "4.weight"}));
}

TEST_CASE("of a profile the optimizer's state is unknown unless the optimizer is named",
          "[tools][run]") {
  const auto memory = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"run", shipped("examples/own-profile.yaml"), "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    return result(ddpsim(words).json(), "flat")["memory"];
  };
  const Json unknown = memory({});
  CHECK(unknown["optimizer_bytes"].is_null());
  CHECK_THAT(ddpsim({"run", shipped("examples/own-profile.yaml"), "--wide"}).out,
             Catch::Contains("memory per rank: more than ") &&
                 Catch::Contains("activations and optimizer state unknown, parameters "));
  const Json named = memory({"--set", "workload.optimizer=adamw"});
  CHECK(named["optimizer_bytes"] == 2 * named["parameters_bytes"].get<std::int64_t>());
}

TEST_CASE("the flag --quiet prints nothing, and the table nothing but itself", "[tools][run]") {
  const std::string file = shipped("examples/first.yaml");
  const Outcome quiet = ddpsim({"run", file, "--quiet"});
  CHECK(quiet.code == 0);
  CHECK(quiet.out.empty());
  CHECK(quiet.err.empty());
  const Outcome table = ddpsim({"run", file});
  CHECK_THAT(table.out, Catch::StartsWith("GPT-2 on eight A100\n"));
  CHECK_THAT(table.out, Catch::Contains("bucketed, 1+25 MiB"));
  CHECK(table.err.empty());
}

TEST_CASE("a name tells DDP's default from a cap that holds for the first bucket too",
          "[tools][run]") {
  const std::string file = shipped("examples/first.yaml");
  const auto label = [&](Words set) {
    Words words{"--set", "compare=[bucketed]"};
    for (const std::string& each : set) words.insert(words.end(), {"--set", each});
    const Json run = run_json(file, words);
    const std::string name = run["results"][0]["label"];
    words.insert(words.begin(), {"run", file});
    CHECK_THAT(ddpsim(words).out, Catch::Contains("\n" + name + " "));
    return name;
  };
  CHECK(label({}) == "bucketed, 1+25 MiB");
  CHECK(label({"training.bucket_cap=25MiB"}) == "bucketed, 25 MiB");
  CHECK(label({"training.first_bucket_cap=none"}) == "bucketed, 25 MiB");
  CHECK(label({"training.first_bucket_cap=25MiB"}) == "bucketed, 25 MiB");
  CHECK(label({"training.bucket_cap=4MiB", "training.first_bucket_cap=64KiB"}) ==
        "bucketed, 64 KiB+4 MiB");
  CHECK(label({"training.last_bucket_cap=true"}) == "bucketed, 25+1 MiB");
  CHECK(label({"training.bucket_caps=[1 MiB, 4 MiB]"}) == "bucketed, 2 caps");
  CHECK(label({"training.comm_hook=fp16_compress"}) == "bucketed, 1+25 MiB, fp16_compress");
}

TEST_CASE("narrow tables name buckets that are not DDP's own, and no others", "[tools][run]") {
  const auto table = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"run", first_example};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const std::vector<std::string> hooks{"--vary", "training.comm_hook=none,fp16_compress"};
  const auto with_cap = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--set", "training.bucket_cap=50MiB"});
    return more;
  };
  const std::string name = "bucketed, 50 MiB  ";
  CHECK_THAT(table(with_cap(hooks)), Catch::Contains(name));
  CHECK_THAT(table(hooks), !Catch::Contains("bucketed, 1+25 MiB  "));
  // A column says it.
  CHECK_THAT(table({"--vary", "training.bucket_cap=50MiB,60MiB"}), !Catch::Contains(name));
  const std::vector<std::string> scaling{"--scaling", "2", "--set", "compare=[naive, bucketed]"};
  const auto count = [&](const std::string& text) {
    std::size_t times = 0;
    for (std::size_t at = text.find("bucketed, 50 MiB"); at != std::string::npos;
         at = text.find("bucketed, 50 MiB", at + 1))
      ++times;
    return times;
  };
  CHECK(count(table(with_cap(scaling))) > count(table(with_cap({scaling[2], scaling[3]}))));
}

TEST_CASE("one rank has no speedup over naive", "[tools][run]") {
  const std::vector<std::string> alone{"run", first_example, "--ranks", "1"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = alone;
    words.insert(words.end(), more.begin(), more.end());
    return ddpsim(words);
  };
  const Json run = with({"--json", "-"}).json();
  for (const Json& each : run["results"]) CHECK(each["speedup_vs_naive"].is_null());
  const std::string table = with({}).out;
  CHECK_THAT(table, Catch::Contains("one rank averages with nobody") && !Catch::Contains("1.000x"));
  const Scratch scratch;
  CHECK(with({"-q", "--report", scratch.path("r.html").string()}).code == 0);
  CHECK_THAT(content_of(scratch.path("r.html")), !Catch::Contains("times as fast as naive"));
}

TEST_CASE("the step has one name in every file", "[tools][run]") {
  const std::string header = lines_of(ddpsim({"run", first_example, "--csv", "-"}).out)[0];
  CHECK_THAT("," + header, Catch::Contains(",step_ms,") && !Catch::Contains("avg_step_time"));
  CHECK(run_json(first_example)["results"][0].contains("step_ms"));
}

}  // namespace
}  // namespace ddpsim
