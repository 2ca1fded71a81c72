#include <cstdint>
#include <set>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

Json schedule_json(const std::string& file, const Words& flags = {}) {
  Words arguments{"schedule", file, "--json", "-"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

Words hook_order(const Json& schedule) {
  Words names;
  for (const Json& hook : schedule["hooks"]) names.push_back(hook["parameter"]);
  return names;
}

TEST_CASE("schedule prints hooks in firing order and buckets in launch order",
          "[tools][schedule]") {
  const Outcome outcome = ddpsim({"schedule", shipped("examples/own-profile.yaml")});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  const Words lines = lines_of(outcome.out);
  std::size_t at = 0;
  const auto next =
      [&](const std::string& word) {  // each on a line further down than the one before
        while (at < lines.size() && lines[at].find(word) == std::string::npos) ++at;
        CAPTURE(word);
        REQUIRE(at < lines.size());
        return lines[at++];
      };
  CHECK(next("my network") == "my network on two GPUs: bucketed, explicit");
  CHECK(next("firing order") == "hooks, in firing order");
  const Words order{"4.bias", "4.weight", "2.bias", "2.weight", "0.bias", "0.weight"};
  for (std::size_t i = 0; i < order.size(); ++i)
    CHECK_THAT(next(order[i]), Catch::StartsWith(std::to_string(i) + " "));
  CHECK(next("launch order") == "buckets, in launch order");
  for (const char* ends : {"4.bias .. 4.weight", "2.bias .. 2.weight", "0.bias .. 0.weight"})
    CHECK_THAT(next(ends), Catch::EndsWith(ends));
  CHECK_THAT(next(" tasks:"), Catch::Contains(" 6 hook,") && Catch::Contains(" 3 all-reduce,"));
  CHECK_THAT(next("memory per rank: more than "), Catch::Contains("(backward of profile): "));
}

TEST_CASE("schedule --json says in which order hooks fire and what each bucket holds",
          "[tools][schedule]") {
  const Json schedule = schedule_json(shipped("examples/own-profile.yaml"));
  CHECK(schedule["format"] == "ddpsim.schedule/1");
  CHECK(schedule["strategy"] == "bucketed");
  CHECK(hook_order(schedule) ==
        Words{"4.bias", "4.weight", "2.bias", "2.weight", "0.bias", "0.weight"});
  // As the scenario spells them out; 4.bias has 1024, 4.weight 1024 x 4096 elements of four bytes.
  REQUIRE(schedule["buckets"].size() == 3);
  CHECK(schedule["buckets"][0]["parameters"] == Json({"4.bias", "4.weight"}));
  CHECK(schedule["buckets"][0]["bytes"] == 4 * (1024 + 1024 * 4096));
  CHECK(schedule["tasks"] > 6);
}

TEST_CASE("schedule --json lists every collective with what it carries", "[tools][schedule]") {
  const std::string file = shipped("examples/own-profile.yaml");
  const Json plain = schedule_json(file);
  REQUIRE(plain["collectives"].size() == 3);
  for (std::size_t b = 0; b < 3; ++b) {
    CHECK(plain["collectives"][b]["operation"] == "all-reduce");
    CHECK(plain["collectives"][b]["bytes"] == plain["buckets"][b]["bytes"]);
    CHECK(plain["collectives"][b]["bucket"] == b);
  }
  const Json half = schedule_json(file, {"--set", "training.comm_hook=fp16_compress"});
  REQUIRE(half["collectives"].size() == 3);
  for (std::size_t b = 0; b < 3; ++b)
    CHECK(2 * half["collectives"][b]["bytes"].get<std::int64_t>() == half["buckets"][b]["bytes"]);
  // Every micro-batch reduces, or only the last.
  const auto rounds = [&](const std::string& no_sync) {
    const Json accumulated = schedule_json(
        file, {"--set", "training.micro_batches=4", "--set", "training.no_sync=" + no_sync});
    std::vector<int> found;
    for (const Json& each : accumulated["collectives"])
      found.push_back(each.value("micro_batch", 0));
    return found;
  };
  CHECK(rounds("true") == std::vector<int>{3, 3, 3});
  CHECK(rounds("false") == std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3});
}

TEST_CASE("hooks fire in time, and name the bucket that holds their parameter",
          "[tools][schedule]") {
  const Json schedule = schedule_json(shipped("examples/first.yaml"));
  REQUIRE(schedule["hooks"].size() == 148);
  double host = 0, gradient = 0;
  for (const Json& hook : schedule["hooks"]) {
    CHECK(hook["host_ms"] >= host);
    CHECK(hook["gradient_ms"] >= gradient);
    host = hook["host_ms"];
    gradient = hook["gradient_ms"];
    const Json& parameters = schedule["buckets"][hook["bucket"].get<std::size_t>()]["parameters"];
    CHECK(std::count(parameters.begin(), parameters.end(), hook["parameter"]) == 1);
  }
}

TEST_CASE("DistributedDataParallel's buckets are its hooks' parameters, cut once a cap is reached",
          "[tools][schedule]") {
  const Json schedule =
      schedule_json(shipped("examples/two-workstations.yaml"),
                    {"--set", "training={bucket_cap: 5 MiB, first_bucket_cap: 1 MiB}"});
  Words names;
  std::int64_t bytes = 0;
  const std::size_t last = schedule["buckets"].size() - 1;
  for (std::size_t b = 0; b <= last; ++b) {
    const Json& bucket = schedule["buckets"][b];
    const std::int64_t cap = (b == 0 ? 1 : 5) * 1024 * 1024;
    if (b < last) CHECK(bucket["bytes"] >= cap);
    for (const Json& name : bucket["parameters"]) names.push_back(name);
    bytes += bucket["bytes"].get<std::int64_t>();
  }
  CHECK(names == hook_order(schedule));
  CHECK(bytes == 2 * 25'557'032);  // ResNet-50 in bf16
  CHECK(last > 5);
}

TEST_CASE("schedule and run agree on the buckets", "[tools][schedule]") {
  const std::string file = shipped("examples/first.yaml");
  const Json schedule = schedule_json(file);
  const Outcome outcome = ddpsim({"run", file, "--json", "-", "--set", "compare=[bucketed]"});
  REQUIRE(outcome.code == 0);
  const Json run = outcome.json();
  const Json& buckets = run["results"][0]["buckets"];
  REQUIRE(buckets.size() == schedule["buckets"].size());
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    CHECK(buckets[b]["bytes"] == schedule["buckets"][b]["bytes"]);
    CHECK(buckets[b]["parameters"] == schedule["buckets"][b]["parameters"]);
  }
}

