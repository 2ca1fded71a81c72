// A training step as tasks.
//
// The host walks the tasks in order and enqueues; so the order here is the order of the Python and
// C++ code of a real step: forward, then backward with its hooks in between, then what the strategy
// does after backward, then the optimizer. Streams keep that order, so only what crosses streams is
// written as a dependency:
//
//   an all-reduce waits for the last compute task enqueued before it (the event DDP records on the
//   current stream), and a wait puts one collective in front of all the compute stream does next.
//
// Cost: one pass over layers, kernels and parameters; a few thousand small tasks for a large
// transformer.

#include "model/ddp/build_schedule.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "model/ddp/logged_iterations.hpp"
#include "model/ddp/refusals.hpp"
#include "model/ddp/step_builder.hpp"
#include "model/ddp/strategy_tasks.hpp"
#include "model/ddp/user_hook_tasks.hpp"

namespace ddpsim {
namespace {

/// Collectives of the network's own in a pass of a layer: each waits for the kernels enqueued so
/// far, and what follows on the device waits for it.
class OwnSends {
 public:
  explicit OwnSends(const std::vector<StepWorks::OwnSend>& sends) : sends_(sends) {}

  /// Sends the collectives that follow this kernel of the pass.
  void send(ScheduleWriter& writer, std::size_t kernel) {
    for (; next_ < sends_.size() && sends_[next_].after == kernel; ++next_)
      writer.await(writer.announce(sends_[next_].operation, Message::own, sends_[next_].size));
  }

 private:
  const std::vector<StepWorks::OwnSend>& sends_;
  std::size_t next_ = 0;
};

class Step {
 public:
  Step(const StepWorks& works, const Training& training)
      : step_(works, training), strategy_(make_strategy(training)), hooks_(step_) {}

  Schedule build() {
    reserve();
    strategy_->plan(step_);
    step_.index_buckets();
    outside();
    const Training& training = step_.training;
    for (int micro_batch = 0; micro_batch < training.micro_batches; ++micro_batch) {
      step_.writer.micro_batch = static_cast<std::int16_t>(micro_batch);
      const bool last = micro_batch + 1 == training.micro_batches;
      step_.synced = training.strategy != Strategy::none && (last || !training.no_sync);
      forward();
      hooks_.begin_backward();
      if (step_.synced) strategy_->before_backward(step_);
      backward();
      if (step_.synced) strategy_->after_backward(step_);
    }
    if (strategy_->optimizer_follows(step_)) optimizer();
    strategy_->after_optimizer(step_);
    note_passes();
    if (training.strategy == Strategy::bucketed)
      step_.writer.schedule.logged = logged_iterations(step_.writer.schedule);
    return std::move(step_.writer.schedule);
  }

 private:
  void reserve() {
    const StepWorks& works = step_.works;
    std::size_t kernels = works.optimizer.size();
    for (const auto& layer : works.layers) kernels += layer.forward.size() + layer.backward.size();
    const auto rounds = static_cast<std::size_t>(step_.training.micro_batches);
    const std::size_t tasks = rounds * (kernels + 6 * works.parameters() + hooks_.size()) + 16;
    if (tasks > ScheduleWriter::most_tasks)
      throw std::invalid_argument(
          fmt::format("a step of up to {} tasks is beyond what is simulated ({}): take fewer "
                      "layers or micro-batches",
                      tasks, ScheduleWriter::most_tasks));
    step_.writer.schedule.tasks.reserve(tasks);
    step_.writer.schedule.after.reserve(rounds * 2 * works.parameters() + 16);
  }

  /// Spends the time outside of the passes ahead of the first one, when nothing else runs.
  void outside() {
    if (step_.works.outside == Duration::zero()) return;
    Work work;
    work.operation = Operation::outside;
    work.host = step_.works.outside;
    step_.writer.host_task(Operation::outside, work);
  }

  void forward() {
    strategy_->before_forward(step_);
    for (std::size_t layer = 0; layer < step_.works.layers.size(); ++layer) {
      const auto& kernels = step_.works.layers[layer].forward;
      OwnSends own(step_.works.layers[layer].sends_forward);
      for (std::size_t k = 0; k < kernels.size(); ++k) {
        mark(step_.writer.kernel_task(Operation::forward, kernels[k]), layer, k);
        own.send(step_.writer, k);
      }
      hooks_.after_layer(step_, layer);
    }
  }

  void backward() {
    const bool beside_hook = step_.synced && strategy_->computes_aside(step_);
    for (std::size_t layer = step_.works.layers.size(); layer-- > 0;) {
      const StepWorks::LayerWorks& works = step_.works.layers[layer];
      OwnSends own(works.sends_backward);
      for (std::size_t k = 0; k < works.backward.size(); ++k) {
        mark(backward_kernel(works.backward[k], beside_hook), layer, k);
        for (const std::int32_t index : works.completes[k])
          hooks_.gradient_computed(step_, index,
                                   [this](std::int32_t each) { gradient_ready(each); });
        own.send(step_.writer, k);
      }
    }
  }

  Task& backward_kernel(KnownWork known, bool beside_hook) {
    if (!beside_hook) return step_.writer.kernel_task(Operation::backward, known);
    Work work = step_.works.table[known.number];
    work.beside_hook = true;
    return step_.writer.kernel_task(Operation::backward, step_.writer.number_of(work));
  }

  /// A gradient is complete. The first micro-batch's becomes `.grad` as it is; later ones are added
  /// to it.
  void gradient_ready(std::int32_t parameter) {
    if (step_.writer.micro_batch > 0)
      step_.writer.kernel_task(Operation::accumulate, step_.works.accumulate[at(parameter)])
          .parameter = parameter;
    if (step_.synced) strategy_->gradient_ready(step_, parameter);
  }

  void optimizer() {
    const auto& kernels = step_.works.optimizer;
    for (std::size_t k = 0; k < kernels.size(); ++k)
      step_.writer.kernel_task(Operation::optimizer, kernels[k]).kernel =
          static_cast<std::int32_t>(k);
  }

  /// What totals of a pass are made of, whether or not the step runs all of it.
  void note_passes() {
    ScheduleWriter& writer = step_.writer;
    Passes& passes = writer.schedule.passes;
    const auto note = [&](std::vector<std::uint32_t>& pass, const std::vector<KnownWork>& works) {
      for (const KnownWork work : works) pass.push_back(writer.number_of(work));
    };
    for (const StepWorks::LayerWorks& layer : step_.works.layers) {
      note(passes.forward, layer.forward);
      note(passes.backward, layer.backward);
    }
    note(passes.optimizer, step_.works.optimizer);
  }

  static void mark(Task& task, std::size_t layer, std::size_t kernel) {
    task.layer = static_cast<std::int32_t>(layer);
    task.kernel = static_cast<std::int32_t>(kernel);
  }

  StepBuilder step_;
  std::unique_ptr<StrategyTasks> strategy_;
  UserHookTasks hooks_;
};

}  // namespace

Schedule build_schedule(const StepWorks& works, const Training& training) {
  if (training.strategy == Strategy::bucketed) {
    check(step_refusal(works, training, works.device));
    check(subgroup_refusal(training, works.ranks_per_node));
    if (works.clips_gradients && updates_parameters(training.comm_hook.kind))
      check(Refusal{"training.comm_hook",
                    fmt::format("{} updates parameters before all gradients are there, whose norm "
                                "clipping takes: take workload.clip_gradients out",
                                name_of(training.comm_hook.kind)),
                    {}});
  }
  return Step(works, training).build();
}

}  // namespace ddpsim
