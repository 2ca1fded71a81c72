// Steps run as jobs: what comes of them, to the bit, is what comes of the schedules.

#include <cstring>

#include <catch2/catch.hpp>

#include "backend/measure/measure_step.hpp"
#include "model/ddp/job_of_step.hpp"
#include "model/program/text.hpp"
#include "tests/backend/jobs.hpp"

namespace ddpsim {
namespace {

/// What a training leaves on a rank after some steps: gradients, and what was sent in the last one.
struct Left {
  std::vector<std::vector<float>> gradients;
  Sent sent;

  bool operator==(const Left& other) const {
    if (!(sent == other.sent) || gradients.size() != other.gradients.size()) return false;
    for (std::size_t p = 0; p < gradients.size(); ++p)
      if (gradients[p].size() != other.gradients[p].size() ||
          std::memcmp(gradients[p].data(), other.gradients[p].data(),
                      gradients[p].size() * sizeof(float)) != 0)
        return false;
    return true;
  }
};

/// Of one run of steps on this rank, by schedules or by jobs. The last one adds a million times the
/// parameter to each gradient, so that what became of parameters is seen too.
template <typename Step>
Left left_by(Backend& rank, const SmallJob& job, const std::vector<Step>& steps) {
  rank.load(job.workload, job.optimizer);
  Left left;
  for (const Step& step : steps) left.sent = *rank.run(step).sent;
  for (int p = 0; p < static_cast<int>(job.workload.parameters.size()); ++p)
    left.gradients.push_back(rank.gradient(p));
  return left;
}

Training with_decay(Training training) {
  UserHook& decay = training.hooks.emplace_back();
  decay.kind = UserHookKind::decay;
  decay.value = 1e6;
  for (std::int32_t p = 0; p < 6; ++p) decay.groups.push_back({p});
  return training;
}

/// The exit code of ranks that run the training both ways; 0: the same came of both, and `why` is
/// empty, or the job was refused.
int compare(const SmallJob& job, const Training& training, std::string& why,
            const Plugins* plugins = nullptr) {
  const int ranks = job.cluster.ranks();
  Training alone = training;
  alone.strategy = Strategy::none;
  alone.comm_hook = {};
  alone.hooks.clear();
  const bool sparse = std::ranges::any_of(job.workload.parameters, &Parameter::sparse);
  const std::vector<Schedule> once{job.schedule(training), job.schedule(training),
                                   job.schedule(sparse ? alone : with_decay(alone))};
  const StepWorks works(job.workload, job.cluster, job.optimizer);
  std::vector<program::Job> jobs;
  for (const Schedule& each : once) jobs.push_back(program::job_of(each, works));
  std::vector<std::string> refused(static_cast<std::size_t>(ranks));
  JobOptions options = job_of(ranks);
  options.plugins = plugins;
  const int code = run_job(options, [&](Backend& rank) {
    rank.load(job.workload, job.optimizer);
    refused[static_cast<std::size_t>(rank.rank())] = rank.refusal(jobs.front());
    if (!refused[static_cast<std::size_t>(rank.rank())].empty()) return 0;
    const std::vector<Schedule> step{once[0]}, all(once);
    const std::vector<program::Job> step_job{jobs[0]};
    if (!(left_by(rank, job, step) == left_by(rank, job, step_job))) return 5;
    return left_by(rank, job, all) == left_by(rank, job, jobs) ? 0 : 6;
  });
  why = refused.front();
  return code;
}

Training small_buckets(CommHookKind kind = CommHookKind::allreduce) {
  Training training;
  training.strategy = Strategy::bucketed;
  training.bucket_cap = Bytes{8 << 10};
  training.first_bucket_cap = Bytes{2 << 10};
  training.comm_hook.kind = kind;
  return training;
}

}  // namespace

TEST_CASE("a step of every strategy leaves as a job what it leaves as a schedule, to the bit",
          "[backend][gloo][jobs]") {
  const int ranks = GENERATE(1, 2, 3);
  for (const Strategy strategy : all_strategies)
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adamw, Optimizer::adamw_loop}) {
      SmallJob job(ranks);
      job.optimizer = optimizer;
      Training training = small_buckets();
      training.strategy = strategy;
      training.micro_batches = optimizer == Optimizer::adamw ? 2 : 1;
      std::string why;
      CAPTURE(ranks, name_of(strategy), name_of(optimizer));
      CHECK(compare(job, training, why) == 0);
      CHECK(why == "");
    }
}

