// The band around a predicted step: what holds nine in ten of the measured ones.

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <tuple>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"
#include "tools/study/known_accuracy.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

const std::string gpt2_description = std::string(DDPSIM_TEST_DATA) + "/descriptions/gpt2.yaml";

/// The shipped catalogue, but for these rows in its accuracy.csv.
class Catalogue {
 public:
  explicit Catalogue(const std::string& rows) {
    for (const auto& each : std::filesystem::directory_iterator(shipped("catalogue")))
      if (each.is_directory())
        std::filesystem::create_directory_symlink(each.path(),
                                                  scratch_.path(each.path().filename().string()));
    scratch_.write("accuracy.csv", "fitted,steps,device,link,ranks,compute,errors,setup\n" + rows);
  }

  std::filesystem::path accuracy() const { return scratch_.path("accuracy.csv"); }

  Outcome ddpsim(Words arguments) const {
    arguments.insert(arguments.begin(), DDPSIM_PROGRAM);
    return execute(arguments, {}, {{"DDPSIM_CATALOGUE", scratch_.folder().string()}});
  }

 private:
  Scratch scratch_;
};

/// The text with its lines joined, for a page breaks them where it likes.
std::string joined(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// A description as a scenario on one device, in the folder.
std::string on_one(const Scratch& scratch, const std::string& device, const std::string& workload) {
  return scratch.write("one.yaml", "workload: {model: " + workload + "}\ncluster: {device: " +
                                       device + ", ranks_per_node: 1}\ncompare: [none]\n");
}

std::size_t inside(const Band& band, const std::vector<double>& errors) {
  return static_cast<std::size_t>(std::count_if(errors.begin(), errors.end(), [&](double error) {
    const double factor = 1 / (1 + error);
    return factor >= band.low && factor <= band.high;
  }));
}

}  // namespace

TEST_CASE("a band leaves out one row in twenty at either end, and none of fewer", "[tools][band]") {
  // Steps that took 1.00, 1.01, ... 1.39 times what was predicted: 40 rows, two out at each end.
  std::vector<double> errors;
  for (int i = 39; i >= 0; --i) errors.push_back(1 / (1 + 0.01 * i) - 1);
  CHECK(band_of(errors).low == Approx(1.02));
  CHECK(band_of(errors).high == Approx(1.37));
  CHECK(band_of(errors).half_width() == Approx(0.175));
  CHECK(inside(band_of(errors), errors) == 36);
  errors.resize(19);  // 1.21 to 1.39
  CHECK(band_of(errors).low == Approx(1.21));
  CHECK(band_of(errors).high == Approx(1.39));
  // Half as long as measured, and twice as long.
  CHECK(band_of({-0.5, 1.0}).low == Approx(0.5));
  CHECK(band_of({-0.5, 1.0}).high == Approx(2.0));
}

TEST_CASE("nine in ten of the catalogue's rows of a kind lie in the band of that kind",
          "[tools][band]") {
  using Kind = std::tuple<FittedOn, std::string, std::string, int, bool>;
  constexpr std::size_t enough = 10;
  const std::vector<KnownErrors> all = read_known_errors();
  // The kinds that are told apart, and all rows that were predicted from the same.
  std::map<Kind, std::vector<double>> of_kind;
  for (const KnownErrors& each : all)
    for (const Kind& kind : {Kind{each.fitted, each.device, each.link, each.ranks, each.sharded},
                             Kind{each.fitted, "no device", "no link", 1, each.sharded}}) {
      std::vector<double>& errors = of_kind[kind];
      errors.insert(errors.end(), each.errors.begin(), each.errors.end());
    }
  std::size_t held = 0;
  for (const auto& [kind, errors] : of_kind) {
    if (errors.size() < enough) continue;
    ++held;
    const auto& [fitted, device, link, ranks, sharded] = kind;
    CAPTURE(name_of(fitted), device, link, ranks, sharded, errors.size());
    const auto known = known_accuracy(all, {device, link, ranks, fitted, std::nullopt, sharded});
    REQUIRE(known);
    CHECK(known->rows == errors.size());
    CHECK(10 * inside(known->band, errors) >= 9 * errors.size());
    CHECK(known->band.low < known->band.high);
  }
  CHECK(held >= 10);
}

