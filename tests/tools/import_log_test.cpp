// Logs of nccl-tests that passed through launchers, log stores and NCCL_DEBUG; of builds without
// MPI; and the files of rccl-tests.

#include <cmath>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/nccl_tests_text.hpp"
#include "tests/tools/program.hpp"
#include "tools/import/nccl_tests_log.hpp"

namespace ddpsim {
namespace {

const std::filesystem::path data_folder = DDPSIM_TEST_DATA;
const std::filesystem::path log_files = data_folder / "logs";

Json imported_log(const std::filesystem::path& file) {
  const Outcome outcome =
      ddpsim({"import", "nccl-tests", file.string(), "--json", "-"}, file.parent_path());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

std::string refused_log(const std::filesystem::path& file) {
  const Outcome outcome =
      ddpsim({"import", "nccl-tests", file.filename().string()}, file.parent_path());
  CAPTURE(outcome.out);
  CHECK(outcome.code == 2);
  CHECK(lines_of(outcome.err).size() == 1);
  return outcome.err;
}

/// Bytes and microseconds.
using Points = std::vector<std::pair<std::int64_t, double>>;

void check_points(const Json& found, int ranks, const Points& points) {
  CHECK(found["ranks"] == ranks);
  REQUIRE(found["all_reduce"].size() == points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK(found["all_reduce"][i]["bytes"] == points[i].first);
    CHECK(found["all_reduce"][i]["time_us"].get<double>() == Approx(points[i].second));
  }
}

/// As tests/data/logs/plain.txt prints them.
const Points printed_points{
    {524288, 366.5}, {1048576, 408.0}, {4194304, 622.6}, {16777216, 1334.9}, {67108864, 24410}};

TEST_CASE("a log with words before its lines, or lines within its rows, is the log it was",
          "[tools][import_log]") {
  for (const char* name : {"plain.txt", "rank_tag.txt", "time_stamps.txt", "quoted.txt",
                           "debug_in_a_row.txt", "rank_tag_and_debug.txt"}) {
    CAPTURE(name);
    const Json found = imported_log(log_files / name);
    check_points(found, 4, printed_points);
    CHECK(found["notes"].size() == 1);  // times are out of place: nothing was left out
  }
  // As Docker keeps it.
  const Scratch scratch;
  std::string kept;
  for (const std::string& line : lines_of(content_of(log_files / "plain.txt")))
    kept +=
        nlohmann::json{{"log", line + "\n"}, {"stream", "stdout"}, {"time", "2025-03-03"}}.dump() +
        "\n";
  check_points(imported_log(scratch.write("log.json", kept)), 4, printed_points);
}

/// The log with each row broken up: `between` stands behind its left half and between its
/// placements, `before` at the begin of each line that goes on with it.
std::string broken_up(const std::string& text, std::size_t placements, const std::string& between,
                      const std::string& before) {
  std::istringstream lines(text);
  std::string broken;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.size() < 8 || words[2] != "float") {
      broken += line + "\n";
      continue;
    }
    const std::size_t left = words[4] == "-1" ? 5 : 4,
                      stamp = words.back().find(':') != std::string::npos ? 2 : 0;
    const std::size_t width = (words.size() - left - stamp) / placements;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i >= left && (i - left) % width == 0 && i < left + placements * width)
        broken += between + before;
      broken += (i == 0 ? before + "  " : "  ") + words[i];
    }
    broken += "\n";
  }
  return broken;
}

TEST_CASE("rows broken up anywhere between their pieces are put together, in any version's columns",
          "[tools][import_log]") {
  const Scratch scratch;
  const std::string debug =
      " NCCL INFO AllReduce: opCount 1c sendbuff 0x1 count 8 datatype 7 op 0\n";
  for (const char* name :
       {"allreduce_8x_a100_nvswitch_8proc.csv", "allreduce_2x_rtx2080ti_pcie.csv"})
    for (const NcclTestsStyle style : all_nccl_tests_styles)
      for (const bool in_place : {true, false})
        // What a host's name begins with stands behind a -1 or a 0 without a blank.
        for (const std::string& between : std::vector<std::string>{
                 "node-1:4978:4978 [0]" + debug, "10-0-0-5:4978:4978 [0]" + debug,
                 "\n12 processes are still running\nnode-1:4978:4978 [0]" + debug, "[0]",
                 "[1,0]<stdout>:"})
          for (const char* before : {"", "[0] ", "2025-03-03T12:00:00.123Z "}) {
            CAPTURE(name, static_cast<int>(style), in_place, between, before);
            const PublicLog log = public_log(data_folder / "nccl-tests" / name);
            const bool both = in_place && log.rows.front().in_place.has_value();
            const auto file = scratch.write(
                "log.txt", broken_up(nccl_tests_text(log, {style, in_place, true, ""}),
                                     both ? 2 : 1, between, between.back() == '\n' ? before : ""));
            const std::vector<NcclTestsRun> runs = read_nccl_tests(file);
            REQUIRE(runs.size() == 1);
            CHECK(runs[0].ranks == log.ranks);
            CHECK(runs[0].wrong == 0);
            REQUIRE(runs[0].rows.size() == log.rows.size());
            for (std::size_t i = 0; i < log.rows.size(); ++i) {
              CHECK(runs[0].rows[i].size == Bytes{log.rows[i].bytes});
              CHECK(runs[0].rows[i].out_of_place ==
                    from_seconds(std::stod(log.rows[i].time) * 1e-6));
              CHECK(runs[0].rows[i].in_place.has_value() == both);
            }
          }
}

