// What goes wrong in a job: every rank that survives ends in time, with one clear line and exit
// code 1, and nothing is left behind.
#include <cstring>
#include <tuple>

#include <catch2/catch.hpp>

#include "tests/tools/jobs.hpp"

namespace ddpsim {
namespace {

using Clock = std::chrono::steady_clock;

/// Far beyond the timeouts given below, far below a hang.
constexpr std::chrono::seconds soon{40};

/// Steps without an end in sight.
std::vector<std::string> endless(const std::string& scenario) {
  return {DDPSIM_PROGRAM, "validate",  scenario, "--ranks",   "2",  "--steps",
          "100000",       "--repeats", "1",      "--timeout", "2 s"};
}

std::vector<std::string> one_rank(const std::string& scenario, const std::string& rendezvous,
                                  const std::string& timeout = "1 s") {
  return {DDPSIM_PROGRAM,
          "validate",
          scenario,
          "--rendezvous",
          rendezvous,
          "--timeout",
          timeout,
          "--steps",
          "2",
          "--repeats",
          "1",
          "--warm-up",
          "0",
          "--json",
          "/dev/null",
          "--quiet"};
}

Environment place(int rank, int ranks) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(ranks)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(ranks)}};
}

/// A job of two processes that has begun to run steps.
struct Job {
  Scratch scratch, temporary;
  Running job{endless(scratch.write("small.yaml", small_mlp).string()),
              {},
              {{"TMPDIR", temporary.folder().string()}}};
  std::vector<pid_t> ranks;

  Job() {
    REQUIRE(eventually([&] { return descendants(job.pid()).size() == 2; }));
    ranks = descendants(job.pid());
    // Connected, as nothing is left where they met; and at work.
    const auto files = [&] {
      int count = 0;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary.folder()))
        count += entry.is_regular_file() ? 1 : 0;
      return count;
    };
    for (const pid_t rank : ranks)
      REQUIRE(eventually(
          [&] { return processor_time(rank) >= std::chrono::milliseconds{100} && files() == 0; }));
  }
  Outcome end() {
    const auto begin = Clock::now();
    const Outcome outcome = job.wait();
    CHECK(Clock::now() - begin < soon);
    for (const pid_t rank : ranks) CHECK_FALSE(alive(rank));
    CHECK(std::filesystem::is_empty(temporary.folder()));
    return outcome;
  }
};

}  // namespace

TEST_CASE("a rank killed in the middle of a run ends the job", "[tools][faults]") {
  Job job;
  const int victim = GENERATE(0, 1);
  kill(job.ranks[static_cast<std::size_t>(victim)], SIGKILL);
  const Outcome outcome = job.end();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  const auto lines = lines_of(outcome.err);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(outcome.err,
             Catch::Contains("ddpsim: rank " + std::to_string(victim) + " was killed by signal 9"));
  CHECK_THAT(outcome.err, Catch::Contains("ddpsim: rank " + std::to_string(1 - victim) + ": ") &&
                              Catch::Contains("lost another rank"));
}

TEST_CASE("a rank that stalls is given up on", "[tools][faults]") {
  Job job;
  kill(job.ranks[1], SIGSTOP);
  const Outcome outcome = job.end();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  CHECK_THAT(
      outcome.err,
      Catch::Contains("ddpsim: rank 0: ") &&
          Catch::Contains("rank 1 did not answer within 2 s: it is stopped or out of reach\n"));
}

TEST_CASE("other programs are no fault, and a fault beside them is told as soon",
          "[tools][faults]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const auto calibrated = quickly_calibrated(scenario);
  const BusyLoops loops;
  std::vector<std::string> arguments{"validate", scenario,    "--ranks", "2",         "--steps",
                                     "3",        "--repeats", "1",       "--warm-up", "1",
                                     "--quiet",  "--timeout", "6 s",     "--json",    "/dev/null"};
  arguments.insert(arguments.end(), calibrated.begin(), calibrated.end());
  const Outcome whole = ddpsim(arguments);
  CAPTURE(whole.err);
  CHECK(whole.code == 0);
  Job job;
  kill(job.ranks[1], SIGSEGV);
  const Outcome outcome = job.end();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Catch::Contains("ddpsim: rank 1 was killed by signal 11") &&
                              Catch::Contains("ddpsim: rank 0: ") &&
                              Catch::Contains("lost another rank"));
}

TEST_CASE("a job that is told to end takes its ranks with it", "[tools][faults]") {
  Job job;
  const int signal = GENERATE(SIGTERM, SIGINT, SIGKILL);
  kill(job.job.pid(), signal);
  job.job.wait();
  for (const pid_t rank : job.ranks) CHECK(eventually([&] { return !alive(rank); }));
  CHECK(std::filesystem::is_empty(job.temporary.folder()));
}

TEST_CASE("a rank that never starts is waited for only so long", "[tools][faults]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const auto begin = Clock::now();
  const Outcome outcome =
      execute(one_rank(scenario, "file:" + scratch.path("meet").string()), {}, place(0, 2));
  CHECK(Clock::now() - begin < soon);
  CHECK(outcome.code == 4);
  CHECK(outcome.err == "ddpsim: rank 0: rank 1 did not come to file:" +
                           scratch.path("meet").string() + " within 1 s\n");
  CHECK_FALSE(std::filesystem::exists(scratch.path("meet")));
}

