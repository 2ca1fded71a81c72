// Jobs on real ranks: what buffers hold in the end is what one thread computes plainly.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "model/program/check.hpp"
#include "model/program/text.hpp"
#include "tests/backend/execute/plain_ranks.hpp"
#include "tests/backend/fakes.hpp"
#include "tests/backend/jobs.hpp"
#include "tests/model/program/random_job.hpp"

namespace ddpsim::program {
namespace {

/// Every buffer is asked for by its number, as if it were a parameter's gradient.
void show_all_buffers(Job& job) {
  job.gradients.clear();
  for (BufferId id = 0; id < job.buffers.size(); ++id)
    job.gradients.push_back({.buffer = id, .count = job.buffers[id].elements});
}

/// Do the rank's buffers hold what plain ranks have? Says where not.
bool as_plain(Backend& rank, const Job& job, const PlainRanks& plain) {
  const double tolerance = 2e-6 * std::max(1.0, plain.largest());
  for (BufferId id = 0; id < job.buffers.size(); ++id) {
    if (job.buffers[id].is_view() || job.buffers[id].life == Life::held ||
        job.buffers[id].type != DType::fp32)
      continue;
    const std::vector<float> found = rank.gradient(static_cast<int>(id));
    const std::vector<double>& expected = plain.buffer(rank.rank(), id);
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!(std::abs(found[i] - expected[i]) <= tolerance)) {
        std::fprintf(stderr, "rank %d, element %zu of buffer %u: %g instead of %g in\n%s",
                     rank.rank(), i, id, static_cast<double>(found[i]), expected[i],
                     text_of(job).c_str());
        return false;
      }
  }
  return true;
}

/// As fake GPUs have operands: whose pool is `GpuOperands`' for a cache of 4 KiB.
float operand_of_gpus(std::int32_t rank, std::uint32_t seed, std::int64_t index) {
  constexpr std::uint32_t places = 2 * 4096 / 256;
  const std::size_t first = (seed * 2654435761U >> 4) % places * 64;
  return FakeGpu::filled(first + static_cast<std::size_t>(index), 2 + static_cast<unsigned>(rank));
}

/// Runs the jobs, all of as many ranks, one after the other. Nothing is kept from one to the next.
int run_all(const std::vector<Job>& jobs, const std::string& backend) {
  std::vector<PlainRanks> plain;
  for (const Job& job : jobs)
    plain.emplace_back(job, backend == fake_gpus ? operand_of_gpus : operands_of_cpus(job)).run();
  const SmallJob nothing(1);
  return run_ranks(static_cast<int>(jobs.front().ranks()), backend, [&](Backend& rank) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      rank.load(nothing.workload, nothing.optimizer);
      rank.run(jobs[i]);
      if (!as_plain(rank, jobs[i], plain[i])) return 5;
    }
    return 0;
  });
}

/// As a GPU has streams: one task of each, and one collective of each communicator, at a time.
void do_one_by_one(Job& job) {
  for (Stream& stream : job.streams) stream.lanes = 1;
  for (Communicator& communicator : job.communicators) communicator.at_once = 1;
}

/// Makes what a random job says little about differ from task to task.
void vary(drawn::Draw& draw, Job& job) {
  for (BufferId id = 0; id < job.buffers.size(); ++id) {
    job.labels.push_back(fmt::format("buffer {}", id));
    job.buffers[id].name = static_cast<std::int16_t>(job.labels.size() - 1);
  }
  std::uint32_t seed = 0;
  for (Deed& deed : job.own.deeds) {
    if (auto* compute = std::get_if<Compute>(&deed.action)) compute->seed = 8 * ++seed;
    if (auto* call = std::get_if<Call>(&deed.action)) call->what = Call::What::user;
    if (auto* scale = std::get_if<Scale>(&deed.action)) scale->factor = draw.one_in(2) ? 1 : -0.5F;
    if (auto* combine = std::get_if<Combine>(&deed.action)) combine->a = draw.one_in(2) ? 1 : 0.5F;
    if (auto* move = std::get_if<Move>(&deed.action)) move->unawaited = false;
    if (auto* collective = std::get_if<Collective>(&deed.action)) {
      collective->unawaited = false;
      const bool adds = collective->what == Collectives::all_reduce ||
                        collective->what == Collectives::reduce_scatter;
      if (adds) collective->reduction = Reduction::sum;
    }
  }
  const int rounds = draw.one_in(4) ? 2 : 1;
  for (Program& each : job.programs) each.rounds = rounds;
  show_all_buffers(job);
}