const std::string printed_head =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  "
    "algbw   busbw #wrong\n";

TEST_CASE("numbers that are not of a row are not taken for its times", "[tools][import_log]") {
  const Scratch scratch;
  const std::string good = " 4194304 1048576 float sum -1 622.6 6.74 10.11 0 625.8 6.70 10.05 0\n";
  // 1 MiB in 408 us is 2.57 GB/s, and neither 99 nor a number that something else counts.
  const auto file = scratch.write(
      "log.txt", printed_head + good + " 1048576 262144 float sum -1node-1:4978 [0] NCCL INFO x\n" +
                     " 408.0 99.0 148.5 0 402.3 99.0 148.5 0\n" + " 1 2 3 4 5 6 7 8\n" + good);
  const Json found = imported_log(file);
  check_points(found, 4, {{4194304, 622.6}});
  CHECK_THAT(found["notes"].dump(), Catch::Contains("lines left out that begin like rows"));
  // Half of a row, behind which the log ends, is told too, and so is a row of wrong results.
  scratch.write("log.txt",
                printed_head + good + " 1048576 262144 float sum -1\nnode-1:4978 [0] NCCL INFO\n");
  CHECK_THAT(imported_log(file)["notes"].dump(), Catch::Contains("begin like rows"));
  scratch.write("log.txt",
                printed_head + good + " 1048576 262144 float sum -1node-1:4978 [0] NCCL INFO x\n" +
                    " 408.0 2.57 3.86 17node-1:4978 [0] NCCL INFO x\n 402.3 2.61 3.91 0\n");
  CHECK_THAT(imported_log(file)["notes"].dump(),
             Catch::Contains("of 1 rows the results were wrong in one of the two placements"));
  // Nor is a time whose bandwidths are of another one.
  scratch.write("log.txt", printed_head + good +
                               " 1048576 262144 float sum -1 99.9 4.93 7.39 0 625.8 1.68 2.52 0\n");
  const Json contradicting = imported_log(file);
  check_points(contradicting, 4, {{4194304, 622.6}});
  CHECK_THAT(contradicting["notes"].dump(),
             Catch::Contains("algbw and busbw are not those of their size and time: 1"));
  // With the processor's time (-C) the bandwidths are of another time: nothing tells the pieces.
  std::string of_processor = printed_head;
  for (std::size_t at = 0; (at = of_processor.find("   time", at)) != std::string::npos; at += 10)
    of_processor.replace(at, 7, "   cputime");
  scratch.write("log.txt", of_processor + good +
                               " 1048576 262144 float sum -1node-1:4978 [0] NCCL INFO x\n" +
                               " 408.0 2.57 3.86 0 402.3 2.61 3.91 0\n");
  CHECK_THAT(imported_log(file)["notes"].dump(), Catch::Contains("begin like rows"));
}

TEST_CASE("a log in which nothing is a row shows the line that came nearest",
          "[tools][import_log]") {
  const Scratch scratch;
  const auto file = scratch.write("log.txt", printed_head + "1048576  262\n");
  CHECK_THAT(refused_log(file), Catch::Contains("no rows of nccl-tests in it") &&
                                    Catch::Contains("not read as a row: line 2: 1048576  262"));
}

