#pragma once

#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/program/check.hpp"
#include "model/program/job.hpp"

namespace ddpsim::program::written {

/// "" if nothing is wrong with it.
inline std::string wrong_in(const Job& job) {
  try {
    check(job);
    return "";
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
}

/// The job whose program lacks one of the dependencies.
inline Job without_dependency(Job job, std::size_t dependency) {
  Program& program = job.programs[0];
  program.after.erase(program.after.begin() + static_cast<std::ptrdiff_t>(dependency));
  for (Task& task : program.tasks)
    if (task.after_end > dependency) --task.after_end;
  return job;
}

/// Writes a job line by line, as a person writes one down.
class JobWriter {
 public:
  /// `streams`: the host's first.
  JobWriter(std::initializer_list<const char*> streams, int ranks) {
    for (const char* name : streams) job.streams.push_back({.name = name});
    job.program_of.assign(static_cast<std::size_t>(ranks), 0);
    job.programs.emplace_back();
    job.labels = {""};
    job.works.emplace_back();
  }

  std::int16_t communicator(const std::string& name,
                            std::vector<std::vector<std::int32_t>> groups) {
    job.communicators.push_back({.name = name, .groups = std::move(groups)});
    return static_cast<std::int16_t>(job.communicators.size() - 1);
  }

  BufferId buffer(const std::string& name, std::int64_t elements, Holds holds,
                  Life life = Life::step, Start start = Start::undefined, Slice inside = {}) {
    job.labels.push_back(name);
    job.buffers.push_back({.holds = holds,
                           .name = static_cast<std::int16_t>(job.labels.size() - 1),
                           .elements = elements,
                           .life = life,
                           .start = start,
                           .inside = inside});
    return static_cast<BufferId>(job.buffers.size() - 1);
  }

  Slice all(BufferId buffer) const {
    return {.buffer = buffer, .count = job.buffers[buffer].elements};
  }
  Slice part(BufferId buffer, std::int16_t communicator) const {
    const auto ranks =
        static_cast<std::int64_t>(job.communicators[at(communicator)].groups[0].size());
    return {
        .buffer = buffer, .part_of = communicator, .count = job.buffers[buffer].elements / ranks};
  }
  Operands list(std::initializer_list<BufferId> buffers) {
    std::vector<Slice> slices;
    for (const BufferId buffer : buffers) slices.push_back(all(buffer));
    return job.own.add(slices);
  }

  /// The number of the task.
  std::uint32_t add(std::uint8_t stream, Action action,
                    std::initializer_list<std::uint32_t> after = {}) {
    Program& program = job.programs[current];
    job.own.deeds.push_back({.action = std::move(action), .origin = {}});
    program.after.insert(program.after.end(), after.begin(), after.end());
    program.tasks.push_back({.deed = static_cast<std::uint32_t>(job.own.deeds.size() - 1),
                             .after_end = static_cast<std::uint32_t>(program.after.size()),
                             .stream = stream});
    return static_cast<std::uint32_t>(program.tasks.size() - 1);
  }
  void comes(BufferId buffer, std::uint8_t pool) { hold(buffer, pool, true); }
  void goes(BufferId buffer, std::uint8_t pool) { hold(buffer, pool, false); }

  Job job;
  std::size_t current = 0;  ///< the program that is written

 private:
  void hold(BufferId buffer, std::uint8_t pool, bool begins) {
    Program& program = job.programs[current];
    program.holds.push_back({.before = static_cast<std::uint32_t>(program.tasks.size()),
                             .buffer = buffer,
                             .pool = pool,
                             .begins = begins});
  }
};

/// DistributedDataParallel, two ranks: w1's gradient in the first bucket, w0's in the second.
inline Job ddp() {
  enum : std::uint8_t { h, c, n };
  JobWriter job({"host", "compute", "nccl"}, 2);
  const std::int16_t world = job.communicator("world", {{0, 1}});
  const BufferId w0 = job.buffer("w0", 4, Holds::parameter, Life::job, Start::parameters),
                 w1 = job.buffer("w1", 4, Holds::parameter, Life::job, Start::parameters),
                 g0 = job.buffer("g0", 4, Holds::gradient),
                 g1 = job.buffer("g1", 4, Holds::gradient), b0 = job.buffer("b0", 4, Holds::bucket),
                 b1 = job.buffer("b1", 4, Holds::bucket),
                 slot1 = job.buffer("slot1", 4, Holds::bucket, Life::step, Start::undefined,
                                    job.all(b0)),
                 slot0 = job.buffer("slot0", 4, Holds::bucket, Life::step, Start::undefined,
                                    job.all(b1)),
                 moments = job.buffer("moments", 16, Holds::optimizer, Life::job, Start::zeros);
  const auto mean = [&](BufferId to, BufferId from) {
    return Scale{.to = job.all(to), .from = job.all(from), .mean_over = world};
  };
  const auto copy = [&](BufferId to, BufferId from) {
    return Scale{.to = job.all(to), .from = job.all(from)};
  };
  const auto sum = [&](BufferId bucket) {
    return Collective{.what = Collectives::all_reduce,
                      .reduction = Reduction::sum,
                      .communicator = world,
                      .from = job.all(bucket),
                      .to = job.all(bucket)};
  };
  job.add(c, Compute{.weight = job.all(w0)});
  job.add(c, Compute{.weight = job.all(w1)});
  job.add(c, Compute{.weight = job.all(w1), .fills = job.list({g1})});
  job.add(h, Call{.what = Call::What::hook, .index = 1});
  const auto in1 = job.add(c, mean(slot1, g1));
  const auto sum0 = job.add(n, sum(b0), {in1});
  job.add(c, Compute{.weight = job.all(w0), .fills = job.list({g0})});
  job.add(h, Call{.what = Call::What::hook, .index = 0});
  const auto in0 = job.add(c, mean(slot0, g0));
  const auto sum1 = job.add(n, sum(b1), {in0});
  job.add(c, Wait{}, {sum0});
  job.add(c, copy(g1, slot1));
  job.add(c, Wait{}, {sum1});
  job.add(c, copy(g0, slot0));
  job.add(c, Update{.parameters = job.list({w0, w1}),
                    .gradients = job.list({g0, g1}),
                    .state = job.list({moments})});
  return job.job;
}

/// PyTorch 2's fully_shard of two units, both resharded, without a root's own parameters; two
/// ranks. p: a shard, q: its gradient, o: gathered, f: full, d: gradient, r: the input of the
/// reduce-scatter.
inline Job fsdp() {
  enum : std::uint8_t { h, c, i, g, s };
  JobWriter job({"host", "compute", "copy in", "gather", "scatter"}, 2);
  const std::int16_t shard = job.communicator("shard", {{0, 1}});
  struct Unit {
    BufferId p, q, o, f, d, r, moments;
  };
  const auto unit = [&](const std::string& number) {
    return Unit{job.buffer("p" + number, 4, Holds::parameter, Life::job, Start::parameters),
                job.buffer("q" + number, 4, Holds::gradient),
                job.buffer("o" + number, 8, Holds::gathered, Life::held),
                job.buffer("f" + number, 8, Holds::parameter, Life::held),
                job.buffer("d" + number, 8, Holds::gradient, Life::held),
                job.buffer("r" + number, 8, Holds::scattered, Life::held),
                job.buffer("moments" + number, 8, Holds::optimizer, Life::job, Start::zeros)};
  };
  const Unit u0 = unit("0"), u1 = unit("1");
  const auto copy_in = [&](const Unit& u) {
    return Scale{.to = job.part(u.o, shard), .from = job.all(u.p)};
  };
  const auto gather = [&](const Unit& u) {
    return Collective{.what = Collectives::all_gather,
                      .communicator = shard,
                      .from = job.part(u.o, shard),
                      .to = job.all(u.o)};
  };
  const auto copy = [&](BufferId to, BufferId from) {
    return Pack{.to = job.list({to}), .from = job.list({from})};
  };
  const auto scatter = [&](const Unit& u) {
    return Collective{.what = Collectives::reduce_scatter,
                      .reduction = Reduction::mean,
                      .communicator = shard,
                      .from = job.all(u.r),
                      .to = job.all(u.q)};
  };
  const auto forward = [&](const Unit& u) { return Compute{.weight = job.all(u.f)}; };
  const auto backward = [&](const Unit& u) {
    return Compute{.weight = job.all(u.f), .fills = job.list({u.d})};
  };
  // Forward.
  job.comes(u0.o, i);
  const auto in0 = job.add(i, copy_in(u0));
  const auto gathered0 = job.add(g, gather(u0), {in0});
  job.comes(u0.f, c);
  job.add(c, copy(u0.f, u0.o), {gathered0});
  job.add(c, forward(u0));
  job.goes(u0.f, c);
  job.comes(u1.o, i);
  const auto in1 = job.add(i, copy_in(u1));
  const auto gathered1 = job.add(g, gather(u1), {in1});
  job.goes(u0.o, i);
  job.comes(u1.f, c);
  const auto out1 = job.add(c, copy(u1.f, u1.o), {gathered1});
  job.add(c, forward(u1));
  job.goes(u1.f, c);
  job.goes(u1.o, i);
  // Backward.
  job.comes(u1.o, i);
  const auto in1_again = job.add(i, copy_in(u1), {out1});
  const auto gathered1_again = job.add(g, gather(u1), {in1_again});
  job.comes(u1.f, c);
  const auto out1_again = job.add(c, copy(u1.f, u1.o), {gathered1_again});
  job.goes(u1.o, i);
  job.comes(u1.d, c);
  job.comes(u0.o, i);
  const auto in0_again = job.add(i, copy_in(u0), {out1_again});
  const auto gathered0_again = job.add(g, gather(u0), {in0_again});
  job.add(c, backward(u1));
  job.goes(u1.f, c);
  job.comes(u1.r, c);
  const auto packed1 = job.add(c, copy(u1.r, u1.d));
  job.goes(u1.d, c);
  const auto scattered1 = job.add(s, scatter(u1), {packed1});
  job.comes(u0.f, c);
  job.add(c, copy(u0.f, u0.o), {gathered0_again});
  job.goes(u0.o, i);
  job.comes(u0.d, c);
  job.add(c, backward(u0));
  job.goes(u0.f, c);
  job.goes(u1.r, c);
  job.comes(u0.r, c);
  const auto packed0 = job.add(c, copy(u0.r, u0.d), {scattered1});
  job.goes(u0.d, c);
  const auto scattered0 = job.add(s, scatter(u0), {packed0});
  job.add(c, Wait{}, {scattered0});
  job.goes(u0.r, c);
  job.add(c, Update{.parameters = job.list({u0.p, u1.p}),
                    .gradients = job.list({u0.q, u1.q}),
                    .state = job.list({u0.moments, u1.moments})});
  return job.job;
}

/// PowerSGD on one full bucket of a matrix of 3 x 4 and 4 numbers that are not compressed.
inline Job power_sgd() {
  enum : std::uint8_t { h, c, n, a };
  JobWriter job({"host", "compute", "nccl", "aside"}, 2);
  const std::int16_t world = job.communicator("world", {{0, 1}});
  const BufferId b = job.buffer("b", 16, Holds::bucket, Life::step, Start::zeros),
                 m = job.buffer("M", 12, Holds::bucket, Life::step, Start::undefined,
                                {.buffer = b, .count = 12}),
                 rest = job.buffer("rest", 4, Holds::bucket, Life::step, Start::undefined,
                                   {.buffer = b, .begin = 12, .count = 4}),
                 p = job.buffer("P", 3, Holds::hook),
                 q = job.buffer("Q", 4, Holds::hook, Life::job, Start::random),
                 error = job.buffer("error", 16, Holds::hook, Life::job, Start::zeros),
                 input = job.buffer("input", 16, Holds::hook),
                 small = job.buffer("small", 4, Holds::hook);
  const auto sum = [&](BufferId buffer) {
    return Collective{.what = Collectives::all_reduce,
                      .reduction = Reduction::sum,
                      .communicator = world,
                      .from = job.all(buffer),
                      .to = job.all(buffer)};
  };
  job.add(c, Combine{.to = job.all(b), .left = job.all(b), .right = job.all(error)});
  job.add(c, Scale{.to = job.all(input), .from = job.all(b)});
  job.add(c, Pack{.to = job.list({small}), .from = job.list({rest})});
  job.add(c, Orthogonalize{.matrix = job.all(q), .rows = 4, .columns = 1});
  const auto projected = job.add(
      c,
      Multiply{.to = job.all(p), .left = job.all(m), .right = job.all(q), .m = 3, .n = 1, .k = 4});
  const auto small_sum = job.add(n, sum(small), {projected});
  job.add(a, Pack{.to = job.list({rest}), .from = job.list({small}), .factor = 0.5F}, {small_sum});
  const auto p_sum = job.add(n, sum(p));
  job.add(a, Orthogonalize{.matrix = job.all(p), .rows = 3, .columns = 1}, {p_sum});
  const auto back = job.add(a, Multiply{.to = job.all(q),
                                        .left = job.all(m),
                                        .right = job.all(p),
                                        .m = 4,
                                        .n = 1,
                                        .k = 3,
                                        .layout = Layout::left_transposed});
  const auto q_sum = job.add(n, sum(q), {back});
  job.add(a, Scale{.to = job.all(q), .from = job.all(q), .mean_over = world}, {q_sum});
  job.add(a, Multiply{.to = job.all(m),
                      .left = job.all(p),
                      .right = job.all(q),
                      .m = 3,
                      .n = 4,
                      .k = 1,
                      .layout = Layout::right_transposed});
  const auto kept = job.add(
      a, Combine{.to = job.all(error), .left = job.all(input), .right = job.all(b), .b = -1});
  job.add(c, Wait{}, {kept});
  job.add(c, Touch{.what = job.all(b)});
  return job.job;
}

}  // namespace ddpsim::program::written
