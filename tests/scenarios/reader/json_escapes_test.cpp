#include "scenarios/reader/text/json_escapes.hpp"

#include <catch2/catch.hpp>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace {

TEST_CASE("a pair of JSON's escapes is one character, and all else stays",
          "[scenarios][json_escapes]") {
  // U+1F600 = 0x10000 + 0x3D * 0x400 + 0x200; U+10FFFF is the last one there is.
  CHECK(with_joined_surrogates(R"("a\ud83d\ude00b\uDBFF\uDFFF")") == R"("a\U0001F600b\U0010FFFF")");
  for (const char* same :
       {"", "\\", R"(plain)", R"("\u00e9\n")", R"("\ud83d")", R"("\ude00\ud83d")",
        R"("\ud83d\u0041")", R"("\\ud83d\\ude00")", R"("\\\\ud83d\ude00")", R"("\ud83d\ude0)",
        R"("\ud83dx\ude00")", R"("\u+123\ude00")", R"("\ud83d\)", R"("\u0041\ude00")",
        R"("\ud7ff\udc00")", R"("\udc00\udc00")", R"("\ud800\udbff")", R"("\ud800\ue000")"})
    CHECK(with_joined_surrogates(same) == same);
  CHECK(with_joined_surrogates(R"("\ud800\udc00")") == R"("\U00010000")");
  CHECK(with_joined_surrogates(R"("\\\ud83d\ude00")") == R"("\\\U0001F600")");
}

TEST_CASE("a scenario that a JSON writer escaped is read", "[scenarios][json_escapes]") {
  const Scratch scratch;
  const auto file = scratch.write(
      "s.json",
      R"({"name": "smile \ud83d\ude00", "workload": {"model": "resnet50", "batch": 8}, )"
      R"("cluster": {"device": "a100-40", "ranks_per_node": 2, "intra_node": "nvlink3"}})");
  CHECK(read_scenario(file).name == "smile \xF0\x9F\x98\x80");
}

}  // namespace
}  // namespace ddpsim
