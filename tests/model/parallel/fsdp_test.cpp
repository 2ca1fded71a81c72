#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/parallel/check_for_ranks.hpp"
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
  if (draw.one_in(4)) training.forward_prefetch = draw.between(1, 3);
  if (draw.one_in(4)) training.backward_prefetch = draw.between(1, 3);
  training.reshard_after_backward = !draw.one_in(4);
  if (draw.one_in(3)) training.requires_all_reduce = AllReduced::last;
  training.reduce_scatter_max_input_buffers = draw.between(1, 3);
  training.separate_reduce_scatter_group = draw.one_in(3);
  if (draw.one_in(4)) training.cuda_device_max_connections = 1;
  training.micro_batches = draw.one_in(2) ? 1 : draw.between(2, 3);
  training.no_sync = draw.one_in(2);
  const std::array types{DType::bf16, DType::fp16, DType::fp32};
  if (draw.one_in(3)) training.mp_policy.param_dtype = draw.any_of(types);
  if (draw.one_in(3)) training.mp_policy.reduce_dtype = draw.any_of(types);
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
  const std::vector<std::string> frozen_last{"h.2.a", "h.10.a", "g.1.a", "h.2.b", "h.0.b"};
  CHECK(block_units(frozen_last) == std::vector<std::vector<std::int32_t>>{{4}, {0, 3}, {1}, {2}});
}

TEST_CASE("in a sharded step all that is read was written, and lives", "[model][fsdp]") {
  drawn::Draw draw(38);
  int whole = 0;
  for (int round = 0; round < 400; ++round) {
    Workload workload = drawn::random_workload(draw);
    Cluster cluster = drawn::random_cluster(draw);
    cluster.through_host.reset();
    Training training = random_sharding(draw);
    const MixedPrecision& policy = training.mp_policy;
    if (policy.param_dtype) workload = drawn::cast_to(std::move(workload), *policy.param_dtype);
    const StepWorks works(workload, cluster, draw.any_of(all_optimizers));
    const int ranks = works.device.ranks;
    if (draw.one_in(2)) do
        training.replicate = draw.between(1, ranks);
      while (ranks % training.replicate != 0 || (ranks > 1 && training.replicate == ranks));
    const int shards = ranks / training.replicate;
    if (draw.one_in(3))
      for (const int some : {2, 3, 4})
        if (some <= shards && shards % some == 0)
          training.reshard_after_forward = Reshard::among(some);
    const bool has_neighbours =
        training.reshard_after_forward && training.reshard_after_forward->ranks > 0;
    CAPTURE(round, ranks, training.replicate, works.device.synchronous);
    program::Job job;
    try {
      job = build_job(works, training);
    } catch (const std::invalid_argument& problem) {
      const std::string why = problem.what();
      const bool is_known = why.find("one type") != std::string::npos ||
                            why.find("with no_sync that is not modelled") != std::string::npos ||
                            why.find("sparse") != std::string::npos;
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
          const std::int64_t elements = part_of(parameter, shards);
          const DType whole = policy.param_dtype.value_or(parameter.dtype);
          part += elements * size_of(whole);
          if (!parameter.unused)
            reduced += shards * elements * size_of(policy.reduce_dtype.value_or(whole));
        }
        const bool is_synced = !training.no_sync || m + 1 == training.micro_batches;
        const auto of = [&](const BySource& all) {
          const auto found = all.find({unit, m});
          return found == all.end() ? Sent{} : found->second;
        };
        const bool sends = is_synced && reduced != Bytes{};
        CHECK(of(reductions).times == (sends ? 1 : 0));
        if (sends) CHECK(of(reductions).payload == reduced);
        const bool is_averaged =
            sends && training.replicate > 1 &&
            (!training.sums_before_all_reduce() || m + 1 == training.micro_batches);
        CHECK(of(averages).times == (is_averaged ? 1 : 0));
        if (is_averaged) CHECK(of(averages).payload == Bytes{reduced.count / shards});
        // What is prefetched and not waited for comes once more.
        const bool prefetches = training.forward_prefetch + training.backward_prefetch > 0;
        const int most = (training.reshard_after_forward == false ? 1 : 2) + (prefetches ? 1 : 0);
        CHECK(of(gathers).times >= (m == 0 || training.reshard_after_backward ? 1 : 0));
        CHECK(of(gathers).times <= most);
        CHECK(of(gathers).payload >= of(gathers).times * part);
        if (!has_neighbours) CHECK(of(gathers).payload == of(gathers).times * part);
      }
  }
  CHECK(whole > 100);
}

