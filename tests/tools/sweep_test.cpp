#include <bit>
#include <filesystem>
#include <map>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/not_run.hpp"
#include "tests/tools/jobs.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

Outcome sweep(const Words& flags, const std::filesystem::path& folder = {}) {
  Words arguments{"sweep"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return ddpsim(arguments, folder);
}

/// Three caps by two sizes of node.
Words grid_of(const std::string& scenario, const Words& more = {}) {
  Words flags{scenario, "--vary", "training.bucket_cap=4MiB..64MiB*4", "--vary",
              "cluster.ranks_per_node=2,8"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Words cells(const std::string& line) {
  std::istringstream stream(line);
  Words fields;
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

/// Refused with one line.
void check_refused(const Outcome& outcome, const std::string& part, int code = 2) {
  CAPTURE(outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK_THAT(outcome.err, Catch::Contains(part));
}

TEST_CASE("a sweep has a row for every point and strategy, in the order of the grid",
          "[tools][sweep]") {
  const Outcome outcome = sweep(grid_of(first_example, {"--csv", "-"}));
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err == "6 points: 6 computed\n");
  const Words lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 1 + 6 * 4);
  CHECK_THAT(lines[0], Catch::StartsWith("training.bucket_cap,cluster.ranks_per_node,strategy,"
                                         "implementation,model_size,"));
  CHECK_THAT(lines[0], Catch::EndsWith(",error,computed_from,row_crc32"));
  std::size_t line = 1;
  for (const char* cap : {"4MiB", "16MiB", "64MiB"})
    for (const char* ranks : {"2", "8"})
      for (const char* strategy : {"naive", "flat", "overlap", "bucketed"}) {
        const Words fields = cells(lines[line++]);
        CHECK(Words(fields.begin(), fields.begin() + 3) == Words{cap, ranks, strategy});
      }
}

/// The bits of two numbers are the same, not only what is printed of them.
bool same_bits(const Json& a, const Json& b) {
  if (a.is_number_float() && b.is_number_float())
    return std::bit_cast<std::uint64_t>(a.get<double>()) ==
           std::bit_cast<std::uint64_t>(b.get<double>());
  return a == b;
}

/// Every figure of every row is the one `run --json` gives for that point and strategy.
void check_as_run_says(const Json& sweep, const Words& keys) {
  std::map<Words, Json> runs;
  REQUIRE(!sweep["rows"].empty());
  for (const Json& row : sweep["rows"]) {
    Words arguments{"run", first_example, "--json", "-"};
    for (const std::string& key : keys)
      arguments.insert(arguments.end(), {"--set", key + "=" + row[key].get<std::string>()});
    if (!runs.contains(arguments)) runs[arguments] = ddpsim(arguments).json()["results"];
    bool found = false;
    for (const Json& result : runs[arguments]) {
      if (result["strategy"] != row["strategy"]) continue;
      found = true;
      CAPTURE(arguments, row["strategy"]);
      CHECK(same_bits(row["step_ms"], result["step_ms"]));
      for (const char* key : {"bucket_cap_bytes", "forward_ms", "backward_ms", "optimizer_ms",
                              "communication_ms", "exposed_ms", "overlap_ratio", "collectives",
                              "wire_bytes", "speedup_vs_naive", "bound"}) {
        CAPTURE(key);
        CHECK(same_bits(row[key], result[key]));
      }
    }
    CHECK(found);
  }
}

const Words grid_keys{"training.bucket_cap", "cluster.ranks_per_node"};

TEST_CASE("a sweep holds exactly the numbers that run gives for its points", "[tools][sweep]") {
  const Json rows =
      sweep(grid_of(first_example, {"--json", "-", "--jobs", "3", "--set",
                                    "compare=[none, naive, flat, overlap, bucketed]"}))
          .json();
  REQUIRE(rows["rows"].size() == 6 * 5);
  // run is not told to compare `none` as well: it makes no difference to the others.
  Json compared = rows;
  compared["rows"] = Json::array();
  for (const Json& row : rows["rows"])
    if (row["strategy"] != "none") compared["rows"].push_back(row);
  check_as_run_says(compared, grid_keys);
}

TEST_CASE("a sweep that goes on from a file still holds run's numbers to the bit",
          "[tools][sweep]") {
  const Scratch scratch;
  const Words begun{first_example, "--vary", "training.bucket_cap=4MiB,64MiB", "--vary",
                    "cluster.ranks_per_node=2,8"};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Words csv{"--csv", "rows.csv"}, json{"--json", "rows.json"};
  REQUIRE(sweep(with(begun, csv), scratch.folder()).code == 0);
  const Outcome from_csv =
      sweep(grid_of(first_example, {"--csv", "rows.csv", "--json", "-"}), scratch.folder());
  CHECK(from_csv.err == "6 points: 4 were in rows.csv, 2 computed\n");
  check_as_run_says(from_csv.json(), grid_keys);
  REQUIRE(sweep(with(begun, json), scratch.folder()).code == 0);
  const Outcome from_json = sweep(grid_of(first_example, json), scratch.folder());
  CHECK(from_json.err == "6 points: 4 were in rows.json, 2 computed\n");
  check_as_run_says(Json::parse(content_of(scratch.path("rows.json"))), grid_keys);
  // And it is the file that a sweep without a break writes.
  CHECK(content_of(scratch.path("rows.json")) == from_csv.out);
  CHECK(from_csv.out == sweep(grid_of(first_example, {"--json", "-"})).out);
}

TEST_CASE("sweep --json holds the same rows, numbers as numbers", "[tools][sweep]") {
  const Scratch scratch;
  const Outcome outcome =
      sweep(grid_of(first_example, {"--json", "-", "--csv", "rows.csv"}), scratch.folder());
  REQUIRE(outcome.code == 0);
  const Json json = outcome.json();
  CHECK(keys_of(json) == Words{"format", "version", "scenario", "points", "notes", "rows"});
  CHECK(json["format"] == "ddpsim.sweep/1");
  CHECK(json["points"] == 6);
  const Words lines = lines_of(content_of(scratch.path("rows.csv")));
  REQUIRE(json["rows"].size() == lines.size() - 1);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Json& row = json["rows"][i - 1];
    const Words fields = cells(lines[i]);
    CHECK(keys_of(row) == cells(lines[0]));
    CHECK(row["cluster.ranks_per_node"] == fields[1]);  // as it was given: a text
    CHECK(row["step_ms"].get<double>() == std::stod(fields[8]));
    CHECK(row["wire_bytes"].is_number_integer());
    CHECK(row["bucket_cap_bytes"].is_null() == (row["strategy"] != "bucketed"));
    CHECK(row["error"].is_null());
  }
}

TEST_CASE("the table marks the shortest step of each strategy", "[tools][sweep]") {
  const Outcome outcome = sweep(grid_of(first_example));
  REQUIRE(outcome.code == 0);
  const Json rows = sweep(grid_of(first_example, {"--json", "-"})).json()["rows"];
  double least = 1e9;
  for (const Json& row : rows)
    if (row["strategy"] == "bucketed") least = std::min(least, row["step_ms"].get<double>());
  int marked = 0;
  for (const std::string& line : lines_of(outcome.out)) {
    if (line.find("best bucketed") == std::string::npos) continue;
    ++marked;
    CHECK_THAT(line, Catch::Contains(fmt::format("{:.2f}", least)));
  }
  CHECK(marked == 1);
}

TEST_CASE("one thread, two and eight make the same file", "[tools][sweep]") {
  const Scratch scratch;
  for (const std::string jobs : {"1", "2", "8"})
    REQUIRE(sweep(grid_of(first_example,
                          {"--jobs", jobs, "-q", "--csv", jobs + ".csv", "--json", jobs + ".json"}),
                  scratch.folder())
                .code == 0);
  for (const std::string end : {".csv", ".json"}) {
    const std::string one = content_of(scratch.path("1" + end));
    CHECK(one == content_of(scratch.path("2" + end)));
    CHECK(one == content_of(scratch.path("8" + end)));
  }
}

TEST_CASE("points that stand in the file are not computed again", "[tools][sweep]") {
  const Scratch scratch;
  for (const std::string flag : {"--csv", "--json"}) {
    CAPTURE(flag);
    const Words some{first_example, "--vary", "training.bucket_cap=4MiB,64MiB", flag, "rows"};
    const Words all{first_example, "--vary", "training.bucket_cap=4MiB,16MiB,64MiB", flag, "rows"};
    CHECK(sweep(some, scratch.folder()).err == "2 points: 2 computed\n");
    CHECK(sweep(some, scratch.folder()).err == "2 points: 2 were in rows, 0 computed\n");
    CHECK(sweep(all, scratch.folder()).err == "3 points: 2 were in rows, 1 computed\n");
    const std::string grown = content_of(scratch.path("rows"));
    std::filesystem::remove(scratch.path("rows"));
    CHECK(sweep(all, scratch.folder()).err == "3 points: 3 computed\n");
    CHECK(content_of(scratch.path("rows")) == grown);
    std::filesystem::remove(scratch.path("rows"));
  }
}

TEST_CASE("a file that breaks off is continued, point by point", "[tools][sweep]") {
  const Scratch scratch;
  REQUIRE(sweep(grid_of(first_example, {"--csv", "rows.csv"}), scratch.folder()).code == 0);
  const std::string whole = content_of(scratch.path("rows.csv"));
  const Words lines = lines_of(whole);
  // The header, five rows (one point and a quarter of the next) and a piece of a sixth.
  std::string piece;
  for (std::size_t i = 0; i < 6; ++i) piece += lines[i] + "\n";
  scratch.write("rows.csv", piece + lines[6].substr(0, 30));
  CHECK(sweep(grid_of(first_example, {"--csv", "rows.csv"}), scratch.folder()).err ==
        "6 points: 1 were in rows.csv, 5 computed\n");
  CHECK(content_of(scratch.path("rows.csv")) == whole);
  // Of nothing, or an empty file, nothing is left out.
  scratch.write("rows.csv", "");
  CHECK(sweep(grid_of(first_example, {"--csv", "rows.csv"}), scratch.folder()).err ==
        "6 points: 6 computed\n");
}

TEST_CASE("an interrupted sweep writes what it has, and is continued to the same file",
          "[tools][sweep]") {
  const Scratch scratch;
  const std::string output = scratch.path("rows.csv").string();
  const Words line{
      DDPSIM_PROGRAM, "sweep", first_example, "--vary", "training.bucket_cap=1KiB..600KiB",
      "--csv",        output,  "--jobs",      "1"};
  Running running(line);
  // Its second thread computes; the first then waits for signals.
  const std::filesystem::path threads = "/proc/" + std::to_string(running.pid()) + "/task";
  REQUIRE(eventually([&] {
    std::error_code error;
    const auto entries = std::filesystem::directory_iterator(threads, error);
    return !error && std::distance(begin(entries), end(entries)) == 2;
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  kill(running.pid(), SIGINT);
  const Outcome outcome = running.wait();
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err,
             Catch::EndsWith("ddpsim: interrupted; " + output + " holds what had been computed\n"));
  const std::size_t rows = lines_of(content_of(output)).size() - 1;
  REQUIRE(rows % 4 == 0);
  const std::size_t points = rows / 4;
  CHECK(points > 0);
  CHECK(points < 600);

  const Outcome rest = execute(line);
  CHECK(rest.code == 0);
  CHECK_THAT(rest.err,
             Catch::EndsWith("600 points: " + std::to_string(points) + " were in " + output + ", " +
                             std::to_string(600 - points) + " computed\n"));
  const Outcome fresh =
      sweep({first_example, "--vary", "training.bucket_cap=1KiB..600KiB", "--csv", "-"});
  CHECK(content_of(output) == fresh.out);
}

TEST_CASE("a sweep that is ended before its first point says so", "[tools][sweep]") {
  const Scratch scratch;
  // So many points take seconds to plan.
  for (const int signal : {SIGTERM, SIGINT}) {
    Running running(
        {DDPSIM_PROGRAM, "sweep", first_example, "--vary", "cluster.nodes=1..900", "--vary",
         "training.bucket_cap=1KiB..1000KiB", "--csv", "rows.csv", "--jobs", "1", "-q"},
        scratch.folder());
    // Before its second thread, which would compute, it listens to signals.
    const std::string folder = "/proc/" + std::to_string(running.pid());
    const auto listens = [&] {
      const std::string status = content_of(folder + "/status"), caught = "SigCgt:";
      const std::size_t at = status.find(caught);
      // Until it is the program, its handlers are ours.
      return at != std::string::npos && status.starts_with("Name:\tddpsim\n") &&
             (std::stoull(status.substr(at + caught.size()), nullptr, 16) >> (signal - 1)) % 2 == 1;
    };
    REQUIRE(eventually(listens));
    std::error_code error;
    const auto threads = std::filesystem::directory_iterator(folder + "/task", error);
    CHECK(std::distance(begin(threads), end(threads)) == 1);
    kill(running.pid(), signal);
    const Outcome outcome = running.wait();
    CHECK(outcome.code == 1);
    CHECK(outcome.err == "ddpsim: interrupted\n");
    CHECK(!std::filesystem::exists(scratch.path("rows.csv")));
  }
}

TEST_CASE("of two sweeps into one file the second is refused, and the first loses nothing",
          "[tools][sweep]") {
  const Scratch scratch;
  const std::string output = scratch.path("rows.csv").string(),
                    lock = scratch.path("rows.csv.lock").string();
  const auto line = [&](const char* caps, const char* flag) {
    return Words{DDPSIM_PROGRAM, "sweep", first_example, "--vary", caps,
                 flag,           output,  "--jobs",      "1"};
  };
  std::filesystem::create_symlink("rows.csv", scratch.path("link.csv"));
  Running first(line("training.bucket_cap=1KiB..1200KiB", "--csv"));
  REQUIRE(eventually([&] { return std::filesystem::exists(lock) && !content_of(lock).empty(); }));
  kill(first.pid(), SIGSTOP);  // however quick it is
  const std::string refused = ": another process of ddpsim (process " +
                              std::to_string(first.pid()) +
                              ") is writing it: wait until that one is done, or name another file";
  for (const char* flag : {"--csv", "--json"})
    check_refused(execute(line("training.bucket_cap=1MiB..600MiB", flag)), output + refused, 4);
  check_refused(sweep(grid_of(first_example, {"--csv", scratch.path("link.csv").string()})),
                "link.csv" + refused, 4);
  CHECK(sweep(grid_of(first_example, {"--csv", scratch.path("other.csv").string()})).code == 0);
  kill(first.pid(), SIGCONT);
  CHECK(first.wait().code == 0);
  CHECK(lines_of(content_of(output)).size() == 1 + 4 * 1200);
  CHECK_FALSE(std::filesystem::exists(lock));
}

TEST_CASE("in a folder where no lock can be made a sweep says why", "[tools][sweep]") {
  namespace fs = std::filesystem;
  using fs::perms;
  const Scratch scratch;
  const fs::path folder = scratch.path("d");
  fs::create_directory(folder);
  fs::permissions(scratch.write("d/rows.csv", ""), perms::others_read | perms::others_write,
                  fs::perm_options::add);
  fs::permissions(scratch.folder(), perms::others_exec, fs::perm_options::add);
  fs::permissions(folder,
                  perms::owner_read | perms::owner_exec | perms::others_read | perms::others_exec);
  Words line{DDPSIM_PROGRAM,
             "sweep",
             first_example,
             "--vary",
             "training.bucket_cap=1MiB",
             "--csv",
             (folder / "rows.csv").string()};
  const bool root = geteuid() == 0;  // who may write everywhere
  if (root)
    line.insert(line.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  const Outcome outcome = execute(line);
  fs::permissions(folder, perms::owner_all);
  if (root && (outcome.code == 126 || outcome.code == 127)) {
    not_run("root cannot become another user here (setpriv)");
    return;
  }
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("rows.csv: no lock can be taken (Permission denied): "));
}

TEST_CASE("a killed sweep's lock holds nobody up", "[tools][sweep]") {
  const Scratch scratch;
  const std::string output = scratch.path("rows.csv").string(),
                    lock = scratch.path("rows.csv.lock").string();
  Running killed({DDPSIM_PROGRAM, "sweep", first_example, "--vary",
                  "training.bucket_cap=1KiB..600KiB", "--csv", output});
  REQUIRE(eventually([&] { return std::filesystem::exists(lock) && !content_of(lock).empty(); }));
  kill(killed.pid(), SIGKILL);
  killed.wait();
  REQUIRE(std::filesystem::exists(lock));
  CHECK(sweep({first_example, "--vary", "training.bucket_cap=1MiB", "--csv", output}).code == 0);
  CHECK_FALSE(std::filesystem::exists(lock));
}

TEST_CASE("a changed scenario, catalogue file or setting is not mixed into a file",
          "[tools][sweep]") {
  const Scratch scratch;
  const std::string changed = "is not what it was when this row was computed; take another file";
  std::string scenario = content_of(shipped("examples/own-profile.yaml"));
  std::filesystem::copy(shipped("examples/profiles"), scratch.path("profiles"),
                        std::filesystem::copy_options::recursive);
  scratch.write("own.yaml", scenario);
  const Words line{"own.yaml", "--vary", "training.bucket_cap=4MiB,64MiB", "--csv", "rows.csv"};
  REQUIRE(sweep(line, scratch.folder()).code == 0);
  const std::string before = content_of(scratch.path("rows.csv"));

  Words other = line;
  other.insert(other.end(), {"--set", "training.micro_batches=2"});
  check_refused(sweep(other, scratch.folder()), changed);
  other = line;
  other.emplace_back("--laws-only");
  check_refused(sweep(other, scratch.folder()), changed);

  scratch.write("own.yaml", scenario + "\n# a remark\n");
  check_refused(sweep(line, scratch.folder()), "rows.csv:2: the scenario, a file it names");
  scratch.write("own.yaml", scenario);
  CHECK(sweep(line, scratch.folder()).code == 0);

  int named_files = 0;
  for (const char* name :
       {"profiles/profile.yaml", "profiles/link.yaml", "profiles/all_reduce.csv"}) {
    CAPTURE(name);
    const std::string content = content_of(scratch.path(name));
    scratch.write(name, content + "\n");
    const Outcome outcome = sweep(line, scratch.folder());
    // The profile and the link are named by this scenario or by a file that it names.
    const bool named =
        scenario.find(std::filesystem::path(name).filename().string()) != std::string::npos;
    if (named) check_refused(outcome, changed);
    named_files += named ? 1 : 0;
    scratch.write(name, content);
  }
  CHECK(named_files >= 2);
  CHECK(content_of(scratch.path("rows.csv")) == before);
}

TEST_CASE("a file that is no result of the sweep is refused and left alone", "[tools][sweep]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& flag, const std::string& content,
                           const std::string& part) {
    CAPTURE(content.substr(0, 200));
    scratch.write("rows", content);
    check_refused(sweep(grid_of(first_example, {flag, "rows"}), scratch.folder()), part);
    CHECK(content_of(scratch.path("rows")) == content);
  };
  refused("--csv", "my thesis\n",
          "rows:1: no result of this sweep: column 1 is \"my thesis\", where this sweep has \"");
  refused("--json", "my thesis\n", "rows: no result of this sweep: not JSON; take another file");
  refused("--json", "{}", "rows: no result of this sweep: expected the format ddpsim.sweep/1");
  refused("--json", std::string(1'000'000, '['), "rows: no result of this sweep");
  refused("--csv", std::string(1'000'000, '"'), "rows:1: no result of this sweep");
  refused("--json", ddpsim({"run", first_example, "--json", "-"}).out,
          "rows: row 1: no result of this");

  const std::string csv = sweep(grid_of(first_example, {"--csv", "-"})).out;
  const std::string json = sweep(grid_of(first_example, {"--json", "-"})).out;
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  const Words other{first_example, "--vary", "training.bucket_cap=5MiB", "--vary",
                    "cluster.ranks_per_node=2"};
  const auto other_grid = [&](const char* flag) {
    Words words = other;
    words.insert(words.end(), {flag, "-"});
    return sweep(words).out;
  };
  refused("--csv", other_grid("--csv"),
          "rows:2: training.bucket_cap=5MiB is no point of this grid");
  refused("--json", other_grid("--json"),
          "rows: row 1: training.bucket_cap=5MiB is no point of this grid");
  refused("--csv", with(csv, ",gpt2,768,", ",gpt2,many,"),
          "rows:2: d_model: expected a number, got \"many\"");
  refused("--csv", with(csv, ",gpt2,768,", ",gpt2,768,,"), "rows:2: expected 45 fields, got 46");
  refused("--csv", csv + lines_of(csv)[1] + "\n", "rows:26: this row is one too many");
  const Words lines = lines_of(csv);
  refused("--csv", lines[0] + "\n" + lines[2] + "\n" + lines[1] + "\n",
          "rows:3: this row is one too many for its point, or out of order");
}

TEST_CASE("a sweep does not go on from a row in which anything changed", "[tools][sweep]") {
  const Scratch scratch;
  const std::string csv = sweep(grid_of(first_example, {"--csv", "-"})).out;
  const std::string json = sweep(grid_of(first_example, {"--json", "-"})).out;
  const auto answer = [&](const std::string& flag, const std::string& content) {
    scratch.write("rows", content);
    return sweep(grid_of(first_example, {flag, "rows", "--quiet"}), scratch.folder());
  };
  // Every 691st digit, one after the other, of either kind of file.
  for (const auto& [flag, whole] : {std::pair("--csv", csv), std::pair("--json", json)}) {
    const std::size_t rows = flag == std::string("--csv") ? whole.find('\n') : whole.find("[\n");
    std::size_t digits = 0, changed = 0;
    for (std::size_t i = rows; i < whole.size(); ++i) {
      if (std::isdigit(static_cast<unsigned char>(whole[i])) == 0 || ++digits % 691 != 0) continue;
      std::string damaged = whole;
      damaged[i] = whole[i] == '9' ? '8' : static_cast<char>(whole[i] + 1);
      const Outcome outcome = answer(flag, damaged);
      CAPTURE(flag, i, whole.substr(i - 20, 40));
      if (outcome.code == 0) {  // the last of 17 digits may change and the number stay the same
        CHECK(content_of(scratch.path("rows")) == whole);
        continue;
      }
      check_refused(outcome, "rows:");
      CHECK(content_of(scratch.path("rows")) == damaged);
      ++changed;
    }
    CHECK(changed > 3);
  }
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = csv;
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK_THAT(answer("--csv", changed(",gpt2,768,", ",gpt2,769,")).err,
             Catch::StartsWith("ddpsim: rows:2: this row is not as ddpsim wrote it: its row_crc32 "
                               "says \"") &&
                 Catch::EndsWith("\"; remove the row, and its point is computed again\n"));
  // A row that is gone is computed again, and so is one that somebody removed for that.
  const Words lines = lines_of(csv);
  std::string fewer;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i != 7) fewer += lines[i] + "\n";
  CHECK(answer("--csv", fewer).code == 0);
  CHECK(content_of(scratch.path("rows")) == csv);
  // Line ends of another system are no damage.
  std::string other_system;
  for (const char c : csv) other_system += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(answer("--csv", other_system).code == 0);
  CHECK(content_of(scratch.path("rows")) == csv);
}

TEST_CASE("a sweep goes on from a file of before rows had checksums, and says so",
          "[tools][sweep]") {
  const Scratch scratch;
  const std::string csv = sweep(grid_of(first_example, {"--csv", "-"})).out;
  const std::string json = sweep(grid_of(first_example, {"--json", "-"})).out;
  std::string old_csv;
  for (const std::string& line : lines_of(csv)) old_csv += line.substr(0, line.rfind(',')) + "\n";
  Json old_json = Json::parse(json);
  for (Json& row : old_json["rows"]) row.erase("row_crc32");
  for (const auto& [flag, old, whole] :
       {std::tuple("--csv", old_csv, csv), std::tuple("--json", old_json.dump(), json)}) {
    CAPTURE(flag);
    scratch.write("rows", old);
    const Outcome outcome = sweep(grid_of(first_example, {flag, "rows"}), scratch.folder());
    CHECK(outcome.code == 0);
    CHECK(outcome.err ==
          "note: rows has rows without a checksum: an earlier release wrote them; damage would not "
          "be noticed\n6 points: 6 were in rows, 0 computed\n");
    CHECK(content_of(scratch.path("rows")) == whole);
  }
}

TEST_CASE("a key of which no value suits the scenario is told before anything is computed",
          "[tools][sweep]") {
  const Scratch scratch;
  const auto refused = [&](const Words& vary, const std::string& part) {
    Words line{first_example, "--csv", "rows.csv"};
    for (const std::string& each : vary) line.insert(line.end(), {"--vary", each});
    check_refused(sweep(line, scratch.folder()), part);
    CHECK(!std::filesystem::exists(scratch.path("rows.csv")));
  };
  refused({"training.bucket_cap=25,26"}, "--vary training.bucket_cap=25: expected a size with");
  refused({"training.bucket_cap=1MiB", "cluster.device=t5,t6"},
          "--vary cluster.device=t5: unknown name \"t5\"");
  refused({"cluster.device=[a"}, "--vary cluster.device=[a: \"]\" is missing");
  refused({"training.buckets_cap=1MiB"}, "did you mean \"bucket_cap\"?");
  refused({"training.bucket_cap=1MiB", "training.bucket_cap=2MiB"}, "this key is varied twice");
  check_refused(sweep({first_example, "--vary", "workload.batch=1,2", "--set", "workload.batch=3"}),
                "workload.batch is given by --set workload.batch=");
  check_refused(sweep({first_example}), "sweep needs one scenario and the keys to vary");
  check_refused(sweep({"--vary", "workload.batch=1"}), "sweep needs one scenario");
  check_refused(sweep({first_example, "--vary", "workload.batch=1,2", "--jobs", "0"}),
                "--jobs 0: expected a whole number from 1 to 1024");
}

TEST_CASE("a combination the scenario refuses is a row that says why", "[tools][sweep]") {
  // Two caps need two buckets; all of these gradients are in one of 1 GiB.
  const Scratch scratch;
  const Words line{first_example,
                   "--vary",
                   "training.bucket_caps=[1 MiB],[1 GiB, 1 MiB]",
                   "--vary",
                   "workload.model=gpt2-xl,gpt2",
                   "--csv",
                   "rows.csv",
                   "--set",
                   "compare=[flat]"};
  for (const char* round : {"4 points: 4 computed", "4 points: 4 were in rows.csv, 0 computed"}) {
    const Outcome outcome = sweep(line, scratch.folder());
    CHECK(outcome.code == 2);
    const Words notes = lines_of(outcome.err);
    REQUIRE(notes.size() == 3);
    CHECK_THAT(notes[0], Catch::StartsWith("note: 2 of 4 points do not fit"));
    CHECK(notes[1] == round);
    CHECK_THAT(notes[2],
               Catch::StartsWith("ddpsim: 1 of 4 points are refused; the first, "
                                 "training.bucket_caps=[1 GiB, 1 MiB], workload.model=gpt2: "
                                 "--vary training.bucket_caps=[1 GiB, 1 MiB]: this cap closes no"));
    const Words rows = lines_of(content_of(scratch.path("rows.csv")));
    REQUIRE(rows.size() == 5);
    CHECK_THAT(rows[4], Catch::StartsWith("\"[1 GiB, 1 MiB]\",gpt2,,,,"));
    CHECK_THAT(rows[4], Catch::Contains("this cap closes no bucket"));
  }
}

TEST_CASE("a bad value of the only key is a row that says why", "[tools][sweep]") {
  const Scratch scratch;
  const Outcome outcome = sweep({first_example, "--vary", "training.bucket_cap=1MiB,none", "--set",
                                 "compare=[bucketed]", "--csv", "rows.csv"},
                                scratch.folder());
  CHECK(outcome.code == 2);
  const Words rows = lines_of(content_of(scratch.path("rows.csv")));
  REQUIRE(rows.size() == 3);
  CHECK_THAT(rows[1], Catch::StartsWith("1MiB,bucketed,"));
  CHECK_THAT(rows[2], Catch::StartsWith("none,,,") && Catch::Contains("expected a size"));
}

TEST_CASE("ranks double from one to a thousand in one range", "[tools][sweep]") {
  const Outcome outcome = sweep({first_example, "--vary", "cluster.ranks=1..1024*2", "--set",
                                 "cluster=dgx-h100", "--set", "compare=[bucketed]", "--json", "-"});
  REQUIRE(outcome.code == 0);
  const Json rows = outcome.json()["rows"];
  REQUIRE(rows.size() == 11);
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i]["world_size"] == 1 << i);
  // At one rank nothing is hidden, for nothing is sent.
  const Outcome table = sweep({first_example, "--vary", "cluster.ranks=1,2", "--set",
                               "cluster=dgx-h100", "--set", "compare=[bucketed]"});
  CHECK(table.out.find("100 %") == std::string::npos);
}

