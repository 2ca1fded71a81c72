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

#include "model/parallel/order/build_job.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "model/parallel/order/user_hook_tasks.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"
#include "model/parallel/write/step_builder.hpp"
#include "model/program/one_queue.hpp"

namespace ddpsim {
namespace {

/// Collectives of the network's own in a pass of a layer: each waits for the kernels enqueued so
/// far, and what follows on the device waits for it.
class OwnSends {
 public:
  explicit OwnSends(const std::vector<StepWorks::OwnSend>& sends) : sends_(sends) {}

  /// Sends the collectives that follow this kernel of the pass.
  void send(StepWriter& writer, std::size_t kernel) {
    for (; next_ < sends_.size() && sends_[next_].after == kernel; ++next_)
      writer.await(writer.announce(sends_[next_].operation, Message::own, sends_[next_].size));
  }

 private:
  const std::vector<StepWorks::OwnSend>& sends_;
  std::size_t next_ = 0;
};

class Step {
 public:
  Step(const StepWorks& works, const Training& training, StrategyTasks& strategy,
       BucketMarks* marks = nullptr)
      : step_(works.of(training), training),
        strategy_(strategy),
        tells_kernels_(strategy.listens_to_kernels()),
        hooks_(step_) {
    step_.writer.marks = marks;
  }

  program::Job build(bool all_have_inputs) {
    check_size();
    const Training& training = step_.training;
    strategy_.plan(step_);
    step_.lay_out_buckets([this](std::int32_t each) { strategy_.laid_out(step_, each); });
    outside();
    for (int micro_batch = 0; micro_batch < training.micro_batches; ++micro_batch) {
      step_.begin_micro_batch(static_cast<std::int16_t>(micro_batch));
      const bool last = micro_batch + 1 == training.micro_batches;
      step_.synced = strategy_.communicates() && (last || !training.no_sync);
      forward();
      hooks_.begin_backward();
      if (step_.synced) strategy_.before_backward(step_);
      backward();
      if (step_.synced) strategy_.after_backward(step_);
    }
    if (strategy_.optimizer_follows(step_)) {
      if (training.updates_on_host())
        update_on_host(training.offload_policy->update);
      else
        optimizer();
    }
    strategy_.after_optimizer(step_);
    note_passes();
    return step_.finish(training.join && !all_have_inputs ? training.join->joined_ranks : 0);
  }

 private:
  void check_size() {
    const StepWorks& works = step_.works;
    std::size_t kernels = works.optimizer.size();
    for (const auto& layer : works.layers) kernels += layer.forward.size() + layer.backward.size();
    const auto rounds = static_cast<std::size_t>(step_.training.micro_batches);
    const std::size_t tasks = rounds * (kernels + 6 * works.parameters() + hooks_.size()) + 16;
    if (tasks > StepWriter::most_tasks)
      throw std::invalid_argument(
          fmt::format("a step of up to {} tasks is beyond what is simulated ({}): take fewer "
                      "layers or micro-batches",
                      tasks, StepWriter::most_tasks));
    step_.writer.memory.job.own.deeds.reserve(tasks);
  }

  /// Spends the time outside of the passes ahead of the first one, when nothing else runs.
  void outside() {
    if (step_.works.outside == Duration::zero()) return;
    Work work;
    work.operation = Operation::outside;
    work.host = step_.works.outside;
    step_.writer.host_task(Operation::outside, work,
                           program::Call{.what = program::Call::What::outside});
  }

  void forward() {
    strategy_.before_forward(step_);
    std::int32_t number = 0;
    for (std::size_t layer = 0; layer < step_.works.layers.size(); ++layer) {
      const auto& kernels = step_.works.layers[layer].forward;
      strategy_.before_layer(step_, program::Pass::forward, layer);
      OwnSends own(step_.works.layers[layer].sends_forward);
      for (std::size_t k = 0; k < kernels.size(); ++k, ++number) {
        if (tells_kernels_)
          strategy_.before_kernel(step_, {program::Pass::forward, layer, k, number});
        step_.writer.kernel_task(
            Operation::forward, kernels[k],
            program::Compute{.seed = seed_of(layer, k, 0),
                             .layout = program::Layout::right_transposed,
                             .motion = motion_of(step_.works.layers[layer].rows_forward[k]),
                             .weight = read(step_.works.layers[layer].weights.forward[k])},
            origin_of(layer, k));
        own.send(step_.writer, k);
        if (tells_kernels_)
          strategy_.after_kernel(step_, {program::Pass::forward, layer, k, number});
      }
      strategy_.after_layer(step_, program::Pass::forward, layer);
      hooks_.after_layer(step_, layer);
    }
  }