TEST_CASE("whatever units say, and with frozen parameters, all that is read was written",
          "[model][fsdp]") {
  drawn::Draw draw(39);
  int whole = 0;
  for (int round = 0; round < 300; ++round) {
    Workload workload = drawn::random_workload(draw);
    Cluster cluster = drawn::random_cluster(draw);
    cluster.through_host.reset();
    const int layers = static_cast<int>(workload.layers.size());
    for (int each = draw.between(0, 4); each > 0; --each)
      workload.frozen_parameters.push_back({fmt::format("frozen.{}", each),
                                            {draw.between(1, 40), draw.between(1, 5)},
                                            draw.one_in(3) ? DType::bf16 : DType::fp32,
                                            draw.between(0, layers - 1)});
    Training training = random_sharding(draw);
    workload = drawn::with_modules(draw, std::move(workload));
    if (draw.one_in(2)) training.mp_policy.param_dtype = DType::bf16;
    if (training.mp_policy.param_dtype)
      workload = drawn::cast_to(std::move(workload), *training.mp_policy.param_dtype);
    const StepWorks works(workload, cluster, draw.any_of(all_optimizers));
    const int ranks = works.device.ranks;
    const auto members =
        static_cast<std::int32_t>(workload.parameters.size() + workload.frozen_parameters.size());
    for (std::int32_t i = 0; i < members; ++i) {
      if (training.units.empty() || draw.one_in(2)) training.units.emplace_back();
      if (!draw.one_in(4)) training.units.back().push_back(i);  // else the root's
    }
    std::erase_if(training.units, [](const auto& unit) { return unit.empty(); });
    if (training.units.empty()) continue;
    const auto units = static_cast<int>(training.units.size());
    for (int u = 0; u < units; ++u) {
      UnitSettings& own = training.unit_settings.emplace_back();
      if (draw.one_in(2)) own.reshard_after_forward = draw.one_in(2);
      if (draw.one_in(3) && ranks % 2 == 0) own.reshard_after_forward = Reshard::among(2);
      own.unshard_in_backward = !draw.one_in(5);
      for (auto* list : {&own.forward_prefetch, &own.backward_prefetch}) {
        if (!draw.one_in(3)) continue;
        list->emplace();
        while (draw.one_in(2)) (*list)->push_back(draw.between(0, units - 1));
      }
    }
    if (!works.device.synchronous && draw.one_in(4))
      training.offload_policy = CpuOffload{gigabytes_per_second(20), std::chrono::milliseconds{1}};
    CAPTURE(round, ranks, works.device.synchronous);
    program::Job job;
    try {
      job = build_job(works, training);
    } catch (const std::invalid_argument& problem) {
      const std::string why = problem.what();
      bool is_known = false;
      for (const char* known : {"one type", "as bytes", "with no_sync that is not modelled",
                                "sparse", "write no_sync", "unshard_in_backward", "norm of"})
        is_known = is_known || why.find(known) != std::string::npos;
      CAPTURE(why);
      REQUIRE(is_known);
      continue;
    }
    REQUIRE(program::written::wrong_in(job) == "");
    ++whole;
  }
  CHECK(whole > 60);
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

TEST_CASE("F30: neighbours keep parts of whole parameters and gather among themselves",
          "[model][fsdp]") {
  const Bytes unit = 4 * MiB;
  const Workload workload =
      timed::chain(3, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, unit);
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::sgd);
  Training training;
  training.strategy = Strategy::fsdp;
  training.units = {{0}, {1}, {2}};
  training.reshard_after_forward = Reshard::among(2);
  const program::Job job = build_job(works, training);
  CHECK(program::written::wrong_in(job) == "");
  const std::vector<std::vector<std::int32_t>> pairs{{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  std::vector<Bytes> forward, backward;  // what a rank hands over
  int kept = 0;
  for (const program::Task& task : job.programs.front().tasks) {
    const Work& work = job.works[task.work];
    const program::Origin& origin = job.deed_of(task).origin;
    kept += job.labels[at(origin.label)] == "part for neighbours" ? 1 : 0;
    const std::int16_t communicator = program::communicator_of(job.deed_of(task).action);
    if (communicator == nobody || work.operation != Operation::all_gather) continue;
    const bool is_of_pair = job.communicators[at(communicator)].groups == pairs;
    CHECK(work.group == (is_of_pair ? 2 : 0));
    (is_of_pair ? backward : forward).push_back(work.payload);
  }
  CHECK(forward == std::vector<Bytes>(3, Bytes{unit.count / 8}));
  CHECK(backward == std::vector<Bytes>(3, Bytes{unit.count / 2}));
  CHECK(kept == 3);  // a copy for each parameter
  // A half of each stays from forward to backward, of the last one beside the whole.
  using program::Holds;
  const StepMemory memory = step_memory(workload, Optimizer::sgd, training, job);
  const Bytes parts{3 * unit.count / 8};
  CHECK(memory.most[Holds::parameter] == parts + 3 * Bytes{unit.count / 2} + unit);
  // All eight are as all.
  training.reshard_after_forward = Reshard::among(8);
  const program::Job among_all = build_job(works, training);
  training.reshard_after_forward = true;
  CHECK(among_all.works == build_job(works, training).works);
}

TEST_CASE("units are resharded and prefetched each as it says", "[model][fsdp]") {
  const Workload workload =
      timed::chain(4, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, 4 * MiB);
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::sgd);
  Training training;
  training.strategy = Strategy::fsdp;
  training.units = {{0}, {1}, {2}, {3}};
  training.reshard_after_forward = true;
  // Gathers and the kernels of passes as the host issues them: "g2" of unit 2, "F1", "B3".
  const auto issued = [&] {
    std::string all;
    const program::Job job = build_job(works, training);
    CHECK(program::written::wrong_in(job) == "");
    for (const program::Task& task : job.programs.front().tasks) {
      const Operation operation = job.works[task.work].operation;
      const program::Origin& origin = job.deed_of(task).origin;
      if (operation == Operation::all_gather) all += fmt::format(" g{}", origin.group);
      if (operation == Operation::forward) all += fmt::format(" F{}", origin.layer);
      if (operation == Operation::backward) all += fmt::format(" B{}", origin.layer);
    }
    return all;
  };
  CHECK(issued() == " g0 F0 g1 F1 g2 F2 g3 F3 g3 g2 B3 g1 B2 g0 B1 B0");
  training.forward_prefetch = 1;  // F23: the same order, before the kernels
  CHECK(issued() == " g0 g1 F0 g2 F1 g3 F2 F3 g3 g2 B3 g1 B2 g0 B1 B0");
  training.forward_prefetch = 0;
  training.backward_prefetch = 2;
  CHECK(issued() == " g0 F0 g1 F1 g2 F2 g3 F3 g3 g2 g1 B3 g0 B2 B1 B0");
  training.backward_prefetch = 0;
  training.unit_settings.resize(4);
  training.unit_settings[1].reshard_after_forward = false;
  training.unit_settings[3].backward_prefetch = std::vector<std::int32_t>{0};
  training.unit_settings[0].forward_prefetch = std::vector<std::int32_t>{2, 3};
  CHECK(issued() == " g0 g2 g3 F0 g1 F1 F2 F3 g3 g0 B3 g2 B2 B1 B0");
}

TEST_CASE("F67: with offload parts and gradients cross to the device and back", "[model][fsdp]") {
  const Bytes unit = 4 * MiB;
  const Workload workload =
      timed::chain(3, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, unit);
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::adamw);
  Training training;
  training.strategy = Strategy::fsdp;
  training.units = {{0}, {1}, {2}};
  training.reshard_after_forward = true;
  training.offload_policy = CpuOffload{gigabytes_per_second(10), std::chrono::milliseconds{7}};
  const program::Job job = build_job(works, training);
  CHECK(program::written::wrong_in(job) == "");
  std::map<Operation, int> times;
  for (const program::Task& task : job.programs.front().tasks) {
    const Work& work = job.works[task.work];
    ++times[work.operation];
    if (work.operation == Operation::outside) CHECK(work.host == std::chrono::milliseconds{7});
    if (!std::holds_alternative<program::Move>(job.deed_of(task).action)) continue;
    CHECK(work.payload == Bytes{unit.count / 8});
    CHECK(work.known_time == Bytes{unit.count / 8} / gigabytes_per_second(10));
    const bool comes = work.operation == Operation::copy_to_device;
    CHECK(job.streams[task.stream].name == (comes ? "copy in" : "scatter"));
  }
  CHECK(times[Operation::copy_to_device] == 6);  // before each gather
  CHECK(times[Operation::copy_to_host] == 3);    // behind each reduce-scatter
  CHECK(times[Operation::optimizer] == 0);
  CHECK(times[Operation::outside] == 1);  // the host's update
  // The device holds no part for long, and nothing of the optimizer.
  using program::Holds;
  const StepMemory memory = step_memory(workload, Optimizer::adamw, training, job);
  CHECK(memory.most[Holds::optimizer] == Bytes{});
  CHECK(memory.most[Holds::parameter] == unit);
  training.micro_batches = 2;
  CHECK_THROWS_WITH(build_job(works, training), Catch::Contains("write no_sync: true"));
}

