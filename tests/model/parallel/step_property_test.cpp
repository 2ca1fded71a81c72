// What holds of every step, over random workloads, clusters and trainings.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include <catch2/catch.hpp>

#include "model/parallel/policy/iteration.hpp"
#include "model/program/fingerprint.hpp"
#include "model/program/variants.hpp"
#include "tests/model/parallel/hook_tasks.hpp"
#include "tests/model/parallel/random_trainings.hpp"
#include "tests/model/parallel/schedule_story.hpp"

using namespace ddpsim;
using namespace ddpsim::drawn;

namespace {

using Change = std::function<void(Draw&, Training&)>;

template <typename Check>
void for_every_step(std::uint64_t seed, Check&& check, const Change& change = {}) {
  constexpr int rounds = 1000;
  Draw draw(seed);
  for (int round = 0; round < rounds; ++round) {
    const RandomStep step = random_step_of(draw, change);
    CAPTURE(seed, round, name_of(step.training.strategy), label(step.training.comm_hook));
    check(step);
  }
}

bool is_index(std::int32_t index, std::size_t size) {
  return index == nobody || (index >= 0 && at(index) < size);
}

bool is_synced(const Training& training, int micro_batch) {
  return training.strategy != Strategy::none &&
         (!training.no_sync || micro_batch + 1 == training.micro_batches);
}

/// [parameter] in how many buckets it is.
std::vector<int> memberships(const RandomStep& step) {
  std::vector<int> count(step.workload.parameters.size(), 0);
  for (const program::ParameterGroup& bucket : step.job.groups)
    for (const std::int32_t index : bucket.parameters) ++count[at(index)];
  return count;
}

/// The step of ranks that all have inputs.
program::Job with_inputs(const RandomStep& step) {
  return step.training.join ? build_job(step.works, step.training, true) : step.job;
}
FlatStep rows_of(const RandomStep& step) {
  return flat(with_inputs(step));
}

/// Sent by a hook on another parameter: the last bucket, if there is one.
bool is_delayed(const RandomStep& step, std::int32_t index) {
  return step.training.delayed && at(index) + 1 == step.job.groups.size();
}

bool is_sparse(const RandomStep& step, const program::ParameterGroup& bucket) {
  return step.training.strategy == Strategy::bucketed && bucket.parameters.size() == 1 &&
         step.workload.parameters[at(bucket.parameters.front())].sparse;
}

/// What the comm hook does with a bucket.
std::vector<HookTask> tasks_of_hook(const RandomStep& step, const program::ParameterGroup& bucket) {
  const StepWorks& works = step.works;
  CommHook hook = step.training.comm_hook;
  if (before_zero_steps(step.training)) hook.kind = CommHookKind::allreduce;
  CommBucket seen;
  seen.type = stored_type(works.gradients[at(bucket.parameters.front())].dtype);
  for (const std::int32_t index : bucket.parameters)
    seen.gradients.push_back(works.matrices[at(index)]);
  return hook_tasks(hook, seen,
                    {.ranks = works.device.ranks,
                     .ranks_per_node = works.ranks_per_node.largest(),
                     .synchronous = works.device.synchronous,
                     .iteration = step.training.iteration});
}

/// Is nothing of it sent, because no gradient reaches it?
bool is_skipped(const RandomStep& step, std::int32_t index) {
  const program::ParameterGroup& bucket = step.job.groups[at(index)];
  return step.training.strategy == Strategy::bucketed &&
         step.training.skip_all_reduce_unused_params && !is_delayed(step, index) &&
         std::all_of(bucket.parameters.begin(), bucket.parameters.end(), [&](std::int32_t index) {
           return step.workload.parameters[at(index)].unused;
         });
}

/// How often each thing is done to a bucket in a micro-batch, by one rank at least: steps of its
/// comm hook by name; without one, messages of collectives.
using Done = std::map<std::pair<std::string, Message>, int>;
Done done_to(const program::Job& job, std::int32_t bucket, int micro_batch) {
  Done done;
  std::set<std::uint32_t> seen;  // deeds
  for (const program::Program& program : job.programs)
    for (const program::Task& task : program.tasks) {
      const program::Origin& origin = job.deed_of(task).origin;
      const Work& work = job.works[task.work];
      if (origin.group != bucket || task.micro_batch != micro_batch) continue;
      if (work.operation == Operation::wait || !seen.insert(task.deed).second) continue;
      if (origin.label != 0 || is_collective(work.operation))
        ++done[{job.labels[at(origin.label)], work.message}];
    }
  return done;
}

Done expected_of(const RandomStep& step, std::int32_t index) {
  const program::ParameterGroup& bucket = step.job.groups[at(index)];
  if (is_skipped(step, index)) return {};
  if (is_sparse(step, bucket))
    return {{{"", Message::sparse_shape}, 1},
            {{"", Message::sparse_indices}, 1},
            {{"", Message::sparse_values}, 1}};
  const bool hooked = !step.job.hook.empty() && !is_delayed(step, index);
  if (!hooked) return {{{"", Message::gradients}, 1}};
  Done tasks;
  for (const HookTask& each : tasks_of_hook(step, bucket))
    ++tasks[{std::string(each.label), Message::gradients}];
  return tasks;
}

}  // namespace

