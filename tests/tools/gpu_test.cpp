#include <chrono>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <gloo/rendezvous/hash_store.h>

#include "backend/run/nccl_backend.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/backend/nccl/fake_gpu.hpp"
#include "tests/not_run.hpp"
#include "tests/tools/program.hpp"
#include "tools/study/step_jobs.hpp"
#include "tools/study/validation.hpp"

namespace ddpsim {
namespace {

/// What `ddpsim backends` says of NCCL here; "ready" on a machine with a GPU.
std::string nccl_status() {
  const Outcome outcome = ddpsim({"backends", "--json", "-"});
  REQUIRE(outcome.code == 0);
  for (const auto& row : outcome.json())
    if (row.at("backend") == "nccl") return row.at("status");
  FAIL("no nccl in the list");
  return "";
}

/// How long this thread has waited for a processor since it began, as the scheduler counts it.
std::chrono::nanoseconds lacked_processor() {
  std::ifstream file("/proc/thread-self/schedstat");
  std::int64_t ran = 0, waited = 0;
  file >> ran >> waited;
  return std::chrono::nanoseconds{waited};
}

constexpr const char* twelve_layers = R"(
name: twelve layers on a fake GPU
workload:
  model: {family: mlp, widths: [32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32]}
  batch: 8
  dtype: fp32
  optimizer: sgd
cluster: {device: h100-sxm, ranks_per_node: 8, intra_node: nvlink4}
training: {bucket_cap: 12 KiB, first_bucket_cap: 4 KiB}
compare: [naive, flat, overlap, bucketed]
)";

}  // namespace

TEST_CASE("what is calibrated on an asynchronous device predicts its steps", "[tools][alone]") {
  using namespace std::chrono_literals;
  // A fake GPU whose work takes a given time on a clock of its own: the whole chain is real but the
  // work. Nothing slows anything beside it there.
  const Scratch scratch;
  const Scenario scenario = read_scenario(scratch.write("fake.yaml", twelve_layers), {});
  const std::vector<Training> trainings =
      trainings_to_validate(scenario, {4 * KiB, 12 * KiB, 40 * KiB});
  const std::vector<program::Job> jobs = jobs_of(scenario, trainings);
  ValidateOptions options;
  options.steps = 7;
  options.warm_up = 1;
  options.measure.repeats = 5;
  options.measure.smallest = Bytes{64};
  options.measure.largest = 128 * KiB;
  const auto rendezvous = Rendezvous::in_process(std::make_shared<gloo::rendezvous::HashStore>());
  rendezvous->meet(0, 1, "", 5s);
  auto gpu = std::make_unique<FakeGpu>();
  gpu->pace = {300us, 100us, 150us, 100e6};  // an all-reduce of 4 KiB takes 0.3 ms
  const auto backend =
      make_nccl_backend(std::move(gpu), {GpuLink::Mode::loopback, 8}, *rendezvous, 0, 1, "", 10s);
  const auto begin = std::chrono::steady_clock::now();
  const auto lacked_before = lacked_processor();
  const Validation validation = validate(*backend, scenario, trainings, jobs, options, {});
  const std::chrono::duration<double> lacked = lacked_processor() - lacked_before,
                                      passed = std::chrono::steady_clock::now() - begin;
  // The fake GPU's clock goes on while this thread waits for a processor.
  if (lacked > 0.005 * passed)
    return not_run(fmt::format("other programs kept this test waiting for {:.1f} % of its time",
                               100 * (lacked / passed)));
  REQUIRE(validation.steps.size() == 7);
  // Kernels are those of the steps in turns with the seven measured ones.
  for (const MeasuredWork& task : validation.calibration.tasks)
    if (task.operation == Operation::optimizer) CHECK(task.time.repeats % options.steps == 0);
  for (const ValidatedStep& step : validation.steps) {
    CAPTURE(name_of(step.measured.training.strategy), step.measured.training.bucket_cap.count,
            in_ms(step.predicted.metrics.step), in_ms(step.measured.metrics.step));
    // Eight ranks on one GPU: none is slower than another, whatever the scenario's cluster has.
    CHECK(in_ms(step.predicted.metrics.step) ==
          Approx(in_ms(step.measured.metrics.step)).epsilon(0.03));
    if (step.measured.training.strategy == Strategy::none) continue;
    const ValidatedStep& none = validation.steps.front();
    CHECK(overlap_ratio(step.predicted.metrics, none.predicted.metrics) ==
          Approx(overlap_ratio(step.measured.metrics, none.measured.metrics)).margin(0.1));
    CHECK(step.gradients.good());
  }
}