TEST_CASE("frozen parameters are gathered, and nothing of them is reduced", "[model][fsdp]") {
  const Bytes unit = 4 * MiB;
  Workload workload =
      timed::chain(3, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, unit);
  // One beside each trained parameter, and one alone in a unit of the first layer.
  for (int layer = 0; layer < 3; ++layer)
    workload.frozen_parameters.push_back(
        {fmt::format("frozen.{}", layer), {unit.count / 4}, DType::fp32, layer});
  workload.frozen = 3 * unit;
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::sgd);
  Training training;
  training.strategy = Strategy::fsdp;
  training.reshard_after_forward = true;
  const auto gathered_and_reduced = [&] {
    const program::Job job = build_job(works, training);
    CHECK(program::written::wrong_in(job) == "");
    std::map<std::int32_t, std::vector<Bytes>> all;  // by unit
    for (const program::Task& task : job.programs.front().tasks) {
      const Work& work = job.works[task.work];
      if (work.operation == Operation::all_gather || work.operation == Operation::reduce_scatter)
        all[job.deed_of(task).origin.group].push_back(work.payload);
    }
    return all;
  };
  training.units = {{0, 3}, {1, 4}, {2, 5}};
  const Bytes both{2 * unit.count / 8};
  for (const auto& [number, sent] : gathered_and_reduced())
    CHECK(sent == std::vector<Bytes>{both, both, unit});
  using program::Holds;
  const StepMemory memory =
      step_memory(workload, Optimizer::sgd, training, build_job(works, training));
  CHECK(memory.most[Holds::frozen] == Bytes{3 * unit.count / 8});
  // What comes before all that is trained has no backward pass: what is prefetched is in vain.
  workload.parameters.erase(workload.parameters.begin());
  for (Parameter& each : workload.parameters) CHECK(each.layer > 0);
  const StepWorks fewer(workload, timed::eight_gpus(), Optimizer::sgd);
  training.units = {{2}, {0, 3}, {1, 4}};
  const program::Job job = build_job(fewer, training);
  CHECK(program::written::wrong_in(job) == "");
  CHECK(job.groups[0].parameters.empty());
  CHECK(sent(job, Operation::all_gather)[{0, 0}].times == 2);
  CHECK(sent(job, Operation::reduce_scatter).size() == 2);
}

