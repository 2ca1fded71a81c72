#include "scenarios/reader/training/comm_hook_reader.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

std::string with_comm_hook(const std::string& hook) {
  return "workload: {model: p.yaml}\n"
         "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n"
         "training:\n  comm_hook: " +
         hook + "\n";
}

struct Profile {
  Scratch scratch;
  Profile() {
    scratch.write("p.yaml",
                  "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 3 ms\nparameters:\n"
                  "  - {name: a, shape: [512, 512], ready: 3 ms}\n");
  }
  CommHook read(const std::string& hook) const {
    return read_scenario(scratch.write("s.yaml", with_comm_hook(hook))).training.comm_hook;
  }
  std::string refused(const std::string& hook) const {
    return refusal(scratch, with_comm_hook(hook));
  }
};

}  // namespace

TEST_CASE("comm hooks are read by PyTorch's names", "[scenarios][comm_hook]") {
  const Profile profile;
  for (const CommHookKind kind : all_comm_hooks) {
    if (kind == CommHookKind::steps || kind == CommHookKind::plugin) continue;
    CAPTURE(name_of(kind));
    CHECK(profile.read(std::string(name_of(kind))).kind == kind);
    CHECK(profile.read(fmt::format("{{{}: {{}}}}", name_of(kind))).kind == kind);
  }
  CHECK(!profile.read("none"));
}

TEST_CASE("a comm hook that lacks something is refused in its place, with what to write",
          "[scenarios][comm_hook]") {
  const Profile profile;
  const auto refused = [&](const std::string& hook, const std::string& words) {
    const std::string line = profile.refused(hook);
    CAPTURE(hook, line);
    CHECK_THAT(line, Catch::StartsWith("s.yaml:4:"));
    CHECK_THAT(line, Catch::Contains(words));
  };
  refused("[{topk: 200%}, all_gather]", "expected a share from 1e-07 % to 100 %, got \"200 %\"");
  refused("[{topk: x%}, all_gather]", "got \"x %\"");
  refused("[{topk: \"%\"}, all_gather]", "expected a share");
  refused("plugin", "write {plugin: its_name}");
  refused("fp16_compress_wrapper", "write {fp16_compress_wrapper: powersgd}");
  refused("steps", "write the steps themselves");
  refused("{bf16_compress_wrapper: [all_reduce]}", "begin the list of steps with {cast: fp16}");
  refused("{fp16_compress_wrapper: zero_step}", "zero_step reduces plainly: take");
}

TEST_CASE("PowerSGD's settings are read", "[scenarios][comm_hook]") {
  const PowerSgd state =
      Profile()
          .read(
              "{powersgd: {rank: 4, start_iteration: 10, min_compression_rate: 0.5, "
              "error_feedback: "
              "false, warm_start: false, orthogonalization_epsilon: 1e-8, seed: 7}}")
          .powersgd;
  CHECK(state == PowerSgd{4, 10, 0.5, false, false, 1e-8, 7});
  CHECK(Profile().read("powersgd").powersgd == PowerSgd{1, 1000, 2, true, true, 0, 0});
}

TEST_CASE("post_local_sgd, wrappers, plugins and lists are read", "[scenarios][comm_hook]") {
  const Profile profile;
  CHECK(profile
            .read("{post_local_sgd: {start_iteration: 3, subgroup: 8, gradient_allreduce: false, "
                  "period: 2}}")
            .post_local_sgd == PostLocalSgd{3, 8, false, 2});
  const CommHook wrapped =
      profile.read("{fp16_compress_wrapper: {bf16_compress_wrapper: {powersgd: {rank: 2}}}}");
  CHECK(wrapped.wrappers == std::vector{DType::fp16, DType::bf16});
  CHECK(wrapped.powersgd.rank == 2);
  CHECK(profile.read("{plugin: mine}").plugin == "mine");
  CHECK(profile.read("{plugin: mine}").plugin_type == DType::fp32);
  CHECK(profile.read("{plugin: {name: mine, payload: bf16}}").plugin_type == DType::bf16);
  const CommHook list = profile.read(
      "[{cast: bf16}, {scale: 1/ranks}, {kernel: {name: mask, passes: 3, launches: 2}}, {topk: 2 "
      "%}, "
      "all_gather, {scale: 0.5}, reduce_scatter, all_gather, broadcast, all_reduce]");
  REQUIRE(list.steps.size() == 10);
  CHECK(list.steps[0].type == DType::bf16);
  CHECK(!list.steps[1].factor);
  CHECK(list.steps[2].name == "mask");
  CHECK(list.steps[2].passes == 3);
  CHECK(list.steps[3].share == Approx(0.02));
  CHECK(list.steps[5].factor == 0.5);
}

TEST_CASE("what is no comm hook is refused where it stands", "[scenarios][comm_hook]") {
  const Profile profile;
  CHECK_THAT(profile.refused("fp16_compres"),
             Catch::StartsWith("s.yaml:4:14: training.comm_hook: unknown") &&
                 Catch::Contains("did you mean \"fp16_compress\"?"));
  CHECK_THAT(profile.refused("{powersgd: {rank: 0}}"), Catch::Contains("from 1 to 1024"));
  CHECK_THAT(profile.refused("{powersgd: {start_iteration: 1}}"),
             Catch::Contains("expected at least 2"));
  CHECK_THAT(profile.refused("{powersgd: {rnk: 1}}"), Catch::Contains("did you mean \"rank\"?"));
  CHECK_THAT(profile.refused("{fp16_compress: {rank: 1}}"), Catch::Contains("unknown key"));
  CHECK_THAT(profile.refused("{powersgd: {}, noop: {}}"),
             Catch::Contains("expected one comm hook"));
  CHECK_THAT(profile.refused("[]"), Catch::Contains("expected 1 to 64 steps"));
  CHECK_THAT(profile.refused("[topk]"), Catch::Contains("topk needs a value: write {topk: ...}"));
  CHECK_THAT(profile.refused("[{all_reduce: 3}]"), Catch::Contains("all_reduce takes nothing"));
  CHECK_THAT(profile.refused("[{topk: 1%}]"), Catch::Contains("expected all_gather"));
  CHECK_THAT(profile.refused("[reduce_scatter, all_reduce]"),
             Catch::Contains("expected all_gather"));
  CHECK_THAT(profile.refused("[{cast: fp8}]"), Catch::Contains("fp16"));
  std::string deep = "noop";
  for (int i = 0; i < 6; ++i) deep = "{fp16_compress_wrapper: " + deep + "}";
  CHECK_THAT(profile.refused(deep), Catch::Contains("at most 4 wrappers"));
}

}  // namespace ddpsim
