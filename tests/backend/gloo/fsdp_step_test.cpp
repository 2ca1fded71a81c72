// fully_shard for real: parts are gathered, gradients reduce-scattered, parts updated.

#include <catch2/catch.hpp>

#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

Training sharded(std::optional<Reshard> reshard, int micro_batches = 1, bool no_sync = false) {
  Training training;
  training.strategy = Strategy::fsdp;
  training.reshard_after_forward = reshard;
  training.micro_batches = micro_batches;
  training.no_sync = no_sync;
  return training;
}

}  // namespace

TEST_CASE("F36: every rank ends with the mean of its parts of the gradients", "[backend][fsdp]") {
  const int ranks = GENERATE(1, 2, 3);
  const std::string backend = ranks == 3 ? GENERATE("threads", "gloo") : "threads";
  const SmallJob job(ranks);
  CAPTURE(ranks, backend);
  for (const std::optional<bool> reshard : {std::optional<bool>{}, {true}, {false}})
    for (const int micro_batches : {1, 3})
      for (const bool no_sync : {false, true})
        for (const auto& units : {std::vector<std::vector<std::int32_t>>{}, {{2, 1}}}) {
          if (micro_batches == 1 && no_sync) continue;
          CAPTURE(reshard.value_or(false), reshard.has_value(), micro_batches, no_sync, units);
          Training training = sharded(reshard, micro_batches, no_sync);
          training.units = units;
          check_means(job, training, backend);
        }
}

TEST_CASE("F55: replicas of shards end with the same mean of all ranks", "[backend][fsdp]") {
  const std::string backend = GENERATE("threads", "gloo");
  const SmallJob job(4);
  CAPTURE(backend);
  for (const int micro_batches : {1, 2})
    for (const bool no_sync : {false, true}) {
      CAPTURE(micro_batches, no_sync);
      Training training = sharded({}, micro_batches, no_sync);
      training.replicate = 2;
      check_means(job, training, backend);
    }
}

TEST_CASE("neighbours, prefetches, kept parameters and late all-reduces end with the same mean",
          "[backend][fsdp]") {
  const std::string backend = GENERATE("threads", "gloo");
  const SmallJob job(4);
  CAPTURE(backend);
  std::vector<Training> trainings(5, sharded(true, 3));
  trainings[0].reshard_after_forward = Reshard::among(2);  // F30
  trainings[1].forward_prefetch = 2;                       // F23
  trainings[1].backward_prefetch = 2;                      // F33
  trainings[2].reshard_after_backward = false;             // F52
  trainings[2].no_sync = true;
  trainings[3].replicate = 2;  // F57
  trainings[3].requires_all_reduce = AllReduced::last;
  trainings[4].replicate = 1;
  trainings[4].reshard_after_forward = Reshard::among(2);
  trainings[4].reshard_after_backward = false;
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    CAPTURE(i);
    check_means(job, trainings[i], backend);
  }
}

TEST_CASE("frozen parameters are gathered beside those that end with the mean", "[backend][fsdp]") {
  SmallJob job(3);
  job.workload.frozen_parameters = {{"0.frozen", {7, 5}, DType::fp32, 0},
                                    {"outside", {4}, DType::fp32, 0}};
  job.workload.frozen = Bytes{4 * (35 + 4)};
  check_means(job, sharded(true));
}

TEST_CASE("what neighbours keep and gather again is what parts were", "[backend][fsdp]") {
  SmallJob job(4);
  job.optimizer = Optimizer::sgd;
  const KeptParameters whole = parameters_after(job, sharded(true), 3);
  Training training = sharded(Reshard::among(2));
  CHECK((parameters_after(job, training, 3) == whole));
  training.forward_prefetch = training.backward_prefetch = 2;
  CHECK((parameters_after(job, training, 3) == whole));
}

TEST_CASE("F5: updated parts are, put together, what flat makes of the parameters",
          "[backend][fsdp]") {
  const int ranks = GENERATE(1, 2, 3);
  SmallJob job(ranks);
  CAPTURE(ranks);
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adamw}) {
    job.optimizer = optimizer;
    Training flat;
    flat.strategy = Strategy::flat;
    CAPTURE(name_of(optimizer));
    const KeptParameters untouched = parameters_after(job, flat, 0);
    CHECK((parameters_after(job, sharded({}), 0) == untouched));
    const KeptParameters expected = parameters_after(job, flat, 3);
    const KeptParameters found = parameters_after(job, sharded(true), 3);
    CHECK((found != untouched));
    check_alike(found, expected, ranks);
  }
}

TEST_CASE("a rank keeps its part of parameters and of the optimizer's state and no more",
          "[backend][fsdp]") {
  SmallJob job(4);
  job.optimizer = Optimizer::adamw;
  const program::Job step = job.step(sharded({}));
  std::int64_t kept = 0, parts = 0;
  for (const program::Buffer& buffer : step.buffers)
    if (!buffer.is_view() && buffer.life == program::Life::job) kept += buffer.elements;
  for (const Parameter& each : job.workload.parameters) {
    const std::int64_t rows = (each.shape.front() + 3) / 4;
    parts += rows * each.elements() / each.shape.front();
  }
  CHECK(kept == 3 * parts);  // the part, and two moments of it
}

}  // namespace ddpsim