TEST_CASE("hooks on a layer's output run, and those on gradients never fire", "[model][fsdp]") {
  const Workload workload =
      timed::chain(2, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, 4 * MiB);
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::sgd);
  Training training;
  training.strategy = Strategy::fsdp;
  UserHook& hook = training.hooks.emplace_back();
  hook.kind = UserHookKind::chunks;
  hook.chunks.count = hook.chunks.threads = 2;
  hook.layers = {1};
  hook.outputs = {1 * MiB};
  const program::Job job = build_job(works, training);
  CHECK(program::written::wrong_in(job) == "");
  int times = 0;
  for (const program::Task& task : job.programs.front().tasks)
    times += std::holds_alternative<program::Chunked>(job.deed_of(task).action) ? 1 : 0;
  CHECK(times == 1);
  hook = {};
  hook.kind = UserHookKind::scale;
  hook.groups = {{0}};
  CHECK_THROWS_WITH(build_job(works, training), Catch::Contains("no such hook ever fires"));
}

TEST_CASE("F44: clipping reduces one number among the ranks that share", "[model][fsdp]") {
  Workload workload =
      timed::chain(2, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, 4 * MiB);
  workload.clip_gradients = true;
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::adamw);
  Training training;
  training.strategy = Strategy::fsdp;
  for (const int replicas : {1, 2}) {
    training.replicate = replicas;
    const program::Job job = build_job(works, training);
    CHECK(program::written::wrong_in(job) == "");
    int norms = 0;
    bool is_scattered = false, is_updated = false;
    for (const program::Task& task : job.programs.front().tasks) {
      const Work& work = job.works[task.work];
      is_scattered = is_scattered || work.operation == Operation::reduce_scatter;
      if (work.message == Message::norm && work.operation == Operation::all_reduce) {
        ++norms;
        CHECK(work.payload == Bytes{4});
        CHECK(work.group == (replicas == 1 ? 0 : 4));
        CHECK(is_scattered);
        CHECK(is_updated);  // the first of the optimizer's kernels finds the norm
      }
      is_updated = is_updated || work.operation == Operation::optimizer;
    }
    CHECK(norms == 1);
  }
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

