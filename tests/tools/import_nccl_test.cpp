// Logs of nccl-tests, printed as its versions print them from public measurements, and read back.

#include <cmath>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/cost/collective.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "tests/tools/nccl_tests_text.hpp"
#include "tests/tools/next_command.hpp"
#include "tests/tools/program.hpp"
#include "tools/import/nccl_tests_log.hpp"

namespace ddpsim {
namespace {

const std::filesystem::path logs = std::filesystem::path(DDPSIM_TEST_DATA) / "nccl-tests";

Duration microseconds(const std::string& text) {
  return from_seconds(std::stod(text) * 1e-6);
}

/// Are the rows those of the log? Times as printed; in-place ones only if they were.
void check_rows(const NcclTestsRun& run, const PublicLog& log, bool in_place) {
  REQUIRE(run.rows.size() == log.rows.size());
  for (std::size_t i = 0; i < log.rows.size(); ++i) {
    CAPTURE(log.rows[i].bytes);
    CHECK(run.rows[i].size == Bytes{log.rows[i].bytes});
    CHECK(run.rows[i].out_of_place == microseconds(log.rows[i].time));
    // A send to oneself takes no time at all in some logs.
    if (in_place && log.rows[i].in_place && std::stod(*log.rows[i].in_place) > 0)
      CHECK(run.rows[i].in_place == microseconds(*log.rows[i].in_place));
    else
      CHECK(!run.rows[i].in_place);
  }
}

TEST_CASE("every public log, printed as any version prints it, is read back",
          "[tools][import_nccl]") {
  const Scratch scratch;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(logs)) {
    ++files;
    const PublicLog log = public_log(entry.path());
    for (const NcclTestsStyle style : all_nccl_tests_styles) {
      for (const std::string prefix :
           {"", "[1,0]<stdout>:", " 0: ", "[0] ", "> > ", "2025-03-03T12:00:00.123Z ",
            "2025-03-03T12:00:00.123456789Z stdout F ", "[pod/nccl-0/main] ", "worker-0  | ",
            "Mar  3 12:00:00 node-1 job[17]: ", "\x1b[32m[default0]:\x1b[0m"}) {
        for (const bool in_place : {true, false}) {
          CAPTURE(entry.path().filename().string(), static_cast<int>(style), prefix, in_place);
          const auto file =
              scratch.write("log.txt", nccl_tests_text(log, {style, in_place, true, prefix}));
          const std::vector<NcclTestsRun> runs = read_nccl_tests(file);
          REQUIRE(runs.size() == 1);
          check_rows(runs[0], log, in_place);
          CHECK(runs[0].ranks == log.ranks);
          CHECK(runs[0].device == "NVIDIA H100 80GB HBM3");
          if (log.operation == "all_reduce" || runs[0].operation != "")
            CHECK(operation_of(runs[0]) == log.operation);
          else
            CHECK(operation_of(runs[0]) != "all_reduce");
        }
      }
    }
  }
  CHECK(files == 20);
}

TEST_CASE("every public log is read back from JSON, and its environment stays unread",
          "[tools][import_nccl]") {
  const Scratch scratch;
  for (const auto& entry : std::filesystem::directory_iterator(logs)) {
    CAPTURE(entry.path().filename().string());
    const PublicLog log = public_log(entry.path());
    const auto file = scratch.write("log.json", nccl_tests_json(log).dump());
    const std::vector<NcclTestsRun> runs = read_nccl_tests(file);
    REQUIRE(runs.size() == 1);
    check_rows(runs[0], log, true);
    CHECK(runs[0].ranks == log.ranks);
    CHECK(operation_of(runs[0]) == log.operation);
    const Outcome outcome =
        ddpsim({"import", "nccl-tests", file.string(), "-o", scratch.path("l.yaml").string()});
    CHECK(outcome.code == (log.operation == "all_reduce" && log.ranks > 1 ? 0 : 2));
    if (outcome.code == 0)
      CHECK_THAT(outcome.out + content_of(scratch.path("l.yaml")), !Catch::Contains("SECRET"));
  }
}

TEST_CASE("a log becomes a link whose table is the log's", "[tools][import_nccl]") {
  const Scratch scratch;
  const PublicLog log = public_log(logs / "allreduce_2x_h100_nvswitch.csv");
  scratch.write("log.txt", nccl_tests_text(log, {}));
  const Outcome outcome = ddpsim(
      {"import", "nccl-tests", "log.txt", "-o", "link.yaml", "--json", "-"}, scratch.folder());
  REQUIRE(outcome.code == 0);
  const Link link = read_link(Yaml::load(scratch.path("link.yaml")));
  CHECK(link.table_ranks == 2);
  REQUIRE(link.all_reduce.size() == log.rows.size());
  for (std::size_t i = 0; i < log.rows.size(); ++i)
    CHECK(link.all_reduce[i] ==
          std::pair(Bytes{log.rows[i].bytes}, microseconds(log.rows[i].time)));
  // With n = 2 the ring law is t = 2 (latency + S / (2 bandwidth)). An independent fit of t = alpha
  // + S / beta to this log gave 14.9 us and 310 GB/s, so about half of alpha, and beta itself; ours
  // has the smallest sum of squared relative errors, so none near it has a smaller one.
  CHECK(in_us(link.latency) == Approx(14.9 / 2).epsilon(0.05));
  CHECK(link.bandwidth.bytes_per_second / 1e9 == Approx(310).epsilon(0.05));
  const auto squares = [&](double latency, double bandwidth) {
    double sum = 0;
    for (const auto& [size, time] : link.all_reduce) {
      const double law = 2 * (latency + static_cast<double>(size.count) / (2 * bandwidth));
      sum += std::pow(law / in_seconds(time) - 1, 2);
    }
    return sum;
  };
  const double latency = in_seconds(link.latency), bandwidth = link.bandwidth.bytes_per_second;
  for (const auto& [a, b] : {std::pair{1.01, 1.0}, {0.99, 1.0}, {1.0, 1.01}, {1.0, 0.99}})
    CHECK(squares(a * latency, b * bandwidth) > squares(latency, bandwidth));
  // Worst of |law - time| / time over the rows.
  double worst = 0;
  for (const auto& [size, time] : link.all_reduce)
    worst =
        std::max(worst, std::abs(2 * (latency + static_cast<double>(size.count) / (2 * bandwidth)) /
                                     in_seconds(time) -
                                 1));
  CHECK(outcome.json()["worst_residual"].get<double>() == Approx(worst));
}

TEST_CASE("a ring's own times give its latency and bandwidth back", "[tools][import_nccl]") {
  // n = 4, latency 5 us, bandwidth 20 GB/s: t = 6 (5 us + S / 80 GB/s). 80 kB takes 6 (5 + 1) = 36
  // us, 800 kB 6 (5 + 10) = 90 us, 8 MB 6 (5 + 100) = 630 us, 80 MB 6 (5 + 1000) = 6030 us.
  const Scratch scratch;
  const PublicLog log{"all_reduce",
                      4,
                      {{80'000, "36.00", {}},
                       {800'000, "90.00", {}},
                       {8'000'000, "630.00", {}},
                       {80'000'000, "6030.00", {}}}};
  scratch.write("log.txt", nccl_tests_text(log, {}));
  const Json found =
      ddpsim({"import", "nccl-tests", "log.txt", "--json", "-"}, scratch.folder()).json();
  CHECK(found["latency_us"].get<double>() == Approx(5));
  CHECK(found["bandwidth_gb_per_s"].get<double>() == Approx(20));
  CHECK(found["worst_residual"].get<double>() < 1e-4);
}

TEST_CASE("ranks that are not listed are told by the ratio of the bandwidths",
          "[tools][import_nccl]") {
  const Scratch scratch;
  for (const char* name :
       {"allreduce_8x_h100_nvswitch_p5.csv", "allreduce_16x_b200_2nodes_lambda.csv",
        "allreduce_4x_rtx5090_pcie.csv", "allreduce_2x_h100_nvswitch.csv"}) {
    CAPTURE(name);
    const PublicLog log = public_log(logs / name);
    const auto runs = read_nccl_tests(
        scratch.write("log.txt", nccl_tests_text(log, {NcclTestsStyle::plain, true, false, ""})));
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].ranks == 0);
    CHECK(ranks_of(runs[0]) == log.ranks);
    CHECK(operation_of(runs[0]) == "all_reduce");
  }
}

TEST_CASE("of several runs in a file the median counts", "[tools][import_nccl]") {
  const Scratch scratch;
  std::string text;
  for (const char* time : {"40.00", "10.00", "12.00"}) {
    const PublicLog log{"all_reduce", 2, {{1024, time, {}}, {1'048'576, "100.0", {}}}};
    text += nccl_tests_text(log, {});
  }
  scratch.write("log.txt", text);
  const Outcome outcome =
      ddpsim({"import", "nccl-tests", "log.txt", "--json", "-"}, scratch.folder());
  CHECK(outcome.json()["runs"] == 3);
  CHECK(outcome.json()["all_reduce"][0]["time_us"] == 12.0);
  CHECK_THAT(outcome.json()["notes"].dump(), Catch::Contains("the median"));
}

TEST_CASE("operations that were issued together are noted", "[tools][import_nccl]") {
  const Scratch scratch;
  const PublicLog log{"all_reduce", 2, {{1024, "10.00", {}}, {1'048'576, "100.0", {}}}};
  const auto notes = [&](const std::string& text) {
    scratch.write("log.txt", text);
    return ddpsim({"import", "nccl-tests", "log.txt", "--json", "-"}, scratch.folder())
        .json()["notes"]
        .dump();
  };
  std::string text = nccl_tests_text(log, {});
  CHECK_THAT(notes(text), !Catch::Contains("issued together"));
  text.replace(text.find("agg iters: 1"), 12, "agg iters: 8");
  CHECK_THAT(notes(text), Catch::Contains("8 operations were issued together"));
}

TEST_CASE("in-place times count where there are no others", "[tools][import_nccl]") {
  const Scratch scratch;
  scratch.write("log.txt",
                "#                in-place\n"
                "#  size count type redop root time algbw busbw #wrong\n"
                "1024 256 float sum -1 10.00 0.10 0.10 0\n"
                "1048576 262144 float sum -1 100.0 10.49 10.49 0\n");
  const Json found =
      ddpsim({"import", "nccl-tests", "log.txt", "--json", "-"}, scratch.folder()).json();
  CHECK(found["all_reduce"][1]["time_us"] == 100.0);
  CHECK_THAT(found["notes"].dump(), Catch::Contains("in-place"));
}

TEST_CASE("a log whose results are all wrong is refused for that, whether it names its operation",
          "[tools][import_nccl]") {
  const Scratch scratch;
  for (const char* line : {"", "# Collective test starting: all_reduce_perf\n"}) {
    CAPTURE(line);
    scratch.write("log.txt",
                  std::string(line) +
                      "#  Rank  0 Group  0 Pid 1 on n device  0 [0x18] NVIDIA H100 80GB HBM3\n"
                      "#  Rank  1 Group  0 Pid 2 on n device  1 [0x20] NVIDIA H100 80GB HBM3\n"
                      "#  size count type redop root time algbw busbw #wrong\n"
                      "1024 256 float sum -1 10.0 0.10 0.10 7\n"
                      "2048 512 float sum -1 11.0 0.19 0.19 7\n");
    const Outcome outcome = ddpsim({"import", "nccl-tests", "log.txt"}, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(outcome.err == "ddpsim: log.txt: no row with a time and right results\n");
  }
}

TEST_CASE("rows with wrong results are left out, and said to be", "[tools][import_nccl]") {
  const Scratch scratch;
  scratch.write("log.txt",
                "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
                "1024 256 float sum -1 10.00 0.10 0.10 0 10.00 0.10 0.10 0\n"
                "2048 512 float sum -1 1.00 0.10 0.10 7 1.00 0.10 0.10 7\n"
                "1048576 262144 float sum -1 100.0 10.49 10.49 0 100.0 10.49 10.49 0\n");
  const Json found =
      ddpsim({"import", "nccl-tests", "log.txt", "--json", "-"}, scratch.folder()).json();
  CHECK(found["all_reduce"].size() == 2);
  CHECK_THAT(found["notes"].dump(), Catch::Contains("wrong"));
}

TEST_CASE("one size tells no latency, and no bandwidth is written of it", "[tools][import_nccl]") {
  const Scratch scratch;
  const std::string header =
      "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
  const std::string large = "1048576 262144 float sum -1 100.0 10.49 10.49 0 100.0 10.49 10.49 0\n",
                    larger =
                        "4194304 262144 float sum -1 300.0 13.98 13.98 0 300.0 13.98 13.98 0\n";
  const auto imported = [&](const std::string& rows) {
    scratch.write("log.txt", header + rows);
    const Outcome outcome = ddpsim(
        {"import", "nccl-tests", "log.txt", "-o", "l.yaml", "--json", "-"}, scratch.folder());
    REQUIRE(outcome.code == 0);
    return outcome.json();
  };
  const Json one = imported(large);
  CHECK_THAT(
      one["notes"][0].get<std::string>(),
      Catch::StartsWith("one point does not tell latency and bandwidth apart: no ring law is "
                        "fitted"));
  CHECK(!one.contains("bandwidth_gb_per_s"));
  CHECK_THAT(content_of(scratch.path("l.yaml")), !Catch::Contains("\nbandwidth:"));
  // t = 33.3 us + 1 MiB / 15.7 GB/s, and so on.
  CHECK(imported(large + larger).contains("bandwidth_gb_per_s"));
}

TEST_CASE("what a log says of no use is named", "[tools][import_nccl]") {
  const Scratch scratch;
  const std::string header =
      "# Collective test starting: all_reduce_perf\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   "
      "algbw   busbw #wrong\n";
  const auto row = [](const std::string& size, const std::string& type, const std::string& time) {
    const std::string rates =
        fmt::format(" {0:.2f} {0:.2f} 0 ", std::stod(size) / std::atof(time.c_str()) / 1e3);
    return size + " 1024 " + type + " sum -1 " + time + rates + time + rates + "\n";
  };
  // Two good rows of two types, one of a size beyond all numbers, one without a time, one cut off.
  scratch.write("log.txt", header + row("4096", "float", "10.0") + row("8192", "half", "12.0") +
                               row("99999999999999999999", "float", "13.0") +
                               row("16384", "float", "N/A") + "32768  81\n");
  const Outcome outcome =
      ddpsim({"import", "nccl-tests", "log.txt", "--json", "-"}, scratch.folder());
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::string notes = outcome.json()["notes"].dump();
  CHECK_THAT(notes, Catch::Contains("possible size: 3"));
  CHECK_THAT(notes, Catch::Contains("2 data types"));
  CHECK_THAT(notes, Catch::Contains("two points are too little"));
}

TEST_CASE("a log of anything but all-reduces among several ranks is refused by name",
          "[tools][import_nccl]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& content) {
    scratch.write("log.txt", content);
    const Outcome outcome =
        ddpsim({"import", "nccl-tests", "log.txt", "-o", "l.yaml"}, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(!std::filesystem::exists(scratch.path("l.yaml")));
    return outcome.err;
  };
  for (const auto& [file, word] :
       {std::pair{"allgather_2x_rtx2080ti_pcie.csv", "a log of all_gather"},
        {"broadcast_2x_rtx2080ti_pcie.csv", "a log of broadcast"},
        {"sendrecv_2x_a100_nv4.csv", "a log of sendrecv"},
        {"allreduce_1x_rtx5090_single_rank.csv", "a log of one rank"}})
    CHECK_THAT(refused(nccl_tests_text(public_log(logs / file), {})), Catch::Contains(word));
  CHECK_THAT(refused(content_of(logs / "allreduce_2x_h100_nvswitch.csv")),
             Catch::Contains("log.txt: no rows of nccl-tests in it"));
  CHECK_THAT(refused(""), Catch::Contains("no rows of nccl-tests"));
  CHECK_THAT(refused(std::string(3'000'000, 'x')), Catch::Contains("no rows of nccl-tests"));
  const std::string head = "# size count type redop root time algbw busbw #wrong\n";
  CHECK_THAT(refused(head + "1024 256 float sum -1 10.00\n"),
             Catch::Contains("log.txt:2:1: expected 9 columns as in the header above, got 6"));
  CHECK_THAT(refused(head + "1024 256 float sum -1 ten 0.10 0.10 0\n"),
             Catch::Contains("log.txt:2:1: expected a time in microseconds, got \"ten\""));
  CHECK_THAT(refused(head + "99999999999999999 256 float sum -1 10.00 0.10 0.10 0\n"),
             Catch::Contains("log.txt:2:1: expected a size in bytes"));
  PublicLog two = public_log(logs / "allreduce_2x_h100_nvswitch.csv");
  std::string both = nccl_tests_text(two, {});
  two.ranks = 8;
  both += nccl_tests_text(two, {});
  CHECK_THAT(refused(both), Catch::Contains("runs of 2 and of 8 ranks in one file"));
}

TEST_CASE("JSON that is not nccl-tests', or not whole, is refused in one line",
          "[tools][import_nccl]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& content) {
    scratch.write("log.json", content);
    const Outcome outcome =
        ddpsim({"import", "nccl-tests", "log.json", "-o", "l.yaml"}, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(outcome.err.size() < 300);
    return outcome.err;
  };
  const std::string whole =
      nccl_tests_json(public_log(logs / "allreduce_2x_h100_nvswitch.csv")).dump(1);
  CHECK_THAT(refused(whole.substr(0, whole.size() / 2)), Catch::Contains("cut off"));
  CHECK_THAT(refused("{\n\"results\": [x]}"), Catch::Contains("log.json:2:13: not JSON"));
  CHECK_THAT(refused("{}"), Catch::Contains("no list of \"results\""));
  CHECK_THAT(refused("{\"results\": []}"), Catch::Contains("no rows of nccl-tests"));
  CHECK_THAT(refused("{\"results\": [{\"size\": -4}]}"), Catch::Contains("results[0].size"));
  CHECK_THAT(refused("{\"results\": [{\"size\": 1e300}]}"), Catch::Contains("results[0].size"));
  CHECK_THAT(refused("{\"results\": [1e999]}"), Catch::Contains("too large"));
  CHECK_THAT(refused("{\"a\":" + std::string(5'000'000, '[')),
             Catch::Contains("nested too deeply"));
}

TEST_CASE("a scenario runs on an imported link", "[tools][import_nccl]") {
  const Scratch scratch;
  const PublicLog log = public_log(logs / "allreduce_8x_a100_nvswitch_8proc.csv");
  scratch.write("log.txt", nccl_tests_text(log, {}));
  REQUIRE(
      ddpsim({"import", "nccl-tests", "log.txt", "-o", "link.yaml", "-q"}, scratch.folder()).code ==
      0);
  scratch.write("s.yaml",
                "workload: {model: resnet50, batch: 8}\n"
                "cluster:\n"
                "  device: a100-80\n"
                "  ranks_per_node: 8\n"
                "  intra_node: link.yaml\n"
                "  interference: {compute_slowdown: 1}\n"
                "compare: [bucketed]\n");
  const Outcome run = ddpsim({"run", "s.yaml", "--json", "-"}, scratch.folder());
  CHECK(run.code == 0);
  const Json buckets = run.json()["results"][0]["buckets"];
  // Five buckets of 8 to 31 MB, of which the log has 8 MiB at 146.9 us and 32 MiB at 398.8 us, or
  // so: each takes between the two.
  for (const auto& row : log.rows) {
    if (row.bytes == 4 * MiB.count)
      for (const Json& bucket : buckets)
        CHECK(bucket["end_ms"].get<double>() - bucket["start_ms"].get<double>() >
              std::stod(row.time) / 1e3);
    if (row.bytes == 32 * MiB.count)
      for (const Json& bucket : buckets)
        CHECK(bucket["end_ms"].get<double>() - bucket["start_ms"].get<double>() <
              1.2 * std::stod(row.time) / 1e3);
  }
}

TEST_CASE("a log whose times fall is no link's", "[tools][import_nccl]") {
  const Scratch scratch;
  PublicLog log = public_log(logs / "allreduce_8x_a100_nvswitch_8proc.csv");
  log.rows.front().time = "900000";
  scratch.write("log.txt", nccl_tests_text(log, {}));
  const Outcome outcome =
      ddpsim({"import", "nccl-tests", "log.txt", "-o", "link.yaml"}, scratch.folder());
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Catch::StartsWith("ddpsim: log.txt: ") &&
                              Catch::Contains("more bytes take less time"));
  CHECK_FALSE(std::filesystem::exists(scratch.path("link.yaml")));
}

/// A log of so many ranks, eight on each host, as all_reduce_perf prints it. `host` names one.
template <typename Host>
std::string log_of_hosts(int ranks, Host host) {
  std::string text = "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 67108864\n# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid {} on {:>10} device {:2} [0x1b] NVIDIA H100\n",
                        rank, 4000 + rank, host(rank / 8), rank % 8);
  text += "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  for (std::int64_t bytes = 1 << 20; bytes <= 64 << 20; bytes *= 4) {
    const double us = 100 + static_cast<double>(bytes) / 150e3;  // 150 GB/s
    const double rate = static_cast<double>(bytes) / us / 1e3;
    text += fmt::format("{} {} float sum -1 {:.1f} {:.2f} {:.2f} 0\n", bytes, bytes / 4, us, rate,
                        rate * 2 * (ranks - 1) / ranks);
  }
  return text;
}