TEST_CASE("each distinct piece of work stands once in a step, and every task has one",
          "[model][step_property]") {
  for_every_step(1, [](const RandomStep& step) {
    const program::Job job = with_inputs(step);
    const std::unordered_set<Work, WorkHash> distinct(job.works.begin(), job.works.end());
    REQUIRE(distinct.size() == job.works.size());
    std::set<std::uint32_t> used;
    for (const program::Program& program : job.programs)
      for (const program::Task& task : program.tasks) {
        REQUIRE(task.work < job.works.size());
        used.insert(task.work);
      }
    for (const auto* pass : {&job.passes.forward, &job.passes.backward, &job.passes.optimizer})
      for (const std::uint32_t work : *pass) {
        REQUIRE(work < job.works.size());
        used.insert(work);
      }
    REQUIRE(used.size() == job.works.size());  // none is idle
  });
}

TEST_CASE("a task's work is of its operation", "[model][step_property]") {
  for_every_step(2, [](const RandomStep& step) {
    const FlatStep rows = rows_of(step);
    for (const FlatTask& task : rows.tasks) {
      const Operation works = rows.work_of(task).operation;
      CAPTURE(name_of(task.operation), name_of(works));
      if (task.operation == Operation::gradient_hook) {
        // As it is measured; of one without a kernel, the host's.
        REQUIRE(is_kernel(works));
      } else if (task.operation == Operation::divide && works == Operation::copy_in) {
        REQUIRE(is_sparse(step, rows.buckets[at(task.bucket)]));  // its rows, where they are
      } else {
        REQUIRE(works == task.operation);
      }
    }
  });
}

TEST_CASE("every index of a task points into the step, and dependencies point backwards",
          "[model][step_property]") {
  for_every_step(3, [](const RandomStep& step) {
    const FlatStep schedule = rows_of(step);
    std::uint32_t behind = 0;  // the dependencies of all tasks so far
    std::int16_t micro_batch = 0;
    for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i) {
      const FlatTask& task = schedule.tasks[i];
      CAPTURE(i, timed::words(task));
      REQUIRE(task.after_begin == behind);
      behind += task.after_count;
      REQUIRE(behind <= schedule.after.size());
      for (const std::uint32_t earlier : schedule.waits_for(task)) REQUIRE(earlier < i);
      REQUIRE(is_index(task.gradient, i));
      REQUIRE(is_index(task.layer, step.workload.layers.size()));
      REQUIRE(is_index(task.parameter, step.workload.parameters.size()));
      REQUIRE(is_index(task.bucket, schedule.buckets.size()));
      REQUIRE(is_index(task.user_hook, step.training.hooks.size()));
      REQUIRE(is_index(task.root, at(schedule.ranks)));
      if (!task.hook_step.empty()) REQUIRE(task.bucket != nobody);
      REQUIRE(task.micro_batch >= micro_batch);
      REQUIRE(task.micro_batch < step.training.micro_batches);
      micro_batch = task.micro_batch;
    }
    REQUIRE(behind == schedule.after.size());
  });
}