TEST_CASE("the flag --best sorts a sweep's table and leaves its file in order", "[tools][sweep]") {
  const Scratch scratch;
  const Words line{
      first_example, "--vary", "cluster.ranks=1..8*2,7.5", "--set", "compare=[bucketed]", "--csv",
      "rows.csv",    "--best", "samples_per_second"};
  const Outcome outcome = sweep(line, scratch.folder());
  CHECK(outcome.code == 2);
  Words ranks;
  for (const std::string& row : lines_of(outcome.out))
    if (row.find("bucketed") != std::string::npos || row.find("refused") != std::string::npos)
      ranks.push_back(row.substr(0, row.find(' ')));
  CHECK(ranks == Words{"8", "4", "2", "1", "7.5"});
  CHECK_THAT(outcome.out, Catch::Contains("sorted by samples_per_second, the highest first"));
  Words in_file;
  for (const std::string& row : lines_of(content_of(scratch.path("rows.csv"))))
    in_file.push_back(row.substr(0, row.find(',')));
  CHECK(in_file == Words{"cluster.ranks", "1", "2", "4", "8", "7.5"});
  CHECK_THAT(sweep(line, scratch.folder()).err,
             Catch::StartsWith("5 points: 5 were in rows.csv, 0 computed\n"));
}

TEST_CASE("the strategies compared can be varied too", "[tools][sweep]") {
  const Scratch scratch;
  const Words line{first_example, "--vary", "compare=[flat],[naive, overlap]", "--csv", "rows.csv"};
  CHECK(sweep(line, scratch.folder()).err == "2 points: 2 computed\n");
  CHECK(lines_of(content_of(scratch.path("rows.csv"))).size() == 4);
  CHECK(sweep(line, scratch.folder()).err == "2 points: 2 were in rows.csv, 0 computed\n");
}