bool has_counts(const Job& job) {
  return std::ranges::any_of(job.own.deeds, [](const Deed& deed) {
    const auto* collective = std::get_if<Collective>(&deed.action);
    return collective != nullptr && !collective->counts.empty();
  });
}

bool is_right(const Job& job) {
  try {
    check(job);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

/// Groups of ranks, and buffers for a collective among them, which each rank fills with numbers of
/// its own.
struct CollectiveJob {
  Job job;
  Slice from, to;

  CollectiveJob(int ranks, std::vector<std::vector<std::int32_t>> groups, std::int64_t sent,
                std::int64_t received) {
    job.labels = {"", "from", "to", "counts"};
    job.works.emplace_back();
    job.streams = {{.name = "host"}, {.name = "link", .beside = true}};
    job.communicators = {{.name = "some", .groups = std::move(groups)}};
    job.programs.resize(1);
    job.program_of.assign(static_cast<std::size_t>(ranks), 0);
    from = buffer(1, sent, DType::fp32);
    to = buffer(2, received, DType::fp32);
    const Operands filled = job.own.add(std::vector<Slice>{from, to});
    add(Compute{.seed = 7, .fills = filled});
  }
  Slice buffer(std::int16_t name, std::int64_t elements, DType type) {
    job.buffers.push_back({.holds = Holds::activation,
                           .name = name,
                           .type = type,
                           .elements = elements,
                           .life = Life::step,
                           .start = Start::zeros});
    return {.buffer = static_cast<BufferId>(job.buffers.size() - 1), .count = elements};
  }
  void add(Action action, std::uint8_t stream = 0) {
    Program& program = job.programs[0];
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t) program.after.push_back(t);
    job.own.deeds.push_back({std::move(action), {}});
    program.tasks.push_back({.deed = static_cast<std::uint32_t>(job.own.deeds.size() - 1),
                             .after_end = static_cast<std::uint32_t>(program.after.size()),
                             .stream = stream});
  }
  /// So many elements of each rank.
  Slice counts(const std::vector<std::int64_t>& of_ranks) {
    const Slice all = buffer(3, static_cast<std::int64_t>(of_ranks.size()), DType::fp64);
    for (std::size_t k = 0; k < of_ranks.size(); ++k)
      add(Fill{.to = {.buffer = all.buffer, .begin = static_cast<std::int64_t>(k), .count = 1},
               .value = static_cast<double>(of_ranks[k])});
    return all;
  }
  Job done(Collective collective) {
    collective.from = collective.from.buffer == no_buffer ? from : collective.from;
    collective.to = collective.to.buffer == no_buffer ? to : collective.to;
    add(collective, 1);
    add(Wait{});
    show_all_buffers(job);
    return job;
  }
};

/// All collectives over groups of one size.
std::vector<Job> all_collectives(int ranks, const std::vector<std::vector<std::int32_t>>& groups) {
  const auto n = static_cast<std::int64_t>(groups.front().size());
  std::vector<Job> jobs;
  const auto add = [&](std::int64_t sent, std::int64_t received, const Collective& collective) {
    jobs.push_back(CollectiveJob(ranks, groups, sent, received).done(collective));
  };
  for (const std::int64_t count : {1, 2, 37, 20'000}) {
    for (const Reduction by : {Reduction::sum, Reduction::mean}) {
      add(count, count, {.what = Collectives::all_reduce, .reduction = by});
      add(n * count, count, {.what = Collectives::reduce_scatter, .reduction = by});
      add(count, count, {.what = Collectives::all_gather, .reduction = by});
    }
    add(count, n * count, {.what = Collectives::all_gather});
    add(n * count, n * count, {.what = Collectives::all_to_all});
    for (std::int16_t root = 0; root < n; ++root)
      add(count, count, {.what = Collectives::broadcast, .root = root});
    // In place, in parts that are not alike.
    CollectiveJob in_place(ranks, groups, count, count);
    jobs.push_back(in_place.done({.what = Collectives::all_gather, .to = in_place.from}));
    // Into a part of what it reads.
    CollectiveJob part(ranks, groups, n * count, 1);
    const Slice own{.buffer = part.from.buffer, .part_of = 0, .count = count};
    jobs.push_back(part.done({.what = Collectives::all_gather, .from = own, .to = part.from}));
  }
  const std::vector<std::int64_t> uneven{5, 0, 17, 2};
  const std::vector<std::int64_t> counts(uneven.begin(), uneven.begin() + n);
  CollectiveJob gathered(ranks, groups, 17, 30), scattered(ranks, groups, 30, 17);
  const Slice of_gathered = gathered.counts(counts), of_scattered = scattered.counts(counts);
  jobs.push_back(gathered.done({.what = Collectives::all_gather, .counts = of_gathered}));
  jobs.push_back(scattered.done(
      {.what = Collectives::reduce_scatter, .reduction = Reduction::sum, .counts = of_scattered}));
  return jobs;
}

}  // namespace

TEST_CASE("random jobs leave in all buffers what is computed plainly, rank by rank",
          "[backend][execute][properties]") {
  const std::string backend = GENERATE(as<std::string>{}, "threads", "gloo", fake_gpus);
  drawn::Draw draw(backend == "gloo" ? 3 : 5);
  std::map<std::size_t, std::vector<Job>> by_ranks;
  int overlapping = 0;
  REQUIRE(run_ranks(1, backend == fake_gpus ? backend : "threads", [&](Backend& rank) {
            for (int found = 0; found < 120;) {
              Job job = random_job(draw);
              vary(draw, job);
              if (backend == fake_gpus) do_one_by_one(job);
              if (job.ranks() > 4 || !is_right(job)) continue;
              const std::string why = rank.refusal(job);
              if (why.find("without inputs") != std::string::npos) continue;
              if (why.find("overlap") == std::string::npos && !why.empty()) {
                std::fprintf(stderr, "%s\n", why.c_str());
                return 5;
              }
              if (!why.empty()) {
                ++overlapping;
                continue;
              }
              by_ranks[job.ranks()].push_back(std::move(job));
              ++found;
            }
            return 0;
          }) == 0);
  CHECK(overlapping > 10);
  for (const auto& [ranks, jobs] : by_ranks) {
    CAPTURE(backend, ranks, jobs.size());
    CHECK(run_all(jobs, backend) == 0);
  }
  CHECK(by_ranks.size() == 4);
}

TEST_CASE("every collective over groups of 2 to 4 ranks does what its name says",
          "[backend][execute]") {
  const std::string backend = GENERATE(as<std::string>{}, "threads", "gloo", fake_gpus);
  using Groups = std::vector<std::vector<std::int32_t>>;
  const auto [ranks, groups] = GENERATE(table<int, Groups>({{2, {{0, 1}}},
                                                            {3, {{0, 1, 2}}},
                                                            {3, {{2, 0, 1}}},
                                                            {4, {{0, 1, 2, 3}}},
                                                            {4, {{3, 1}, {0, 2}}}}));
  CAPTURE(backend, ranks);
  std::vector<Job> jobs = all_collectives(ranks, groups);
  if (backend == fake_gpus) std::erase_if(jobs, [](const Job& job) { return has_counts(job); });
  CHECK(run_all(jobs, backend) == 0);
}

TEST_CASE("what a job leaves of life job the next one begins with, wherever it lies",
          "[backend][execute]") {
  Job first;
  first.labels = {"", "kept", "whole"};
  first.works.emplace_back();
  first.streams = {{.name = "host"}};
  first.programs.resize(1);
  first.program_of = {0};
  first.buffers.push_back({.name = 1, .elements = 4, .life = Life::job, .start = Start::zeros});
  Job second = first;
  // There it lies in another buffer.
  second.buffers.push_back({.name = 2, .elements = 10, .life = Life::job, .start = Start::zeros});
  second.buffers[0].inside = {.buffer = 1, .begin = 3, .count = 4};
  first.own.deeds.push_back({Fill{.to = {.buffer = 0, .count = 4}, .value = 3}, {}});
  second.own.deeds.push_back(
      {Scale{.to = {.buffer = 0, .count = 4}, .from = {.buffer = 0, .count = 4}, .factor = 2}, {}});
  for (Job* job : {&first, &second}) {
    job->programs[0].tasks.emplace_back();
    show_all_buffers(*job);
  }
  const SmallJob nothing(1);
  const std::string backend = GENERATE(as<std::string>{}, "threads", fake_gpus);
  CHECK(run_ranks(1, backend, [&](Backend& rank) {
          rank.load(nothing.workload, nothing.optimizer);
          rank.run(first);
          if (rank.gradient(0) != std::vector<float>(4, 3)) return 5;
          rank.run(second);
          rank.run(second);
          if (rank.gradient(0) != std::vector<float>(4, 12)) return 6;
          if (rank.gradient(1)[3] != 12) return 7;
          rank.load(nothing.workload, nothing.optimizer);
          rank.run(second);
          return rank.gradient(0) == std::vector<float>(4, 0) ? 0 : 8;
        }) == 0);
}

TEST_CASE("what a hook keeps is there for jobs with the same state alone", "[backend][execute]") {
  Job job;
  job.labels = {"", "error"};
  job.works.emplace_back();
  job.streams = {{.name = "host"}};
  job.programs.resize(1);
  job.programs[0].tasks.emplace_back();
  job.program_of = {0};
  job.buffers.push_back({.holds = Holds::hook, .name = 1, .elements = 2, .start = Start::zeros});
  const Slice error{.buffer = 0, .count = 2};
  job.own.deeds.push_back({Combine{.to = error, .left = error, .right = error}, {}});
  Job fill = job;
  fill.own.deeds.front().action = Fill{.to = error, .value = 1};
  for (Job* each : {&job, &fill}) {
    each->state = "buckets of 25 MiB";
    show_all_buffers(*each);
  }
  Job other = job;
  other.state = "buckets of 1 MiB";
  const SmallJob nothing(1);
  CHECK(run_job(ddpsim::job_of(1), [&](Backend& rank) {
          rank.load(nothing.workload, nothing.optimizer);
          rank.run(fill);
          rank.run(other);
          if (rank.gradient(0) != std::vector<float>{0, 0}) return 5;
          rank.run(job);
          return rank.gradient(0) == std::vector<float>{2, 2} ? 0 : 6;
        }) == 0);
}

TEST_CASE("a job that cannot be done is refused in one line, before anything runs",
          "[backend][execute]") {
  const auto refused = [](const Job& job, int ranks) {
    std::string why;
    run_job(ddpsim::job_of(ranks), [&](Backend& rank) {
      const SmallJob nothing(1);
      rank.load(nothing.workload, nothing.optimizer);
      try {
        rank.run(job);
      } catch (const std::invalid_argument& problem) {
        if (rank.rank() == 0) why = problem.what();
      }
      return 0;
    });
    CHECK(why.find('\n') == std::string::npos);
    return why;
  };
  const auto holds = [](const char* text) { return Catch::Matchers::Contains(text); };
  const std::vector<std::vector<std::int32_t>> both{{0, 1}};
  CollectiveJob small(2, both, 4, 4);
  CHECK_THAT(refused(small.done({.what = Collectives::all_reduce, .reduction = Reduction::sum}), 3),
             holds("for 2 ranks, and there are 3"));
  CollectiveJob unsaid(2, both, 4, 4);
  CHECK_THAT(refused(unsaid.done({.what = Collectives::all_reduce}), 2),
             holds("does not say what to reduce by"));
  CollectiveJob drawn(2, both, 4, 4);
  const Operands all = drawn.job.own.add(std::vector<Slice>{drawn.from});
  drawn.add(Plugin{.what = Plugin::What::before, .code = 1, .reads = all, .writes = all});
  CHECK_THAT(refused(drawn.job, 2),
             holds("the comm hook \"from\" is a plugin's: say --plugin LIBRARY"));
  CollectiveJob uneven(2, both, 4, 5);
  uneven.add(Scale{.to = uneven.to, .from = uneven.from});
  CHECK_THAT(refused(uneven.job, 2), holds("have not one size"));
  CollectiveJob beyond(2, both, 4, 4);
  beyond.add(Fill{.to = {.buffer = beyond.from.buffer, .begin = 3, .count = 2}});
  CHECK_THAT(refused(beyond.job, 2), holds("elements"));
  CollectiveJob vast(2, both, 4, 4);
  vast.buffer(3, std::int64_t{1} << 60, DType::fp32);
  CHECK_THAT(refused(vast.job, 2), holds("take more than"));
}

namespace {

/// Programs that only last, one rank's three times as long, and all-reduces beside them.
Job job_beside(std::chrono::milliseconds shorter = std::chrono::milliseconds{20}) {
  CollectiveJob small(2, {{0, 1}}, 4, 4);
  Job& job = small.job;
  job.works.resize(3);
  job.works[1].host = shorter;
  job.works[2].host = 3 * shorter;
  small.add(Pause{});
  job.programs.push_back(job.programs.front());
  job.programs[0].tasks.back().work = 1;
  job.programs[1].tasks.back().work = 2;
  job.program_of = {0, 1};
  Program& beside = job.beside.emplace();
  beside.tasks.push_back({.deed = static_cast<std::uint32_t>(job.own.deeds.size()), .stream = 1});
  const Slice sent = small.buffer(3, 5, DType::fp32);
  job.own.deeds.push_back({Collective{.reduction = Reduction::sum, .from = sent, .to = sent}, {}});
  show_all_buffers(job);
  return job;
}

}  // namespace

TEST_CASE("what is beside the programs is repeated until a rank has ended, equally often on all",
          "[backend][execute]") {
  const std::string backend = GENERATE("threads", "gloo");
  // On a busy machine nothing beside them may end in a short pause, so the pause grows until it
  // does.
  constexpr int too_short = 6;
  int code = too_short;
  for (std::chrono::milliseconds pause{20}; code == too_short && pause.count() < 5000; pause *= 4) {
    const Job job = job_beside(pause);
    code = run_job(ddpsim::job_of(2, backend), [&](Backend& rank) {
      const SmallJob nothing(1);
      rank.load(nothing.workload, nothing.optimizer);
      bool none_ended = false;
      for (int repeat = 0; repeat < 3; ++repeat) {
        const RankRun run = rank.run(job);
        const std::vector<float> sent = rank.gradient(2);
        if (std::count(sent.begin(), sent.end(), 0.0F) != 4 || sent.back() < 1) return 5;
        if (run.sent->collectives != 0) return 7;
        none_ended = none_ended || run.background_ended < 1 || run.background_busy != 1 ||
                     run.background_begun > run.computed;
      }
      return none_ended ? too_short : 0;
    });
  }
  CHECK(code == 0);
}

TEST_CASE("GPUs and CPUs leave the same of an optimizer's steps, of many parameters",
          "[backend][execute]") {
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam, Optimizer::adamw}) {
    Job job;
    job.labels = {"", "parameter", "gradient", "momentum", "variance"};
    job.works.emplace_back();
    job.streams = {{.name = "host"}, {.name = "compute"}};
    job.programs.resize(1);
    job.program_of = {0};
    const auto add = [&](Action action) {
      job.own.deeds.push_back({std::move(action), {}});
      job.programs[0].tasks.push_back(
          {.deed = static_cast<std::uint32_t>(job.own.deeds.size() - 1), .stream = 1});
    };
    const auto buffer = [&](Holds holds, std::int16_t name, std::int32_t index, Start start) {
      job.buffers.push_back({.holds = holds,
                             .index = index,
                             .name = name,
                             .elements = 1 + index % 7,
                             .start = start});
      return Slice{.buffer = static_cast<BufferId>(job.buffers.size() - 1), .count = 1 + index % 7};
    };
    std::vector<Slice> parameters, gradients, state;
    for (std::int32_t i = 0; i < 150; ++i) {
      parameters.push_back(buffer(Holds::parameter, 1, i, Start::zeros));
      gradients.push_back(buffer(Holds::gradient, 2, i, Start::undefined));
      for (std::size_t k = 0; k < state_slices(optimizer); ++k)
        state.push_back(
            buffer(Holds::optimizer, static_cast<std::int16_t>(3 + k), i, Start::zeros));
      add(Fill{.to = gradients.back(), .value = 0.01 * i - 0.5});
    }
    const Operands updated = job.own.add(parameters), by = job.own.add(gradients);
    add(Update{.optimizer = optimizer,
               .parameters = updated,
               .gradients = by,
               .state = job.own.add(state)});
    show_all_buffers(job);
    std::map<std::string, std::vector<std::vector<float>>> left;
    for (const std::string backend : {"threads", fake_gpus})
      REQUIRE(run_ranks(1, backend, [&](Backend& rank) {
                const SmallJob nothing(1);
                rank.load(nothing.workload, nothing.optimizer);
                for (int step = 0; step < 3; ++step) rank.run(job);
                for (BufferId id = 0; id < job.buffers.size(); ++id)
                  left[backend].push_back(rank.gradient(static_cast<int>(id)));
                return 0;
              }) == 0);
    CHECK(left["threads"] == left[fake_gpus]);
    CHECK(left["threads"][0][0] != 0);
  }
}

