// `ddpsim explain` and `ddpsim schema`.

#include <filesystem>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

TEST_CASE("explain says which copies views of the buckets save", "[tools][explain]") {
  const Outcome outcome = ddpsim({"explain", "training.gradient_as_bucket_view"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("saves the copies out and, where `zero_grad`") &&
                              !Catch::Contains("copies in and out"));
}

TEST_CASE("explain says type, default, meaning, source and other spellings of a key",
          "[tools][explain]") {
  const Outcome outcome = ddpsim({"explain", "training.bucket_cap"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK_THAT(outcome.out, Catch::StartsWith("training.bucket_cap\n"));
  for (const char* words :
       {"Type: a size.", "Default: 25 MiB.", "The size at which a bucket closes.",
        "Example: bucket_cap: 50 MiB", "Source: torch.nn.parallel.DistributedDataParallel",
        "Elsewhere: DistributedDataParallel's bucket_cap_mb"})
    CHECK_THAT(outcome.out, Catch::Contains(words));
  for (const std::string& line : lines_of(outcome.out)) CHECK(line.size() <= 100);
}

TEST_CASE("the end of a path is enough, and a key with several paths is told once",
          "[tools][explain]") {
  CHECK(ddpsim({"explain", "bucket_cap"}).out.find("training.bucket_cap\n") != std::string::npos);
  const std::string latency = ddpsim({"explain", "latency"}).out;
  CHECK_THAT(latency, Catch::StartsWith("cluster.intra_node.latency\ncluster.inter_node.latency\n"
                                        "link.latency\n"));
  CHECK(latency.find("Type: ") == latency.rfind("Type: "));
  CHECK_THAT(ddpsim({"explain", "powersgd.rank"}).out,
             Catch::StartsWith("training.comm_hook.powersgd.rank\n"));
}

TEST_CASE("a mapping is explained with its keys, a name with what it stands for",
          "[tools][explain]") {
  const std::string join = ddpsim({"explain", "training.join"}).out;
  CHECK_THAT(join, Catch::Contains("Keys of the mapping:\n    throw_on_early_termination: "));
  const std::string strategy = ddpsim({"explain", "training.strategy"}).out;
  CHECK_THAT(strategy, Catch::Contains("    none: no communication"));
}

TEST_CASE("explain alone lists every key as a tree", "[tools][explain]") {
  const Outcome outcome = ddpsim({"explain"});
  CHECK(outcome.code == 0);
  for (const char* line : {"scenario\n", "\n  cluster ", "\n    device ", "\n      peak ",
                           "\nworkload\n", "\nlink\n", "\ndevice\n", "\nmodel\n"})
    CHECK_THAT(outcome.out, Catch::Contains(line));
  for (const std::string& line : lines_of(outcome.out)) CHECK(line.size() <= 100);
}

TEST_CASE("an unknown key to explain is bad input, with the nearest", "[tools][explain]") {
  const Outcome outcome = ddpsim({"explain", "training.bucket_capp"});
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err ==
        "ddpsim: unknown key \"training.bucket_capp\"; did you mean \"training.bucket_cap\"?; "
        "`ddpsim explain` lists all keys\n");
  // A key of that name in another place is nearer than another key of the same place.
  CHECK_THAT(ddpsim({"explain", "cluster.nic"}).err,
             Catch::Contains("did you mean \"cluster.exceptions.nic\"?"));
  CHECK(ddpsim({"explain", "zebra_crossing"}).code == 2);
  CHECK(ddpsim({"explain", std::string(100'000, 'x')}).err.size() < 300);
}

TEST_CASE("names that keys take are explained too, in any case of letters", "[tools][explain]") {
  CHECK(ddpsim({"explain", "Training.BUCKET_CAP"}).out ==
        ddpsim({"explain", "training.bucket_cap"}).out);
  const std::string device = ddpsim({"explain", "H100-SXM"}).out;
  CHECK_THAT(device, Catch::StartsWith("h100-sxm\n  An entry of the catalogue of devices, for "
                                       "cluster.device."));
  CHECK_THAT(device, Catch::Contains("\n    multiprocessors: 132"));
  CHECK_THAT(ddpsim({"explain", "DGX-H100"}).out, Catch::Contains("\n    intra_node: nvlink4\n"));
  CHECK_THAT(
      ddpsim({"explain", "Bucketed"}).out,
      Catch::Contains("training.strategy: bucketed\n") && Catch::Contains("compare: bucketed\n"));
  CHECK_THAT(ddpsim({"explain", "h100-sxn"}).err, Catch::Contains("did you mean \"h100-sxm\"?"));
}

TEST_CASE("a word of the tables is explained as the glossary does, in any case of letters",
          "[tools][explain]") {
  const std::string mfu = ddpsim({"explain", "mfu"}).out;
  CHECK_THAT(mfu, Catch::StartsWith("MFU\n  model FLOPs utilisation, ") &&
                      Catch::Contains("\ncolumn MFU, HFU\n  "));
  CHECK(ddpsim({"explain", "MFU"}).out == mfu);
  // A column is found without its unit, and a word that a key has too is explained as both.
  CHECK_THAT(ddpsim({"explain", "Host Waited"}).out, Catch::StartsWith("column host waited ms\n"));
  CHECK_THAT(ddpsim({"explain", "step"}).out, Catch::StartsWith("measured.rows.step\n") &&
                                                  Catch::Contains("\nStep\n  one update of the"));
  // Neither asterisks nor links are left.
  const std::string band = ddpsim({"explain", "band"}).out;
  CHECK_THAT(band, Catch::StartsWith("Band\n  between which lengths "));
  CHECK(band.find("reading the table") == std::string::npos);
  CHECK(band.find("**") == std::string::npos);
  // A choice that several keys have stands once, below all of them.
  CHECK_THAT(ddpsim({"explain", "naive"}).out,
             Catch::StartsWith("training.strategy: naive\ncompare: naive\nmeasured.calibrate_on: "
                               "naive\nmeasured.rows.strategy: naive\n  after the whole backward"));
  CHECK_THAT(ddpsim({"explain", "regrett"}).err, Catch::Contains("did you mean \"regret\"?"));
}

TEST_CASE("the default algorithm is what NCCL's tuner takes", "[tools][explain]") {
  // Four nodes of H100 run an NVLS tree, though by our prices a ring would take a little less.
  std::istringstream words(ddpsim({"explain", "cluster.collectives.algorithm"}).out);
  std::string line;
  for (std::string word; words >> word;) line += word + " ";
  CHECK_THAT(line, Catch::Contains("the quickest that NCCL has, or an NVLS tree where NCCL's tuner "
                                   "takes one, even if it is slower; with Gloo a ring"));
}

TEST_CASE("of calibrate_on the strategies are listed that it takes", "[tools][explain]") {
  const std::string key = ddpsim({"explain", "measured.calibrate_on"}).out;
  for (const std::string taken : {"none", "naive", "overlap"})
    CHECK_THAT(key, Catch::Contains("\n    " + taken + ": "));
  for (const std::string refused : {"flat", "bucketed"}) CHECK_THAT(key, !Catch::Contains(refused));
  CHECK_THAT(ddpsim({"explain", "bucketed"}).out, !Catch::Contains("measured.calibrate_on"));
}

TEST_CASE("keys of results are explained, by a path too", "[tools][explain]") {
  const std::string low = ddpsim({"explain", "step_low_ms"}).out;
  CHECK_THAT(low, Catch::StartsWith("step_low_ms, in JSON or CSV (run, tune") &&
                      Catch::Contains("\n  The lower end of a band around the prediction: ") &&
                      Catch::Contains(" In ms.\n") &&
                      Catch::Contains("\n  One in ten measured steps took no longer than this."));
  CHECK_THAT(ddpsim({"explain", "memory.peak_bytes"}).out,
             Catch::StartsWith(
                 "peak_bytes, in JSON or CSV (memory)\n  The most memory that a rank holds "));
  CHECK_THAT(ddpsim({"explain", "why.buckets[].Called_ms"}).out,
             Catch::StartsWith("called_ms, in JSON or CSV (why)\n"));
  CHECK_THAT(ddpsim({"explain", "step_lo_ms"}).err,
             Catch::Contains("did you mean \"step_low_ms\"?"));
}

TEST_CASE("words that newcomers bring are explained", "[tools][explain]") {
  for (const auto& [word, says] :
       {std::pair("checkpointing", "computes the others again"),
        std::pair("gradient accumulation", "several micro-batches before an update"),
        std::pair("straggler", "a rank that is slower"), std::pair("zero", "optimizer's state"),
        std::pair("FSDP", "is the strategy `fsdp`"), std::pair("gradscaler", "It is not in a step"),
        std::pair("ddp", "the strategy `bucketed`"),
        std::pair("world size", "the number of ranks of a job"),
        std::pair("bus bandwidth", "2 (n - 1) / n")}) {
    CAPTURE(word);
    const Outcome outcome = ddpsim({"explain", word});
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::Contains(says));
  }
}

TEST_CASE("words of a column, and what people ask for besides, are explained", "[tools][explain]") {
  for (const auto& [word, says] :
       {std::pair("busbw", "2 (n - 1) / n"), std::pair("algbw", "busbw"),
        std::pair("RoCE", "link kind `ethernet`"), std::pair("cost", "`cluster.price`"),
        std::pair("batch size", "`workload.batch`"),
        std::pair("mixed precision", "`workload.compute: bf16`"),
        std::pair("step low ms", "nine in ten measured steps"),
        std::pair("step high ms", "nine in ten measured steps")}) {
    CAPTURE(word);
    const Outcome outcome = ddpsim({"explain", word});
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::Contains(says));
  }
}

TEST_CASE("words that the meanings of words use are explained", "[tools][explain]") {
  for (const auto& [word, says] :
       {std::pair("critical path", "the chain of tasks, and of the host's launches"),
        std::pair("Compute stream", "The kernels of a step run in the compute stream"),
        std::pair("communication stream", "its collectives in the communication"),
        std::pair("kernel", "a function that runs on a device")}) {
    CAPTURE(word);
    const Outcome outcome = ddpsim({"explain", word});
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::Contains(says));
  }
}

TEST_CASE("every value of the column bound is in what is said of it", "[tools][explain]") {
  const std::string said = ddpsim({"explain", "bound"}).out;
  for (const std::string value : {"compute", "bandwidth", "latency", "launch", "input"}) {
    CAPTURE(value);
    CHECK_THAT(said, Catch::Contains("`" + value + "`"));
  }
  // As it is printed.
  const std::string launch_bound =
      ddpsim({"run", first_example, "--set", "workload.batch=1", "--set", "cluster.launch=50us"})
          .out;
  CHECK_THAT(launch_bound, Catch::Contains("  launch\n"));
}

TEST_CASE("several words are one where they are a name together", "[tools][explain]") {
  const std::string cap = ddpsim({"explain", "Bucket", "cap"}).out;
  CHECK_THAT(cap, Catch::StartsWith("training.bucket_cap\n") &&
                      Catch::Contains("\nBucket cap\n  the size at which a bucket is full"));
  CHECK(ddpsim({"explain", "bucket cap"}).out == cap);
  // A column, and the key of JSON that it is.
  CHECK_THAT(ddpsim({"explain", "step", "low", "ms"}).out,
             Catch::StartsWith("column step low ms, step high ms\n") &&
                 Catch::Contains("\nstep_low_ms, in JSON or CSV ("));
  CHECK_THAT(ddpsim({"explain", "world", "size"}).out, Catch::StartsWith("World size\n"));
  // Else each is explained by itself.
  CHECK(ddpsim({"explain", "exposed", "naive"}).out ==
        ddpsim({"explain", "exposed"}).out + "\n" + ddpsim({"explain", "naive"}).out);
  CHECK_THAT(ddpsim({"explain", "bucket", "nonsense"}).err,
             Catch::StartsWith("ddpsim: unknown key \"nonsense\""));
}

TEST_CASE("an entry of the catalogue may have a blank in its name", "[tools][explain]") {
  const Scratch scratch;
  const std::filesystem::path catalogue = scratch.path("catalogue");
  std::filesystem::copy(shipped("catalogue"), catalogue, std::filesystem::copy_options::recursive);
  scratch.write("catalogue/links/With space.yaml", "latency: 2 us\nbandwidth: 10 GB/s\n");
  for (const char* name : {"With space", "with space"}) {
    const Outcome outcome =
        execute({DDPSIM_PROGRAM, "explain", name}, {}, {{"DDPSIM_CATALOGUE", catalogue.string()}});
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::StartsWith("With space\n") &&
                                Catch::Contains("An entry of the catalogue of links") &&
                                Catch::Contains("    bandwidth: 10 GB/s\n"));
  }
}

TEST_CASE("what people see is explained before keys of files that programs write",
          "[tools][explain]") {
  const std::string fits = ddpsim({"explain", "fits"}).out;
  CHECK_THAT(fits, Catch::StartsWith("Fits\n  whether a step takes no more memory"));
  const std::size_t column = fits.find("\ncolumn peak memory, fits\n"),
                    singular = fits.find("\nFit\n"), key = fits.find("\ncalibration.fits\n");
  CHECK(column < singular);
  CHECK(singular < key);
  CHECK(key != std::string::npos);
  // A key that people write goes first.
  CHECK_THAT(ddpsim({"explain", "price"}).out, Catch::StartsWith("cluster.price\n"));
}

TEST_CASE("a plural is explained as its singular", "[tools][explain]") {
  CHECK_THAT(ddpsim({"explain", "buckets"}).out,
             Catch::StartsWith("training.buckets\n") &&
                 Catch::Contains("\nBucket\n  gradients that are sent together."));
  CHECK_THAT(ddpsim({"explain", "Ranks"}).out, Catch::Contains("\nRank\n  a process of the job"));
  CHECK_THAT(ddpsim({"explain", "strategies"}).out, Catch::StartsWith("Strategy\n"));
  CHECK_THAT(ddpsim({"explain", "devices"}).out, Catch::StartsWith("Device\n"));
  // A key too, where the plural is no word.
  CHECK_THAT(ddpsim({"explain", "bucket_rules"}).out, Catch::StartsWith("training.bucket_rule\n"));
}

TEST_CASE("every word and column of docs/glossary.md is explained", "[tools][explain]") {
  const auto page = std::filesystem::path(DDPSIM_SCENARIOS).parent_path() / "docs/glossary.md";
  std::set<std::string> words;
  for (const std::string& line : lines_of(content_of(page))) {
    for (std::size_t at = line.find("**"); at != std::string::npos;) {
      const std::size_t end = line.find("**", at + 2);
      words.insert(line.substr(at + 2, end - at - 2));
      at = line.find("**", end + 2);
    }
    if (!line.starts_with("| ") || line.starts_with("| column |")) continue;
    std::istringstream names(line.substr(2, line.find(" |", 2) - 2));
    for (std::string name; std::getline(names >> std::ws, name, ',');) words.insert(name);
  }
  CHECK(words.size() > 150);
  std::vector<std::string> arguments{"explain"};
  for (const std::string& word : words) arguments.push_back(word);
  const Outcome outcome = ddpsim(arguments);
  CHECK(outcome.err == "");
  CHECK(outcome.code == 0);
}

TEST_CASE("docs/scenario.md is what the program prints", "[tools][explain]") {
  const Outcome outcome = ddpsim({"explain", "--markdown"});
  CHECK(outcome.code == 0);
  const auto page = std::filesystem::path(DDPSIM_SCENARIOS).parent_path() / "docs/scenario.md";
  // To renew it: ddpsim explain --markdown > docs/scenario.md
  const bool same = outcome.out == content_of(page);
  CHECK(same);
  for (const std::string& line : lines_of(outcome.out)) {
    CAPTURE(line);
    CHECK(line.size() <= 120);
  }
}

TEST_CASE("every format has a JSON Schema", "[tools][schema]") {
  for (const char* format : {"scenario", "workload", "link", "calibration", "device", "model"}) {
    CAPTURE(format);
    const Outcome outcome = ddpsim({"schema", format});
    CHECK(outcome.code == 0);
    CHECK(outcome.json()["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  }
  CHECK(ddpsim({"schema"}).out == ddpsim({"schema", "scenario"}).out);
  const Json schema = ddpsim({"schema"}).json();
  const Json cap = schema["$defs"]["training"]["properties"]["bucket_cap"];
  CHECK(cap["type"] == "string");
  CHECK(cap["default"] == "25 MiB");
  const Outcome unknown = ddpsim({"schema", "scenaro"});
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, Catch::Contains("did you mean \"scenario\"?; known: scenario, "));
}

}  // namespace
}  // namespace ddpsim