  void backward() {
    const bool beside_hook = step_.synced && strategy_.computes_aside(step_);
    std::int32_t number = 0;
    for (std::size_t layer = step_.works.layers.size(); layer-- > 0;) {
      const StepWorks::LayerWorks& works = step_.works.layers[layer];
      strategy_.before_layer(step_, program::Pass::backward, layer);
      OwnSends own(works.sends_backward);
      for (std::size_t k = 0; k < works.backward.size(); ++k, ++number) {
        if (tells_kernels_)
          strategy_.before_kernel(step_, {program::Pass::backward, layer, k, number});
        step_.writer.kernel_task(Operation::backward, backward_work(works.backward[k], beside_hook),
                                 backward_action(layer, k), origin_of(layer, k));
        step_.complete.add(works.completes[k].size());
        for (const std::int32_t index : works.completes[k])
          hooks_.gradient_computed(step_, index,
                                   [this](std::int32_t each) { gradient_ready(each); });
        own.send(step_.writer, k);
        if (tells_kernels_)
          strategy_.after_kernel(step_, {program::Pass::backward, layer, k, number});
      }
      strategy_.after_layer(step_, program::Pass::backward, layer);
    }
  }

  std::uint32_t backward_work(KnownWork known, bool beside_hook) {
    if (!beside_hook) return step_.writer.number_of(known);
    Work work = step_.works.table[known.number];
    work.beside_hook = true;
    return step_.writer.number_of(work);
  }

  program::Action backward_action(std::size_t layer, std::size_t kernel) {
    const StepWorks::LayerWorks& of = step_.works.layers[layer];
    const GradientBinding& gradients = of.gradients[kernel];
    std::vector<program::Slice> fills;
    for (const std::int32_t each : gradients.fills) fills.push_back(step_.memory.computed(each));
    program::Compute made{.seed = seed_of(layer, kernel, 4),
                          .motion = motion_of(of.rows_backward[kernel]),
                          .weight = read(of.weights.backward[kernel])};
    if (gradients.result != nobody) {
      made.layout = program::Layout::left_transposed;
      made.result = step_.memory.computed(gradients.result);
    }
    made.fills = step_.writer.memory.list(fills);
    made.rows = step_.memory.rows_filled(gradients.fills);
    return made;
  }

  /// The parameter that a kernel multiplies with; none where it may be written meanwhile.
  program::Slice read(std::int32_t weight) const {
    if (weight == nobody || step_.updates_in_backward) return {};
    return step_.memory.weight(weight);
  }

  static program::Motion motion_of(bool reduces_rows) {
    return reduces_rows ? program::Motion::rows : program::Motion::elements;
  }
  /// Another one for each kernel and operand.
  static std::uint32_t seed_of(std::size_t layer, std::size_t kernel, std::uint32_t pass) {
    return static_cast<std::uint32_t>((layer * 64 + kernel) * 8 + 1) + pass;
  }
  static program::Origin origin_of(std::size_t layer, std::size_t kernel) {
    return {.layer = static_cast<std::int32_t>(layer), .kernel = static_cast<std::int32_t>(kernel)};
  }

  /// A gradient is complete. The first micro-batch's becomes `.grad` as it is; later ones are added
  /// to it.
  void gradient_ready(std::int32_t parameter) {
    if (step_.writer.micro_batch > 0 && strategy_.keeps_gradients(step_)) accumulate(parameter);
    if (step_.synced) strategy_.gradient_ready(step_, parameter);
  }