TEST_CASE("what GPUs do not do is refused in one line, before anything runs",
          "[backend][execute]") {
  const auto refused = [](const Job& job) {
    std::string why;
    REQUIRE(run_ranks(1, fake_gpus, [&](Backend& rank) {
              try {
                rank.run(job);
              } catch (const std::invalid_argument& problem) {
                why = problem.what();
              }
              // The rank is as good as before.
              CollectiveJob plain(1, {{0}}, 4, 4);
              rank.run(plain.done({.what = Collectives::all_reduce, .reduction = Reduction::sum}));
              return 0;
            }) == 0);
    CHECK(why.find('\n') == std::string::npos);
    return why;
  };
  const auto of = [](Action action) {
    CollectiveJob made(1, {{0}}, 4, 4);
    made.add(std::move(action), 1);
    return made;
  };
  const auto holds = [](const char* text) { return Catch::Matchers::Contains(text); };
  CollectiveJob any(1, {{0}}, 4, 4);
  const Slice from = any.from, to = any.to;
  CHECK_THAT(refused(of(Noise{.to = to, .from = from}).job),
             holds("not noise: take it out of training.hooks"));
  CHECK_THAT(refused(of(Chunked{}).job), holds("not chunks: take it out of training.hooks"));
  CHECK_THAT(refused(of(TakeRows{.to = to, .rows = from, .from = from}).job),
             holds("sparse gradients are reduced in simulation and by the gloo backend only"));
  CollectiveJob clipped(1, {{0}}, 4, 4);
  clipped.add(Clip{.gradients = clipped.job.own.add(std::vector<Slice>{from}), .norm = 1});
  CHECK_THAT(refused(clipped.job), holds("not clip: take it out of training.hooks"));
  CollectiveJob plugin(1, {{0}}, 4, 4);
  const Operands all = plugin.job.own.add(std::vector<Slice>{from});
  plugin.add(Plugin{.what = Plugin::What::before, .code = 1, .reads = all, .writes = all});
  CHECK_THAT(refused(plugin.job), holds("works on the host's memory, so on the gloo backend only"));
  CollectiveJob uneven(1, {{0}}, 4, 4);
  const Slice counts = uneven.counts({0});
  CHECK_THAT(refused(uneven.done({.what = Collectives::all_gather, .counts = counts})),
             holds("gloo backend only"));
  Job at_once = of(Wait{}).job;
  at_once.communicators[0].at_once = 2;
  CHECK_THAT(refused(at_once), holds("one collective of a communicator at a time"));
  Job lanes = of(Wait{}).job;
  lanes.streams[1].lanes = 2;
  CHECK_THAT(refused(lanes), holds("one task of a stream at a time"));
  Job on_host = of(Wait{}).job;
  on_host.buffers[0].place = Place::host;
  CHECK_THAT(refused(on_host), holds("take cluster.through_host out"));
}

