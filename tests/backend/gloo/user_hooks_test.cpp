#include <cmath>
#include <mutex>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/device/cpu/chunk_pool.hpp"
#include "backend/measure/check_gradients.hpp"
#include "model/program/variants.hpp"
#include "tests/backend/jobs.hpp"
#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace {

using Gradients = std::vector<std::vector<float>>;  // [parameter]

UserHook hook_on(UserHookKind kind, double value, std::vector<std::vector<std::int32_t>> groups) {
  UserHook hook;
  hook.kind = kind;
  hook.value = value;
  hook.groups = std::move(groups);
  return hook;
}

std::vector<std::vector<std::int32_t>> each_parameter(const Workload& workload) {
  std::vector<std::vector<std::int32_t>> groups(workload.parameters.size());
  for (std::size_t p = 0; p < groups.size(); ++p) groups[p] = {static_cast<std::int32_t>(p)};
  return groups;
}

std::vector<std::vector<std::int32_t>> each_layer(const Workload& workload) {
  std::vector<std::vector<std::int32_t>> groups(workload.layers.size());
  for (std::size_t p = 0; p < workload.parameters.size(); ++p)
    groups[static_cast<std::size_t>(workload.parameters[p].layer)].push_back(
        static_cast<std::int32_t>(p));
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

Training training_of(std::vector<UserHook> hooks, Strategy strategy = Strategy::none) {
  Training training;
  training.strategy = strategy;
  training.bucket_cap = Bytes{8 << 10};
  training.first_bucket_cap = Bytes{2 << 10};
  training.hooks = std::move(hooks);
  return training;
}

/// What each of two ranks has after a step alone, parameters as they were loaded.
std::vector<Gradients> alone(const SmallJob& job, std::vector<UserHook> hooks,
                             const Plugins* plugins = nullptr) {
  std::vector<Gradients> all(2);
  JobOptions options = job_of(2);
  options.plugins = plugins;
  const program::Job step = job.step(training_of(std::move(hooks)));
  REQUIRE(run_job(options, [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            rank.run(step);
            for (int p = 0; p < static_cast<int>(job.workload.parameters.size()); ++p)
              all[static_cast<std::size_t>(rank.rank())].push_back(rank.gradient(p));
            return 0;
          }) == 0);
  return all;
}

double norm_of(const Gradients& gradients, const std::vector<std::int32_t>& group) {
  double squares = 0;
  for (const std::int32_t p : group)
    for (const float value : gradients[static_cast<std::size_t>(p)])
      squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("a scale hook scales its parameters' gradients and no others",
          "[backend][gradients][user_hook]") {
  const SmallJob job(2);
  const auto plain = alone(job, {});
  const auto hooked = alone(job, {hook_on(UserHookKind::scale, 0.5, {{1}, {2}})});
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t p = 0; p < plain[r].size(); ++p) {
      CAPTURE(r, p);
      std::vector<float> expected = plain[r][p];
      if (p == 1 || p == 2)
        for (float& value : expected) value *= 0.5F;
      CHECK(hooked[r][p] == expected);
    }
}

TEST_CASE("a clip hook shortens a layer's gradients together, and leaves short ones alone",
          "[backend][gradients][user_hook]") {
  const SmallJob job(2);
  const auto layers = each_layer(job.workload);
  const auto plain = alone(job, {});
  const double norm = norm_of(plain[0], layers[1]);
  const auto hooked =
      alone(job, {hook_on(UserHookKind::clip, norm / 3, {layers[1]}),
                  hook_on(UserHookKind::clip, 2 * norm_of(plain[0], layers[0]), {layers[0]})});
  CHECK(norm_of(hooked[0], layers[1]) == Approx(norm / 3).epsilon(1e-4));
  for (const std::int32_t member : layers[1]) {  // one factor for all of them
    const auto p = static_cast<std::size_t>(member);
    for (std::size_t i = 0; i < plain[0][p].size(); ++i)
      CHECK(std::abs(hooked[0][p][i] - plain[0][p][i] / 3) <=
            1e-5 * std::abs(plain[0][p][i]) + 1e-9);
  }
  for (const std::int32_t p : layers[0])
    CHECK(hooked[0][static_cast<std::size_t>(p)] == plain[0][static_cast<std::size_t>(p)]);
}

TEST_CASE("noise has its deviation, is another on each rank, and repeats",
          "[backend][gradients][user_hook]") {
  const SmallJob job(2);
  const auto plain = alone(job, {});
  UserHook hook = hook_on(UserHookKind::noise, 0.25, each_parameter(job.workload));
  hook.seed = 3;
  const auto hooked = alone(job, {hook});
  CHECK(alone(job, {hook}) == hooked);
  hook.seed = 4;
  CHECK(alone(job, {hook}) != hooked);
  double sum = 0, squares = 0, product = 0;
  std::size_t count = 0;
  for (std::size_t p = 0; p < plain[0].size(); ++p)
    for (std::size_t i = 0; i < plain[0][p].size(); ++i, ++count) {
      const double here = hooked[0][p][i] - plain[0][p][i];
      const double there = hooked[1][p][i] - plain[1][p][i];
      sum += here;
      squares += here * here;
      product += here * there;
    }
  REQUIRE(count > 5000);  // means within five of their deviations
  const auto n = static_cast<double>(count);
  CHECK(std::abs(sum / n) < 5 * 0.25 / std::sqrt(n));
  CHECK(std::sqrt(squares / n) == Approx(0.25).epsilon(5 / std::sqrt(2 * n)));
  CHECK(std::abs(product / n) < 5 * 0.0625 / std::sqrt(n));
}

TEST_CASE("decay adds its rate times the parameter", "[backend][gradients][user_hook]") {
  // The parameters are the same on both ranks, their gradients are not.
  const SmallJob job(2);
  const auto plain = alone(job, {});
  const auto once = alone(job, {hook_on(UserHookKind::decay, 0.5, each_parameter(job.workload))});
  const auto twice = alone(job, {hook_on(UserHookKind::decay, 1, each_parameter(job.workload))});
  for (std::size_t p = 0; p < plain[0].size(); ++p)
    for (std::size_t i = 0; i < plain[0][p].size(); ++i) {
      const float added = once[0][p][i] - plain[0][p][i];
      REQUIRE(std::abs(added) <= 0.5F + 1e-4F);  // parameters are drawn from [-1, 1)
      REQUIRE(once[1][p][i] - plain[1][p][i] == Approx(added).margin(1e-4));
      REQUIRE(twice[0][p][i] - plain[0][p][i] == Approx(2 * added).margin(1e-4));
    }
  CHECK(once != plain);
}

TEST_CASE("hooks run in the order given", "[backend][gradients][user_hook]") {
  const SmallJob job(2);
  const auto parameters = each_parameter(job.workload);
  const UserHook scale = hook_on(UserHookKind::scale, 0, parameters);
  const UserHook noise = hook_on(UserHookKind::noise, 1, parameters);
  const auto noise_last = alone(job, {scale, noise});
  const auto scale_last = alone(job, {noise, scale});
  CHECK(norm_of(noise_last[0], {0}) > 0);
  CHECK(norm_of(scale_last[0], {0}) == 0);
}

TEST_CASE("every strategy ends with the mean of the hooked gradients",
          "[backend][gradients][user_hook]") {
  const std::string backend = GENERATE("threads", "gloo");
  const SmallJob job(2);
  const auto parameters = each_parameter(job.workload);
  const std::vector<UserHook> hooks{
      hook_on(UserHookKind::scale, 0.5, {{0}, {3}}), hook_on(UserHookKind::noise, 0.1, parameters),
      hook_on(UserHookKind::clip, 1, each_layer(job.workload)),
      hook_on(UserHookKind::decay, 0.1, parameters), hook_on(UserHookKind::record, 0, parameters)};
  for (const int micro_batches : {1, 3})
    for (const bool no_sync : {false, true})
      for (const bool view : {false, true})
        for (const Strategy strategy :
             {Strategy::naive, Strategy::flat, Strategy::overlap, Strategy::bucketed}) {
          CAPTURE(backend, micro_batches, no_sync, view, name_of(strategy));
          Training training = training_of(hooks, strategy);
          training.micro_batches = micro_batches;
          training.no_sync = no_sync;
          training.gradient_as_bucket_view = view;
          Training none = training;
          none.strategy = Strategy::none;
          Training bare = none;
          bare.hooks.clear();
          CHECK(run_job(job_of(2, backend), [&](Backend& rank) {
                  rank.load(job.workload, job.optimizer);
                  const GradientReference reference =
                      reference_of(rank, job, job.step(none), micro_batches);
                  const GradientReference without =
                      reference_of(rank, job, job.step(bare), micro_batches);
                  rank.run(without_updates(job.step(training)));
                  if (!check_gradients(rank, job.workload, reference).good()) return 5;
                  // They did something.
                  return check_gradients(rank, job.workload, without).good() ? 6 : 0;
                }) == 0);
        }
}

TEST_CASE("a layer's output is taken by a pool, piece by piece, and joined",
          "[backend][user_hook]") {
  std::vector<float> from(1000), to(1000, -1);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  ChunkPool pool(3);
  program::Chunked output{.pieces = 7, .threads = 3, .output = Bytes{4000}};
  pool.run(output, from, to);
  CHECK(to == from);
  // Longer than what is there: it begins again. Shorter: the rest stays.
  std::fill(to.begin(), to.end(), -1.0F);
  output.output = Bytes{10'000};
  pool.run(output, from, to);
  CHECK(to == from);
  std::fill(to.begin(), to.end(), -1.0F);
  output.output = Bytes{400};
  pool.run(output, from, to);
  CHECK(to[99] == 99);
  CHECK(to[100] == -1);
  output.pieces = 64;  // more pieces than values
  output.output = Bytes{4};
  pool.run(output, from, to);
  CHECK(to[0] == 0);
}

TEST_CASE("chunks run between two layers, for as long as their threads are busy",
          "[backend][user_hook]") {
  // Four pieces of 5 ms on two threads: two rounds.
  const SmallJob job(2);
  UserHook hook;
  hook.kind = UserHookKind::chunks;
  hook.chunks = {4, 2, {}, std::chrono::milliseconds{20}};
  hook.layers = {1};
  hook.outputs = {Bytes{1 << 20}};
  const program::Job step = job.step(training_of({hook}, Strategy::bucketed));
  std::mutex mutex;
  std::vector<Duration> took;
  REQUIRE(run_job(job_of(2), [&](Backend& rank) {
            rank.load(job.workload, job.optimizer);
            const RankRun run = rank.run(step);
            const std::vector<program::Task>& tasks = step.programs.front().tasks;
            for (std::size_t i = 0; i < tasks.size(); ++i) {
              if (!std::holds_alternative<program::Chunked>(step.deed_of(tasks[i]).action))
                continue;
              const std::lock_guard lock(mutex);
              took.push_back(run.times[i].end - run.times[i].start);
              if (run.times[i + 1].start < run.times[i].end) return 5;
            }
            return 0;
          }) == 0);
  REQUIRE(took.size() == 2);
  CHECK(took[0] >= std::chrono::milliseconds{10});
  CHECK(took[1] >= std::chrono::milliseconds{10});
}

namespace {

UserHook plugin_hook(const std::string& name, std::vector<std::vector<std::int32_t>> groups) {
  UserHook hook = hook_on(UserHookKind::plugin, 0, std::move(groups));
  hook.plugin = name;
  return hook;
}

/// Why a step with this hook of the odd plugin ends; "" if it goes well.
std::string ending(const SmallJob& job, const std::string& name, const Training& settings,
                   const Plugins* plugins) {
  std::mutex mutex;
  std::string why;
  Training training = settings;
  training.hooks = {plugin_hook(name, each_parameter(job.workload))};
  const program::Job step = job.step(training);
  JobOptions options = job_of(2);
  options.plugins = plugins;
  options.timeout = std::chrono::seconds{2};
  run_job(options, [&](Backend& rank) {
    rank.load(job.workload, job.optimizer);
    try {
      rank.run(step);
    } catch (const std::exception& problem) {
      const std::lock_guard lock(mutex);
      // The one that failed says so; the other may only see it go.
      if (std::string(problem.what()).find("plugin") != std::string::npos) why = problem.what();
      throw;
    }
    return 0;
  });
  return why;
}

}  // namespace

TEST_CASE("a plugin's hook changes gradients, with its state", "[backend][gradients][user_hook]") {
  const SmallJob job(2);
  Plugins plugins;
  plugins.load(DDPSIM_ODD_PLUGINS "odd.so");
  const auto plain = alone(job, {});
  const auto hooked = alone(job, {plugin_hook("half", {{2}})}, &plugins);
  CHECK(hooked == alone(job, {hook_on(UserHookKind::scale, 0.5, {{2}})}));
  CHECK(hooked != plain);
}

TEST_CASE("a hook that asks for a gradient that is not ready is told which",
          "[backend][user_hook]") {
  const SmallJob job(2);
  Plugins plugins;
  plugins.load(DDPSIM_ODD_PLUGINS "odd.so");
  const Training training = training_of({}, Strategy::bucketed);
  const std::string asked = "asked for the gradient of ";
  const std::string impatient = ending(job, "impatient", training, &plugins);
  CHECK(impatient.find("the plugin's hook \"impatient\" on 4.") != std::string::npos);
  CHECK(impatient.find(asked + "0.weight, which is not ready yet in micro-batch 0") !=
        std::string::npos);
  CHECK(ending(job, "lost", training, &plugins).find(asked + "\"no.such\", which is none") !=
        std::string::npos);
  // Who asks first whether it is ready gets what has come, under any strategy.
  for (const Strategy strategy : replicating_strategies)
    for (const bool view : {false, true}) {
      CAPTURE(name_of(strategy), view);
      Training any = training_of({}, strategy);
      any.gradient_as_bucket_view = view;
      any.micro_batches = 2;
      CHECK(ending(job, "patient", any, &plugins) == "");
    }
}

TEST_CASE("a gradient that is being reduced in place is not to be had", "[backend][user_hook]") {
  const SmallJob job(2);
  Plugins plugins;
  plugins.load(DDPSIM_ODD_PLUGINS "odd.so");
  const auto readable = [&](Strategy strategy) {
    return ending(job, "in_flight", training_of({}, strategy), &plugins) != "";
  };
  CHECK(readable(Strategy::none));
  CHECK(readable(Strategy::naive));  // reduced after backward
  CHECK_FALSE(readable(Strategy::overlap));
  CHECK(readable(Strategy::bucketed));  // what is reduced is the bucket
  CHECK_THAT(ending(job, "grasping", training_of({}, Strategy::overlap), &plugins),
             Catch::Contains("4.weight, which is being reduced in place"));
}

TEST_CASE("a plugin's hook that fails or throws ends the step with one line",
          "[backend][user_hook]") {
  const SmallJob job(2);
  Plugins plugins;
  plugins.load(DDPSIM_ODD_PLUGINS "odd.so");
  const Training training = training_of({}, Strategy::bucketed);
  CHECK(ending(job, "failing", training, &plugins).find(": cannot go on") != std::string::npos);
  CHECK(ending(job, "throwing", training, &plugins).find(": threw: thrown by the hook") !=
        std::string::npos);
}

TEST_CASE("a plugin's hook that calls exit ends the job as a failure and is named",
          "[backend][user_hook]") {
  const std::string backend = GENERATE("threads", "gloo");
  CAPTURE(backend);
  const SmallJob job(2);
  const Scratch scratch;
  const std::string lines = scratch.path("err").string();
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(lines.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    Plugins plugins;
    plugins.load(DDPSIM_ODD_PLUGINS "odd.so");
    Training training = training_of({plugin_hook("leaving", each_parameter(job.workload))});
    const program::Job step = job.step(training);
    JobOptions options = job_of(2, backend);
    options.plugins = &plugins;
    _exit(run_job(options, [&](Backend& rank) {
      rank.load(job.workload, job.optimizer);
      rank.run(step);
      return 0;
    }));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK_THAT(content_of(lines), Catch::Contains(": the plugin's hook leaving called exit(), which "
                                                "ends the whole program: return, or throw\n"));
}

TEST_CASE("what is wrong with a plugin is said in one line", "[backend][user_hook]") {
  const auto refused = [](const std::string& file) -> std::string {
    try {
      Plugins plugins;
      plugins.load(file);
    } catch (const std::invalid_argument& problem) {
      const std::string text = problem.what();
      CHECK(text.find('\n') == std::string::npos);
      CHECK(text.find(file) != std::string::npos);
      return text;
    }
    return "";
  };
  const std::string odd = DDPSIM_ODD_PLUGINS;
  const auto says = [&](const std::string& file, const std::string& what) {
    CAPTURE(file, what, refused(file));
    CHECK(refused(file).find(what) != std::string::npos);
  };
  says("no/such.so", "no such file");
  says(odd + "another_version.so", "version 99 of ddpsim_plugin.h, and this ddpsim of version 1");
  says(odd + "empty.so", "registers no hook");
  says(odd + "twice.so", "registers gradient hook \"impatient\" twice");
  says(odd + "throws.so", "registering it threw: not today");
  says(odd + "no_register.so", "it has no function ddpsim_plugin_register");
  says(__FILE__, ": ");  // no library at all: the system's words
  CHECK(refused(odd + "odd.so") == "");
  Plugins twice;
  twice.load(odd + "odd.so");
  CHECK_THROWS_WITH(twice.load(odd + "odd.so"), Catch::Contains("is in another plugin too"));
}

TEST_CASE("a hook that no plugin has is asked for in vain", "[backend][user_hook]") {
  Plugins plugins;
  CHECK_THROWS_WITH(plugins.check_gradient_hook("mine"),
                    "the gradient hook \"mine\" is a plugin's: say --plugin "
                    "LIBRARY");
  plugins.load(DDPSIM_ODD_PLUGINS "odd.so");
  CHECK_THROWS_WITH(plugins.check_gradient_hook("mine"),
                    "no plugin has a gradient hook \"mine\"; there are: failing, grasping, half, "
                    "impatient, in_flight, leaving, lost, patient, throwing");
  CHECK_NOTHROW(plugins.check_gradient_hook("half"));
  CHECK_THROWS_WITH(plugins.check_comm_hook("half", DType::fp32),
                    "no plugin has a comm hook \"half\"; there are: mean, nothing");
  CHECK_THROWS_WITH(
      plugins.check_comm_hook("nothing", DType::fp32),
      "the plugin's comm hook \"nothing\" sends fp16, and the scenario says fp32: write "
      "comm_hook: {plugin: {name: nothing, payload: fp16}}");
  CHECK_NOTHROW(plugins.check_comm_hook("nothing", DType::fp16));
}

TEST_CASE("a plugin's comm hook is called around an all-reduce of its payload",
          "[backend][gradients][user_hook]") {
  // It halves what it sends, and gives back the sum: of two ranks, the mean.
  const SmallJob job(2);
  Plugins plugins;
  plugins.load(DDPSIM_ODD_PLUGINS "odd.so");
  Training training = training_of({}, Strategy::bucketed);
  training.comm_hook.kind = CommHookKind::plugin;
  training.comm_hook.plugin = "mean";
  const program::Job step = job.step(training);
  JobOptions options = job_of(2);
  options.plugins = &plugins;
  CHECK(run_job(options, [&](Backend& rank) {
          rank.load(job.workload, job.optimizer);
          const GradientReference reference = reference_of(rank, job, job.step(Strategy::none), 1);
          rank.run(without_updates(step));
          return check_gradients(rank, job.workload, reference).good() ? 0 : 5;
        }) == 0);
}

}  // namespace ddpsim