TEST_CASE("a size that takes far longer than a larger one makes a doubt that the link keeps",
          "[tools][import_nccl]") {
  const Scratch scratch;
  std::string text = log_of_hosts(32, [](int host) { return fmt::format("n{}", host); });
  const std::string quick = "4194304 1048576 float sum -1 128.0 32.78 63.51 0";
  REQUIRE(text.find(quick) != std::string::npos);
  text.replace(text.find(quick), quick.size(), "4194304 1048576 float sum -1 67170 0.06 0.12 0");
  scratch.write("log.txt", text);
  const Outcome outcome =
      ddpsim({"import", "nccl-tests", "log.txt", "-o", "link.yaml"}, scratch.folder());
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("1 size takes far longer than a larger one, the first: 4 "
                                          "MiB in 67.17 ms and 16 MiB in 211.8 us"));
  const Outcome run =
      ddpsim({"run", first_example, "--cluster", "dgx-h100", "--nodes", "4", "--link", "link.yaml"},
             scratch.folder());
  CHECK_THAT(run.err, Catch::Contains("the table of link is doubtful: 1 size takes far longer") &&
                          Catch::Contains("is not quoted"));
}

TEST_CASE("an imported log's table has both bandwidths of nccl-tests", "[tools][import_nccl]") {
  const Scratch scratch;
  scratch.write("log.txt", log_of_hosts(32, [](int host) { return fmt::format("n{}", host); }));
  const auto imported = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"import", "nccl-tests", "log.txt", "-o", "link.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    return ddpsim(words, scratch.folder());
  };
  const Outcome printed = imported({});
  CAPTURE(printed.out, printed.err);
  REQUIRE(printed.code == 0);
  // 4 MiB in 128 us, as the log rounds 127.96: 32.768 GB/s, and 2 x 31 / 32 times that.
  CHECK_THAT(printed.out, Catch::Contains("algbw GB/s") && Catch::Contains("busbw GB/s") &&
                              Catch::Contains("32.768") && Catch::Contains("63.488"));
  const auto row = imported({"--json", "-"}).json()["all_reduce"][1];
  CHECK(row["algbw_gb_per_s"].get<double>() == Approx(32.768));
  CHECK(row["busbw_gb_per_s"].get<double>() == Approx(63.488));
}

