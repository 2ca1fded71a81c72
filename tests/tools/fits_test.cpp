// Steps that need more memory than their device has are predicted, and never recommended.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

Outcome done(const Words& words, const std::filesystem::path& folder = {}) {
  Outcome outcome = ddpsim(words, folder);
  CAPTURE(words, outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

/// The line that begins so; "" if none does.
std::string line_of(const std::string& text, const std::string& begin) {
  for (const std::string& line : lines_of(text))
    if (line.starts_with(begin)) return line;
  return "";
}

/// A device that is quicker than an A100 of 80 GB, and has the memory of one of 40 GB. Of GPT-2 32
/// samples take 44 GiB.
std::string quick_and_small(const Scratch& scratch) {
  return scratch
      .write("quick.yaml",
             "base: a100-40\nmemory_bandwidth: 4 TB/s\npeak: {fp32: 39 TFLOP/s, tf32: 312 TFLOP/s, "
             "bf16: 624 TFLOP/s}\n")
      .string();
}

}  // namespace

TEST_CASE("the shortest step of what varies is one that fits, and one that does not is named so",
          "[tools][fits]") {
  const Scratch scratch;
  const std::string quick = quick_and_small(scratch);
  const Words devices{"--vary", "cluster.device=a100-80," + quick,
                      "--set",  "workload.batch=32",
                      "--set",  "compare=[flat]"};
  Words run{"run", first_example, "--wide"};
  run.insert(run.end(), devices.begin(), devices.end());
  const std::string out = done(run).out;
  CHECK_THAT(line_of(out, "shortest"),
             Catch::StartsWith("shortest of what fits: device: a100-80, flat: ") &&
                 Catch::EndsWith(" does not fit its device's memory"));
  CHECK_THAT(out, Catch::Contains("  fits  "));
  // However narrow the page is, the column stays.
  for (const char* command : {"run", "sweep"}) {
    Words narrow{"/usr/bin/env", "COLUMNS=60", DDPSIM_PROGRAM, command, first_example};
    narrow.insert(narrow.end(), devices.begin(), devices.end());
    const std::string table = execute(narrow).out;
    CHECK_THAT(table, Catch::Contains("  fits") && Catch::Contains("(left out: "));
  }
  // The figures on both sides are those of the rows.
  run.insert(run.end(), {"--json", "-", "-q"});
  const Json rows = done(run).json();
  REQUIRE(rows[1]["results"][0]["step_ms"] < rows[0]["results"][0]["step_ms"]);
  CHECK(rows[0]["results"][0]["fits_device"] == true);
  CHECK(rows[1]["results"][0]["fits_device"] == false);

  Words page{"run", first_example, "-q", "--report", scratch.path("p.html").string()};
  page.insert(page.end(), devices.begin(), devices.end());
  done(page);
  CHECK_THAT(content_of(scratch.path("p.html")),
             Catch::Contains("The shortest step that fits its device&#39;s memory is ") ||
                 Catch::Contains("The shortest step that fits its device's memory is "));

  Words sweep{"sweep", first_example, "--wide"};
  sweep.insert(sweep.end(), devices.begin(), devices.end());
  const std::string swept = done(sweep).out;
  CHECK_THAT(line_of(swept, "a100-80 "), Catch::Contains("best flat"));
  CHECK_THAT(line_of(swept, quick), !Catch::Contains("best flat"));
}

TEST_CASE("where no step fits, the shortest is not recommended without saying so",
          "[tools][fits]") {
  const Scratch scratch;
  const std::string out = done({"run", first_example, "--vary", "workload.batch=64,128", "--set",
                                "compare=[flat]", "--wide"})
                              .out;
  CHECK_THAT(line_of(out, "shortest: batch: 64, flat: "),
             Catch::EndsWith(" ms, which does not fit its device's memory; no step here fits"));
  CHECK_THAT(done({"sweep", first_example, "--vary", "workload.batch=64,128", "--set",
                   "compare=[flat]", "--wide"})
                 .out,
             Catch::Contains("best flat, does not fit"));
  done({"run", first_example, "--set", "workload.batch=128", "-q", "--report",
        scratch.path("p.html").string()});
  CHECK_THAT(content_of(scratch.path("p.html")),
             Catch::Contains("no strategy compared here does."));
  // What fits is told as before.
  CHECK_THAT(line_of(done({"run", first_example, "--vary", "workload.batch=4,8"}).out, "shortest"),
             Catch::StartsWith("shortest: batch: 4, ") && !Catch::Contains("fit"));
}

TEST_CASE("tune says first that the step it speaks of does not fit", "[tools][fits][tune]") {
  const Scratch scratch;
  const Outcome large = done({"tune", first_example, "--set", "workload.batch=128", "--report",
                              scratch.path("t.html").string()});
  const std::size_t said = large.out.find("The step does not fit in memory: with the recommended ");
  REQUIRE(said != std::string::npos);
  CHECK(said < large.out.find("DDP default"));
  CHECK_THAT(large.err, Catch::Contains("no strategy that is compared (bucketed) fits") &&
                            Catch::Contains("what fits: workload.batch="));
  CHECK_THAT(content_of(scratch.path("t.html")),
             Catch::Contains("The step does not fit in memory: "));
  const Outcome small = done({"tune", first_example});
  CHECK_THAT(small.out + small.err, !Catch::Contains("fit in memory"));
}

TEST_CASE("the JSON of tune says whether the recommended step fits, as that of run does",
          "[tools][fits][tune]") {
  const Scratch scratch;
  const auto verdict = [&](const std::string& file, Words more) {
    Words words{"tune", file, "--json", "-", "-q"};
    words.insert(words.end(), more.begin(), more.end());
    return done(words).json().at("fits_device");
  };
  CHECK(verdict(first_example, {}) == true);
  CHECK(verdict(first_example, {"--set", "workload.batch=128"}) == false);
  // A profile does not say what autograd keeps.
  CHECK(verdict(shipped("examples/own-profile.yaml"), {}).is_null());
}

TEST_CASE("tables of what varies have the band of each step, and say how far such were off",
          "[tools][fits][band]") {
  const Words vary{"run",   first_example,        "--vary", "training.bucket_cap=1MiB,25MiB",
                   "--set", "compare=[bucketed]", "--wide"};
  const std::string out = done(vary).out;
  CHECK_THAT(out, Catch::Contains("  step low ms  step high ms") &&
                      Catch::Contains(" measured rows of ") &&
                      Catch::Contains(" times what was predicted."));
  Words json = vary;
  json.insert(json.end(), {"-q", "--json", "-"});
  const Json first = done(json).json()[0]["results"][0];
  const double step = first["step_ms"], low = first["step_low_ms"];
  CHECK(low < step);
  CHECK_THAT(out, Catch::Contains(fmt::format("{:.2f}", low)));
  // Kinds that differ: the sentence names the combination it is of.
  CHECK_THAT(done({"run", first_example, "--vary", "cluster=dgx-a100,dgx-h100", "--set",
                   "compare=[bucketed]"})
                 .out,
             Catch::Contains("\nAt cluster: dgx-a100: Predictions "));
}

}  // namespace ddpsim
