// What holds of every schedule, over random workloads, clusters and trainings.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include <catch2/catch.hpp>

#include "model/schedule/fingerprint.hpp"
#include "model/schedule/variants.hpp"
#include "tests/model/ddp/random_trainings.hpp"
#include "tests/model/ddp/schedule_story.hpp"

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
  for (const Bucket& bucket : step.schedule.buckets)
    for (const std::int32_t index : bucket.parameters) ++count[at(index)];
  return count;
}

/// Is nothing of it sent, because no gradient reaches it?
bool is_skipped(const RandomStep& step, const Bucket& bucket) {
  return step.training.strategy == Strategy::bucketed &&
         step.training.skip_all_reduce_unused_params && !bucket.delayed &&
         std::all_of(bucket.parameters.begin(), bucket.parameters.end(), [&](std::int32_t index) {
           return step.workload.parameters[at(index)].unused;
         });
}

/// How often each thing is done to a bucket in a micro-batch: steps of its comm hook by number;
/// without one, messages of collectives.
using Done = std::map<std::pair<std::int32_t, Message>, int>;
Done done_to(const Schedule& schedule, std::int32_t bucket, int micro_batch) {
  Done done;
  for (const Task& task : schedule.tasks) {
    if (task.bucket != bucket || task.micro_batch != micro_batch) continue;
    if (task.operation == Operation::wait) continue;
    if (task.step != nobody || is_collective(task.operation))
      ++done[{task.step, schedule.work_of(task).message}];
  }
  return done;
}

Done expected_of(const RandomStep& step, std::int32_t index) {
  const Bucket& bucket = step.schedule.buckets[at(index)];
  if (is_skipped(step, bucket)) return {};
  if (bucket.sparse)
    return {{{nobody, Message::sparse_shape}, 1},
            {{nobody, Message::sparse_indices}, 1},
            {{nobody, Message::sparse_values}, 1}};
  const bool hooked = !step.schedule.hook_state.empty() && !bucket.delayed;
  if (!hooked) return {{{nobody, Message::gradients}, 1}};
  Done steps;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(bucket.steps.size()); ++s)
    steps[{s, Message::gradients}] = 1;
  return steps;
}

}  // namespace

TEST_CASE("each distinct piece of work stands once in a schedule, and every task has one",
          "[model][schedule_property]") {
  for_every_step(1, [](const RandomStep& step) {
    const Schedule& schedule = step.schedule;
    const std::unordered_set<Work, WorkHash> distinct(schedule.works.begin(), schedule.works.end());
    REQUIRE(distinct.size() == schedule.works.size());
    std::set<std::uint32_t> used;
    for (const Task& task : schedule.tasks) {
      REQUIRE(task.work < schedule.works.size());
      used.insert(task.work);
    }
    for (const auto* pass :
         {&schedule.passes.forward, &schedule.passes.backward, &schedule.passes.optimizer})
      for (const std::uint32_t work : *pass) {
        REQUIRE(work < schedule.works.size());
        used.insert(work);
      }
    REQUIRE(used.size() == schedule.works.size());  // none is idle
  });
}

TEST_CASE("a task's work is of its operation", "[model][schedule_property]") {
  for_every_step(2, [](const RandomStep& step) {
    for (const Task& task : step.schedule.tasks) {
      const Operation works = step.schedule.work_of(task).operation;
      CAPTURE(name_of(task.operation), name_of(works));
      if (task.operation == Operation::gradient_hook) {
        // As it is measured; of one without a kernel, the host's.
        REQUIRE(is_kernel(works));
      } else if (task.operation == Operation::divide && works == Operation::copy_in) {
        REQUIRE(step.schedule.buckets[at(task.bucket)].sparse);  // its rows, where they are
      } else {
        REQUIRE(works == task.operation);
      }
    }
  });
}