TEST_CASE("every parameter is reduced exactly once in each synchronised micro-batch",
          "[model][step_property]") {
  for_every_step(4, [](const RandomStep& step) {
    const Training& training = step.training;
    const bool ddp = training.strategy == Strategy::bucketed;
    const std::vector<int> buckets_with = memberships(step);
    for (std::size_t i = 0; i < buckets_with.size(); ++i) {
      const bool left_out =
          training.strategy == Strategy::none || (step.workload.parameters[i].unused && !ddp);
      REQUIRE(buckets_with[i] == (left_out ? 0 : 1));
    }
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(step.job.groups.size()); ++b)
      for (int micro_batch = 0; micro_batch < training.micro_batches; ++micro_batch) {
        CAPTURE(b, micro_batch);
        const Done expected = is_synced(training, micro_batch) ? expected_of(step, b) : Done{};
        REQUIRE(done_to(step.job, b, micro_batch) == expected);
      }
  });
}

TEST_CASE("a bucket sends what its gradients are, or what its comm hook's step says",
          "[model][step_property]") {
  for_every_step(5, [](const RandomStep& step) {
    const FlatStep rows = rows_of(step);
    for (const FlatBucket& bucket : rows.buckets) {
      Bytes size;
      for (const std::int32_t index : bucket.parameters) {
        const Parameter& parameter = step.workload.parameters[at(index)];
        size += is_sparse(step, bucket) ? parameter.sparse_values() + parameter.sparse_indices()
                                        : parameter.size();
      }
      REQUIRE(bucket.size == size);
      REQUIRE((!bucket.in_place || bucket.parameters.size() == 1));
    }
    for (const FlatTask& task : rows.tasks) {
      if (!is_collective(task.operation) || task.bucket == nobody) continue;
      const FlatBucket& bucket = rows.buckets[at(task.bucket)];
      const Parameter& first = step.workload.parameters[at(bucket.parameters.front())];
      const Work& work = rows.work_of(task);
      if (!task.hook_step.empty()) {
        const std::vector<HookTask> tasks = tasks_of_hook(step, bucket);
        REQUIRE(std::ranges::any_of(tasks, [&](const HookTask& each) {
          return each.label == task.hook_step && each.work.payload == work.payload;
        }));
      } else if (work.message == Message::gradients) {
        REQUIRE(work.payload == bucket.size);
      } else if (work.message == Message::sparse_values) {
        REQUIRE(work.payload == first.sparse_values());
      } else if (work.message == Message::sparse_indices) {
        REQUIRE(work.payload == first.sparse_indices());
      } else {
        REQUIRE(work.payload == Bytes{72});
      }
    }
  });
}