TEST_CASE("a place to meet that cannot be used is named", "[tools][faults]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const std::string in_the_way = scratch.write("file", "").string();
  const auto [where, said] = GENERATE_COPY(table<std::string, std::string>(
      {{"file:" + in_the_way + "/meet", "cannot be written: Not a directory"},
       {"file:/proc/ddpsim", "cannot be written: "},
       {"redis://127.0.0.1:1", "no Redis server answers at 127.0.0.1:1: Connection refused"}}));
  const Outcome outcome = execute(one_rank(scenario, where), {}, place(0, 2));
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK_THAT(outcome.err, Catch::Contains(said));
}

TEST_CASE("a port that somebody else listens on is no Redis server", "[tools][faults]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const LocalPort port(true);
  const auto begin = Clock::now();
  const Outcome outcome =
      execute(one_rank(scenario, "redis://127.0.0.1:" + port.number()), {}, place(0, 2));
  CHECK(Clock::now() - begin < soon);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Catch::Contains("something listens there, but did not answer"));
}

TEST_CASE("an unknown network interface is named beside the known ones", "[tools][faults]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const Outcome outcome =
      ddpsim({"validate", scenario, "--ranks", "2", "--interface", "nowhere0", "--timeout", "5 s"});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 2);  // a name that has to be written otherwise
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK_THAT(
      outcome.err,
      Catch::StartsWith("ddpsim: there is no network interface \"nowhere0\"; this host has: ") &&
          Catch::Contains("lo"));
}

TEST_CASE("ranks that were asked for different things tell each other", "[tools][faults]") {
  const Scratch scratch;
  const auto [from, mine, theirs] =
      GENERATE(std::tuple("batch: 8", "batch: 8", "batch: 9"),
               std::tuple("training: {", "training: {comm_hook: fp16_compress, ",
                          "training: {comm_hook: bf16_compress, "),
               std::tuple("training: {", "training: {comm_hook: {powersgd: {rank: 1, seed: 1}}, ",
                          "training: {comm_hook: {powersgd: {rank: 1, seed: 2}}, "));
  CAPTURE(theirs);
  const auto changed = [&, from = from](const char* to) {
    std::string text = small_mlp;
    return text.replace(text.find(from), std::strlen(from), to);
  };
  const std::string one = scratch.write("one.yaml", changed(mine)).string();
  const std::string other = scratch.write("other.yaml", changed(theirs)).string();
  const std::string where = "file:" + scratch.path("meet").string();
  Running first(one_rank(one, where, "20 s"), {}, place(0, 2));
  Running second(one_rank(other, where, "20 s"), {}, place(1, 2));
  const Outcome a = first.wait(), b = second.wait();
  CHECK(a.code == 4);
  CHECK(b.code == 4);
  const std::string said =
      " was started with another scenario, other flags or another number of ranks: start every "
      "rank alike\n";
  // Who looks later may find that the other has left already.
  CHECK((a.err == "ddpsim: rank 0: rank 1" + said || b.err == "ddpsim: rank 1: rank 0" + said));
  CHECK(lines_of(a.err).size() == 1);
  CHECK(lines_of(b.err).size() == 1);
  CHECK_FALSE(std::filesystem::exists(scratch.path("meet")));
}

TEST_CASE("a launcher's variables that make no sense are bad input", "[tools][faults]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const Outcome outcome = execute(one_rank(scenario, "file:" + scratch.path("meet").string()), {},
                                  {{"RANK", "two"}, {"WORLD_SIZE", "2"}});
  CHECK(outcome.code == 2);
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK_THAT(outcome.err, Catch::Contains("RANK") && Catch::Contains("two"));
}

TEST_CASE("an interrupted calibration keeps what was measured beside the complete one",
          "[tools][faults]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("small.yaml", small_mlp).string();
  const std::string file = scratch.write("machine.yaml", "a complete one").string();
  const std::string part = scratch.path("machine.interrupted.yaml").string();
  const std::string backend = GENERATE("gloo", "threads");
  CAPTURE(backend);
  Running job({DDPSIM_PROGRAM, "calibrate", scenario, "--backend", backend, "--ranks", "2", "-o",
               file, "--repeats", "100", "--quiet"});
  std::this_thread::sleep_for(std::chrono::seconds{2});
  REQUIRE(alive(job.pid()));
  kill(job.pid(), SIGINT);
  const Outcome outcome = job.wait();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err,
             Catch::Contains("interrupted; " + part + " holds what had been measured, and " + file +
                             " is as it was\n"));
  CHECK(content_of(file) == "a complete one");
  CHECK_THAT(content_of(part), Catch::Contains("complete: false"));
  // It is a calibration: kernels that were measured price a step, laws the rest.
  const std::string using_it = scratch.write("using.yaml", std::string(small_mlp)).string();
  const Outcome run =
      ddpsim({"run", using_it, "--set", "cluster.calibration=" + part, "--json", "-"});
  CAPTURE(run.err);
  CHECK(run.code == 0);
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path("")))
    CHECK_FALSE(entry.path().string().ends_with(".part"));
}

}  // namespace ddpsim
