// ZeRO for real: gradients are reduced, parts updated and sent, as each project does it.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

struct ZeroCase {
  std::string name;
  Training training;
};

Training zero(Strategy strategy, const ZeroSettings& settings) {
  Training training;
  training.strategy = strategy;
  training.bucket_cap = Bytes{8 << 10};
  (strategy == Strategy::zero1   ? training.zero1
   : strategy == Strategy::zero2 ? training.zero2
                                 : training.zero3) = settings;
  return training;
}

/// Every way that a ZeRO communicates, with buckets that hold a part of the model.
std::vector<ZeroCase> all_cases() {
  std::vector<ZeroCase> cases;
  const auto add = [&](const std::string& name, Strategy strategy, const ZeroSettings& settings) {
    cases.push_back({name, zero(strategy, settings)});
  };
  ZeroSettings torch;
  add("torch", Strategy::zero1, torch);
  torch.parameters_as_bucket_view = true;
  add("torch, views", Strategy::zero1, torch);
  for (const ParameterSend send : all_parameter_sends) {
    ZeroSettings course;
    course.variant = ZeroVariant::course;
    course.send = send;
    for (const CourseGradients gradients : all_course_gradients) {
      course.gradients = gradients;
      add(fmt::format("course, {}, {}", name_of(send), name_of(gradients)), Strategy::zero1,
          course);
    }
  }
  for (const std::int64_t bucket : {2500, 500'000'000}) {
    const std::string named = fmt::format(", {} elements", bucket);
    ZeroSettings deepspeed;
    deepspeed.variant = ZeroVariant::deepspeed;
    deepspeed.reduce_bucket_size = bucket;
    add("deepspeed 2" + named, Strategy::zero2, deepspeed);
    for (const bool overlaps : {false, true}) {
      deepspeed.overlap_comm = overlaps;
      add(fmt::format("deepspeed 1{}, overlap {}", named, overlaps), Strategy::zero1, deepspeed);
    }
    for (const auto& [persist, ahead] : {std::pair{0, 0}, {0, 2100}, {2100, 1'000'000}}) {
      deepspeed.param_persistence_threshold = persist;
      deepspeed.prefetch_bucket_size = ahead;
      deepspeed.max_reuse_distance = ahead;
      add(fmt::format("deepspeed 3{}, {} stay, {} ahead", named, persist, ahead), Strategy::zero3,
          deepspeed);
    }
  }
  for (const bool overlaps : {false, true})
    for (const bool gathers : {false, true}) {
      if (gathers && !overlaps) continue;
      ZeroSettings megatron;
      megatron.variant = ZeroVariant::megatron;
      megatron.ddp_bucket_size = 2500;
      megatron.overlap_grad_reduce = overlaps;
      megatron.overlap_param_gather = gathers;
      add(fmt::format("megatron, overlap {}, gathers {}", overlaps, gathers), Strategy::zero1,
          megatron);
    }
  return cases;
}

}  // namespace

TEST_CASE("F79-F96: every rank ends with the mean of what it keeps of the gradients",
          "[backend][zero]") {
  const int ranks = GENERATE(1, 2, 3);
  const std::string backend = ranks == 3 ? GENERATE("threads", "gloo") : "threads";
  const SmallJob job(ranks);
  // Each with one micro-batch or with three, the other one on another number of ranks.
  int turn = ranks + (backend == "gloo" ? 1 : 0);
  for (const ZeroCase& each : all_cases()) {
    Training training = each.training;
    training.micro_batches = turn++ % 2 == 0 ? 1 : 3;
    CAPTURE(ranks, backend, each.name, training.micro_batches);
    check_means(job, training, backend);
  }
}

TEST_CASE("F79-F96: parameters become what flat makes of them", "[backend][zero]") {
  const int ranks = GENERATE(1, 2, 3);
  SmallJob job(ranks);
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adamw}) {
    job.optimizer = optimizer;
    Training flat;
    flat.strategy = Strategy::flat;
    const KeptParameters untouched = parameters_after(job, flat, 0);
    const KeptParameters expected = parameters_after(job, flat, 3);
    int turn = ranks + (optimizer == Optimizer::sgd ? 0 : 1);
    for (const ZeroCase& each : all_cases()) {
      if (turn++ % 2 == 0) continue;  // under the other optimizer
      CAPTURE(ranks, name_of(optimizer), each.name);
      // Megatron's are gathered in the next forward pass.
      if (each.training.zero1.overlap_param_gather) continue;
      CHECK((parameters_after(job, each.training, 0) == untouched));
      const KeptParameters found = parameters_after(job, each.training, 3);
      CHECK((found != untouched));
      check_alike(found, expected, ranks);
    }
  }
}

}  // namespace ddpsim
