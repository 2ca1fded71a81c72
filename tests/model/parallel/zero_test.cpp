#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/parallel/memory/peak_memory.hpp"
#include "model/parallel/order/build_job.hpp"
#include "model/parallel/policy/owned_parameters.hpp"
#include "model/workload/architecture.hpp"
#include "tests/model/parallel/random_trainings.hpp"
#include "tests/model/program/written_jobs.hpp"

namespace ddpsim {
namespace {

Training random_zero(drawn::Draw& draw) {
  Training training;
  training.strategy = draw.any_of(std::array{Strategy::zero1, Strategy::zero2, Strategy::zero3});
  const auto size = [&draw] { return std::int64_t{1} << draw.between(0, 30); };
  ZeroSettings settings;
  settings.variant = training.strategy == Strategy::zero1 ? draw.any_of(all_zero_variants)
                                                          : ZeroVariant::deepspeed;
  settings.parameters_as_bucket_view = draw.one_in(2);
  settings.send = draw.any_of(all_parameter_sends);
  settings.gradients = draw.any_of(all_course_gradients);
  settings.reduce_bucket_size = size();
  settings.overlap_comm = draw.one_in(2);
  settings.prefetch_bucket_size = size();
  settings.param_persistence_threshold = draw.one_in(2) ? 0 : size();
  settings.max_live_parameters = size();
  settings.max_reuse_distance = draw.one_in(2) ? 0 : size();
  if (draw.one_in(2)) settings.ddp_bucket_size = size();
  settings.overlap_grad_reduce = draw.one_in(2);
  settings.overlap_param_gather = settings.overlap_grad_reduce && draw.one_in(2);
  settings.average_in_collective = draw.one_in(2);
  training.zero1 = training.zero2 = training.zero3 = settings;
  training.micro_batches = draw.one_in(2) ? 1 : draw.between(2, 3);
  training.bucket_cap = Bytes{size()};
  training.find_unused_parameters = true;
  if (draw.one_in(3)) training.mp_policy.param_dtype = draw.any_of(std::array{DType::bf16});
  return training;
}

/// The workload with parameters in modules that run some kernels of their layers.
Workload in_modules(drawn::Draw& draw, Workload workload) {
  for (Parameter& each : workload.parameters)
    each.name = fmt::format("{}.{}.{}", draw.between(0, 2), draw.between(0, 2), each.name);
  return drawn::with_modules(draw, std::move(workload));
}

Bytes sent(const program::Job& job, Operation operation) {
  Bytes all;
  for (const program::Task& task : job.programs.front().tasks)
    if (job.works[task.work].operation == operation) all += job.works[task.work].payload;
  return all;
}

}  // namespace

TEST_CASE("in a step of ZeRO all that is read was written, and lives", "[model][zero]") {
  drawn::Draw draw(79);
  int whole = 0;
  for (int round = 0; round < 400; ++round) {
    Workload workload = drawn::random_workload(draw);
    Cluster cluster = drawn::random_cluster(draw);
    cluster.through_host.reset();
    const Training training = random_zero(draw);
    if (draw.one_in(2)) workload = in_modules(draw, std::move(workload));
    if (training.mp_policy.param_dtype)
      workload = drawn::cast_to(std::move(workload), *training.mp_policy.param_dtype);
    const StepWorks works(workload, cluster, draw.any_of(all_optimizers));
    CAPTURE(round, works.device.ranks, works.device.synchronous, name_of(training.strategy),
            name_of(training.zero()->variant));
    program::Job job;
    try {
      job = build_job(works, training);
    } catch (const std::invalid_argument& problem) {
      const std::string why = problem.what();
      CAPTURE(why);
      REQUIRE(
          (why.find("one type") != std::string::npos || why.find("sparse") != std::string::npos));
      continue;
    }
    REQUIRE(program::written::wrong_in(job) == "");
    ++whole;
  }
  CHECK(whole > 150);
}

TEST_CASE("F79: the largest parameters go first, each to the rank that has least",
          "[model][zero]") {
  WorkloadSize size;
  const Workload workload = build_workload("mlp", MlpShape{{10, 20, 30, 5}}, size);
  const StepWorks works(workload, Cluster{}, Optimizer::sgd);
  // weights of 200, 600, 150 and, if there are any, biases
  const OwnedParameters owned = owned_by_size(works, 2);
  std::vector<std::int64_t> elements;
  for (const auto& mine : owned) {
    elements.push_back(0);
    for (const std::int32_t each : mine)
      elements.back() += workload.parameters[at(each)].elements();
  }
  CHECK(elements[0] == 600);
  CHECK(elements[0] + elements[1] == workload.elements());
  CHECK(workload.parameters[at(owned[0].front())].elements() == 600);
  const OwnedParameters in_turn = owned_in_turn(works, 2);
  CHECK(in_turn[0].front() == 0);
  CHECK(in_turn[1].front() == 1);
}

TEST_CASE("F81, F86, F95: what each variant sends of the gradients and parameters",
          "[model][zero]") {
  WorkloadSize size;
  const Workload workload = build_workload("mlp", MlpShape{{256, 512, 128}}, size);
  Cluster cluster;
  cluster.ranks_per_node = 4;
  const StepWorks works(workload, cluster, Optimizer::adamw);
  const Bytes all = works.gradient_size;
  Training training;
  training.strategy = Strategy::zero1;
  const auto job = [&](ZeroVariant variant) {
    training.zero1.variant = variant;
    return build_job(works, training);
  };
  CHECK(sent(job(ZeroVariant::torch), Operation::all_reduce) == all);
  CHECK(sent(job(ZeroVariant::torch), Operation::broadcast) == all);
  CHECK(sent(job(ZeroVariant::course), Operation::broadcast) == all);
  // and one number, the norm
  CHECK(sent(job(ZeroVariant::deepspeed), Operation::all_reduce) == all + Bytes{4});
  CHECK(4 * sent(job(ZeroVariant::deepspeed), Operation::all_gather) == all);
  const program::Job megatron = job(ZeroVariant::megatron);
  CHECK(sent(megatron, Operation::all_reduce) == Bytes{});
  CHECK(sent(megatron, Operation::reduce_scatter) >= all);
  CHECK(sent(megatron, Operation::reduce_scatter) < all + Bytes{4 * 1024});  // padded to 512
  CHECK(4 * sent(megatron, Operation::all_gather) == sent(megatron, Operation::reduce_scatter));
}

TEST_CASE("each stage keeps less on a rank than the one before", "[model][zero]") {
  WorkloadSize size;
  const Workload workload = build_workload("mlp", MlpShape{{512, 1024, 1024, 512}}, size);
  Cluster cluster;
  cluster.ranks_per_node = 8;
  const StepWorks works(workload, cluster, Optimizer::adamw);
  const auto peak = [&](Strategy strategy) {
    Training training;
    training.strategy = strategy;
    ZeroSettings settings;
    settings.variant = ZeroVariant::deepspeed;
    settings.reduce_bucket_size = 1'000'000;
    settings.max_reuse_distance = settings.prefetch_bucket_size = 0;
    training.zero1 = training.zero2 = training.zero3 = settings;
    return step_memory(workload, Optimizer::adamw, training, build_job(works, training)).peak;
  };
  const Bytes ddp = peak(Strategy::bucketed), first = peak(Strategy::zero1),
              second = peak(Strategy::zero2), third = peak(Strategy::zero3);
  CHECK(first < ddp);
  CHECK(second < first);
  CHECK(third < second);
  // Adam's two moments, of an eighth in place of all.
  const Bytes moments = 2 * works.gradient_size;
  CHECK(2 * (ddp - first) > moments);
}

}  // namespace ddpsim