TEST_CASE("a step of a described model has the band of described models", "[tools][band]") {
  const Scratch scratch;
  const std::string file = on_one(scratch, "h200", gpt2_description);
  const std::string laws = "laws,replicated,h200,,1,,0.25 0.25,a\n";
  const std::string described = "described,replicated,h200,,1,,-0.2 0.0 0.25,b\n";
  const Catalogue both(laws + described);
  const Json step = both.ddpsim({"run", file, "--json", "-"}).json()["results"][0];
  CHECK(step["known_from"] == "described model");
  // Between 1 / 1.25 and 1 / 0.8 of the prediction.
  CHECK(step["step_low_ms"].get<double>() == Approx(0.8 * step["step_ms"].get<double>()));
  CHECK(step["step_high_ms"].get<double>() == Approx(1.25 * step["step_ms"].get<double>()));
  CHECK_THAT(
      joined(both.ddpsim({"run", file}).out),
      Catch::Contains("1 rank, described, nothing measured.") &&
          Catch::Contains("All of these steps took 0.80 to 1.25 times what was predicted.") &&
          Catch::Contains("In proportion, steps take: none "));

  // What was measured goes before: times of the passes, a calibration, times of kernels.
  const Words with_times{"run", file, "--json", "-", "--set", "workload.times={forward: 1 ms}"};
  CHECK(both.ddpsim(with_times).json()["results"][0]["known_from"] == "step without communication");
  std::string timed = content_of(gpt2_description);
  const std::string first = "launches: ";
  timed.insert(timed.find(first), "time: 1 ms, ");
  const std::string timed_file =
      on_one(scratch, "h200", scratch.write("timed.yaml", timed).string());
  const Json profiled = both.ddpsim({"run", timed_file, "--json", "-"}).json()["results"][0];
  CHECK(profiled["known_from"] == "profile");
  CHECK(profiled["step_low_ms"].is_null());
  CHECK(profiled["step_high_ms"].is_null());

  // Without rows of described models, those by the laws, and that is said.
  const Catalogue only_laws(laws);
  on_one(scratch, "h200", gpt2_description);
  const Json by_laws = only_laws.ddpsim({"run", file, "--json", "-"}).json()["results"][0];
  CHECK(by_laws["known_from"] == "described model");
  CHECK(by_laws["step_high_ms"].get<double>() == Approx(0.8 * by_laws["step_ms"].get<double>()));
  CHECK_THAT(joined(only_laws.ddpsim({"run", file}).out),
             Catch::Contains("No step of a described model was measured; predictions of other"));
}

TEST_CASE("the quoted accuracy says which of its rows are of the predicted device",
          "[tools][band]") {
  const auto said = [](const std::string& rows) {
    const Catalogue catalogue(rows);
    return joined(catalogue.ddpsim({"run", first_example}).out);  // eight a100-40 on NVLink
  };
  const std::string v100 = "laws,replicated,v100,nvlink,8,fp16,0.1 0.2 -0.1 0 0 0 0 0,a\n",
                    a100 = "laws,replicated,a100-40,nvlink,8,bf16,0.1 0.2,b\n";
  CHECK_THAT(said(v100), Catch::Contains("Predictions over such a link, none of them on a100-40, "
                                         "were "));
  CHECK_THAT(said(v100 + a100),
             Catch::Contains("Predictions over such a link, 2 of the 10 rows on a100-40, were "));
  CHECK_THAT(said("laws,replicated,a100-40,nvlink,8,bf16,0.1 0.2 -0.1 0 0 0 0 0,a\n"),
             Catch::Contains("Predictions of this kind were "));
  CHECK_THAT(said("laws,replicated,v100,infiniband,8,fp32,0.1,a\n"),
             Catch::Contains("predictions of all kinds, none of them on a100-40, were "));
}