TEST_CASE("every index of a task points into the schedule, and dependencies point backwards",
          "[model][schedule_property]") {
  for_every_step(3, [](const RandomStep& step) {
    const Schedule& schedule = step.schedule;
    std::uint32_t behind = 0;  // the dependencies of all tasks so far
    std::int16_t micro_batch = 0;
    for (std::uint32_t i = 0; i < schedule.tasks.size(); ++i) {
      const Task& task = schedule.tasks[i];
      CAPTURE(i, timed::words(task));
      REQUIRE(task.after_begin == behind);
      behind += task.after_count;
      REQUIRE(behind <= schedule.after.size());
      for (const std::uint32_t earlier : schedule.waits_for(task)) REQUIRE(earlier < i);
      REQUIRE(is_index(task.gradient, i));
      REQUIRE(is_index(task.layer, step.workload.layers.size()));
      REQUIRE(is_index(task.parameter, step.workload.parameters.size()));
      REQUIRE(is_index(task.bucket, schedule.buckets.size()));
      REQUIRE(is_index(task.user_hook, schedule.hooks.size()));
      REQUIRE(is_index(task.owner, at(schedule.ranks)));
      if (task.step != nobody) REQUIRE(task.bucket != nobody);
      if (task.step != nobody)
        REQUIRE(is_index(task.step, schedule.buckets[at(task.bucket)].steps.size()));
      REQUIRE(task.micro_batch >= micro_batch);
      REQUIRE(task.micro_batch < step.training.micro_batches);
      micro_batch = task.micro_batch;
    }
    REQUIRE(behind == schedule.after.size());
  });
}

TEST_CASE("every parameter is reduced exactly once in each synchronised micro-batch",
          "[model][schedule_property]") {
  for_every_step(4, [](const RandomStep& step) {
    const Training& training = step.training;
    const bool ddp = training.strategy == Strategy::bucketed;
    const std::vector<int> buckets_with = memberships(step);
    for (std::size_t i = 0; i < buckets_with.size(); ++i) {
      const bool left_out =
          training.strategy == Strategy::none || (step.workload.parameters[i].unused && !ddp);
      REQUIRE(buckets_with[i] == (left_out ? 0 : 1));
    }
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(step.schedule.buckets.size()); ++b)
      for (int micro_batch = 0; micro_batch < training.micro_batches; ++micro_batch) {
        CAPTURE(b, micro_batch);
        const Done expected = is_synced(training, micro_batch) ? expected_of(step, b) : Done{};
        REQUIRE(done_to(step.schedule, b, micro_batch) == expected);
      }
  });
}

TEST_CASE("a bucket sends what its gradients are, or what its comm hook's step says",
          "[model][schedule_property]") {
  for_every_step(5, [](const RandomStep& step) {
    const Schedule& schedule = step.schedule;
    for (const Bucket& bucket : schedule.buckets) {
      Bytes size;
      for (const std::int32_t index : bucket.parameters) {
        const Parameter& parameter = step.workload.parameters[at(index)];
        size += bucket.sparse ? parameter.sparse_values() + parameter.sparse_indices()
                              : parameter.size();
      }
      REQUIRE(bucket.size == size);
      REQUIRE((!bucket.in_place || bucket.parameters.size() == 1));
    }
    for (const Task& task : schedule.tasks) {
      if (!is_collective(task.operation) || task.bucket == nobody) continue;
      const Bucket& bucket = schedule.buckets[at(task.bucket)];
      const Parameter& first = step.workload.parameters[at(bucket.parameters.front())];
      const Work& work = schedule.work_of(task);
      if (task.step != nobody)
        REQUIRE(work.payload == bucket.steps[at(task.step)].payload);
      else if (work.message == Message::gradients)
        REQUIRE(work.payload == bucket.size);
      else if (work.message == Message::sparse_values)
        REQUIRE(work.payload == first.sparse_values());
      else if (work.message == Message::sparse_indices)
        REQUIRE(work.payload == first.sparse_indices());
      else
        REQUIRE(work.payload == Bytes{72});
    }
  });
}

