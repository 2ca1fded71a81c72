#include "model/program/fingerprint.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "model/parallel/order/build_job.hpp"
#include "tests/model/parallel/schedule_story.hpp"
#include "tests/model/program/changes.hpp"

namespace ddpsim::program {
namespace {

/// An action of every kind there is.
template <std::size_t... kinds>
std::vector<Deed> deeds_of_all_kinds(std::index_sequence<kinds...>) {
  return {Deed{Action(std::in_place_index<kinds>), {}}...};
}

/// A little of everything a job can hold.
Job full_job() {
  Job job;
  job.streams = {{.name = "host"}, {.name = "compute"}};
  job.communicators = {{"world", 1, {{0, 1}}}};
  Buffer& view = job.buffers.emplace_back();
  view.inside = {0, 0, 1, 2};
  Work multiplication;
  multiplication.gemm = Gemm{8, 16, 32, 1};
  multiplication.traffic = 4 * KiB;
  Work timed;
  timed.known_time = Duration{1000};
  job.works = {multiplication, timed};
  job.groups = {{{3, 2}, 8 * KiB}};
  job.labels = {"", "reduce"};
  job.own.deeds = deeds_of_all_kinds(std::make_index_sequence<std::variant_size_v<Action>>());
  job.own.slices = {{0, 0, 1, 1}};
  job.passes = {{0}, {1, 1}, {}};
  Program& program = job.programs.emplace_back();
  program.tasks = {{}, {.work = 1, .deed = 2, .after_end = 1}};
  program.after = {0};
  program.holds = {{}};
  program.marks = {{Mark::Kind::ready, 1, 0}};
  job.program_of = {0, 0};
  job.beside = program;
  job.state = "state";
  job.hook = "hook";
  job.gradients = {{0, 0, 0, 1}};
  return job;
}

/// Checks that each change of one field has a fingerprint of its own, and says how many there are.
std::size_t fingerprints_of_changes(const Job& job) {
  std::set<std::uint64_t> seen{fingerprint(job)};
  std::size_t count = 1;
  changes::for_each_change<Job>(job, [&](const Job& other) {
    ++count;
    seen.insert(fingerprint(other));
  });
  CHECK(seen.size() == count);
  return count;
}

}  // namespace

TEST_CASE("a job that differs in one field of anything has another fingerprint",
          "[model][program][fingerprint]") {
  // Two works of 20 fields each, and an origin of eight and what is inside for each kind of action.
  CHECK(fingerprints_of_changes(full_job()) > 2 * 16 + 8 * std::variant_size_v<Action> + 150);
}

TEST_CASE("in a real step every field of every task, deed, buffer and work counts",
          "[model][program][fingerprint]") {
  Training training;
  training.buckets = {{2, 1}, {0}};
  training.comm_hook.kind = CommHookKind::powersgd;
  training.comm_hook.powersgd.min_compression_rate = 0.5;
  Workload workload = timed::two_layers();
  workload.parameters[0].shape = {20, 50};
  const Job job = build_job(timed::works_of(workload, timed::two_ranks()), training);
  CHECK(fingerprints_of_changes(job) > 15 * job.programs.front().tasks.size());
}

TEST_CASE("equal jobs have equal fingerprints, however they came to be",
          "[model][program][fingerprint]") {
  const Job job = full_job();
  Job copy = job;
  CHECK(fingerprint(copy) == fingerprint(job));
  copy.programs[0].rounds = 2;
  CHECK(fingerprint(copy) != fingerprint(job));
  copy.programs[0].rounds = 1;
  CHECK(fingerprint(copy) == fingerprint(job));
}

TEST_CASE("the order of works, tasks, deeds and groups counts", "[model][program][fingerprint]") {
  const Job job = full_job();
  const auto exchanged = [&](auto list) {
    Job other = job;
    std::swap(list(other)[0], list(other)[1]);
    return fingerprint(other) != fingerprint(job);
  };
  CHECK(exchanged([](Job & each) -> auto& { return each.works; }));
  CHECK(exchanged([](Job & each) -> auto& { return each.programs[0].tasks; }));
  CHECK(exchanged([](Job & each) -> auto& { return each.own.deeds; }));
  CHECK(exchanged([](Job & each) -> auto& { return each.streams; }));
  CHECK(exchanged([](Job & each) -> auto& { return each.groups[0].parameters; }));
}

TEST_CASE("what moves from one list to the next changes the fingerprint",
          "[model][program][fingerprint]") {
  Job left, right;
  left.passes = {{0, 0}, {}, {}};
  right.passes = {{0}, {0}, {}};
  CHECK(fingerprint(left) != fingerprint(right));
}

TEST_CASE("the fingerprint is the same on every machine", "[model][program][fingerprint]") {
  // FNV-1a of eight bytes each, by its definition, of a job of nothing: six lists of no length, no
  // deeds that are known, two texts of no length, a seed; the two lists of its own actions, three
  // of passes, two of programs; nothing beside, and no gradients.
  std::uint64_t hash = 0xCBF29CE484222325u;
  const auto add = [&](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte)
      hash = (hash ^ ((value >> (8 * byte)) & 0xFF)) * 0x100000001B3u;
  };
  for (int zero = 0; zero < 6 + 1 + 2 + 1 + 2 + 3 + 2 + 1 + 1; ++zero) add(0);
  CHECK(fingerprint(Job{}) == hash);
}

TEST_CASE("a fingerprint is written in sixteen hexadecimal digits",
          "[model][program][fingerprint]") {
  CHECK(fingerprint_text(0) == "0000000000000000");
  CHECK(fingerprint_text(0xFEDCBA9876543210u) == "fedcba9876543210");
}

}  // namespace ddpsim::program