TEST_CASE("what is no plain file gets a sweep once, at the end", "[tools][sweep]") {
  const Outcome piped = execute({"/bin/sh", "-c",
                                 std::string(DDPSIM_PROGRAM) + " sweep " + first_example +
                                     " --vary workload.batch=1,2 --csv /dev/stdout | cat"});
  CHECK(piped.out == sweep({first_example, "--vary", "workload.batch=1,2", "--csv", "-"}).out +
                         sweep({first_example, "--vary", "workload.batch=1,2"}).out);
}

TEST_CASE("a sweep and a varied run say what does not fit", "[tools][sweep]") {
  for (const char* command : {"sweep", "run"}) {
    const Outcome outcome = ddpsim({command, shipped("examples/first.yaml"), "--vary",
                                    "workload.batch=1,512", "--set", "compare=[flat]"});
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.err, Catch::Contains("fit") && Catch::Contains("predicted all the same"));
  }
}

TEST_CASE("processes that a launcher started do not all make one sweep", "[tools][sweep]") {
  const Words line{DDPSIM_PROGRAM, "sweep", first_example, "--vary", "workload.batch=1,2"};
  for (const std::string rank : {"0", "1", "2"}) {
    const Outcome outcome =
        execute(line, {}, {{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "3"}});
    CHECK(outcome.out.empty());
    CHECK(outcome.code == (rank == "0" ? 2 : 0));
    CHECK(outcome.err ==
          (rank == "0" ? "ddpsim: mpirun started 3 processes, and a sweep is one: start it by "
                         "itself, or share its points from Python: ddpsim.sweep(..., "
                         "executor=...)\n"
                       : ""));
  }
  CHECK(execute(line, {}, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).code ==
        0);
}