TEST_CASE("backends says what is ready and what is missing", "[tools][gpu_flags]") {
  const Outcome outcome = ddpsim({"backends"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out == ddpsim({"list", "backends"}).out);
  CHECK_THAT(nccl_status(), Catch::Equals("ready") || Catch::Contains("when this was built") ||
                                Catch::Contains("no NVIDIA") || Catch::Contains("driver") ||
                                Catch::StartsWith("CUDA: ") ||
                                Catch::StartsWith("the GPU module "));
}

TEST_CASE("the program starts without the libraries of CUDA and NCCL", "[tools][modules]") {
  const Outcome needed = execute({"ldd", DDPSIM_PROGRAM});
  REQUIRE(needed.code == 0);
  CHECK_THAT(needed.out, Catch::Contains("libc.so"));
  for (const char* library : {"cuda", "cublas", "nccl"})
    CHECK_THAT(needed.out, !Catch::Contains(library));
}

TEST_CASE("a GPU module that cannot be used is one clear line, wherever it is asked for",
          "[tools][modules]") {
  const Scratch scratch;
  scratch.write("ddpsim_gpu.so", "no library");
  const std::string scenario = shipped("examples/gpu-loopback.yaml");
  const std::vector<std::pair<std::string, std::string>> cases{
      {scratch.folder().string(), "cannot be loaded"},
      {std::string(DDPSIM_ODD_MODULES) + "unresolved", "ddpsim_test_of_a_library"},
      {std::string(DDPSIM_ODD_MODULES) + "empty", "it is no module of ddpsim"},
      {std::string(DDPSIM_ODD_MODULES) + "another_build", "is of another build of ddpsim"},
      {std::string(DDPSIM_ODD_MODULES) + "no_driver", "there is no driver\\x1b here"}};
  for (const auto& [folder, what] : cases) {
    CAPTURE(folder);
    const Environment modules{{"DDPSIM_MODULES", folder}};
    const Outcome listed = execute({DDPSIM_PROGRAM, "backends", "--json", "-"}, {}, modules);
    CHECK(listed.code == 0);
    std::string status;
    for (const auto& row : listed.json())
      if (row.at("backend") == "nccl") status = row.at("status");
    const Outcome table = execute({DDPSIM_PROGRAM, "list", "backends"}, {}, modules);
    CHECK(table.code == 0);
    CHECK_THAT(table.out, Catch::Contains(what));
    for (const std::vector<std::string>& flags :
         {std::vector<std::string>{"--loopback", "8"}, {"--ranks", "2"}}) {
      std::vector<std::string> words{DDPSIM_PROGRAM, "validate", scenario, "--backend", "nccl"};
      words.insert(words.end(), flags.begin(), flags.end());
      const Outcome outcome = execute(words, {}, modules);
      CHECK(outcome.code == 2);
      CHECK(outcome.out.empty());
      CHECK(lines_of(outcome.err).size() == 1);
      CHECK_THAT(outcome.err,
                 Catch::StartsWith("ddpsim: --backend nccl: ") && Catch::Contains(what));
    }
  }
}

TEST_CASE("a module is loaded where a GPU is asked for, and runs the job", "[tools][modules]") {
  const Scratch scratch;
  scratch.write("s.yaml", twelve_layers);
  scratch.write("c.yaml",
                "format: ddpsim.calibration/1\nranks: 8\nsynchronous: false\n"
                "tasks: [{operation: copy in, traffic: 1 MiB, time: 100 us}]\n"
                "all_reduce: [{bytes: 4 KiB, time: 60 us}, {bytes: 1 MiB, time: 1 ms}]\n"
                "end: ddpsim.calibration/1\n");
  const Environment modules{{"DDPSIM_MODULES", std::string(DDPSIM_ODD_MODULES) + "fake"}};
  const Outcome outcome = execute(
      {DDPSIM_PROGRAM, "validate", "s.yaml", "--backend", "nccl", "--loopback", "8", "--steps", "1",
       "--warm-up", "0", "--calibration", "c.yaml", "--set", "compare=[flat]", "--json", "-"},
      scratch.folder(), modules);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.json()["mode"].get<std::string>(), Catch::Contains("nccl"));
  const Outcome listed = execute({DDPSIM_PROGRAM, "backends"}, {}, modules);
  CHECK(listed.out.find("ready") != listed.out.rfind("ready"));
}

TEST_CASE("without a GPU validate and calibrate say in one line what is missing",
          "[tools][gpu_flags]") {
  const std::string status = nccl_status();
  if (status == "ready") return;
  const std::string scenario = shipped("examples/gpu-loopback.yaml");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"validate", scenario, "--backend", "nccl", "--ranks", "2"},
        {"validate", scenario, "--backend", "nccl", "--loopback", "8"},
        {"calibrate", "--backend", "nccl", "-o", "never.yaml"}}) {
    const Outcome outcome = ddpsim(command);
    CHECK(outcome.code == 2);
    CHECK(outcome.err == "ddpsim: --backend nccl: " + status + "\n");
    CHECK_FALSE(std::filesystem::exists("never.yaml"));
  }
}

TEST_CASE("flags of GPUs that contradict are refused", "[tools][gpu_flags]") {
  const std::string scenario = shipped("examples/gpu-loopback.yaml");
  const auto refused = [&](const std::vector<std::string>& flags, const std::string& why) {
    std::vector<std::string> command{"validate", scenario};
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome outcome = ddpsim(command);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains(why));
    CHECK(lines_of(outcome.err).size() == 1);
  };
  refused({"--backend", "gloo", "--loopback", "8"}, "are for --backend nccl");
  refused({"--backend", "threads", "--gpus-share"}, "are for --backend nccl");
  refused({"--backend", "nccl", "--loopback", "8", "--gpus-share"}, "take one of them");
  refused({"--backend", "nccl", "--loopback", "8", "--ranks", "2"}, "no --ranks");
  refused({"--backend", "nccl", "--loopback", "1"}, "--loopback");
  refused({"--backend", "nccl", "--channels", "65"}, "--channels");
  refused({"--backend", "gloo", "--nccl-profiler"}, "--nccl-profiler is for");
  refused({"--backend", "nccl", "--loopback", "8", "--nccl-profiler"}, "--nccl-profiler is for");
}

}  // namespace ddpsim
