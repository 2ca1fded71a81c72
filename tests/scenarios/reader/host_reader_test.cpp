#include "scenarios/reader/cluster/host_reader.hpp"

#include <chrono>

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace host_reader_test {
namespace {

using namespace std::chrono_literals;

/// The host's times with these keys in the good scenario's cluster.
Launch launch_with(const Scratch& scratch, const std::string& keys) {
  const auto file = scratch.write("s.yaml", spoiled(7, "  ranks_per_node: 2\n" + keys));
  return read_scenario(file, {}).cluster.launch;
}

TEST_CASE("a host's factor multiplies what launches, collectives and hooks cost it",
          "[scenarios][host_reader]") {
  const Scratch scratch;
  const Launch usual = launch_with(scratch, "");
  CHECK(usual.kernel == 6us);
  const Launch named = launch_with(scratch, "  host: reference");
  CHECK(named.kernel == 6us);
  const Launch slower = launch_with(scratch, "  host: {base: reference, factor: 1.5}");
  CHECK(slower.kernel == 9us);
  CHECK(slower.collective == 52500ns);  // of 35 us
  CHECK(slower.hook == 18us);           // of 12 us
  // What is given stands as it is.
  const Launch given = launch_with(scratch, "  host: {factor: 2}\n  launch: {kernel: 5 us}");
  CHECK(given.kernel == 5us);
  CHECK(given.hook == 24us);
}

TEST_CASE("a host's file is one that `python -m ddpsim.measure host` writes",
          "[scenarios][host_reader]") {
  const Scratch scratch;
  scratch.write("h.yaml",
                "format: ddpsim.host/1\nwritten_by: ddpsim.measure\nsource: \"five\"\nhost: \"a "
                "processor\"\ntorch: \"2.13.0\"\ndate: \"2026-11-26\"\nmeasured: {\"add\": \"1.5 "
                "us\", \"view\": \"1 us\", \"linear\": \"4 us\", \"layer_norm\": \"3 us\", "
                "\"conv2d\": \"9 us\"}\nfactor: 1.25\nend: ddpsim.host/1\n");
  CHECK(launch_with(scratch, "  host: h.yaml").kernel == 7500ns);
  CHECK(launch_with(scratch, "  host: {base: h.yaml, factor: 2}").kernel == 15us);
}

TEST_CASE("a host that says no factor, or stands beside a calibration, is refused",
          "[scenarios][host_reader]") {
  const Scratch scratch;
  const auto said = [&](const std::string& keys) {
    return refusal_at(scratch, 7, "  ranks_per_node: 2\n  host: " + keys);
  };
  scratch.write("h.yaml", "source: measured, against nothing\n");
  CHECK(said("h.yaml") ==
        "h.yaml:1:1: no factor over another host: write one, or measure against that host's file "
        "(python -m ddpsim.measure host --reference FILE)");
  CHECK_THAT(said("fast"), Catch::Contains("unknown name \"fast\"; known: reference"));
  CHECK_THAT(said("{factor: 0}"), Catch::Contains("factor: expected a number from 0.05 to 100"));
}

}  // namespace
}  // namespace host_reader_test
}  // namespace ddpsim
