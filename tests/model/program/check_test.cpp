#include "model/program/check.hpp"

#include <catch2/catch.hpp>

#include "tests/model/program/written_jobs.hpp"

namespace ddpsim::program {
namespace {

using written::JobWriter, written::wrong_in, written::without_dependency;
enum : std::uint8_t { host, compute, nccl };

}  // namespace

TEST_CASE("programs as PyTorch has them pass, and none that lacks a dependency",
          "[model][program]") {
  const auto [name, job] = GENERATE(table<std::string, Job>(
      {{"ddp", written::ddp()}, {"fsdp", written::fsdp()}, {"PowerSGD", written::power_sgd()}}));
  CAPTURE(name);
  CHECK(wrong_in(job) == "");
  for (std::size_t i = 0; i < job.programs[0].after.size(); ++i) {
    CAPTURE(i);
    CHECK_THAT(wrong_in(without_dependency(job, i)), Catch::Contains(" and does not wait for "));
  }
}

TEST_CASE("what is wrong with a program is one line that names tasks and buffers",
          "[model][program]") {
  CHECK(wrong_in(without_dependency(written::ddp(), 0)) ==
        "task 5 (all_reduce b0 in world, sum on nccl) reads b0 and does not wait for task 4 (Scale "
        "slot1 <- g1 / |world| on compute), which writes it");
  // F36: the next reduce-scatter's input is in the memory of the one before.
  CHECK(wrong_in(without_dependency(written::fsdp(), 11)) ==
        "task 18 (Pack r0 <- d0 on compute) uses r0 and does not wait for task 15 (reduce_scatter "
        "q1 <- r1 in shard, mean on scatter), which used memory of that pool before");
}

TEST_CASE("what is read has been written", "[model][program]") {
  JobWriter job({"host", "compute"}, 1);
  const BufferId from = job.buffer("from", 8, Holds::gradient),
                 to = job.buffer("to", 8, Holds::gradient);
  job.add(compute, Fill{.to = {.buffer = from, .count = 4}});
  job.add(compute, Scale{.to = {.buffer = to, .count = 4}, .from = {.buffer = from, .count = 4}});
  CHECK(wrong_in(job.job) == "");
  job.add(compute, Scale{.to = job.all(to), .from = job.all(from)});
  CHECK(wrong_in(job.job) ==
        "task 2 (Scale to <- from on compute) reads from, of which nothing has written elements "
        "before it");
  job.job.buffers[from].start = Start::zeros;
  CHECK(wrong_in(job.job) == "");
}

TEST_CASE("who writes waits for who reads and writes", "[model][program]") {
  const auto job_with = [](bool waits) {
    JobWriter job({"host", "compute", "aside"}, 1);
    const BufferId a = job.buffer("a", 8, Holds::gradient, Life::step, Start::zeros),
                   b = job.buffer("b", 8, Holds::gradient);
    const auto copied = job.add(compute, Scale{.to = job.all(b), .from = job.all(a)});
    if (waits) job.add(2, Wait{}, {copied});
    job.add(2, Fill{.to = {.buffer = a, .begin = 6, .count = 2}});
    return job.job;
  };
  CHECK(wrong_in(job_with(true)) == "");
  CHECK(wrong_in(job_with(false)) ==
        "task 1 (Fill a[6:8] on aside) writes a[6:8] and does not wait for task 0 (Scale b <- a on "
        "compute), which reads it");
}

TEST_CASE("the host's own tasks end before what it issues behind them", "[model][program]") {
  JobWriter job({"host", "compute", "aside"}, 1);
  const BufferId a = job.buffer("a", 8, Holds::gradient);
  const auto filled = job.add(compute, Fill{.to = job.all(a)});
  job.add(host, Wait{}, {filled});
  job.add(2, Touch{.what = job.all(a)});
  CHECK(wrong_in(job.job) == "");
}

TEST_CASE("tasks of a stream of several lanes do not wait for each other", "[model][program]") {
  const auto job_with = [](std::uint8_t lanes, std::uint8_t at_once) {
    JobWriter job({"host", "compute", "gloo"}, 2);
    job.job.streams[nccl].lanes = lanes;
    const std::int16_t world = job.communicator("world", {{0, 1}});
    job.job.communicators[0].at_once = at_once;
    const BufferId a = job.buffer("a", 8, Holds::bucket, Life::step, Start::zeros);
    const Collective sum{.what = Collectives::all_reduce,
                         .reduction = Reduction::sum,
                         .communicator = world,
                         .from = job.all(a),
                         .to = job.all(a)};
    job.add(nccl, sum);
    job.add(nccl, sum);
    return job.job;
  };
  CHECK(wrong_in(job_with(1, 2)) == "");
  CHECK(wrong_in(job_with(2, 1)) == "");  // the communicator keeps them apart
  CHECK_THAT(wrong_in(job_with(2, 2)), Catch::Contains("reads a and does not wait for task 0"));
}

TEST_CASE("a collective that is not awaited may still be under way when its data are used",
          "[model][program]") {
  for (const bool unawaited : {true, false}) {
    JobWriter job({"host", "compute", "nccl"}, 2);
    const std::int16_t world = job.communicator("world", {{0, 1}});
    const BufferId a = job.buffer("a", 8, Holds::bucket, Life::step, Start::zeros);
    job.add(nccl, Collective{.what = Collectives::all_reduce,
                             .reduction = Reduction::sum,
                             .communicator = world,
                             .unawaited = unawaited,
                             .from = job.all(a),
                             .to = job.all(a)});
    job.add(compute, Touch{.what = job.all(a)});
    CHECK(wrong_in(job.job).empty() == unawaited);
  }
}

TEST_CASE("a buffer is used while it is there", "[model][program]") {
  JobWriter job({"host", "compute"}, 1);
  const BufferId a = job.buffer("a", 8, Holds::activation, Life::held);
  job.comes(a, compute);
  job.add(compute, Fill{.to = job.all(a)});
  job.goes(a, compute);
  CHECK(wrong_in(job.job) == "");
  Job late = job.job;
  late.programs[0].holds[0].before = 1;
  CHECK(wrong_in(late) == "task 0 (Fill a on compute) uses a, which is not there");
  Job twice = job.job;
  twice.programs[0].holds[1].begins = true;
  CHECK(wrong_in(twice) == "before task 1 a comes and is there already");
}

TEST_CASE("slices lie in their buffers, and views in what they are views of", "[model][program]") {
  JobWriter job({"host", "compute"}, 2);
  const std::int16_t pair = job.communicator("pair", {{0, 1}});
  const BufferId a = job.buffer("a", 8, Holds::bucket, Life::step, Start::zeros),
                 half = job.buffer("half", 4, Holds::bucket, Life::step, Start::undefined,
                                   job.part(a, pair));
  job.add(compute, Touch{.what = {.buffer = half, .begin = 1, .count = 2}});
  CHECK(wrong_in(job.job) == "");
  CHECK(placed(job.job, {.buffer = half, .begin = 1, .count = 2}, 1) ==
        Slice{.buffer = a, .begin = 5, .count = 2});
  Job beyond = job.job;
  beyond.own.deeds[0].action = Touch{.what = {.buffer = half, .begin = 3, .count = 2}};
  CHECK(wrong_in(beyond) ==
        "task 0 (Touch half[3:5] on compute): half[3:5] is beyond the 4 elements of its buffer");
  Job narrow = job.job;
  narrow.buffers[half].elements = 3;
  CHECK(wrong_in(narrow) ==
        "task 0 (Touch half[1:3] on compute): half[1:3]: a view of 3 elements of "
        "a[part of pair], which has 4");
  Job itself = job.job;
  itself.buffers[a].inside = job.all(a);
  CHECK(wrong_in(itself) ==
        "task 0 (Touch half[1:3] on compute): half[1:3] is a view that lies in itself");
}

TEST_CASE("a collective's output has the size that its input makes", "[model][program]") {
  const auto wrong = [](Collectives what, std::int64_t from, std::int64_t to) {
    JobWriter job({"host", "compute", "nccl"}, 4);
    const std::int16_t world = job.communicator("world", {{0, 1, 2, 3}});
    const BufferId in = job.buffer("in", from, Holds::bucket, Life::step, Start::zeros),
                   out = job.buffer("out", to, Holds::bucket);
    job.add(
        nccl,
        Collective{.what = what, .communicator = world, .from = job.all(in), .to = job.all(out)});
    return wrong_in(job.job);
  };
  CHECK(wrong(Collectives::all_reduce, 8, 8) == "");
  CHECK(wrong(Collectives::broadcast, 8, 8) == "");
  CHECK(wrong(Collectives::all_gather, 8, 32) == "");
  CHECK(wrong(Collectives::reduce_scatter, 8, 2) == "");
  CHECK(wrong(Collectives::all_to_all, 8, 8) == "");
  CHECK(wrong(Collectives::all_gather, 8, 8) ==
        "task 0 (all_gather out <- in in world on nccl): 8 elements among 4 ranks make 32 of "
        "output, got 8");
  CHECK_THAT(wrong(Collectives::all_reduce, 8, 4), Catch::Contains("make 8 of output, got 4"));
  CHECK_THAT(wrong(Collectives::reduce_scatter, 6, 2), Catch::Contains("no 4 equal parts"));
  CHECK_THAT(wrong(Collectives::all_to_all, 6, 6), Catch::Contains("no 4 equal parts"));
}

TEST_CASE("the ranks of a group issue the same collectives in one order", "[model][program]") {
  JobWriter job({"host", "compute", "nccl"}, 2);
  const std::int16_t world = job.communicator("world", {{0, 1}});
  const BufferId a = job.buffer("a", 8, Holds::bucket, Life::step, Start::zeros),
                 b = job.buffer("b", 4, Holds::bucket, Life::step, Start::zeros);
  const auto sum = [&](BufferId buffer) {
    return Collective{.what = Collectives::all_reduce,
                      .reduction = Reduction::sum,
                      .communicator = world,
                      .from = job.all(buffer),
                      .to = job.all(buffer)};
  };
  job.add(nccl, sum(a));
  job.add(nccl, sum(b));
  job.job.programs.emplace_back();
  job.job.program_of = {0, 1};
  job.current = 1;
  job.add(nccl, sum(a));
  CHECK(wrong_in(job.job) == "rank 0 issues 2 collectives in world, and rank 1 1");
  job.add(nccl, sum(b));
  CHECK(wrong_in(job.job) == "");
  std::swap(job.job.programs[1].tasks[0].deed, job.job.programs[1].tasks[1].deed);
  CHECK(
      wrong_in(job.job) ==
      "collective 0 of world is task 0 (all_reduce a in world, sum on nccl) of rank 0, and task 0 "
      "(all_reduce b in world, sum on nccl) of rank 1: all ranks of a group issue the same ones "
      "in one order");
}

TEST_CASE("ranks of different groups share a program", "[model][program]") {
  // HSDP's gradients: scattered among the ranks of a shard, then summed over its replicas.
  JobWriter job({"host", "compute", "scatter", "replicate"}, 4);
  const std::int16_t shard = job.communicator("shard", {{0, 1}, {2, 3}}),
                     replicate = job.communicator("replicate", {{0, 2}, {1, 3}});
  const BufferId p = job.buffer("p", 4, Holds::parameter, Life::job, Start::parameters),
                 d = job.buffer("d", 8, Holds::gradient), q = job.buffer("q", 4, Holds::gradient),
                 full = job.buffer("full", 8, Holds::gathered);
  const auto computed = job.add(compute, Compute{.fills = job.list({d})});
  const auto scattered = job.add(2,
                                 Collective{.what = Collectives::reduce_scatter,
                                            .reduction = Reduction::sum,
                                            .communicator = shard,
                                            .from = job.all(d),
                                            .to = job.all(q)},
                                 {computed});
  const auto summed = job.add(3,
                              Collective{.what = Collectives::all_reduce,
                                         .reduction = Reduction::sum,
                                         .communicator = replicate,
                                         .from = job.all(q),
                                         .to = job.all(q)},
                              {scattered});
  job.add(compute, Wait{}, {summed});
  job.add(compute, Update{.parameters = job.list({p}), .gradients = job.list({q})});
  job.add(compute, Scale{.to = job.part(full, shard), .from = job.all(p)});
  CHECK(wrong_in(job.job) == "");
  for (std::size_t i = 0; i < 3; ++i)
    CHECK_THAT(wrong_in(without_dependency(job.job, i)), Catch::Contains("does not wait for"));
  for (std::int32_t rank = 0; rank < 4; ++rank)
    CHECK(placed(job.job, job.part(full, shard), rank).begin == (rank % 2) * 4);
}

TEST_CASE("each send meets a receive of as many elements", "[model][program]") {
  JobWriter job({"host", "compute", "nccl"}, 2);
  const std::int16_t stages = job.communicator("stages", {{0, 1}});
  const BufferId a = job.buffer("a", 8, Holds::activation, Life::step, Start::zeros);
  job.add(nccl, Send{.communicator = stages, .peer = 1, .what = job.all(a)});
  job.job.programs.emplace_back();
  job.job.program_of = {0, 1};
  CHECK(wrong_in(job.job) == "rank 0 sends 1 times what rank 1 receives 0 times");
  job.current = 1;
  job.add(nccl, Receive{.communicator = stages, .peer = 0, .what = job.all(a)});
  CHECK(wrong_in(job.job) == "");
  Job shorter = job.job;
  shorter.own.deeds[1].action =
      Receive{.communicator = stages, .peer = 0, .what = {.buffer = a, .count = 4}};
  CHECK_THAT(wrong_in(shorter),
             Catch::Contains("is of 8 elements, and") && Catch::Contains("of rank 1 of 4"));
  Job alone = job.job;
  alone.own.deeds[0].action = Send{.communicator = stages, .peer = 2, .what = job.all(a)};
  CHECK_THAT(wrong_in(alone), Catch::Contains("has no other rank at place 2 of stages"));
}

TEST_CASE("an index that points to nothing is refused before anything is looked at",
          "[model][program]") {
  const Job good = written::ddp();
  const auto wrong = [&](const auto& spoil) {
    Job job = good;
    spoil(job);
    return wrong_in(job);
  };
  CHECK(wrong([](Job&) {}) == "");
  for (const auto& spoilt : {wrong([](Job& job) { job.program_of[1] = 7; }),
                             wrong([](Job& job) { job.streams.clear(); }),
                             wrong([](Job& job) { job.programs[0].tasks[3].stream = 9; }),
                             wrong([](Job& job) { job.programs[0].tasks[3].work = 9; }),
                             wrong([](Job& job) { job.programs[0].tasks[3].deed = 99; }),
                             wrong([](Job& job) { job.programs[0].after[0] = 13; }),
                             wrong([](Job& job) { job.programs[0].tasks.back().after_end = 99; }),
                             wrong([](Job& job) { job.own.slices.pop_back(); }),
                             wrong([](Job& job) { job.own.slices[0].buffer = 99; }),
                             wrong([](Job& job) { job.buffers[0].name = 99; }), wrong([](Job& job) {
                               job.communicators[0].groups = {{0, 0}};
                             }),
                             wrong([](Job& job) { job.communicators.clear(); }),
                             wrong([](Job& job) { job.programs.emplace_back(); })}) {
    CAPTURE(spoilt);
    CHECK(!spoilt.empty());
    CHECK(spoilt.find('\n') == std::string::npos);
  }
}

}  // namespace ddpsim::program
