#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "model/parallel/memory/peak_memory.hpp"
#include "model/parallel/order/build_job.hpp"
#include "model/workload/architecture.hpp"
#include "tests/model/parallel/random_trainings.hpp"
#include "tests/model/program/written_jobs.hpp"

namespace ddpsim {
namespace {

Training random_flat_sharding(drawn::Draw& draw) {
  Training training;
  training.strategy = Strategy::fsdp;
  training.fsdp.variant = FsdpVariant::fsdp1;
  training.fsdp.sharding_strategy =
      draw.any_of(std::array{ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op});
  training.fsdp.backward_prefetch = draw.any_of(all_backward_prefetches);
  training.fsdp.forward_prefetch = draw.one_in(2);
  training.fsdp.limit_all_gathers = draw.one_in(2);
  training.fsdp.use_orig_params = draw.one_in(2);
  training.micro_batches = draw.one_in(2) ? 1 : draw.between(2, 3);
  training.no_sync = draw.one_in(2);
  const std::array types{DType::bf16, DType::fp16, DType::fp32};
  if (draw.one_in(3)) training.mp_policy.param_dtype = draw.any_of(types);
  if (draw.one_in(3)) training.mp_policy.reduce_dtype = draw.any_of(types);
  return training;
}

Workload with_parameters_in(Workload workload, DType type) {
  Workload cast = workload;
  for (Parameter& parameter : cast.parameters) parameter.dtype = type;
  workload.cast = std::make_shared<const Workload>(std::move(cast));
  return workload;
}

/// How many collectives of a kind a unit issues in a micro-batch, and what they hand over.
struct OfUnit {
  int times = 0;
  Bytes payload;
};
OfUnit of_unit(const program::Job& job, Operation operation, std::int32_t unit, int micro_batch) {
  OfUnit found;
  for (const program::Task& task : job.programs.front().tasks) {
    const Work& work = job.works[task.work];
    if (work.operation != operation || job.deed_of(task).origin.group != unit ||
        task.micro_batch != micro_batch)
      continue;
    ++found.times;
    found.payload += work.payload;
  }
  return found;
}

}  // namespace

TEST_CASE("in a step of flat parameters all that is read was written, and lives", "[model][fsdp]") {
  drawn::Draw draw(76);
  int whole = 0;
  for (int round = 0; round < 400; ++round) {
    Workload workload = drawn::random_workload(draw);
    Cluster cluster = drawn::random_cluster(draw);
    cluster.through_host.reset();
    Training training = random_flat_sharding(draw);
    if (training.mp_policy.param_dtype)
      workload = with_parameters_in(std::move(workload), *training.mp_policy.param_dtype);
    const int layers = static_cast<int>(workload.layers.size());
    if (draw.one_in(4))
      workload.frozen_parameters.push_back(
          {"frozen.0.weight", {draw.between(1, 40), 3}, DType::fp32, draw.between(0, layers - 1)});
    const StepWorks works(workload, cluster, draw.any_of(all_optimizers));
    const int ranks = works.device.ranks;
    if (draw.one_in(2)) do
        training.replicate = draw.between(1, ranks);
      while (ranks % training.replicate != 0 || (ranks > 1 && training.replicate == ranks));
    if (training.replicate > 1)
      training.fsdp.sharding_strategy = frees_after_forward(training.fsdp.sharding_strategy)
                                            ? ShardingStrategy::hybrid_shard
                                            : ShardingStrategy::hybrid_shard_zero2;
    const int shards = ranks / training.replicate;
    CAPTURE(round, ranks, training.replicate, works.device.synchronous);
    program::Job job;
    try {
      job = build_job(works, training);
    } catch (const std::invalid_argument& problem) {
      const std::string why = problem.what();
      const bool is_known = why.find("has one type") != std::string::npos ||
                            why.find("is frozen and") != std::string::npos ||
                            why.find("sparse") != std::string::npos;
      CAPTURE(why);
      REQUIRE(is_known);
      continue;
    }
    REQUIRE(program::written::wrong_in(job) == "");
    ++whole;
    for (std::int32_t unit = 0; unit < static_cast<std::int32_t>(job.groups.size()); ++unit) {
      std::int64_t elements = 0;
      bool is_used = false;
      for (const std::int32_t each : job.groups[at(unit)].parameters) {
        elements += workload.parameters[at(each)].elements();
        is_used = is_used || !workload.parameters[at(each)].unused;
      }
      if (elements == 0) continue;  // frozen
      for (int m = 0; m < training.micro_batches; ++m) {
        CAPTURE(unit, m);
        const bool is_synced = !training.no_sync || m + 1 == training.micro_batches;
        const OfUnit reduced = of_unit(job, Operation::reduce_scatter, unit, m);
        CHECK(reduced.times == (is_synced && is_used ? 1 : 0));
        const OfUnit averaged = of_unit(job, Operation::all_reduce, unit, m);
        CHECK(averaged.times == (reduced.times > 0 && training.replicate > 1 ? 1 : 0));
        const OfUnit gathered = of_unit(job, Operation::all_gather, unit, m);
        const bool frees = frees_after_forward(training.fsdp.sharding_strategy);
        const bool stays = m > 0 && !frees && training.no_sync;
        CHECK(gathered.times <= (stays ? 0 : frees ? 2 : 1));
        CHECK(gathered.times >= (stays ? 0 : 1));
        // F72: padded once, but for the alignment of 16 bytes.
        const Parameter& first = workload.parameters[at(job.groups[at(unit)].parameters.front())];
        const DType type = training.mp_policy.param_dtype.value_or(stored_type(first.dtype));
        const std::int64_t length = (elements + shards - 1) / shards;
        const Bytes part = length * size_of(type);
        if (!training.fsdp.use_orig_params) CHECK(gathered.payload == gathered.times * part);
        CHECK(gathered.payload >= gathered.times * part);
      }
    }
  }
  CHECK(whole > 100);
}

TEST_CASE("F72: a flat parameter is padded once, or parameters are aligned in it",
          "[model][fsdp]") {
  // Weights of 3 x 5 and 7 x 3, without biases or with: a root of all.
  WorkloadSize size;
  Workload workload = build_workload("mlp", MlpShape{{5, 3, 7}}, size);
  std::int64_t elements = 0, aligned = 0;
  for (const Parameter& each : workload.parameters) {
    elements += each.elements();
    aligned = (aligned + 3) / 4 * 4 + each.elements();  // fp32: four to 16 bytes
  }
  Cluster cluster;
  cluster.ranks_per_node = 4;
  const StepWorks works(workload, cluster, Optimizer::sgd);
  Training training;
  training.strategy = Strategy::fsdp;
  training.fsdp.variant = FsdpVariant::fsdp1;
  training.units.emplace_back();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(workload.parameters.size()); ++i)
    training.units.back().push_back(i);
  const auto payload = [&](Operation operation) {
    const program::Job job = build_job(works, training);
    const OfUnit found = of_unit(job, operation, 0, 0);
    return found.payload.count / found.times;
  };
  CHECK(payload(Operation::all_gather) == 4 * ((elements + 3) / 4));
  CHECK(payload(Operation::reduce_scatter) == 16 * ((elements + 3) / 4));
  training.fsdp.use_orig_params = true;
  CHECK(payload(Operation::all_gather) == 4 * ((aligned + 3) / 4));
  CHECK(payload(Operation::reduce_scatter) == 16 * ((aligned + 3) / 4));
}