TEST_CASE("R24, R36: every gradient is divided once, by the ranks, or by those that have inputs",
          "[model][step_property][rules]") {
  for_every_step(10, [](const RandomStep& step) {
    const Training& training = step.training;
    const bool hooked = !step.job.hook.empty();
    const bool by_active = training.join && !training.join->divide_by_initial_world_size && !hooked;
    const int divisor = step.cluster.ranks() - (by_active ? training.join->joined_ranks : 0);
    using Place = std::tuple<std::int32_t, std::int32_t, int>;  // bucket, parameter, micro-batch
    std::map<Place, int> divided;
    for (const FlatTask& task : rows_of(step).tasks) {
      if (task.divisor == 1 || task.bucket == nobody || !task.hook_step.empty()) continue;
      for (const std::int32_t index : step.job.groups[at(task.bucket)].parameters)
        if (task.parameter == nobody || task.parameter == index) {
          const auto [place, first] =
              divided.try_emplace({task.bucket, index, task.micro_batch}, task.divisor);
          if (!first) place->second *= task.divisor;
        }
    }
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(step.job.groups.size()); ++b)
      for (const std::int32_t index : step.job.groups[at(b)].parameters)
        for (int round = 0; round < training.micro_batches; ++round) {
          if (step.workload.parameters[at(index)].unused) continue;  // zeros
          const bool hook_divides = hooked && !is_delayed(step, b);
          const bool divides = is_synced(training, round) && !hook_divides && divisor != 1;
          const auto found = divided.find({b, index, round});
          CAPTURE(b, index, round);
          REQUIRE((found == divided.end() ? 1 : found->second) == (divides ? divisor : 1));
        }
  });
}

TEST_CASE("every micro-batch computes every kernel of the workload, in order",
          "[model][step_property]") {
  for_every_step(6, [](const RandomStep& step) {
    using Place = std::tuple<int, Operation, std::int32_t, std::int32_t>;
    std::vector<Place> expected, seen;
    const auto& layers = step.workload.layers;
    const auto count = static_cast<std::int32_t>(layers.size());
    for (int round = 0; round < step.training.micro_batches; ++round) {
      for (std::int32_t l = 0; l < count; ++l)
        for (std::int32_t k = 0; k < static_cast<std::int32_t>(layers[at(l)].forward.size()); ++k)
          expected.emplace_back(round, Operation::forward, l, k);
      for (std::int32_t l = count; l-- > 0;)
        for (std::int32_t k = 0; k < static_cast<std::int32_t>(layers[at(l)].backward.size()); ++k)
          expected.emplace_back(round, Operation::backward, l, k);
    }
    for (const FlatTask& task : rows_of(step).tasks)
      if (task.operation == Operation::forward || task.operation == Operation::backward)
        seen.emplace_back(task.micro_batch, task.operation, task.layer, task.kernel);
    REQUIRE(seen == expected);
    // The passes are those of one micro-batch.
    const auto rounds = static_cast<std::size_t>(step.training.micro_batches);
    REQUIRE(rounds * (step.job.passes.forward.size() + step.job.passes.backward.size()) ==
            seen.size());
    for (const std::uint32_t work : step.job.passes.backward) {
      REQUIRE(step.job.works[work].operation == Operation::backward);
      REQUIRE_FALSE(step.job.works[work].beside_hook);
    }
    REQUIRE(step.job.passes.optimizer.size() == step.works.optimizer.size());
  });
}

TEST_CASE("tasks run where their kind does", "[model][step_property]") {
  for_every_step(7, [](const RandomStep& step) {
    const FlatStep schedule = rows_of(step);
    const bool synchronous = step.cluster.device.synchronous;
    REQUIRE(schedule.ranks == step.cluster.ranks());
    for (const program::Communicator& each : step.job.communicators)
      REQUIRE(each.at_once == step.cluster.collectives_at_once);
    for (const FlatTask& task : schedule.tasks) {
      CAPTURE(timed::words(task));
      const Work& work = schedule.work_of(task);
      if (is_collective(task.operation)) REQUIRE(task.stream == StepStream::communication);
      if (work.handed_over) REQUIRE(is_collective(task.operation));
      if (work.communicator != 0) REQUIRE(task.stream == StepStream::communication);
      if (work.aside)
        REQUIRE(task.stream == (synchronous ? StepStream::communication : StepStream::aside));
      else if (work.computes())
        REQUIRE(task.stream == (synchronous ? StepStream::host : StepStream::compute));
      if (synchronous)
        REQUIRE((task.stream == StepStream::host || task.stream == StepStream::communication));
      if (task.stream == StepStream::to_host || task.stream == StepStream::to_device)
        REQUIRE(step.cluster.through_host);
    }
  });
}

