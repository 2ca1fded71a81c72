// What `calibrate` measures of collectives, from its flags to the price of a step.
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "model/cost/collective.hpp"
#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/tools/jobs.hpp"
#include "tools/study/asked_collectives.hpp"

namespace ddpsim {
namespace {

using Kind = std::pair<Operation, int>;

/// The kinds that a calibration has, each with the largest size.
std::map<Kind, Bytes> kinds_of(const Calibration& calibration) {
  std::map<Kind, Bytes> kinds;
  for (const MeasuredCollective& each : calibration.collectives) {
    Bytes& largest = kinds[{each.operation, each.ranks}];
    largest = std::max(largest, each.size);
  }
  return kinds;
}

struct Calibrated {
  Scratch scratch;

  Calibrated() { scratch.write("s.yaml", small_mlp); }

  Outcome calibrate(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"calibrate", "s.yaml",    "--backend", "threads", "--ranks",
                                   "2",         "--repeats", "1",         "--quiet", "--smallest",
                                   "4 KiB",     "--largest", "4 KiB",     "-o",      "c.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    return ddpsim(words, scratch.folder());
  }
  Calibration calibration(const std::vector<std::string>& more) const {
    const Outcome outcome = calibrate(more);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return read_calibration(scratch.path("c.yaml"));
  }
};

}  // namespace

TEST_CASE("a collective that is asked for is measured on real ranks, and priced as measured",
          "[tools][validate]") {
  const Calibrated calibrated;
  const Calibration calibration =
      calibrated.calibration({"--collectives", "all-gather,all-to-all"});
  REQUIRE(calibration.collectives.size() == 2);
  calibrated.scratch.write(
      "priced.yaml", "workload: {model: resnet18, batch: 2}\ncluster: {calibration: c.yaml}\n");
  const CollectiveLaw law(read_scenario(calibrated.scratch.path("priced.yaml")).cluster);
  for (const MeasuredCollective& each : calibration.collectives) {
    CAPTURE(name_of(each.operation));
    CHECK(each.size == (each.operation == Operation::all_gather ? 2 * KiB : 4 * KiB));
    CHECK(law.of(each.operation, each.size).time() == each.time.median);
  }
}

TEST_CASE("unless asked otherwise the collectives of the scenario's steps are measured",
          "[tools][validate]") {
  const Calibrated calibrated;
  CHECK(calibrated.calibration({}).collectives.empty());
  const std::vector<std::string> gathering{"--set", "training.comm_hook=quantization_pertensor"};
  CHECK(kinds_of(calibrated.calibration(gathering)) ==
        std::map<Kind, Bytes>{{{Operation::all_gather, 2}, 2 * KiB}});
  std::vector<std::string> none = gathering;
  none.insert(none.end(), {"--collectives", "none"});
  CHECK(calibrated.calibration(none).collectives.empty());
}

TEST_CASE("collectives are named by the flag, among all ranks and among groups",
          "[tools][asked_collectives]") {
  const auto asked = [](const std::string& names, int ranks) {
    std::set<Kind> kinds;
    for (const CollectiveCase& each : collectives_named("--collectives", names, ranks, MiB)) {
      CHECK(each.size == MiB);
      CHECK(kinds.emplace(each.operation, each.ranks).second);
    }
    return kinds;
  };
  CHECK(asked("none", 8).empty());
  CHECK(asked("broadcast", 2) == std::set<Kind>{{Operation::broadcast, 2}});
  CHECK(asked("broadcast,send/receive,broadcast", 6) ==
        std::set<Kind>{{Operation::broadcast, 2},
                       {Operation::broadcast, 3},
                       {Operation::broadcast, 6},
                       {Operation::send_receive, 2}});
  CHECK(asked("all-reduce", 4) == std::set<Kind>{{Operation::all_reduce, 2}});
  CHECK(asked("send/receive", 3) == std::set<Kind>{{Operation::send_receive, 2}});
  CHECK(asked("all", 2) == std::set<Kind>{{Operation::all_gather, 2},
                                          {Operation::reduce_scatter, 2},
                                          {Operation::broadcast, 2},
                                          {Operation::all_to_all, 2},
                                          {Operation::send_receive, 2}});
  CHECK(asked("all", 1).empty());
  const Calibrated calibrated;
  const Outcome unknown = calibrated.calibrate({"--collectives", "all-gather,gather"});
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err,
             Catch::Contains("--collectives: unknown collective \"gather\"; known: all, none, "
                             "all-reduce, all-gather, reduce-scatter, broadcast, all-to-all, "
                             "send/receive"));
  const Outcome gpus =
      ddpsim({"calibrate", "--backend", "nccl", "--collectives", "all", "-o", "c.yaml"});
  CHECK(gpus.code == 2);
  CHECK_THAT(gpus.err, Catch::Contains("--collectives: on GPUs all-reduces alone are measured"));
}

TEST_CASE("of a step's collectives sizes up to twice its largest are measured",
          "[tools][asked_collectives]") {
  program::Job step;
  step.works = {{.operation = Operation::all_reduce, .payload = MiB},
                {.operation = Operation::all_gather, .payload = 4 * KiB},
                {.operation = Operation::all_gather, .payload = 16 * KiB},
                {.operation = Operation::all_gather, .payload = 8 * KiB, .group = 2},
                {.operation = Operation::broadcast, .payload = 3 * MiB, .group = 1},
                {.operation = Operation::broadcast, .payload = 3 * MiB},
                {.operation = Operation::all_reduce, .payload = 2 * MiB, .group = 2},
                {.operation = Operation::forward}};
  // An all-gather counts by its result.
  CHECK(collectives_of({step}, 4, 4 * MiB) ==
        std::vector<CollectiveCase>{{Operation::all_reduce, 2, 4 * MiB},
                                    {Operation::broadcast, 4, 4 * MiB},
                                    {Operation::all_gather, 2, 32 * KiB},
                                    {Operation::all_gather, 4, 128 * KiB}});
}

}  // namespace ddpsim
