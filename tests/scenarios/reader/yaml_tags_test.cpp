#include "scenarios/reader/text/yaml_tags.hpp"

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

TEST_CASE("a tag of the core schema may stand before a value that it fits",
          "[scenarios][yaml_tags]") {
  const Scratch scratch;
  for (const char* batch : {"!!int 8", "!!str 8", "!!int \"8\"", "\"8\"", "'8'", "! 8"}) {
    CAPTURE(batch);
    CHECK(refusal_at(scratch, 3, std::string("  batch: ") + batch) == "");
  }
  CHECK(refusal_at(scratch, 11, "compare: !!seq [naive, flat]") == "");
  CHECK(refusal(scratch,
                "workload: !!map {model: resnet18, batch: 8}\n"
                "cluster: {device: h100-sxm}\ntraining: {no_sync: !!bool false}\n") == "");
}

TEST_CASE("any other tag is refused, with its place", "[scenarios][yaml_tags]") {
  const Scratch scratch;
  const auto told = [&](const std::string& batch) {
    return refusal_at(scratch, 3, "  batch: " + batch);
  };
  const std::string unfit = " does not fit the value behind it: leave it out",
                    unknown = " means nothing here: leave it out";
  CHECK(told("!!int 8.5") == "s.yaml:3:10: the tag !!int" + unfit);
  CHECK(told("!!bool 8") == "s.yaml:3:10: the tag !!bool" + unfit);
  CHECK(told("!!seq 8") == "s.yaml:3:10: the tag !!seq" + unfit);
  CHECK(told("!!null 8") == "s.yaml:3:10: the tag !!null" + unfit);
  CHECK(told("!!map [8]") == "s.yaml:3:10: the tag !!map" + unfit);
  CHECK(told("!!int {a: 8}") == "s.yaml:3:10: the tag !!int" + unfit);
  CHECK(told("!foo 8") == "s.yaml:3:10: the tag !foo" + unknown);
  CHECK(told("!!binary 8") == "s.yaml:3:10: the tag !!binary" + unknown);
  CHECK(told("!<x> 8") == "s.yaml:3:10: the tag !x" + unknown);
  CHECK(told("!\x1b[31m 8").find('\x1b') == std::string::npos);
}

}  // namespace
}  // namespace ddpsim