TEST_CASE("ranks of which some have no inputs run on CPUs alone", "[backend][execute]") {
  CollectiveJob small(2, {{0, 1}}, 4, 4);
  Job job = small.done({.what = Collectives::all_reduce, .reduction = Reduction::sum});
  job.own.deeds.push_back({Fill{.to = small.from}, {}});
  job.programs.push_back(job.programs[0]);
  job.programs[1].tasks[0].deed = static_cast<std::uint32_t>(job.own.deeds.size() - 1);
  job.program_of = {0, 1};
  std::string on_cpus, on_gpus;
  REQUIRE(run_ranks(1, "threads", [&](Backend& rank) {
            on_cpus = rank.refusal(job);
            return 0;
          }) == 0);
  REQUIRE(run_ranks(1, fake_gpus, [&](Backend& rank) {
            on_gpus = rank.refusal(job);
            return 0;
          }) == 0);
  CHECK(on_cpus.empty());
  CHECK(on_gpus == "ranks without inputs are run by the gloo backend only");
}

TEST_CASE("GPUs that connect anew make the communicators of their groups anew",
          "[backend][execute]") {
  std::vector<Job> jobs;
  for (const auto& groups :
       std::vector<std::vector<std::vector<std::int32_t>>>{{{3, 1}, {0, 2}}, {{0, 1, 2, 3}}}) {
    CollectiveJob made(4, groups, 6, 6);
    jobs.push_back(made.done({.what = Collectives::all_reduce, .reduction = Reduction::sum}));
  }
  CHECK(run_ranks(4, fake_gpus, [&](Backend& rank) {
          for (const int channels : {0, 4, 0}) {
            if (!rank.use_channels(channels)) return 5;
            for (const Job& job : jobs) {
              const SmallJob nothing(1);
              rank.load(nothing.workload, nothing.optimizer);
              rank.run(job);
              PlainRanks plain(job, operand_of_gpus);
              plain.run();
              if (!as_plain(rank, job, plain)) return 6;
            }
          }
          return 0;
        }) == 0);
}