TEST_CASE("a log of ranks on several nodes is the network of a ready cluster by --link",
          "[tools][import_nccl][cluster]") {
  const Scratch scratch;
  const auto imported = [&](const std::string& log) {
    scratch.write("log.txt", log);
    const Outcome outcome =
        ddpsim({"import", "nccl-tests", "log.txt", "-o", "link.yaml"}, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return content_of(scratch.path("link.yaml"));
  };
  const auto run = [&](const std::vector<std::string>& cluster) {
    std::vector<std::string> words{"run", first_example, "--set", "compare=[flat]", "--json", "-"};
    words.insert(words.end(), cluster.begin(), cluster.end());
    Outcome outcome = ddpsim(words, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  };
  const std::vector<std::string> four{"--cluster", "dgx-h100", "--nodes",
                                      "4",         "--link",   "link.yaml"};
  CHECK_THAT(imported(log_of_hosts(32, [](int host) { return fmt::format("node-{}", host); })),
             Catch::Contains("\nranks: 32\n") && Catch::Contains("\nnodes: 4\n"));
  const Outcome measured = run(four);
  CHECK(measured.json()["cluster"]["inter_node"] == "link");
  CHECK(measured.json()["cluster"]["intra_node"] == "nvlink4");
  CHECK(measured.json()["cluster"]["law"] == "table");
  CHECK_THAT(measured.err,
             !Catch::Contains("network of more bandwidth") && !Catch::Contains("scaled"));
  // The line of the log goes on: 100 us, and 124,439,808 fp32 gradients at 150 GB/s.
  CHECK(measured.json()["results"][0]["communication_ms"].get<double>() ==
        Approx(0.1 + 124'439'808 * 4 / 150e6).epsilon(1e-3));
  CHECK_THAT(run({"--cluster", "dgx-h100", "--nodes", "2", "--link", "link.yaml"}).err,
             Catch::Contains("all-reduces were measured on 4 nodes, and the cluster has 2"));

  // A table of several nodes joins no ranks of one without a word, whatever their number.
  for (const char* nodes : {"1", "4"})
    CHECK_THAT(
        run({"--cluster", "dgx-h100", "--nodes", nodes, "--set", "cluster.intra_node=link.yaml"})
            .err,
        Catch::Contains("--set cluster.inter_node=FILE"));

  // Hosts of one name are not told apart: that the table is no node's is noted.
  CHECK_THAT(imported(log_of_hosts(32, [](int) { return "localhost"; })),
             Catch::Contains("\nranks: 32\n") && !Catch::Contains("\nnodes:"));
  CHECK_THAT(run(four).err,
             Catch::Contains("intra_node (link) has a table of 32 ranks, more than the 8 of a "
                             "node, and prices nothing between nodes: ") &&
                 Catch::Contains("--set cluster.inter_node=FILE"));
  CHECK_THAT(imported(log_of_hosts(8, [](int) { return "node-0"; })),
             Catch::Contains("\nranks: 8\n") && Catch::Contains("\nnodes: 1\n"));
  // A table of one node prices its all-reduces, and none between several nodes.
  const Outcome between = run(four);
  CHECK(between.json()["cluster"]["law"] == "nccl");
  CHECK_THAT(between.err,
             Catch::Contains("intra_node (link) has a table of all-reduces on one node, which says "
                             "nothing of all-reduces between 4 nodes: of this link its latency and "
                             "bandwidth alone are used; ") &&
                 Catch::Contains("`ddpsim import nccl-tests`"));
  CHECK_THAT(
      run({"--cluster", "dgx-h100", "--nodes", "4", "--set", "cluster.inter_node=link.yaml"}).err,
      Catch::Contains("note: inter_node (link) has a table of all-reduces on one node, which says "
                      "nothing of all-reduces between 4 nodes and prices them all the same: name "
                      "a network"));
  const Outcome inside = run({"--cluster", "dgx-h100", "--nodes", "1", "--link", "link.yaml"});
  CHECK(inside.json()["cluster"]["law"] == "table");
  CHECK_THAT(inside.err, !Catch::Contains("says nothing of"));
}

TEST_CASE("a log of nodes of unequal size says how many ranks each has",
          "[tools][import_nccl][cluster]") {
  const Scratch scratch;
  const auto imported = [&](int ranks) {
    scratch.write("log.txt",
                  log_of_hosts(ranks, [](int host) { return fmt::format("node-{}", host); }));
    const Outcome outcome =
        ddpsim({"import", "nccl-tests", "log.txt", "-o", "link.yaml"}, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return content_of(scratch.path("link.yaml"));
  };
  CHECK_THAT(imported(16), !Catch::Contains("--ranks-per-node"));
  // Eight on the first, four on the second.
  CHECK_THAT(imported(12),
             Catch::Contains("\n# measured on nodes of 8 and 4 ranks: give --ranks-per-node 8,4 "
                             "beside this link\n") &&
                 Catch::Contains("\nranks: 12\n") && Catch::Contains("\nnodes: 2\n") &&
                 Catch::Contains("\nsmallest_node: 4\n"));
  const Outcome run = ddpsim({"run", first_example, "--link", "link.yaml", "--ranks-per-node",
                              "8,4", "--set", "compare=[flat]", "--json", "-"},
                             scratch.folder());
  CAPTURE(run.err);
  REQUIRE(run.code == 0);
  CHECK(run.json().at("ranks") == 12);
  CHECK(run.json().at("cluster").at("law") == "table");
  CHECK_THAT(run.err, !Catch::Contains("were measured"));
}

TEST_CASE("a table of no kind between the GPUs of a node is noted",
          "[tools][import_nccl][cluster]") {
  const Scratch scratch;
  const PublicLog log{"all_reduce", 2, {{1024, "30.00", {}}, {1'048'576, "400.0", {}}}};
  scratch.write("log.txt", nccl_tests_text(log, {}));
  REQUIRE(ddpsim({"import", "nccl-tests", "log.txt", "-o", "link.yaml"}, scratch.folder()).code ==
          0);
  const auto notes = [&](const std::string& device, const std::vector<std::string>& more) {
    std::vector<std::string> words{"run", first_example, "--link", "link.yaml", "--ranks-per-node",
                                   "2",   "--device",    device,   "--set",     "workload.batch=1"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.err;
  };
  const std::string says = "intra_node (link) says no kind";
  CHECK_THAT(notes("rtx3090", {}), Catch::Contains(says));
  CHECK_THAT(notes("rtx3090", {"--set", "cluster.intra_node.kind=pcie"}), !Catch::Contains(says));
  CHECK_THAT(notes("a100-80", {}), Catch::Contains(says) && Catch::Contains("without a switch"));
  CHECK_THAT(notes("a100-80", {"--set", "cluster.intra_node.nvswitch=true"}),
             !Catch::Contains(says));
  CHECK_THAT(notes("a100-80", {"--nodes", "2", "--set", "cluster.inter_node=ib-hdr"}),
             Catch::Contains(says) &&
                 Catch::Contains("no switch adds up what goes between nodes; --set "
                                 "cluster.intra_node.nvswitch=true says that there is one, beside "
                                 "kind=nvlink, kind=pcie that it is PCIe"));
}

/// A link profile as `import nccl-tests` writes it: `gb_per_s` on the bus after 40 us.
std::string straight_table(double gb_per_s, int ranks, int nodes) {
  std::string table = fmt::format(
      "format: ddpsim.link/1\nlatency: 1 us\nbandwidth: {} GB/s\nranks: {}\nnodes: {}\n"
      "all_reduce:\n",
      gb_per_s, ranks, nodes);
  for (std::int64_t bytes = 1 << 16; bytes <= std::int64_t{1} << 32; bytes *= 4)
    table += fmt::format("  - {{bytes: {}, time: {:.3f} us}}\n", bytes,
                         40 + 2e-3 * (ranks - 1) / ranks * static_cast<double>(bytes) / gb_per_s);
  return table;
}

TEST_CASE("two nodes are no quicker by a table of one node than that node, where NVLS made it",
          "[tools][import_nccl][cluster]") {
  const Scratch scratch;
  const auto communication = [&](const std::string& nodes, const std::vector<std::string>& more) {
    std::vector<std::string> words{"run", first_example, "--cluster",      "dgx-h100", "--nodes",
                                   nodes, "--set",       "compare=[flat]", "--json",   "-"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words, scratch.folder());
    CAPTURE(nodes, more, outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.json()["results"][0]["communication_ms"].get<double>();
  };
  double before = 1e9;
  for (const double gb_per_s : {300.0, 360.0, 400.0, 430.0, 460.0, 480.0}) {
    scratch.write("link.yaml", straight_table(gb_per_s, 8, 1));
    CAPTURE(gb_per_s);
    const double two = communication("2", {"--link", "link.yaml"});
    // Slower than rings and NVLS: that node may have had no NVLS, which nodes of the law have.
    if (gb_per_s > 400) CHECK(two > communication("1", {"--link", "link.yaml"}));
    CHECK(two <= before * (1 + 1e-9));  // a quicker table never makes it longer
    // Who says the kind himself leaves the rate that of the table.
    CHECK(two == Approx(communication(
                            "2", {"--link", "link.yaml", "--set", "cluster.intra_node.kind=nvlink",
                                  "--set", "cluster.intra_node.nvswitch=true"}))
                     .epsilon(0.02));
    before = two;
  }
}

TEST_CASE("a table in the place of a ready cluster's link keeps its kind and its switch",
          "[tools][import_nccl][cluster]") {
  const Scratch scratch;
  const auto measure = [&](double gb_per_s) {
    scratch.write("link.yaml", straight_table(gb_per_s, 8, 1));
  };
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "run", first_example, "--cluster",          "dgx-h100", "--nodes",
        "1",   "--set",       "compare=[bucketed]", "--json",   "-"};
    words.insert(words.end(), more.begin(), more.end());
    Outcome outcome = ddpsim(words, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  };
  const auto step = [](const Outcome& outcome) {
    return outcome.json()["results"][0]["step_ms"].get<double>();
  };
  measure(400);
  const Outcome kept = run({"--link", "link.yaml"});
  CHECK_THAT(kept.err, Catch::Contains("intra_node (link) says no kind: it is taken as measured "
                                       "over nvlink4") &&
                           Catch::Contains("as over NVLink with a switch"));
  CHECK(step(kept) == step(run({"--set", "cluster.intra_node=link.yaml"})));
  const Outcome said = run({"--link", "link.yaml", "--set", "cluster.intra_node.kind=nvlink",
                            "--set", "cluster.intra_node.nvswitch=true", "--set",
                            "cluster.intra_node.nccl_bandwidth=370.8 GB/s"});
  CHECK_THAT(said.err, !Catch::Contains("says no kind"));
  CHECK(step(kept) == step(said));
  CHECK(step(kept) < step(run({"--link", "link.yaml", "--set", "cluster.intra_node.nvswitch=false",
                               "--set", "cluster.intra_node.kind=nvlink"})));
  // The quicker the table, the shorter the step.
  double before = step(kept);
  for (const double gb_per_s : {430.0, 460.0, 480.0}) {
    measure(gb_per_s);
    const double now = step(run({"--link", "link.yaml"}));
    CHECK(now <= before);
    before = now;
  }
}

TEST_CASE("what a network's table takes from kernels does not jump with its rate",
          "[tools][import_nccl][cluster]") {
  const Scratch scratch;
  // NCCL fits one channel into each NIC of 10 to 400 Gbit/s. A table of 11.2 GB/s on eight NICs is
  // 1.4 GB/s of each, one of 12 GB/s is 1.5: both are cards of 25 Gbit/s.
  const auto backward = [&](const std::string& system, double gb_per_s, int nics) {
    scratch.write("link.yaml", straight_table(gb_per_s, 32, 4));
    const Outcome outcome = ddpsim({"run", first_example, "--cluster", system, "--nodes", "4",
                                    "--link", "link.yaml", "--set", "compare=[bucketed]", "--set",
                                    fmt::format("cluster.inter_node.nics={}", nics), "--json", "-"},
                                   scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.json()["results"][0]["backward_ms"].get<double>();
  };
  for (const std::string system : {"dgx-h100", "dgx-a100"})
    for (const int nics : {1, 2, 4, 8}) {
      CAPTURE(system, nics);
      // At these rates all-reduces last longer than backward, so as many channels slow it as much.
      CHECK(backward(system, 11.2, nics) == Approx(backward(system, 12, nics)).epsilon(0.01));
      if (nics > 1) CHECK(backward(system, 11.2, nics) >= backward(system, 11.2, nics / 2) * 0.999);
    }
}

TEST_CASE("a table that was measured on nodes of other sizes is noted",
          "[tools][import_nccl][cluster]") {
  const Scratch scratch;
  scratch.write("log.txt", log_of_hosts(16, [](int host) { return fmt::format("node-{}", host); }));
  REQUIRE(ddpsim({"import", "nccl-tests", "log.txt", "-o", "link.yaml"}, scratch.folder()).code ==
          0);
  const auto notes = [&](const std::string& ranks_per_node) {
    const Outcome outcome = ddpsim({"run", first_example, "--link", "link.yaml", "--nodes", "2",
                                    "--ranks-per-node", ranks_per_node, "--set", "compare=[flat]"},
                                   scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.err;
  };
  CHECK_THAT(notes("8"), !Catch::Contains("were measured"));
  CHECK_THAT(notes("1"),
             Catch::Contains("all-reduces were measured on nodes of 8 ranks each, and the cluster "
                             "has nodes of 1: they are taken as they are, and where each rank has "
                             "a NIC of its own they take up to 8 times as long"));
  CHECK_THAT(notes("8,4"), Catch::Contains("has nodes of 8 + 4: they are taken as they are, and") &&
                               Catch::Contains("up to 2 times as long"));
  CHECK_THAT(notes("16"), Catch::Contains("has nodes of 16: they are taken as they are; measure"));
}

TEST_CASE("the next command that is told gives the table to the ranks that it is of",
          "[tools][import_nccl]") {
  const Scratch scratch;
  for (const auto& [ranks, size] : {std::pair<int, std::string>{8, ""},
                                    {12, "--ranks-per-node 8,4 "},
                                    {16, "--nodes 2 "},
                                    {32, "--nodes 4 "}}) {
    CAPTURE(ranks);
    scratch.write("log.txt",
                  log_of_hosts(ranks, [](int host) { return fmt::format("node-{}", host); }));
    const Outcome imported =
        ddpsim({"import", "nccl-tests", "log.txt", "-o", "link.yaml"}, scratch.folder());
    CHECK(next_command(imported) == "ddpsim run SCENARIO " + size + "--link link.yaml");
    const Outcome run = follow(next_command(imported) + " --json -", scratch.folder(),
                               {{"SCENARIO", first_example}});
    CAPTURE(run.err);
    REQUIRE(run.code == 0);
    CHECK(run.json()["ranks"] == ranks);
    CHECK(run.json()["cluster"]["law"] == "table");
    // What was measured rests on no law of unequal nodes.
    CHECK_THAT(run.err, !Catch::Contains("no known measurement"));
  }
}

}  // namespace
}  // namespace ddpsim