TEST_CASE("R24, R36: every gradient is divided once, by the ranks, or by those that have inputs",
          "[model][schedule_property][rules]") {
  for_every_step(10, [](const RandomStep& step) {
    const Training& training = step.training;
    const bool hooked = !step.schedule.hook_state.empty();
    const bool by_active = training.join && !training.join->divide_by_initial_world_size && !hooked;
    const int divisor = step.cluster.ranks() - (by_active ? training.join->joined_ranks : 0);
    using Place = std::tuple<std::int32_t, std::int32_t, int>;  // bucket, parameter, micro-batch
    std::map<Place, int> divided;
    for (const Task& task : step.schedule.tasks) {
      if (task.divisor == 1 || task.bucket == nobody || task.step != nobody) continue;
      for (const std::int32_t index : step.schedule.buckets[at(task.bucket)].parameters)
        if (task.parameter == nobody || task.parameter == index) {
          const auto [place, first] =
              divided.try_emplace({task.bucket, index, task.micro_batch}, task.divisor);
          if (!first) place->second *= task.divisor;
        }
    }
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(step.schedule.buckets.size()); ++b)
      for (const std::int32_t index : step.schedule.buckets[at(b)].parameters)
        for (int round = 0; round < training.micro_batches; ++round) {
          if (step.workload.parameters[at(index)].unused) continue;  // zeros
          const bool hook_divides = hooked && !step.schedule.buckets[at(b)].delayed;
          const bool divides = is_synced(training, round) && !hook_divides && divisor != 1;
          const auto found = divided.find({b, index, round});
          CAPTURE(b, index, round);
          REQUIRE((found == divided.end() ? 1 : found->second) == (divides ? divisor : 1));
        }
  });
}

TEST_CASE("every micro-batch computes every kernel of the workload, in order",
          "[model][schedule_property]") {
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
    for (const Task& task : step.schedule.tasks)
      if (task.operation == Operation::forward || task.operation == Operation::backward)
        seen.emplace_back(task.micro_batch, task.operation, task.layer, task.kernel);
    REQUIRE(seen == expected);
    // The passes are those of one micro-batch.
    const auto rounds = static_cast<std::size_t>(step.training.micro_batches);
    REQUIRE(rounds * (step.schedule.passes.forward.size() + step.schedule.passes.backward.size()) ==
            seen.size());
    for (const std::uint32_t work : step.schedule.passes.backward) {
      REQUIRE(step.schedule.works[work].operation == Operation::backward);
      REQUIRE_FALSE(step.schedule.works[work].beside_hook);
    }
    REQUIRE(step.schedule.passes.optimizer.size() == step.works.optimizer.size());
  });
}

TEST_CASE("tasks run where their kind does", "[model][schedule_property]") {
  for_every_step(7, [](const RandomStep& step) {
    const Schedule& schedule = step.schedule;
    REQUIRE(schedule.ranks == step.cluster.ranks());
    REQUIRE(schedule.synchronous == step.cluster.device.synchronous);
    REQUIRE(schedule.collectives_at_once == step.cluster.collectives_at_once);
    for (const Task& task : schedule.tasks) {
      CAPTURE(timed::words(task));
      const Work& work = schedule.work_of(task);
      if (is_collective(task.operation)) REQUIRE(task.stream == Stream::communication);
      if (is_collective(task.operation)) REQUIRE_FALSE(task.host_waits);
      if (work.handed_over) REQUIRE(is_collective(task.operation));
      if (work.communicator != 0) REQUIRE(task.stream == Stream::communication);
      if (task.host_waits) REQUIRE(task.stream == Stream::host);
      if (work.aside)
        REQUIRE(task.stream == (schedule.synchronous ? Stream::communication : Stream::aside));
      else if (work.computes())
        REQUIRE(task.stream == (schedule.synchronous ? Stream::host : Stream::compute));
      if (schedule.synchronous)
        REQUIRE((task.stream == Stream::host || task.stream == Stream::communication));
      if (task.stream == Stream::to_host || task.stream == Stream::to_device)
        REQUIRE(step.cluster.through_host);
    }
  });
}