TEST_CASE("what is beside the programs and not known to end is refused", "[backend][execute]") {
  const auto refused = [](const Job& job) {
    std::string why;
    run_job(ddpsim::job_of(1), [&](Backend& rank) {
      why = rank.refusal(job);
      return 0;
    });
    return why;
  };
  CHECK(refused(job_beside()).empty());
  Job maximal = job_beside();
  std::get<Collective>(maximal.own.deeds.back().action).reduction = Reduction::mean;
  CHECK_THAT(refused(maximal), Catch::Contains("adds up fp32 numbers of all ranks"));
  Job shared = job_beside();
  shared.beside->tasks.front().stream = 0;
  CHECK_THAT(refused(shared), Catch::Contains("a stream and a communicator of its own"));
  Job silent = job_beside();
  silent.own.deeds.back().action = Pause{};
  CHECK_THAT(refused(silent), Catch::Contains("ends with an all-reduce"));
}

TEST_CASE("counts that no part can have end a job with a line on all ranks", "[backend][execute]") {
  for (const double wrong : {-1.0, 0.5, 31.0}) {
    CollectiveJob gathered(2, {{0, 1}}, 17, 30);
    const Slice counts = gathered.counts({2, 3});
    std::get<Fill>(gathered.job.own.deeds.back().action).value = wrong;
    const Job job = gathered.done({.what = Collectives::all_gather, .counts = counts});
    CHECK(run_job(ddpsim::job_of(2), [&](Backend& rank) {
            const SmallJob nothing(1);
            rank.load(nothing.workload, nothing.optimizer);
            try {
              rank.run(job);
            } catch (const DeviceError&) {
              return 0;
            }
            return 5;
          }) == 0);
  }
}