TEST_CASE("the quoted accuracy says where its rows compute in another number format",
          "[tools][band]") {
  // first.yaml computes in bf16.
  const auto said = [](const std::string& rows, const Words& more = {}) {
    const Catalogue catalogue(rows);
    Words words{"run", first_example};
    words.insert(words.end(), more.begin(), more.end());
    return joined(catalogue.ddpsim(words).out);
  };
  const std::string kind = "laws,replicated,a100-40,nvlink,8,", nothing = "nothing fitted";
  const std::string fp32 = kind + "fp32,0 0 0 0 0 0,a\n", tf32 = kind + "tf32,0 0,b\n",
                    bf16 = kind + "bf16,0 0,c\n";
  CHECK_THAT(said(fp32 + tf32),
             Catch::Contains(nothing + "; they compute in fp32 and tf32, this scenario in bf16. "));
  CHECK_THAT(said(fp32 + bf16), Catch::Contains(nothing + "; 2 of the 8 rows compute in bf16, as "
                                                          "this scenario does. "));
  // Nothing is said of the format of most rows, nor of one that nobody knows.
  CHECK_THAT(said(fp32 + bf16, {"--set", "workload.compute=fp32"}),
             Catch::Contains(nothing + ". All of"));
  CHECK_THAT(said(kind + ",0 0 0 0 0 0 0 0,a\n"), Catch::Contains(nothing + ". All of"));
  // tune and tables of what varies quote it likewise.
  const Catalogue catalogue(fp32 + tf32);
  CHECK_THAT(joined(catalogue.ddpsim({"tune", first_example}).out),
             Catch::Contains("; they compute in fp32 and tf32, this scenario in bf16."));
  CHECK_THAT(
      joined(catalogue.ddpsim({"run", first_example, "--vary", "workload.compute=bf16,fp32"}).out),
      Catch::Contains("At compute: bf16: Predictions") &&
          Catch::Contains("; they compute in fp32 and tf32, this scenario in bf16. "));
}

TEST_CASE("rows of another number format are of no step's kind", "[tools][band]") {
  const auto rows = [](std::size_t count, double error) { return std::vector(count, error); };
  const std::vector<KnownErrors> all{
      {"a", "h100", "nvlink", 2, FittedOn::laws, rows(16, 0.01), DType::fp32},
      {"b", "b200", "nvlink", 2, FittedOn::laws, rows(4, -0.2), DType::fp32},
      {"c", "h100", "nvlink", 4, FittedOn::laws, rows(8, 0.05), DType::bf16}};
  const auto known = [&](int ranks, std::optional<DType> compute) {
    return *known_accuracy(all, {"h100", "nvlink", ranks, FittedOn::laws, compute});
  };
  const KnownAccuracy same = known(2, DType::fp32);
  CHECK(same.subject == "Predictions of this kind");
  CHECK(same.rows == 16);
  CHECK(same.band.high == Approx(1 / 1.01));
  // On two ranks nothing was measured in fp16: all twenty rows over such a link, of which one at
  // either end is left out. They took 1 / 0.8 times what was predicted at most.
  const KnownAccuracy other = known(2, DType::fp16);
  CHECK(other.subject == "Predictions over such a link");
  CHECK(other.on_device == ", 16 of the 20 rows on h100,");
  CHECK(other.rows == 20);
  CHECK(other.band.high == Approx(1.25));
  CHECK_THAT(other.rows_of, Catch::EndsWith("; they compute in fp32, this scenario in fp16"));
  // In bf16 any number of ranks goes before other devices.
  CHECK(known(2, DType::bf16).subject == "Predictions of this kind");
  CHECK(known(2, DType::bf16).rows == 8);
  CHECK(known(2, DType::bf16).band.high == Approx(1 / 1.05));
  // Nothing speaks against a row where nobody knows the format.
  CHECK(known(2, std::nullopt).rows == 16);
}

TEST_CASE("a step in bf16 on two H100 has another band than one in fp32", "[tools][band]") {
  const auto width_in = [](const char* compute) {
    const Json step = ddpsim({"run", first_example, "--device", "h100-sxm", "--link", "nvlink4",
                              "--ranks", "2", "--set", "compare=[bucketed]", "--set",
                              std::string("workload.compute=") + compute, "--json", "-"})
                          .json()["results"][0];
    return (step["step_high_ms"].get<double>() - step["step_low_ms"].get<double>()) /
           step["step_ms"].get<double>();
  };
  // All rows on two H100 are in fp32. In bf16 those on B200, which took 1.05 to 1.14 times what was
  // predicted, and those on V100, which took less, count as well.
  CHECK(width_in("fp32") < 0.04);
  CHECK(width_in("bf16") > 0.1);
}

