#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "model/parallel/memory/peak_memory.hpp"
#include "model/parallel/order/build_job.hpp"
#include "model/parallel/policy/fsdp_units.hpp"
#include "tests/model/parallel/random_trainings.hpp"
#include "tests/model/program/written_jobs.hpp"
#include "tests/model/workload/timed.hpp"

namespace ddpsim {
namespace {

Training random_sharding(drawn::Draw& draw) {
  Training training;
  training.strategy = Strategy::fsdp;
  if (draw.one_in(2)) training.reshard_after_forward = draw.one_in(2);
  training.reduce_scatter_max_input_buffers = draw.between(1, 3);
  training.separate_reduce_scatter_group = draw.one_in(3);
  training.micro_batches = draw.one_in(2) ? 1 : draw.between(2, 3);
  training.no_sync = draw.one_in(2);
  return training;
}

/// Collectives of one kind, by unit and micro-batch: how many, and what they hand over.
struct Sent {
  int times = 0;
  Bytes payload;
};
using BySource = std::map<std::pair<std::int32_t, int>, Sent>;

BySource sent(const program::Job& job, Operation operation) {
  BySource all;
  for (const program::Task& task : job.programs.front().tasks) {
    const Work& work = job.works[task.work];
    if (work.operation != operation) continue;
    Sent& each = all[{job.deed_of(task).origin.group, task.micro_batch}];
    ++each.times;
    each.payload += work.payload;
  }
  return all;
}

/// Rows that every rank has a part of, times what a row has: padded.
std::int64_t part_of(const Parameter& parameter, std::int64_t ranks) {
  if (parameter.shape.empty()) return parameter.elements();
  const std::int64_t rows = parameter.shape.front();
  return (rows + ranks - 1) / ranks * (rows == 0 ? 0 : parameter.elements() / rows);
}

}  // namespace

TEST_CASE("blocks are what names share up to their first number", "[model][fsdp]") {
  CHECK(block_of("layers.3.attention.wq.weight") == "layers.3");
  CHECK(block_of("0.weight") == "0");
  CHECK(block_of("encoder.block.11.layer.0.weight") == "encoder.block.11");
  CHECK(block_of("conv1.weight").empty());
  CHECK(block_of("").empty());
  const std::vector<std::string> names{"embed.weight", "h.0.a", "h.1.a", "h.0.b", "norm.weight"};
  CHECK(block_units(names) == std::vector<std::vector<std::int32_t>>{{1, 3}, {2}});
}

TEST_CASE("in a sharded step all that is read was written, and lives", "[model][fsdp]") {
  drawn::Draw draw(38);
  int whole = 0;
  for (int round = 0; round < 400; ++round) {
    const Workload workload = drawn::random_workload(draw);
    Cluster cluster = drawn::random_cluster(draw);
    cluster.through_host.reset();
    Training training = random_sharding(draw);
    const StepWorks works(workload, cluster, draw.any_of(all_optimizers));
    const int ranks = works.device.ranks;
    if (draw.one_in(2))
      do training.replicate = draw.between(1, ranks);
      while (ranks % training.replicate != 0 || (ranks > 1 && training.replicate == ranks));
    const int shards = ranks / training.replicate;
    CAPTURE(round, ranks, training.replicate, works.device.synchronous);
    program::Job job;
    try {
      job = build_job(works, training);
    } catch (const std::invalid_argument& problem) {
      const std::string why = problem.what();
      const bool is_known = why.find("one type") != std::string::npos ||
                            why.find("sparse") != std::string::npos ||
                            why.find("clip_gradients") != std::string::npos;
      CAPTURE(why);
      REQUIRE(is_known);
      continue;
    }
    REQUIRE(program::written::wrong_in(job) == "");
    ++whole;
    const auto gathers = sent(job, Operation::all_gather);
    const auto reductions = sent(job, Operation::reduce_scatter);
    const auto averages = sent(job, Operation::all_reduce);
    for (std::int32_t unit = 0; unit < static_cast<std::int32_t>(job.groups.size()); ++unit)
      for (int m = 0; m < training.micro_batches; ++m) {
        CAPTURE(unit, m);
        Bytes part, reduced;
        for (const std::int32_t each : job.groups[at(unit)].parameters) {
          const Parameter& parameter = workload.parameters[at(each)];
          const Bytes size = part_of(parameter, shards) * size_of(parameter.dtype);
          part += size;
          if (!parameter.unused) reduced += shards * size;
        }
        const bool is_synced = !training.no_sync || m + 1 == training.micro_batches;
        const auto of = [&](const BySource& all) {
          const auto found = all.find({unit, m});
          return found == all.end() ? Sent{} : found->second;
        };
        const bool sends = is_synced && reduced != Bytes{};
        CHECK(of(reductions).times == (sends ? 1 : 0));
        if (sends) CHECK(of(reductions).payload == reduced);
        CHECK(of(averages).times == (sends && training.replicate > 1 ? 1 : 0));
        if (sends && training.replicate > 1)
          CHECK(of(averages).payload == Bytes{reduced.count / shards});
        const int most = training.reshard_after_forward == false ? 1 : 2;
        CHECK(of(gathers).times >= 1);
        CHECK(of(gathers).times <= most);
        CHECK(of(gathers).payload == of(gathers).times * part);
      }
  }
  CHECK(whole > 100);
}

TEST_CASE("F55: replicas shard among neighbours and average across them", "[model][fsdp]") {
  const Workload workload =
      timed::chain(2, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, 4 * MiB);
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::sgd);
  Training training;
  training.strategy = Strategy::fsdp;
  training.replicate = 2;
  training.units = {{0}, {1}};
  const program::Job job = build_job(works, training);
  std::map<Operation, std::vector<std::vector<std::int32_t>>> groups;
  std::map<Operation, Bytes> handed;
  for (const program::Task& task : job.programs.front().tasks) {
    const std::int16_t communicator = program::communicator_of(job.deed_of(task).action);
    if (communicator == nobody) continue;
    groups[job.works[task.work].operation] = job.communicators[at(communicator)].groups;
    handed[job.works[task.work].operation] = job.works[task.work].payload;
  }
  const std::vector<std::vector<std::int32_t>> neighbours{{0, 1, 2, 3}, {4, 5, 6, 7}};
  CHECK(groups[Operation::all_gather] == neighbours);
  CHECK(groups[Operation::reduce_scatter] == neighbours);
  CHECK(groups[Operation::all_reduce] ==
        std::vector<std::vector<std::int32_t>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(handed[Operation::all_gather] == 1 * MiB);
  CHECK(handed[Operation::reduce_scatter] == 4 * MiB);
  CHECK(handed[Operation::all_reduce] == 1 * MiB);
}

TEST_CASE("replicas that leave nothing to shard, or ranks over, are refused", "[model][fsdp]") {
  const Workload workload =
      timed::chain(1, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, 4 * MiB);
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::sgd);
  Training training;
  training.strategy = Strategy::fsdp;
  for (const auto& [replicas, why] :
       {std::pair(3, "expected a divisor of 8"), std::pair(8, "leave nothing to shard")}) {
    training.replicate = replicas;
    CHECK_THROWS_WITH(build_job(works, training), Catch::Contains(why));
  }
}