TEST_CASE("F63: gathers and parts of gradients have pools of their own", "[model][fsdp]") {
  // Four units of 4 MiB on eight ranks. Of kernels: 2 MiB of parts, 4 of state, and at the end of a
  // unit's backward pass the whole unit, its gradient and the input of the reduce-scatter before
  // it: 18 MiB. Two units are gathered at a time, 8 MiB. Parts of gradients, 2 MiB in the end, are
  // of the stream of reduce-scatters. At one time there are at most 18 MiB, one gathered unit, and
  // the parts of the two units behind, in the backward pass of the second.
  const Workload workload =
      timed::chain(4, std::chrono::milliseconds{1}, std::chrono::milliseconds{2}, 4 * MiB);
  const StepWorks works(workload, timed::eight_gpus(), Optimizer::adamw_fused);
  Training training;
  training.strategy = Strategy::fsdp;
  training.units = {{0}, {1}, {2}, {3}};
  training.reshard_after_forward = true;
  const StepMemory memory =
      step_memory(workload, Optimizer::adamw_fused, training, build_job(works, training));
  CHECK(memory.peak == (18 + 4 + 1) * MiB);
  CHECK(memory.reserved == (18 + 8 + 2) * MiB);
}

namespace {

using namespace std::chrono_literals;

/// Four units of a mebi of numbers each, kept in fp32, on eight GPUs.
struct FourUnits {
  Bytes unit = 4 * MiB, part{unit.count / 8};  ///< in fp32
  std::int64_t elements = unit.count / 4;      ///< of a unit
  Training training;
  std::optional<StepWorks> works{};
  program::Job job{};

  explicit FourUnits(MixedPrecision policy, int micro_batches = 1, bool no_sync = false) {
    training.strategy = Strategy::fsdp;
    training.units = {{0}, {1}, {2}, {3}};
    training.reshard_after_forward = true;
    training.mp_policy = policy;
    training.micro_batches = micro_batches;
    training.no_sync = no_sync;
    works.emplace(workload(), timed::eight_gpus(), Optimizer::adamw_fused);
    job = build_job(*works, training);
    CHECK(program::written::wrong_in(job) == "");
  }
  Workload workload() const {
    const Workload chain = timed::chain(4, 1ms, 2ms, unit);
    const std::optional<DType> type = training.mp_policy.param_dtype;
    return type ? drawn::cast_to(chain, *type) : chain;
  }
  /// Tasks with that operation, in order.
  std::vector<const program::Task*> tasks(Operation operation) const {
    std::vector<const program::Task*> found;
    for (const program::Task& task : job.programs.front().tasks)
      if (job.works[task.work].operation == operation) found.push_back(&task);
    return found;
  }
  Bytes traffic(const program::Task& task) const { return job.works[task.work].traffic; }
  std::string stream(const program::Task& task) const {
    return std::string(job.streams[task.stream].name);
  }
  std::string label(const program::Task& task) const {
    return job.labels[at(job.deed_of(task).origin.label)];
  }
  template <typename Action>
  const Action& action(const program::Task& task) const {
    return std::get<Action>(job.deed_of(task).action);
  }
  DType type(const program::Slice& slice) const { return job.buffers[slice.buffer].type; }
  /// The type of all buffers of that name; none: there are none, or they differ.
  std::optional<DType> type(std::string_view name) const {
    std::optional<DType> found;
    for (const program::Buffer& buffer : job.buffers) {
      if (job.labels[at(buffer.name)] != name) continue;
      if (found && *found != buffer.type) return std::nullopt;
      found = buffer.type;
    }
    return found;
  }
};

}  // namespace