  void accumulate(std::int32_t parameter) {
    const program::Slice sum = step_.memory.where(parameter);
    step_.writer.kernel_task(
        Operation::accumulate, step_.works.accumulate[at(parameter)],
        program::Combine{.to = sum, .left = sum, .right = step_.memory.fresh(parameter)},
        {.parameter = parameter});
  }

  void optimizer() {
    strategy_.before_optimizer(step_);
    const std::vector<KnownWork>& kernels = step_.works.optimizer;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const std::uint32_t work = step_.shards == 1
                                     ? step_.writer.number_of(kernels[k])
                                     : step_.part_of_update(kernels[k], 1, step_.shards);
      step_.writer.kernel_task(Operation::optimizer, work, update(k),
                               {.kernel = static_cast<std::int32_t>(k)});
      if (k == 0 && step_.works.clips_gradients) strategy_.norm_found(step_);
    }
  }

  void update_on_host(Duration time) {
    Work work;
    work.operation = Operation::outside;
    work.host = time;
    program::Origin origin;
    origin.label = step_.writer.memory.label("update on the host");
    step_.writer.host_task(Operation::outside, work,
                           program::Call{.what = program::Call::What::outside}, origin);
    step_.writer.deed().origin.pass = program::Pass::optimizer;
  }

  /// The first kernel of an optimizer that goes over all tensors stands for the whole of it.
  program::Action update(std::size_t kernel) {
    const StepWorks& works = step_.works;
    if (!step_.own_parts.empty())
      return kernel == 0 ? program::Action{step_.memory.update(step_.own_parts)} : program::Touch{};
    const bool each_alone =
        works.updates == Optimizer::adamw_loop && works.optimizer.size() == works.parameters();
    if (kernel != 0 && !each_alone) return program::Touch{};
    std::vector<std::int32_t> which{static_cast<std::int32_t>(kernel)};
    if (!each_alone) {
      which.resize(works.parameters());
      std::iota(which.begin(), which.end(), 0);
    }
    which = step_.used(std::move(which));
    if (which.empty()) return program::Touch{};
    std::vector<program::Slice> gradients;
    for (const std::int32_t each : which) gradients.push_back(step_.memory.gradient_now(each));
    return step_.memory.update(which, gradients);
  }

  /// What totals of a pass are made of, whether or not the step runs all of it.
  void note_passes() {
    StepWriter& writer = step_.writer;
    Passes& passes = writer.memory.job.passes;
    const auto note = [&](std::vector<std::uint32_t>& pass, const std::vector<KnownWork>& works) {
      for (const KnownWork work : works) pass.push_back(writer.number_of(work));
    };
    for (const StepWorks::LayerWorks& layer : step_.works.layers) {
      note(passes.forward, layer.forward);
      note(passes.backward, layer.backward);
    }
    note(passes.optimizer, step_.works.optimizer);
  }

  StepBuilder step_;
  StrategyTasks& strategy_;
  const bool tells_kernels_;
  UserHookTasks hooks_;
};

}  // namespace

program::Job build_job(const StepWorks& works, const Training& training, bool all_have_inputs) {
  return build_job(works, training, *make_strategy(training), all_have_inputs);
}

program::Job build_job(const StepWorks& works, const Training& training, StrategyTasks& strategy,
                       bool all_have_inputs) {
  program::Job job = Step(works, training, strategy).build(all_have_inputs);
  const bool in_order = training.strategy == Strategy::fsdp &&
                        training.cuda_device_max_connections == 1 && !works.device.synchronous;
  return in_order ? program::in_one_queue(job) : job;
}

OneBucket build_one_bucket(const StepWorks& works, Training training) {
  training.strategy = Strategy::bucketed;
  training.bucket_caps.clear();
  training.parameter_groups = 0;
  training.buckets = {works.arrival};
  BucketMarks marks(works.arrival);
  program::Job job = Step(works, training, *make_strategy(training), &marks).build(true);
  if (works.device.collectives_at_once > 1 && !job.communicators.empty())
    marks.above_all("several collectives are under way at a time");
  return {std::move(job), std::move(marks)};
}

}  // namespace ddpsim