TEST_CASE("a kind that nobody measured has a band that holds those of single kinds of links",
          "[tools][band]") {
  const std::string zeros = " 0 0 0 0 0 0 0 0 0 0";
  const Catalogue catalogue(
      "laws,replicated,v100,infiniband,8,fp32,0.25 -0.2 0 0 0 0 0 0,a\n"
      "laws,replicated,v100,pcie,8,fp32,0.01" +
      zeros + zeros + zeros + zeros + ",b\n");
  const auto run = [&](const char* link) {
    return catalogue.ddpsim({"run", first_example, "--nodes", "2", "--set",
                             std::string("cluster.inter_node=") + link, "--json", "-"});
  };
  const auto high = [&](const char* link) {
    const Json step = run(link).json()["results"][0];
    return step["step_high_ms"].get<double>() / step["step_ms"].get<double>();
  };
  CHECK(high("ib-ndr") == Approx(1.25));
  CHECK(high("ethernet-100g") == Approx(1.25));
  CHECK_THAT(
      joined(
          catalogue.ddpsim({"run", first_example, "--nodes", "2", "--link", "ethernet-100g"}).out),
      Catch::Contains(
          "Nine in ten of these steps took 1.00 to 1.00 times what was predicted. Over one "
          "kind of link alone it was as low as 0.80 and as high as 1.25: that is the band here."));
}

TEST_CASE("steps that wait for the launches of a host that nobody measured are named",
          "[tools][band]") {
  const Scratch scratch;
  const std::string zeros = ",8,bf16,0 0 0 0 0 0 0 0,a\n";
  const Catalogue catalogue("laws,replicated,h100-sxm,nvlink" + zeros +
                            "none,replicated,h100-sxm,nvlink" + zeros);
  const auto said = [&](int batch, int sequence, const std::string& measured) {
    const std::string file =
        scratch
            .write("s.yaml", "name: s\nworkload: {model: gpt2-xl, batch: " + std::to_string(batch) +
                                 ", sequence: " + std::to_string(sequence) +
                                 ", dtype: bf16}\ncluster: {system: dgx-h100}\n"
                                 "compare: [none, bucketed]\n" +
                                 measured)
            .string();
    return joined(catalogue.ddpsim({"run", file}).out);
  };
  const std::string names = "Launches bound none and bucketed, 1+25 MiB: what they cost differs";
  const std::string rows =
      "measured: {calibrate_on: [none], rows: [{strategy: none, step: 100 ms}]}\n";
  CHECK_THAT(said(1, 32, ""), Catch::Contains("In proportion") && Catch::Contains(names));
  CHECK_THAT(said(16, 1024, ""), Catch::Contains("In proportion") && !Catch::Contains("Launches"));
  CHECK_THAT(said(1, 32, rows),
             Catch::Contains("In proportion") && !Catch::Contains("Launches bound"));
}

TEST_CASE("the band of steps through a host whose rate nobody knows holds those of other hosts",
          "[tools][band]") {
  // The files say what their host moves, 9.8 GB/s on the bus. Here it is assumed to move 2.6.
  for (const std::string name : {"lizhieffe-large", "lizhieffe-small", "lizhieffe-xl2026"}) {
    const std::string file = shipped("measured/" + name + ".yaml");
    const Words words{"run", file, "--laws-only", "--set",
                      "cluster={device: rtx3090, ranks_per_node: 2, intra_node: pcie4}"};
    Words json = words;
    json.insert(json.end(), {"--json", "-"});
    const Json score = ddpsim({"score", file, "--json", "-"}).json();
    const Json run = ddpsim(json).json();
    for (const Json& step : run["results"])
      for (const Json& row : score["rows"]) {
        if (row["strategy"] != step["strategy"]) continue;
        CAPTURE(name, step["strategy"], row["measured_step_ms"], step["step_low_ms"]);
        CHECK(step["step_low_ms"] < row["measured_step_ms"]);
        CHECK(row["measured_step_ms"] < step["step_high_ms"]);
        CHECK(1.8 * row["measured_step_ms"].get<double>() < step["step_ms"].get<double>());
      }
    CHECK_THAT(joined(ddpsim(words).out),
               Catch::Contains("All-reduces are assumed to move 2.6 GB/s on the bus through the "
                               "host's memory, which rows whose files say their host's rate do not "
                               "bear out: bands hold steps of hosts of 2.2 to 9.8 GB/s besides."));
  }
}