TEST_CASE("damage anywhere in a log is refused or read, and nothing worse", "[tools][import_log]") {
  const Scratch scratch;
  for (const char* name : {"rank_tag_and_debug.txt", "two_programs.txt", "rccl.json"}) {
    const std::string text = content_of(log_files / name);
    for (std::size_t i = 0; i < 40; ++i) {
      std::string damaged = text;
      const std::size_t at = (i * 7919 + 13) * 1009 % text.size();
      switch (i % 4) {
        case 0:
          damaged.erase(at, 1 + i);
          break;
        case 1:
          damaged[at] = '\n';
          break;
        case 2:
          damaged.insert(at, "0 1048576 262144 float sum -1 ");
          break;
        case 3:
          damaged[at] = '\0';
          break;
      }
      scratch.write("log.txt", damaged);
      const Outcome outcome = ddpsim({"import", "nccl-tests", "log.txt"}, scratch.folder());
      CAPTURE(name, i, at, outcome.err);
      CHECK((outcome.code == 0 || outcome.code == 2));
      if (outcome.code == 2) CHECK(lines_of(outcome.err).size() == 1);
    }
  }
}

TEST_CASE("programs that ran alone are told apart from one of several ranks",
          "[tools][import_log]") {
  const Scratch scratch;
  CHECK_THAT(refused_log(log_files / "two_programs.txt"),
             Catch::Contains("2 programs ran side by side, each alone, with a rank 0 of its own") &&
                 Catch::Contains("MPI=1"));
  // One of them, of a version that does not name its test.
  std::string half, unlisted;
  bool second = false;
  for (const std::string& line : lines_of(content_of(log_files / "two_programs.txt"))) {
    const bool of_other = line.find("node-2") != std::string::npos;
    second = second || line.find("419.3") != std::string::npos;
    if (!of_other && !second) half += line + "\n";
    if (line.find("Rank") == std::string::npos && line.find("nThread") == std::string::npos)
      unlisted += line + "\n";
  }
  CHECK_THAT(
      refused_log(scratch.write("half.txt", half)),
      Catch::Contains("a log of one rank: nothing crossed a link") && Catch::Contains("MPI=1"));
  // Nobody is listed, but no two ranks have a bus bandwidth of 0 where the other one is 212 GB/s.
  CHECK_THAT(refused_log(scratch.write("unlisted.txt", unlisted)),
             Catch::Contains("a log of one rank: nothing crossed a link"));
  // Two nodes of eight GPUs, each a program for itself: bandwidths are those of eight ranks.
  const PublicLog log =
      public_log(data_folder / "nccl-tests" / "allreduce_8x_a100_nvswitch_8proc.csv");
  const std::string eight = nccl_tests_text(log, {});
  std::string both;
  for (const std::string& line : lines_of(eight)) {
    both += line + "\n";
    if (line.find("Rank") != std::string::npos) both += line + "\n";
  }
  CHECK_THAT(refused_log(scratch.write("both.txt", both)),
             Catch::Contains("2 programs ran side by side"));
  // Refused too is the log with one head and list of devices behind the other.
  const std::size_t table = eight.find("#       size");
  CHECK_THAT(
      refused_log(scratch.write("heads.txt", eight.substr(0, table) + eight + eight.substr(table))),
      Catch::Contains("2 programs ran side by side"));
  // One after the other they are two runs.
  CHECK(imported_log(scratch.write("two.txt", eight + eight))["runs"] == 2);
  // A program that failed before its first row, and was started again, is one.
  const std::string started = eight.substr(0, eight.find("#       size"));
  check_points(imported_log(scratch.write("again.txt", started + eight)), 8, [&] {
    Points points;
    for (const PublicLog::Row& row : log.rows) points.emplace_back(row.bytes, std::stod(row.time));
    return points;
  }());
}

TEST_CASE("ranks that are listed and bandwidths have to agree", "[tools][import_log]") {
  const Scratch scratch;
  PublicLog log = public_log(data_folder / "nccl-tests" / "allreduce_8x_a100_nvswitch_8proc.csv");
  const std::string eight = nccl_tests_text(log, {});
  // Groups of four of the eight (NCCL_TESTS_SPLIT) reduce each for itself.
  log.ranks = 4;
  std::string four = nccl_tests_text(log, {}), grouped;
  for (const std::string& line : lines_of(eight))
    if (line.find("Rank  7") != std::string::npos || line.find("Rank  6") != std::string::npos ||
        line.find("Rank  5") != std::string::npos || line.find("Rank  4") != std::string::npos)
      grouped += line + "\n";
  const std::size_t behind = four.find("#\n", four.find("Rank  3"));
  const std::string listed = four.substr(0, behind) + grouped + four.substr(behind);
  CHECK_THAT(refused_log(scratch.write("log.txt", listed)),
             Catch::Contains("the log is of 8 ranks, but its bandwidths are not"));
  std::string groups = grouped;
  for (std::size_t at = 0; (at = groups.find("Group  0", at)) != std::string::npos; at += 8)
    groups.replace(at, 8, "Group  1");
  CHECK(imported_log(scratch.write(
            "log.txt", four.substr(0, behind) + groups + four.substr(behind)))["ranks"] == 4);
}