TEST_CASE("frozen parameters have units of their own", "[model][fsdp]") {
  WorkloadSize size;
  Workload workload = build_workload("mlp", MlpShape{{8, 8, 8}}, size);
  workload.frozen_parameters = {{"0.frozen", {4, 4}, DType::fp32, 0}};
  Cluster cluster;
  cluster.ranks_per_node = 2;
  const StepWorks works(workload, cluster, Optimizer::sgd);
  Training training;
  training.strategy = Strategy::fsdp;
  training.fsdp.variant = FsdpVariant::fsdp1;
  const auto all = static_cast<std::int32_t>(workload.parameters.size());
  training.units = {{0, all}};
  CHECK_THROWS_WITH(build_job(works, training), Catch::Contains("0.frozen is frozen and"));
  training.units = {{all}};
  const program::Job job = build_job(works, training);
  CHECK(program::written::wrong_in(job) == "");
  const auto frozen = static_cast<std::int32_t>(
      std::ranges::find_if(job.groups, [](const auto& each) { return each.parameters.empty(); }) -
      job.groups.begin());
  CHECK(of_unit(job, Operation::all_gather, frozen, 0).times >= 1);
  CHECK(of_unit(job, Operation::reduce_scatter, frozen, 0).times == 0);
}

}  // namespace ddpsim