TEST_CASE("with --best a row is marked where that figure is the best", "[tools][sweep]") {
  // A step of 16 samples takes longer than one of 2, and gets more done in a second.
  const Words line{first_example, "--vary", "workload.batch=2,16", "--set", "compare=[bucketed]"};
  const auto marked = [&](const Words& more) {
    Words words = line;
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = sweep(words);
    REQUIRE(outcome.code == 0);
    Words rows;
    for (const std::string& row : lines_of(outcome.out))
      if (row.ends_with("best bucketed")) rows.push_back(row.substr(0, row.find(' ')));
    return rows;
  };
  CHECK(marked({}) == Words{"2"});
  CHECK(marked({"--best", "step"}) == Words{"2"});
  CHECK(marked({"--best", "tokens_per_second"}) == Words{"16"});
}

TEST_CASE("a page says first what is the best by --best", "[tools][sweep]") {
  const Scratch scratch;
  for (const char* command : {"sweep", "run"}) {
    CHECK(ddpsim({command, first_example, "--vary", "workload.batch=2,16", "--set",
                  "compare=[bucketed]", "--best", "tokens_per_second", "--report", "p.html", "-q"},
                 scratch.folder())
              .code == 0);
    const std::string page = content_of(scratch.path("p.html"));
    CHECK_THAT(page, Catch::Contains("By tokens_per_second the best is ") &&
                         Catch::Contains("under bucketed at workload.batch=16"));
  }
}