TEST_CASE("mixed precision gathers in one type, reduces in another and keeps a third",
          "[model][fsdp]") {
  const FourUnits mixed({DType::bf16, DType::bf16});
  CHECK(mixed.type("w") == DType::fp32);
  CHECK(mixed.type("momentum") == DType::fp32);
  CHECK(mixed.type("shard") == DType::fp32);
  for (const char* name : {"full", "g", "gathered", "cast parts", "scattered", "received"})
    CHECK(mixed.type(name) == DType::bf16);
  // F12: each gather, of which there are two a unit but for the last, is behind a cast of the
  // rank's part. F36: each reduce-scatter is before a cast of what it gives.
  std::vector<const program::Task*> gathers, scatters;
  for (const program::Task* task : mixed.tasks(Operation::cast))
    (mixed.label(*task) == "all-gather cast" ? gathers : scatters).push_back(task);
  CHECK(gathers.size() == mixed.tasks(Operation::all_gather).size());
  CHECK(scatters.size() == 4);
  for (const program::Task* task : gathers) {
    CHECK(mixed.stream(*task) == "copy in");
    CHECK(mixed.traffic(*task) == mixed.elements / 8 * Bytes{4 + 2});
  }
  for (const program::Task* task : scatters) {
    CHECK(mixed.stream(*task) == "scatter");
    CHECK(mixed.traffic(*task) == mixed.elements / 8 * Bytes{2 + 4});
    CHECK(mixed.type(mixed.action<program::Cast>(*task).to) == DType::fp32);
  }
  for (const program::Task* task : mixed.tasks(Operation::all_gather))
    CHECK(mixed.job.works[task->work].payload == Bytes{mixed.part.count / 2});
  for (const program::Task* task : mixed.tasks(Operation::reduce_scatter)) {
    CHECK(mixed.job.works[task->work].payload == Bytes{mixed.unit.count / 2});
    CHECK(mixed.action<program::Collective>(*task).reduction == program::Reduction::mean);
  }
  // The optimizer goes over fp32: a fused AdamW 7 times (optimizer.hpp), over this rank's eighth.
  CHECK(mixed.traffic(*mixed.tasks(Operation::optimizer).front()) == 7 * 4 * mixed.part);
}

TEST_CASE("what is reduced in the type that is kept is not cast behind it", "[model][fsdp]") {
  const FourUnits wide({DType::bf16, DType::fp32});
  CHECK(wide.type("scattered") == DType::fp32);
  CHECK(!wide.type("received"));
  for (const program::Task* task : wide.tasks(Operation::cast))
    CHECK(wide.label(*task) == "all-gather cast");
  for (const program::Task* task : wide.tasks(Operation::reduce_scatter))
    CHECK(wide.job.works[task->work].payload == wide.unit);
  // Gradients of bf16 are packed into fp32.
  for (const program::Task* task : wide.tasks(Operation::pack))
    if (wide.label(*task) == "reduce-scatter copy-in")
      CHECK(wide.traffic(*task) == wide.elements * Bytes{2 + 4});

  const FourUnits narrow({std::nullopt, DType::bf16});
  CHECK(narrow.type("gathered") == DType::fp32);
  CHECK(narrow.type("g") == DType::fp32);
  CHECK(narrow.type("scattered") == DType::bf16);
  CHECK(narrow.tasks(Operation::cast).size() == 4);

  const FourUnits same({DType::fp32, DType::fp32}), plain({});
  CHECK(same.tasks(Operation::cast).empty());
  CHECK(same.job.buffers == plain.job.buffers);
  CHECK(same.job.works == plain.job.works);
}