TEST_CASE("communication that takes longer on slow hosts widens the band of steps that have it",
          "[tools][band]") {
  const Scratch scratch;
  const Catalogue exact(
      "laws,replicated,rtx3090,pcie,2,bf16,0 0 0 0 0 0 0 0,a\n"
      "none,replicated,rtx3090,pcie,2,bf16,0 0 0 0 0 0 0 0,a\n"
      "naive,replicated,rtx3090,pcie,2,bf16,0 0 0 0 0 0 0 0,a\n");
  const auto steps = [&](const std::string& link, const std::string& measured) {
    const auto file = scratch.write(
        "s.yaml",
        "workload: {model: gpt2, batch: 8, sequence: 512, dtype: fp32, compute: bf16, optimizer: "
        "adamw}\n"
        "cluster: {device: rtx3090, ranks_per_node: 2, intra_node: " +
            link +
            "}\n"
            "compare: [none, naive, bucketed]\n" +
            measured);
    std::map<std::string, Json> by_strategy;
    const Json run = exact.ddpsim({"run", file, "--json", "-"}).json();
    for (const Json& step : run["results"]) by_strategy[step["strategy"].get<std::string>()] = step;
    return by_strategy;
  };
  const auto width = [](const Json& step) {
    return step["step_high_ms"].get<double>() - step["step_low_ms"].get<double>();
  };
  const auto number = [](const Json& step, const char* key) { return step[key].get<double>(); };
  // Communication of 2.6 GB/s takes 2.6 / 2.2 as long at most and 2.6 / 9.8 at least.
  auto unknown = steps("pcie4", "");
  CHECK(width(unknown["none"]) == Approx(0).margin(1e-6));
  const Json& naive = unknown["naive"];
  const double communication = number(naive, "communication_ms"), step = number(naive, "step_ms");
  CHECK(number(naive, "step_high_ms") ==
        Approx(step + communication * (2.6 / 2.2 - 1)).epsilon(0.005));
  CHECK(number(naive, "step_low_ms") ==
        Approx(step - communication * (1 - 2.6 / 9.8)).epsilon(0.005));
  // No step is shorter than the one without communication.
  CHECK(number(unknown["bucketed"], "step_low_ms") >= number(unknown["none"], "step_ms"));

  // A share that the link says, or a row that says the communication, leaves nothing unknown.
  auto known = steps("{base: pcie4, carries: 10 %}", "");
  CHECK(width(known["naive"]) == Approx(0).margin(1e-6));
  known = steps("pcie4",
                "measured: {rows: [{strategy: naive, step: 335 ms, communication: 196 ms}]}\n");
  CHECK(width(known["bucketed"]) == Approx(0).margin(1e-6));

  // Computation is fitted to a naive step: that step is known, and the one without communication
  // is longer by all that communication may take less.
  auto fitted = steps("pcie4", "measured: {rows: [{strategy: naive, step: 330 ms}]}\n");
  CHECK(width(fitted["naive"]) == Approx(0).margin(0.5));
  const double none = number(fitted["none"], "step_ms");
  CHECK(number(fitted["none"], "step_high_ms") ==
        Approx(none + (330 - none) * (1 - 2.6 / 9.8)).epsilon(0.005));
}

TEST_CASE("rows of one rank are not called predictions of all kinds", "[tools][band]") {
  const Catalogue catalogue("described,replicated,h200,,1,fp32,0.1 0 0 0 0 0 0 0.1,a\n");
  const auto said = [&](const Words& more) {
    Words words{"run", gpt2_description};
    words.insert(words.end(), more.begin(), more.end());
    return joined(catalogue.ddpsim(words).out);
  };
  CHECK_THAT(said({"--cluster", "dgx-h100"}),
             Catch::Contains("Too few rows of this kind were measured; predictions of steps of one "
                             "rank, which do not communicate, none of them on h100-sxm, were ") &&
                 !Catch::Contains("of all kinds"));
  CHECK_THAT(said({"--device", "h100-sxm", "--ranks-per-node", "1"}),
             Catch::Contains("Predictions of one rank, none of them on h100-sxm, were "));
}

TEST_CASE("what no row is known of has no band", "[tools][band]") {
  const Catalogue nothing("profile,replicated,cpu,ethernet,2,fp32,0.1,a\n");
  const Json run = nothing.ddpsim({"run", first_example, "--json", "-"}).json();
  for (const Json& step : run["results"]) {
    CHECK(step["step_low_ms"].is_null());
    CHECK(step["step_high_ms"].is_null());
    CHECK(step["known_from"] == "laws");
  }
  CHECK_THAT(nothing.ddpsim({"run", first_example}).out,
             !Catch::Contains("In proportion, steps take"));
  const Catalogue wrong("laws,replicated,h200,,1,,-1,a\n");
  const Outcome refused = wrong.ddpsim({"run", first_example});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("accuracy.csv:2:"));
  const Catalogue format("laws,replicated,h200,,1,fp31,0.1,a\n");
  CHECK_THAT(format.ddpsim({"run", first_example}).err, Catch::Contains("accuracy.csv:2:"));
}