TEST_CASE("a rank holds a part of everything, and whole units for a while", "[model][fsdp]") {
  using program::Holds;
  const Bytes unit = 4 * MiB;
  const Workload workload =
      timed::chain(4, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, unit);
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::adamw_fused);
  Training training;
  training.strategy = Strategy::fsdp;
  training.units = {{0}, {1}, {2}, {3}};
  training.reshard_after_forward = true;
  const auto held = [&] {
    return step_memory(workload, Optimizer::adamw_fused, training, build_job(works, training));
  };
  const Bytes part = Bytes{4 * unit.count / 8};
  const StepMemory resharded = held();
  CHECK(resharded.most[Holds::parameter] == part + unit);
  CHECK(resharded.most[Holds::optimizer] == 2 * part);
  CHECK(resharded.most[Holds::gathered] == 2 * unit);  // F22
  CHECK(resharded.most[Holds::scattered] == unit);     // F36
  CHECK(resharded.most[Holds::hook] == Bytes{});
  CHECK(resharded.most[Holds::gradient] >= unit);
  CHECK(resharded.most[Holds::gradient] <= part + unit);
  training.reduce_scatter_max_input_buffers = 2;
  CHECK(held().most[Holds::scattered] == 2 * unit);  // F62
  training.reshard_after_forward = false;
  CHECK(held().most[Holds::parameter] == part + 4 * unit);
}

}  // namespace ddpsim