TEST_CASE("a step with every comm hook leaves as a job what it leaves as a schedule",
          "[backend][gloo][jobs]") {
  const int ranks = GENERATE(2, 3);
  for (const CommHookKind kind : all_comm_hooks)
    for (const bool view : {false, true}) {
      const SmallJob job(ranks);
      Training training = small_buckets(kind);
      training.gradient_as_bucket_view = view;
      training.iteration = 20;
      std::string why;
      CAPTURE(ranks, name_of(kind), view);
      try {
        job.schedule(training);
      } catch (const std::invalid_argument&) {
        continue;  // it needs keys of its own
      }
      CHECK(compare(job, training, why) == 0);
      const bool as_schedule = kind == CommHookKind::plugin;
      CHECK((as_schedule || why.empty()));
    }
}

TEST_CASE("PowerSGD leaves as jobs what it leaves as schedules, step after step",
          "[backend][gloo][jobs]") {
  const int ranks = GENERATE(2, 3);
  const SmallJob job(ranks);
  for (const CommHookKind kind : {CommHookKind::powersgd, CommHookKind::batched_powersgd})
    for (const bool warm : {true, false})
      for (const int iteration : {11, 20}) {  // the first of its own, and a later one
        Training training = small_buckets(kind);
        training.comm_hook.powersgd.start_iteration = 10;
        training.comm_hook.powersgd.warm_start = warm;
        training.comm_hook.powersgd.rank = 2;
        training.iteration = iteration;
        std::string why;
        CAPTURE(ranks, name_of(kind), warm, iteration);
        CHECK(compare(job, training, why) == 0);
        CHECK(why == "");
      }
}

TEST_CASE("two-level and hand-written comm hooks leave as jobs what they leave as schedules",
          "[backend][gloo][jobs]") {
  const SmallJob job(4);
  using Kinds = std::vector<OwnStep::Kind>;
  using K = OwnStep::Kind;
  for (const Kinds& kinds : {Kinds{K::scale, K::reduce_scatter, K::all_gather}, Kinds{K::topk}}) {
    Training training = small_buckets(CommHookKind::steps);
    for (const K kind : kinds) training.comm_hook.steps.emplace_back().kind = kind;
    std::string why;
    CHECK(compare(job, training, why) == 0);
    CHECK(why == "");
  }
  Training levels = small_buckets(CommHookKind::post_local_sgd);
  levels.comm_hook.post_local_sgd.start_iteration = 2;
  for (const int iteration : {1, 3, 4}) {
    levels.iteration = iteration;
    std::string why;
    CHECK(compare(job, levels, why) == 0);
    CHECK(why == "");
  }
}

TEST_CASE("sparse gradients leave as a job what they leave as a schedule",
          "[backend][gloo][jobs]") {
  const int ranks = GENERATE(1, 2, 3);
  SmallJob job(ranks);
  for (const std::size_t p : {0U, 2U}) {
    job.workload.parameters[p].sparse = true;
    job.workload.parameters[p].sparse_rows = p == 0 ? 7 : 0;
  }
  for (const Strategy strategy : all_strategies)
    for (const int micro_batches : {1, 2}) {
      Training training = small_buckets();
      training.comm_hook = {};
      training.strategy = strategy;
      training.micro_batches = micro_batches;
      training.no_sync = true;
      UserHook& clip = training.hooks.emplace_back();
      clip.kind = UserHookKind::clip;
      clip.value = 0.5;
      clip.groups = {{0, 1}, {2, 3}};
      std::string why;
      CAPTURE(ranks, name_of(strategy), micro_batches);
      CHECK(compare(job, training, why) == 0);
      CHECK(why == "");
    }
}

TEST_CASE("the user's own code leaves as a job what it leaves as a schedule",
          "[backend][gloo][jobs]") {
  Plugins plugins;
  plugins.load(DDPSIM_ODD_PLUGINS "odd.so");
  const int ranks = GENERATE(2, 3);
  const SmallJob job(ranks);
  for (const Strategy strategy : all_strategies)
    for (const bool view : {false, true})
      for (const int micro_batches : {1, 2}) {
        Training training = small_buckets();
        training.strategy = strategy;
        training.gradient_as_bucket_view = view;
        training.micro_batches = micro_batches;
        for (const char* name : {"half", "patient"}) {
          UserHook& hook = training.hooks.emplace_back();
          hook.kind = UserHookKind::plugin;
          hook.plugin = name;
          for (std::int32_t p = 0; p < 6; ++p) hook.groups.push_back({p});
        }
        std::string why;
        CAPTURE(ranks, name_of(strategy), view, micro_batches);
        CHECK(compare(job, training, why, &plugins) == 0);
        CHECK(why == "");
      }
  for (const auto& [name, type] : {std::pair{"mean", DType::fp32}, {"nothing", DType::fp16}}) {
    Training training = small_buckets(CommHookKind::plugin);
    training.comm_hook.plugin = name;
    training.comm_hook.plugin_type = type;
    std::string why;
    CAPTURE(ranks, name);
    CHECK(compare(job, training, why, &plugins) == 0);
    CHECK(why == "");
  }
}

}  // namespace ddpsim