TEST_CASE("building a step twice gives the same schedule", "[model][schedule_property]") {
  for_every_step(8, [](const RandomStep& step) {
    const std::uint64_t first = fingerprint(step.schedule);
    REQUIRE(fingerprint(build_schedule(step.works, step.training)) == first);
    // Prices are no part of it.
    Cluster other = step.cluster;
    other.launch = {};
    other.intra_node.bandwidth = gigabytes_per_second(1000);
    other.device.memory_bandwidth = gigabytes_per_second(7);
    other.interference.reset();
    const StepWorks elsewhere(step.workload, other, Optimizer::sgd);
    const StepWorks here(step.workload, step.cluster, Optimizer::sgd);
    REQUIRE(fingerprint(build_schedule(elsewhere, step.training)) ==
            fingerprint(build_schedule(here, step.training)));
  });
}

TEST_CASE("what one rank owns no other rank does, and all the rest everybody does",
          "[model][schedule_property][rules]") {
  const Change with_zero = [](Draw& draw, Training& training) {
    training.strategy = Strategy::bucketed;
    training.comm_hook.kind =
        draw.one_in(2) ? CommHookKind::zero_step : CommHookKind::zero_step_interleaved;
  };
  int owned_steps = 0;
  const auto check = [&](const RandomStep& step) {
    const Schedule& shared = step.schedule;
    const int different = different_ranks(shared, shared.ranks);
    owned_steps += different > 1 ? 1 : 0;
    for (int rank = 0; rank < shared.ranks; ++rank) {
      const Schedule mine = schedule_of_rank(shared, rank);
      REQUIRE(mine.tasks.size() == shared.tasks.size());
      for (std::size_t i = 0; i < shared.tasks.size(); ++i) {
        const Task& task = shared.tasks[i];
        const bool others =
            task.owner != nobody && task.owner != rank && !is_collective(task.operation);
        CAPTURE(rank, i, timed::words(task));
        if (others) {
          REQUIRE_FALSE(mine.work_of(mine.tasks[i]).computes());
          REQUIRE(mine.work_of(mine.tasks[i]).launches == 0);
        } else {
          REQUIRE(mine.work_of(mine.tasks[i]) == shared.work_of(task));
          REQUIRE(mine.tasks[i].after_count == task.after_count);
        }
      }
      const std::unordered_set<Work, WorkHash> distinct(mine.works.begin(), mine.works.end());
      REQUIRE(distinct.size() == mine.works.size());
      // Those who own nothing are alike.
      if (rank >= different)
        REQUIRE(fingerprint(mine) == fingerprint(schedule_of_rank(shared, rank - 1)));
    }
  };
  for_every_step(9, check, with_zero);
  CHECK(owned_steps > 300);
}

TEST_CASE("a step without communication computes all that the step does, in order",
          "[model][schedule_property]") {
  for_every_step(11, [](const RandomStep& step) {
    const auto computed = [](const Schedule& schedule) {
      std::vector<Work> works;
      for (const Task& task : schedule.tasks)
        if (schedule.work_of(task).computes()) works.push_back(schedule.work_of(task));
      return works;
    };
    const Schedule silent = without_communication(step.schedule);
    REQUIRE(computed(silent) == computed(step.schedule));
    for (std::uint32_t i = 0; i < silent.tasks.size(); ++i) {
      const Task& task = silent.tasks[i];
      CAPTURE(i, timed::words(task));
      REQUIRE_FALSE(is_collective(task.operation));
      REQUIRE(task.stream != Stream::to_host);
      REQUIRE(task.stream != Stream::to_device);
      REQUIRE(task.stream != Stream::communication);
      for (const std::uint32_t earlier : silent.waits_for(task)) REQUIRE(earlier < i);
      REQUIRE(is_index(task.gradient, i));
      REQUIRE(task.work < silent.works.size());
      if (step.schedule.synchronous) REQUIRE(task.operation != Operation::wait);
    }
  });
}
