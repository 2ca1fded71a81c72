#include <catch2/catch.hpp>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

std::string with_zero(const std::string& keys) {
  return "workload: {model: gpt2, batch: 2, sequence: 128}\n"
         "cluster: dgx-h100\n"
         "training:\n  strategy: zero1\n  " +
         keys + "\ncompare: [zero1]\n";
}

ZeroSettings first(const std::string& keys) {
  const Scratch scratch;
  return read_scenario(scratch.write("s.yaml", with_zero(keys))).training.zero1;
}

}  // namespace

TEST_CASE("each ZeRO has the options of its variant, by their names", "[scenarios][zero]") {
  CHECK(first("micro_batches: 1").variant == ZeroVariant::torch);
  CHECK(first("zero1: {parameters_as_bucket_view: true}").parameters_as_bucket_view);
  CHECK(first("zero1: {variant: course, send: gather}").send == ParameterSend::gather);
  CHECK(first("zero1: {variant: course, gradients: overlap}").gradients ==
        CourseGradients::overlap);
  CHECK(first("zero1: {variant: deepspeed, reduce_bucket_size: 1000}").reduce_bucket_size == 1000);
  const ZeroSettings megatron =
      first("zero1: {overlap_grad_reduce: true, variant: megatron, ddp_bucket_size: 40000}");
  CHECK(megatron.overlap_grad_reduce);
  CHECK(megatron.ddp_bucket_size == 40000);
  const Scratch scratch;
  const Training training =
      read_scenario(scratch.write("s.yaml", with_zero("zero3: {stage3_prefetch_bucket_size: 0, "
                                                      "stage3_max_reuse_distance: 5}\n  zero2: "
                                                      "{overlap_comm: true}")))
          .training;
  CHECK(training.zero3.overlap_comm);  // by default
  CHECK(training.zero3.prefetch_bucket_size == 0);
  CHECK(training.zero3.max_reuse_distance == 5);
  CHECK(training.zero2.overlap_comm);
  CHECK(training.zero2.variant == ZeroVariant::deepspeed);
}

TEST_CASE("an option of another variant is refused where it stands", "[scenarios][zero]") {
  const Scratch scratch;
  CHECK(refusal(scratch, with_zero("zero1: {overlap_comm: true}")) ==
        "s.yaml:5:25: training.zero1.overlap_comm: overlap_comm is a key of variant deepspeed, and "
        "this is torch: take it out, or write variant: deepspeed");
  CHECK_THAT(refusal(scratch, with_zero("zero1: {variant: fairscale}")),
             Catch::StartsWith("s.yaml:5:20: training.zero1.variant: unknown name \"fairscale\""));
  CHECK_THAT(refusal(scratch, with_zero("zero2: {variant: megatron}")),
             Catch::StartsWith("s.yaml:5:11: training.zero2.variant: unknown key"));
  CHECK_THAT(refusal(scratch, with_zero("zero1: {variant: deepspeed, reduce_bucket_size: 25 MiB}")),
             Catch::StartsWith("s.yaml:5:51: training.zero1.reduce_bucket_size: expected a whole "
                               "number"));
}

TEST_CASE("what a ZeRO cannot do is refused where it stands", "[scenarios][zero]") {
  const Scratch scratch;
  CHECK(refusal(scratch, with_zero("zero1: {variant: megatron, overlap_param_gather: true}")) ==
        "s.yaml:5:52: training.zero1.overlap_param_gather: overlap_param_gather needs "
        "overlap_grad_reduce: true beside it, as Megatron-LM has it");
  const auto compared = [](const std::string& keys, const std::string& strategies) {
    return "workload: {model: gpt2, batch: 2, sequence: 128}\ncluster: dgx-h100\ntraining: {" +
           keys + "}\ncompare: [" + strategies + "]\n";
  };
  const std::string accumulates = "micro_batches: 2, no_sync: true";
  CHECK(refusal(scratch, compared(accumulates, "bucketed, zero1")).empty());
  for (const char* name : {"zero2", "zero3"})
    CHECK(refusal(scratch, compared(accumulates, "bucketed, " + std::string(name))) ==
          "s.yaml:3:39: training.no_sync: " + std::string(name) +
              " reduces every micro-batch's gradients, as DeepSpeed does: take no_sync out");
  CHECK(refusal(scratch, compared("join: {joined_ranks: 1}", "zero3")) ==
        "s.yaml:3:18: training.join: zero3 has no join(): take training.join out");
}

}  // namespace ddpsim