TEST_CASE("kernels divide gradients in fp16 before their sum and behind it", "[model][fsdp]") {
  const FourUnits mixed({DType::fp16, std::nullopt});
  const auto divisions = mixed.tasks(Operation::divide);
  REQUIRE(divisions.size() == 8);
  // F45: of eight ranks by 4 all that a rank sends, and by 2 what it gets.
  std::vector<float> factors;
  for (const program::Task* task : divisions) {
    factors.push_back(mixed.action<program::Scale>(*task).factor);
    CHECK(mixed.stream(*task) == "scatter");
    const std::int64_t elements = factors.back() < 0.3F ? mixed.elements : mixed.elements / 8;
    CHECK(mixed.traffic(*task) == elements * Bytes{2 + 2});
  }
  std::ranges::sort(factors);
  CHECK(factors == std::vector<float>{0.25F, 0.25F, 0.25F, 0.25F, 0.5F, 0.5F, 0.5F, 0.5F});
  for (const program::Task* task : mixed.tasks(Operation::reduce_scatter))
    CHECK(mixed.action<program::Collective>(*task).reduction == program::Reduction::sum);
}

TEST_CASE("without synchronisation gradients are added up in the type they are reduced in",
          "[model][fsdp]") {
  // F51: the first of three micro-batches casts, the others add, and the last one sends the sum.
  const FourUnits mixed({DType::bf16, DType::fp32}, 3, true);
  CHECK(mixed.type("added up") == DType::fp32);
  std::vector<const program::Task*> upcasts;
  for (const program::Task* task : mixed.tasks(Operation::cast))
    if (std::holds_alternative<program::Cast>(mixed.job.deed_of(*task).action))
      upcasts.push_back(task);
  REQUIRE(upcasts.size() == 4);
  for (const program::Task* task : upcasts) {
    CHECK(task->micro_batch == 0);
    CHECK(mixed.traffic(*task) == mixed.elements * Bytes{2 + 4});
  }
  const auto additions = mixed.tasks(Operation::accumulate);
  CHECK(additions.size() == 8);
  for (const program::Task* task : additions)
    CHECK(mixed.traffic(*task) == mixed.elements * Bytes{2 + 4 + 4});
  CHECK(mixed.tasks(Operation::reduce_scatter).size() == 4);
  for (const program::Task* task : mixed.tasks(Operation::pack))
    if (mixed.label(*task) == "reduce-scatter copy-in") {
      CHECK(task->micro_batch == 2);
      CHECK(mixed.traffic(*task) == mixed.elements * Bytes{4 + 4});
    }

  // Reduced as they are computed they stay so: PyTorch's own addition.
  const FourUnits narrow({DType::bf16, std::nullopt}, 3, true);
  CHECK(!narrow.type("added up"));
  for (const program::Task* task : narrow.tasks(Operation::accumulate))
    CHECK(narrow.traffic(*task) == narrow.elements * Bytes{3 * 2});
}

TEST_CASE("real ranks take a policy of fsdp that casts nothing", "[model][fsdp]") {
  const auto check = [](const MixedPrecision& policy) {
    const FourUnits units(policy);
    check_for_ranks(units.job, units.training, units.workload());
  };
  CHECK_NOTHROW(check({}));
  CHECK_NOTHROW(check({DType::fp32, DType::fp32}));
  CHECK_THROWS_AS(check({DType::bf16, DType::fp32}), std::invalid_argument);
  CHECK_THROWS_AS(check({std::nullopt, DType::bf16}), std::invalid_argument);
}

TEST_CASE("under mixed precision parts are as large as before, and whole units half",
          "[model][fsdp]") {
  using program::Holds;
  const FourUnits mixed({DType::bf16, DType::fp32});
  const StepMemory memory =
      step_memory(mixed.workload(), Optimizer::adamw_fused, mixed.training, mixed.job);
  const Bytes half{mixed.unit.count / 2}, parts = 4 * mixed.part;
  CHECK(memory.most[Holds::parameter] == parts + half);
  CHECK(memory.most[Holds::optimizer] == 2 * parts);
  // F22, F12: two gathers, and the parts of the next one in bf16.
  CHECK(memory.most[Holds::gathered] == 2 * half + Bytes{mixed.part.count / 2});
  CHECK(memory.most[Holds::scattered] == mixed.unit);
  CHECK(memory.most[Holds::gradient] >= parts);
  CHECK(memory.most[Holds::gradient] <= parts + half);
  // What reduce-scatters give is the parts of gradients. Of kernels: parts, state, half a unit and
  // its gradient in bf16, and a packed unit in fp32: 14 MiB. Of gathers: two halves, and the cast
  // part of the second: 4.25 MiB.
  CHECK(memory.reserved == (14 + 6 + 2) * MiB);
}

}  // namespace ddpsim