TEST_CASE("lines of a comment in a sweep's file are read over, with a note", "[tools][sweep]") {
  const Scratch scratch;
  const Words line{first_example, "--vary",  "workload.batch=1,2", "--set", "compare=[bucketed]",
                   "--csv",       "rows.csv"};
  REQUIRE(sweep(line, scratch.folder()).code == 0);
  const std::string before = content_of(scratch.path("rows.csv"));
  const std::size_t second = before.find('\n') + 1;
  scratch.write("rows.csv", "# of Monday, \"quoted\n" + before.substr(0, second) +
                                "# the first, and more\n" + before.substr(second) + "#");
  const Outcome again = sweep(line, scratch.folder());
  CHECK(again.code == 0);
  CHECK(again.err ==
        "note: rows.csv: 3 lines of a comment are read over, and not kept\n"
        "2 points: 2 were in rows.csv, 0 computed\n");
  CHECK(content_of(scratch.path("rows.csv")) == before);
}

TEST_CASE("large grids say early how long they take", "[tools][sweep]") {
  // A point takes some 20 ms, so that a thousand take more than five seconds on one processor.
  const std::string large = shipped("seeds/cs336-xl-2xh100.yaml");
  for (const Words& line :
       {Words{"sweep", "--jobs", "1", "--vary", "training.bucket_cap=1KiB..9999KiB"},
        Words{"run", "--vary", "training.bucket_cap=1MiB..999MiB"}}) {
    Words words{DDPSIM_PROGRAM, line[0], large};
    words.insert(words.end(), line.begin() + 1, line.end());
    Running running(words);
    CAPTURE(line[0]);
    CHECK(eventually(
        [&] { return said_by(running).find(" are left, about ") != std::string::npos; }));
    // A sweep tells the size of its grid before it tries the values.
    CHECK(said_by(running).starts_with("note: the grid has 9999 points; ") == (line[0] == "sweep"));
  }
}