TEST_CASE("schedule follows the scenario's strategy", "[tools][schedule]") {
  const std::string file = shipped("examples/own-profile.yaml");
  const auto with = [&](const std::string& strategy) {
    return schedule_json(file, {"--set", "training.strategy=" + strategy});
  };
  CHECK(with("naive")["hooks"].empty());
  CHECK(with("naive")["buckets"].size() == 6);
  CHECK(with("flat")["buckets"].size() == 1);
  CHECK(with("overlap")["hooks"].size() == 6);
  CHECK(with("overlap")["buckets"].size() == 6);
  CHECK(with("none")["buckets"].empty());
}

TEST_CASE("schedule --tasks prints as many tasks as it counts", "[tools][schedule]") {
  const std::string file = shipped("examples/own-profile.yaml");
  const Outcome brief = ddpsim({"schedule", file});
  const Outcome all = ddpsim({"schedule", file, "--tasks"});
  REQUIRE(all.code == 0);
  const std::size_t tasks = schedule_json(file)["tasks"];
  // A blank line, a header and a rule more.
  CHECK(lines_of(all.out).size() == lines_of(brief.out).size() + tasks + 3);
  CHECK_THAT(all.out, Catch::StartsWith(brief.out));
}

TEST_CASE("schedule --program prints what each task does to which memory", "[tools][schedule]") {
  const std::string file = shipped("examples/own-profile.yaml");
  const Outcome brief = ddpsim({"schedule", file});
  const Outcome all = ddpsim({"schedule", file, "--program"});
  REQUIRE(all.code == 0);
  CHECK_THAT(all.out, Catch::StartsWith(brief.out));
  // A bucket of two gradients, 1024 and 1024 x 4096 elements: where they come from, what is sent,
  // and where it goes back to.
  for (const char* line : {"  b0       bucket, 4195328 fp32, 16 MiB, device, life: step",
                           "Scale b0[0:1024] <- g5 x 0.5", "all_reduce b0 in world, sum",
                           "Scale g5 <- b0[0:1024]", "program of ranks 0-1"})
    CHECK_THAT(all.out, Catch::Contains(line));
  // Ranks of which one updates something alone have a program each.
  const Outcome owners =
      ddpsim({"schedule", first_example, "--program", "--set", "training.strategy=bucketed",
              "--set", "training.comm_hook=zero_step"});
  INFO(owners.err);
  CHECK_THAT(owners.out,
             Catch::Contains("program of rank 0") && Catch::Contains("program of rank 1"));
}

TEST_CASE("no column of a table of buckets has the name of another", "[tools][schedule]") {
  const std::string header =
      lines_of(ddpsim({"schedule", first_example, "-q", "--csv", "-"}).out).front();
  CHECK(header == "index,bytes,ready_ms,start_ms,end_ms,exposed_ms");
}

}  // namespace
}  // namespace ddpsim