TEST_CASE("a rank that dies in a job ends it with a clear error on all others",
          "[backend][execute]") {
  CollectiveJob small(3, {{0, 1, 2}}, 1000, 1000);
  const Job job = small.done({.what = Collectives::all_reduce, .reduction = Reduction::sum});
  const int code = run_job(ddpsim::job_of(3, "gloo"), [&](Backend& rank) {
    const SmallJob nothing(1);
    rank.load(nothing.workload, nothing.optimizer);
    try {
      rank.run(job);
      if (rank.rank() == 2) _exit(0);  // maybe before the others are done
      rank.run(job);
    } catch (const DeviceError& problem) {
      return std::string(problem.what()).find("rank") != std::string::npos ? 0 : 5;
    }
    return 6;
  });
  CHECK(code == 0);
}

TEST_CASE("the times of a job's tasks follow what they wait for", "[backend][execute]") {
  CollectiveJob small(2, {{0, 1}}, 100'000, 100'000);
  const Job job = small.done({.what = Collectives::all_reduce, .reduction = Reduction::sum});
  CHECK(run_job(ddpsim::job_of(2), [&](Backend& rank) {
          const SmallJob nothing(1);
          rank.load(nothing.workload, nothing.optimizer);
          const RankRun run = rank.run(job);
          if (run.times.size() != 3) return 5;
          const auto& [filled, reduced, waited] =
              std::tie(run.times[0], run.times[1], run.times[2]);
          if (filled.end > reduced.end || reduced.start < filled.end) return 6;
          if (waited.end < reduced.end) return 7;
          if (run.sent->collectives != 1 || run.sent->payload != Bytes{400'000}) return 8;
          return 0;
        }) == 0);
}

}  // namespace ddpsim::program