TEST_CASE("what rccl-tests writes is read, as JSON of any version and as CSV",
          "[tools][import_log]") {
  const Scratch scratch;
  const Points points{{1024, 19.18415}, {2048, 19.42665}, {4096, 19.96165}};
  const Json found = imported_log(log_files / "rccl.json");
  check_points(found, 4, points);
  CHECK_THAT(found["notes"].dump(), Catch::Contains("out-of-place times are used"));
  // Since pull request 140 a list, and a build with MPI says ranks and the GPUs of each.
  const auto entry = [](std::int64_t size, bool in_place, const std::string& time,
                        const std::string& wrong = "0") {
    const double algorithm = static_cast<double>(size) / std::stod(time) / 1e3;
    return fmt::format(
        R"({{"numCycle":0, "name":"AllReduce", "nodes":2, "ranks":2, "ranksPerNode":1, )"
        R"("gpusPerRank":2, "size":{}, "type":"float", "redop":"sum", "inPlace":{}, "time":{}, )"
        R"("algBw":{:.6f}, "busBw":{:.6f}, "wrong":"{}"}})",
        size, in_place ? 1 : 0, time, algorithm, 1.5 * algorithm, wrong);
  };
  const std::string list = "[\n" + entry(1024, false, "19.184150") + ",\n" +
                           entry(1024, true, "18.0") + ",\n" + entry(2048, false, "19.426650") +
                           ",\n" + entry(4096, false, "19.961650") + ",\n" +
                           entry(8192, false, "1.0", "12") + "\n]\n";
  const Json listed = imported_log(scratch.write("list.json", list));
  check_points(listed, 4, points);
  CHECK_THAT(listed["notes"].dump(), Catch::Contains("1 rows are left out: their results"));

  const auto line = [](std::int64_t size, bool in_place, const std::string& time) {
    const double algorithm = static_cast<double>(size) / std::stod(time) / 1e3;
    return fmt::format("0,\"AllReduce\",2,2,1,2,{},\"float\",\"sum\",{},{},{:.6f},{:.6f},\"N/A\"\n",
                       size, in_place ? 1 : 0, time, algorithm, 1.5 * algorithm);
  };
  std::string csv =
      "numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inplace,time,algbw,"
      "busbw,#wrong\n";
  csv += line(1024, false, "19.184150") + line(1024, true, "18.0") +
         line(2048, false, "19.426650") + line(4096, false, "19.961650");
  check_points(imported_log(scratch.write("t.csv", csv)), 4, points);
  std::string spaced;  // as before pull request 140
  for (const char c : csv) spaced += c == ',' ? ", " : std::string(1, c);
  check_points(imported_log(scratch.write("t.csv", spaced)), 4, points);
  CHECK(imported_log(scratch.write("t.csv", csv + csv))["all_reduce"].size() == 3);

  CHECK_THAT(refused_log(scratch.write("t.csv", csv.substr(0, csv.size() - 30))),
             Catch::Contains("t.csv:5:1: expected 14 fields as in the header above, got 1"));
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    REQUIRE(text.find(from) != std::string::npos);
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  };
  const std::string lines = content_of(log_files / "rccl.json");
  const auto refused_json = [&](const std::string& from, const std::string& to) {
    return refused_log(scratch.write("t.json", changed(lines, from, to)));
  };
  CHECK_THAT(refused_json("\"AllReduce\"", "\"AllGather\""),
             Catch::Contains("a log of all_gather"));
  CHECK_THAT(refused_json("\"time\"", "\"tome\""),
             Catch::Contains("t.json:1:1: missing \"time\": expected what rccl-tests writes"));
  CHECK_THAT(refused_json("\"size\":2048", "\"size\":-1"),
             Catch::Contains("t.json:3:1: size: expected"));
  CHECK_THAT(refused_json("\"size\":2048", "\"size\":x"), Catch::Contains("t.json:3:"));
  CHECK_THAT(refused_json("\"gpus\":4", "\"gpus\":1"), Catch::Contains("a log of one rank"));
  CHECK_THAT(refused_json("\"gpus\":4", "\"gpus\":8"),
             Catch::Contains("of 8 ranks, but its bandwidths"));
}

}  // namespace
}  // namespace ddpsim