TEST_CASE("building a step twice gives the same job", "[model][step_property]") {
  for_every_step(8, [](const RandomStep& step) {
    const std::uint64_t first = fingerprint(step.job);
    REQUIRE(fingerprint(build_job(step.works, step.training)) == first);
    // Prices are no part of it.
    Cluster other = step.cluster;
    other.launch = {};
    other.intra_node.bandwidth = gigabytes_per_second(1000);
    other.device.memory_bandwidth = gigabytes_per_second(7);
    other.interference.reset();
    const StepWorks elsewhere(step.workload, other, Optimizer::sgd);
    const StepWorks here(step.workload, step.cluster, Optimizer::sgd);
    REQUIRE(fingerprint(build_job(elsewhere, step.training)) ==
            fingerprint(build_job(here, step.training)));
  });
}

TEST_CASE("what one rank owns no other rank does, and all the rest everybody does",
          "[model][step_property][rules]") {
  const Change with_zero = [](Draw& draw, Training& training) {
    training.strategy = Strategy::bucketed;
    training.comm_hook.kind =
        draw.one_in(2) ? CommHookKind::zero_step : CommHookKind::zero_step_interleaved;
  };
  int owned_steps = 0;
  const auto check = [&](const RandomStep& step) {
    const program::Job& job = step.job;
    owned_steps += job.programs.size() > 1 ? 1 : 0;
    const std::vector<bool> of_all = program::deeds_of_all(job);
    std::map<std::uint32_t, int> programs_with;  // by deed, of those that not all do
    std::vector<std::uint32_t> everybodys;
    for (const program::Program& program : job.programs) {
      std::vector<std::uint32_t> shared;
      for (const program::Task& task : program.tasks) {
        const Operation operation = job.works[task.work].operation;
        CAPTURE(task.deed, name_of(operation));
        if (of_all[task.deed])
          shared.push_back(task.deed);
        else
          REQUIRE(++programs_with[task.deed] == 1);
        if (!of_all[task.deed])
          REQUIRE((operation == Operation::optimizer || operation == Operation::wait));
      }
      if (everybodys.empty()) everybodys = shared;
      REQUIRE(shared == everybodys);
    }
    // Each bucket is updated by the rank whose turn it is; those who own nothing are alike.
    for (std::size_t rank = 0; rank < job.ranks(); ++rank)
      for (const program::Task& task : job.programs[job.program_of[rank]].tasks)
        if (!of_all[task.deed]) REQUIRE(at(job.deed_of(task).origin.group) % job.ranks() == rank);
  };
  for_every_step(9, check, with_zero);
  CHECK(owned_steps > 300);
}

TEST_CASE("a step without communication computes all that the step does, in order",
          "[model][step_property]") {
  for_every_step(11, [](const RandomStep& step) {
    const auto computed = [](const FlatStep& schedule) {
      std::vector<Work> works;
      for (const FlatTask& task : schedule.tasks)
        if (schedule.work_of(task).computes()) works.push_back(schedule.work_of(task));
      return works;
    };
    const FlatStep silent = flat(without_communication(step.job));
    REQUIRE(computed(silent) == computed(flat(step.job)));
    for (std::uint32_t i = 0; i < silent.tasks.size(); ++i) {
      const FlatTask& task = silent.tasks[i];
      CAPTURE(i, timed::words(task));
      REQUIRE_FALSE(is_collective(task.operation));
      REQUIRE(task.stream != StepStream::to_host);
      REQUIRE(task.stream != StepStream::to_device);
      REQUIRE(task.stream != StepStream::communication);
      for (const std::uint32_t earlier : silent.waits_for(task)) REQUIRE(earlier < i);
      REQUIRE(is_index(task.gradient, i));
      REQUIRE(task.work < silent.works.size());
      if (step.cluster.device.synchronous) REQUIRE(task.operation != Operation::wait);
    }
  });
}