TEST_CASE("run, tune and sweep say that the catalogue has no accuracy.csv", "[tools][band]") {
  const Catalogue catalogue("laws,replicated,a100-40,nvlink,8,bf16,0.1,a\n");
  const std::string note = catalogue.accuracy().string() +
                           ": no such file: how far predictions are off is not known, and no step "
                           "has a band; copy accuracy.csv from the installed catalogue";
  const std::vector<Words> commands{
      {"run", first_example},
      {"run", first_example, "--vary", "cluster.nodes=1"},
      {"tune", first_example},
      {"sweep", first_example, "--vary", "cluster.nodes=1", "--csv", "-"}};
  for (const Words& words : commands)
    CHECK_THAT(joined(catalogue.ddpsim(words).err), !Catch::Contains("accuracy.csv"));
  std::filesystem::remove(catalogue.accuracy());
  for (const Words& words : commands) {
    CAPTURE(words);
    const Outcome outcome = catalogue.ddpsim(words);
    CHECK(outcome.code == 0);
    const std::string said = joined(outcome.err);
    CHECK_THAT(said, Catch::Contains(note));
    CHECK(said.find("accuracy.csv: ") == said.rfind("accuracy.csv: "));
  }
  const Json run = catalogue.ddpsim({"run", first_example, "--json", "-", "-q"}).json();
  CHECK(run["results"][0]["step_low_ms"].is_null());
  CHECK_THAT(run["notes"].dump(), Catch::Contains(note));
}

TEST_CASE("JSON, CSV and sweeps give the same band of a step", "[tools][band]") {
  const Json run = ddpsim({"run", first_example, "--json", "-"}).json();
  const double low = run["results"][0]["step_low_ms"], high = run["results"][0]["step_high_ms"];
  CHECK(low < high);
  const Json sweep =
      ddpsim({"sweep", first_example, "--vary", "cluster.nodes=1", "--json", "-", "-q"}).json();
  const Json row = sweep["rows"][0];
  CHECK(row["strategy"] == run["results"][0]["strategy"]);
  CHECK(row["step_low_ms"].get<double>() == Approx(low));
  CHECK(row["step_high_ms"].get<double>() == Approx(high));
  CHECK(row["known_from"] == "laws");
  const Json varied =
      ddpsim({"run", first_example, "--vary", "cluster.nodes=1", "--json", "-", "-q"}).json();
  CHECK(varied[0]["results"][0]["step_low_ms"].get<double>() == Approx(low));
}

TEST_CASE("tune says where a saving is smaller than how far steps are off", "[tools][band][tune]") {
  const std::string file = shipped("examples/two-workstations.yaml");
  const auto tuned = [&](const std::string& errors) {
    const Catalogue catalogue("laws,replicated,any,ethernet,4,fp32," + errors + ",a\n");
    const Outcome outcome = catalogue.ddpsim({"tune", file});
    const std::string said = joined(outcome.out);
    CHECK_THAT(said, Catch::Contains(" instead of this scenario's own buckets saves 2.7 %") &&
                         Catch::Contains("Predictions over such a link, none of them on "));
    const Json json = catalogue.ddpsim({"tune", file, "--json", "-"}).json();
    CHECK(json["known_from"] == "laws");
    CHECK(json["step_low_ms"] < json["recommended_step_ms"]);
    CHECK(json["step_high_ms"] > json["recommended_step_ms"]);
    return said;
  };
  // The recommended cap saves 2.7 %. From 1 / 1.25 to 1 / 0.8: 22.5 % to either side; 1 / 1.01 to
  // 1 / 0.99: 1 %.
  CHECK_THAT(tuned("-0.2 0.25 0 0 0 0 0 0"),
             Catch::Contains("is smaller than how far such predictions were off (22.5 % to"));
  CHECK_THAT(tuned("-0.01 0.01 0 0 0 0 0 0"), !Catch::Contains("The saving of"));
}

TEST_CASE("the page calls what half of the predictions kept to no band", "[tools][band]") {
  const Scratch scratch;
  const Outcome outcome =
      ddpsim({"run", first_example, "--scaling", "16", "--report", "p.html"}, scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::string page = content_of(scratch.path("p.html"));
  CHECK_THAT(page, Catch::Contains("half of such predictions were off by at most") &&
                       !Catch::Contains("within the band around"));
}

}  // namespace ddpsim