TEST_CASE("where nothing fits the memory, what would fit is computed", "[tools][sweep]") {
  // GPT-2 of 256 samples on 40 GB: a quarter of them fits, and as many samples in four passes.
  const auto advice = [](const Words& words) {
    const Outcome outcome = ddpsim(words);
    CAPTURE(words, outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.err, Catch::Contains("no strategy that is compared (naive, flat, overlap, "
                                            "bucketed) fits 40 GiB: the least takes ") &&
                                Catch::Contains("what fits: workload.batch="));
    const std::size_t at = outcome.err.find("what fits: workload.batch=") + 26;
    return std::stoi(outcome.err.substr(at));
  };
  const int batch = advice({"run", first_example, "--set", "workload.batch=256"});
  // A step of `none` takes less and trains nothing: what is named is of the others.
  CHECK_THAT(
      ddpsim({"run", first_example, "--set", "workload.batch=256", "--set", "compare=[none,naive]"})
          .err,
      Catch::Contains("no strategy that is compared (naive) fits 40 GiB: the least takes"));
  const auto fits = [](int samples) {
    const Json run = ddpsim({"run", first_example, "--json", "-", "--set",
                             "workload.batch=" + std::to_string(samples)})
                         .json();
    for (const Json& row : run["results"])
      if (row["fits_device"] == true) return true;
    return false;
  };
  CHECK(fits(batch));
  CHECK_FALSE(fits(2 * batch));
  for (const char* command : {"run", "sweep"})
    CHECK(advice({command, first_example, "--vary", "workload.batch=512,256"}) == batch);
  // Where one of two fits there is nothing to advise; where none ever does, that is said.
  CHECK_THAT(ddpsim({"sweep", first_example, "--vary", "workload.batch=1,512"}).err,
             !Catch::Contains("no strategy that is compared"));
  CHECK_THAT(ddpsim({"run", first_example, "--set", "workload.model=llama3-70b", "--set",
                     "workload.batch=1", "--set", "compare=[flat]"})
                 .err,
             Catch::Contains("no strategy that is compared (flat) fits") &&
                 Catch::Contains("with these strategies no smaller batch, no optimizer and no "
                                 "device of the catalogue fits"));
}

}  // namespace
}  // namespace ddpsim
