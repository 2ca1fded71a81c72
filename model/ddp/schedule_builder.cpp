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

#include "model/ddp/schedule_builder.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <fmt/format.h>

#include "model/ddp/hook_groups.hpp"
#include "model/ddp/iteration.hpp"
#include "model/ddp/zero_step.hpp"
#include "model/schedule/task_writer.hpp"

namespace ddpsim {
namespace {

constexpr std::chrono::hours longest_step{6};
constexpr Bytes flag{4};           ///< an int32 or a float
constexpr Bytes rank_number{8};    ///< an int64
constexpr Bytes sparse_shape{72};  ///< nine int64: ProcessGroupGloo.cpp SparseTensorMetadata

class Builder : TaskWriter {
 public:
  Builder(const StepCosts& costs, const Training& training)
      : TaskWriter(costs), training_(training) {
    schedule_.strategy = training.strategy;
    schedule_.join = training.join;
    schedule_.collectives_at_once = costs.collectives_at_once;
  }

  Schedule build() {
    plan();
    for (int micro_batch = 0; micro_batch < training_.micro_batches; ++micro_batch) {
      micro_batch_ = static_cast<std::int16_t>(micro_batch);
      const bool last = micro_batch + 1 == training_.micro_batches;
      synced_ = training_.strategy != Strategy::none && (last || !training_.no_sync);
      forward();
      hook_groups_.begin();
      if (synced_) begin_synced_backward();
      backward();
      if (synced_) after_backward();
    }
    optimizer();
    if (averages_models(training_)) average_models();
    check_length();
    return std::move(schedule_);
  }

 private:
  /// A forward hook of the user's on a layer, by its place in UserHook::layers.
  struct Module {
    std::int32_t hook = nobody, layer = nobody;
  };

  /// Buckets, prices of their all-reduces and who belongs where.
  void plan() {
    std::size_t kernels = costs_.optimizer.size();
    for (const auto& layer : costs_.layers) kernels += layer.forward.size() + layer.backward.size();
    const std::size_t parameters = costs_.gradients.size();
    const auto rounds = static_cast<std::size_t>(training_.micro_batches);
    plan_user_hooks();
    const std::size_t tasks = rounds * (kernels + 6 * parameters + hook_groups_.size()) + 16;
    if (tasks > most_tasks)
      throw std::invalid_argument(
          fmt::format("a step of up to {} tasks is beyond what is simulated ({}): take fewer "
                      "layers or micro-batches",
                      tasks, most_tasks));
    schedule_.tasks.reserve(tasks);
    schedule_.after.reserve(rounds * 2 * parameters + 16);

    switch (training_.strategy) {
      case Strategy::none:
        return;
      case Strategy::bucketed:
        schedule_.buckets = plan_buckets(costs_, training_);
        launched_in_turn_ = schedule_.buckets.size();
        check_unused();
        if (training_.delayed) plan_delayed();
        break;
      case Strategy::flat:
        add_bucket(used(costs_.arrival));
        break;
      case Strategy::naive:
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(parameters); ++i)
          if (!unused(i)) add_bucket({i});
        break;
      case Strategy::overlap:
        for (const std::int32_t index : used(costs_.arrival)) add_bucket({index});
        break;
    }
    bucket_of_.resize(parameters);
    for (std::size_t b = 0; b < schedule_.buckets.size(); ++b) {
      Bucket& bucket = schedule_.buckets[b];
      const CollectiveCost cost = costs_.collective.all_reduce(bucket.size);
      collectives_.push_back({cost, costs_.interference.beside(cost, bucket.size)});
      for (const std::int32_t index : bucket.parameters)
        bucket_of_[static_cast<std::size_t>(index)] = static_cast<std::int32_t>(b);
    }
    if (training_.strategy == Strategy::bucketed && training_.comm_hook) plan_comm_hook();
    launched_.assign(schedule_.buckets.size(), nobody);
    gradient_.assign(schedule_.buckets.size(), nobody);
    sent_.assign(schedule_.buckets.size(), nobody);
  }

  bool unused(std::int32_t index) const { return costs_.gradients[at(index)].unused; }

  std::vector<std::int32_t> used(std::vector<std::int32_t> parameters) const {
    std::erase_if(parameters, [this](std::int32_t index) { return unused(index); });
    return parameters;
  }

  /// A dynamic graph that does not look for unused parameters waits for them in vain.
  void check_unused() {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(costs_.gradients.size()); ++i)
      if (unused(i) && !is_delayed(i)) unused_.push_back(i);
    if (!unused_.empty() && !training_.find_unused_parameters && !training_.static_graph)
      throw std::invalid_argument(
          fmt::format("no gradient reaches parameter {} (of {}), so DistributedDataParallel's next "
                      "forward would "
                      "fail: set training.find_unused_parameters or training.static_graph",
                      unused_.front(), costs_.gradients.size()));
  }

  /// Those its reducer knows.
  std::int64_t ddp_parameters() const {
    const std::size_t delayed = training_.delayed ? training_.delayed->parameters.size() : 0;
    return static_cast<std::int64_t>(costs_.gradients.size() - delayed);
  }

  bool is_delayed(std::int32_t index) const {
    return training_.strategy == Strategy::bucketed && training_.delayed &&
           training_.delayed->contains(index);
  }

  /// The buffer DDP does not reduce: the last bucket. Its hook must not come too early.
  void plan_delayed() {
    const DelayedAllReduce& delayed = *training_.delayed;
    const std::string why = delayed_refusal(training_);
    if (!why.empty()) throw std::invalid_argument(why);
    const auto sends = std::find(costs_.arrival.begin(), costs_.arrival.end(), delayed.hook);
    for (const std::int32_t index : delayed.parameters)
      if (unused(index) || unused(delayed.hook) ||
          std::find(costs_.arrival.begin(), sends, index) == sends)
        throw std::invalid_argument(fmt::format(
            "delay_all_reduce: parameter {} gets its gradient after the hook on parameter {} has "
            "sent them, or never: hook one that comes later",
            index, delayed.hook));
    add_bucket(delayed.parameters);
    schedule_.buckets.back().delayed = true;
  }

  /// The user's hook on a gradient that is about to be DDP's (rule R50).
  void send_delayed() {
    const auto bucket = static_cast<std::int32_t>(schedule_.buckets.size()) - 1;
    Task& divide =
        kernel_task(Operation::divide, costs_.divide_bucket(schedule_.buckets.back().size));
    divide.bucket = bucket;
    divide.host += costs_.launch.hook;
    gradient_[at(bucket)] = last_kernel_;
    all_reduce(bucket);
  }

  /// What the comm hook does with each bucket, and what that costs.
  void plan_comm_hook() {
    schedule_.comm_hook = training_.comm_hook;
    if (zero_step()) check_zero_step();
    CommHook now = training_.comm_hook;
    if (before_zero_steps(training_)) now.kind = CommHookKind::allreduce;
    Bytes transient;
    for (Bucket& bucket : std::span(schedule_.buckets).first(launched_in_turn_)) {
      if (is_sparse(costs_, bucket))
        throw std::invalid_argument("comm hooks take dense gradients, and one here is sparse");
      CommBucket given;
      given.type = stored_type(costs_.gradients[at(bucket.parameters.front())].dtype);
      for (const std::int32_t index : bucket.parameters)
        given.gradients.push_back(costs_.matrices[at(index)]);
      bucket.steps = comm_steps(now, given, costs_.ranks, costs_.ranks_per_node, costs_.synchronous,
                                training_.iteration);
      const CommMemory memory = comm_memory(training_.comm_hook, given, costs_.ranks);
      schedule_.comm_hook_memory += memory.kept;
      transient = std::max(transient, memory.transient);
      bucket.gradients = std::move(given.gradients);
    }
    schedule_.comm_hook_memory += transient;
  }

  bool zero_step() const { return is_zero_step(training_.comm_hook.kind); }

  void check_zero_step() const {
    const std::string why = zero_step_refusal(training_);
    if (!why.empty()) throw std::invalid_argument(why);
    for (const GradientInfo& each : costs_.gradients)
      if (each.dtype != costs_.gradients.front().dtype)
        throw std::invalid_argument(
            "ZeRO's hooks take parameters of one type, and there are several");
    if (costs_.collectives_at_once > 1 || costs_.through_host)
      throw std::invalid_argument(
          "ZeRO's hooks are for NCCL, whose collectives run one at a time on the devices: take "
          "cluster.collectives_at_once and cluster.through_host out");
  }

  /// Time is counted in picoseconds, in 64 bits: far beyond any step, but not beyond every
  /// scenario.
  void check_length() const {
    double seconds = 0;
    for (const Task& task : schedule_.tasks)
      seconds += in_seconds(task.host) + in_seconds(task.work);
    if (seconds > in_seconds(longest_step))
      throw std::invalid_argument(
          fmt::format("a step of {:.3g} hours is beyond what is simulated ({} hours): check batch, "
                      "bandwidth and latency",
                      seconds / 3600, longest_step.count()));
  }

  void add_bucket(std::vector<std::int32_t> parameters) {
    Bucket& bucket = schedule_.buckets.emplace_back();
    bucket.parameters = std::move(parameters);
    for (const std::int32_t index : bucket.parameters)
      bucket.size += costs_.gradients[at(index)].size;
  }

  /// DDP's forward begins with one rank's buffers, rank 0's: flattened, broadcast, copied back. Two groups at most
  /// are on their way at a time. Source: comm.cpp broadcast_coalesced.
  void broadcast_buffers() {
    constexpr std::size_t most_in_flight = 2;
    std::vector<std::int32_t> sent;  // [group] its broadcast
    const auto finish = [&](std::size_t group) {
      if (costs_.through_host) host_waits_for_collective(sent[group], nobody);
      Task& wait = add(Operation::wait, kernel_stream_);
      wait.message = Message::buffers;
      wait.host_waits = costs_.synchronous;
      depend(wait, sent[group]);
      Task& restore = kernel_task(Operation::copy_out, costs_.buffers[group].restore);
      restore.bytes = costs_.buffers[group].size;
      restore.kernel = static_cast<std::int32_t>(group);
    };
    for (std::size_t g = 0; g < costs_.buffers.size(); ++g) {
      const StepCosts::BufferCosts& group = costs_.buffers[g];
      if (g >= most_in_flight) finish(g - most_in_flight);
      Task& flatten = kernel_task(Operation::concatenate, group.flatten);
      flatten.bytes = group.size;
      flatten.kernel = static_cast<std::int32_t>(g);
      const std::int32_t flat = given(group.size, last_kernel_, nobody);
      Task& broadcast = add(Operation::broadcast, Stream::communication);
      broadcast.message = Message::buffers;
      broadcast.host = costs_.launch.collective;
      broadcast.work = group.broadcast;
      broadcast.bytes = group.size;
      broadcast.kernel = static_cast<std::int32_t>(g);
      // With uneven inputs: from the last rank that has some (rule R36).
      if (training_.join)
        broadcast.owner = std::max(0, costs_.ranks - 1 - training_.join->joined_ranks);
      depend(broadcast, flat);
      sent.push_back(received(group.size));
    }
    for (std::size_t g = sent.size() - std::min(sent.size(), most_in_flight); g < sent.size(); ++g)
      finish(g);
  }

  /// What DDP does before the module's own forward. The flags of `join` are never waited for unless the
  /// host has to know.
  void before_forward() {
    if (training_.join) {
      active_ranks_ = tell(Operation::all_reduce, Message::active_ranks, flag);
      if (training_.join->throw_on_early_termination)
        host_reads(tell(Operation::all_reduce, Message::early_end, flag));
    }
    if (micro_batch_ == 0 && rebuilds_now(training_)) {
      const std::int64_t indices = ddp_parameters() + 1;
      const auto lengths = static_cast<std::int64_t>(launched_in_turn_);
      host_reads(tell(Operation::broadcast, Message::bucket_indices, indices * flag));
      host_reads(tell(Operation::broadcast, Message::bucket_lengths, lengths * flag));
    }
    // A forward pass after one inside no_sync leaves the buffers alone; the first of a step follows
    // the last of the step before, which was synchronised (rule R28).
    const bool after_synced = micro_batch_ == 0 || !training_.no_sync;
    if (after_synced && training_.broadcast_buffers && !costs_.buffers.empty()) {
      if (training_.join)
        host_reads(tell(Operation::all_reduce, Message::buffer_source, rank_number));
      broadcast_buffers();
    }
    if (training_.join) tell(Operation::all_reduce, Message::will_sync, flag);
  }

  void forward() {
    if (training_.strategy == Strategy::bucketed) before_forward();
    for (std::size_t layer = 0; layer < costs_.layers.size(); ++layer) {
      pass(Operation::forward, layer, costs_.layers[layer].forward);
      if (!modules_.empty())
        for (const Module& module : modules_[layer]) chunks(module, layer);
    }
    if (synced_ && training_.strategy == Strategy::bucketed && training_.find_unused_parameters &&
        !training_.static_graph)
      host_task(Operation::search_unused, costs_.unused_search);
  }

  void backward() {
    const bool beside_hook = synced_ && !delays_all_reduce(training_) &&
                             costs_.backward_beside_hook != 1 && computes_aside(schedule_);
    for (std::size_t layer = costs_.layers.size(); layer-- > 0;) {
      const auto& kernels = costs_.layers[layer].backward;
      for (std::size_t k = 0; k < kernels.size(); ++k) {
        Task& task = kernel_task(Operation::backward, kernels[k]);
        if (beside_hook) task.work = scaled(task.work, costs_.backward_beside_hook);
        task.layer = static_cast<std::int32_t>(layer);
        task.kernel = static_cast<std::int32_t>(k);
        for (const std::int32_t index : costs_.hooks_of[layer][k]) gradient_computed(index);
      }
    }
  }

  void pass(Operation operation, std::size_t layer, const std::vector<KernelCost>& kernels) {
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      Task& task = kernel_task(operation, kernels[k]);
      task.layer = static_cast<std::int32_t>(layer);
      task.kernel = static_cast<std::int32_t>(k);
    }
  }

  void optimizer() {
    if (schedule_.comm_hook.kind == CommHookKind::optimizer_overlap ||
        is_zero_step(schedule_.comm_hook.kind))
      return;  // it has run already
    for (std::size_t k = 0; k < costs_.optimizer.size(); ++k)
      kernel_task(Operation::optimizer, costs_.optimizer[k]).kernel = static_cast<std::int32_t>(k);
  }

  /// PeriodicModelAverager: all parameters in one piece.
  /// Source: torch/distributed/algorithms/model_averaging/utils.py average_parameters.
  void average_models() {
    kernel_task(Operation::concatenate, costs_.concatenate).message = Message::parameters;
    kernel_task(Operation::divide, costs_.flat_divide).message = Message::parameters;
    if (!costs_.synchronous) host_reads(last_kernel_);
    Bytes size;
    for (const GradientInfo& each : costs_.gradients) size += each.size;
    await(tell(Operation::all_reduce, Message::parameters, size));
  }

  void begin_synced_backward() {
    next_bucket_ = 0;
    marked_unused_ = false;
    used_map_ = nobody;
    pending_.clear();
    for (const Bucket& bucket : std::span(schedule_.buckets).first(launched_in_turn_))
      pending_.push_back(static_cast<std::int32_t>(bucket.parameters.size()));
  }

  void plan_user_hooks() {
    schedule_.hooks = training_.hooks;
    if (training_.hooks.empty()) return;
    hook_groups_ = HookGroups(costs_, training_.hooks);
    modules_.resize(costs_.layers.size());
    for (std::size_t h = 0; h < training_.hooks.size(); ++h) {
      const std::vector<std::int32_t>& layers = training_.hooks[h].layers;
      for (std::size_t l = 0; l < layers.size(); ++l)
        modules_[at(layers[l])].push_back(
            {static_cast<std::int32_t>(h), static_cast<std::int32_t>(l)});
    }
  }

  /// Backward has computed a gradient: the user's hooks come before DDP's.
  void gradient_computed(std::int32_t index) {
    hook_groups_.computed(
        index, [this](const HookGroups::Group& group, std::int32_t last) { fire(group, last); },
        [this](std::int32_t each) { gradient_ready(each); });
  }

  void fire(const HookGroups::Group& group, std::int32_t index) {
    Task& task = group.computes ? kernel_task(Operation::gradient_hook, group.cost)
                                : host_task(Operation::gradient_hook, group.cost.host);
    task.user_hook = group.hook;
    task.kernel = group.group;
    task.parameter = index;
  }

  /// A layer's output on host threads. From a GPU it comes and goes over the bus, and the host waits
  /// for it.
  void chunks(const Module& module, std::size_t layer) {
    const UserHook& hook = schedule_.hooks[at(module.hook)];
    Chunks chunks = hook.chunks;
    chunks.output = hook.outputs[at(module.layer)];
    const auto mark = [&](Task& task) {
      task.user_hook = module.hook;
      task.layer = static_cast<std::int32_t>(layer);
      task.kernel = module.layer;
    };
    Kernel kernel;
    if (costs_.synchronous) {
      kernel.traffic = 2 * chunks.output;
      kernel.time = host_time(chunks);
      KernelCost cost = costs_.comm_kernel(Operation::module_hook, kernel);
      cost.host += costs_.launch.hook;
      return mark(kernel_task(Operation::module_hook, cost));
    }
    kernel.time = chunks.output / chunks.transfer;
    const KernelCost copy = costs_.comm_kernel(Operation::module_hook, kernel);
    mark(kernel_task(Operation::module_hook, copy));
    Task& work = host_task(Operation::module_hook, costs_.launch.hook + host_time(chunks));
    work.host_waits = true;
    depend(work, last_kernel_);
    mark(work);
    mark(kernel_task(Operation::module_hook, copy));
  }

  /// A gradient is complete. The first micro-batch's becomes `.grad` as it is; later ones are added
  /// to it.
  void gradient_ready(std::int32_t index) {
    if (micro_batch_ > 0)
      kernel_task(Operation::accumulate, costs_.accumulates[at(index)]).parameter = index;
    if (!synced_ || is_delayed(index)) return;
    if (training_.strategy == Strategy::bucketed && training_.delayed &&
        training_.delayed->hook == index)
      send_delayed();
    const std::int32_t owner = bucket_of_[at(index)];
    gradient_[at(owner)] = last_kernel_;
    if (training_.strategy != Strategy::overlap && training_.strategy != Strategy::bucketed) return;
    Task& hook = host_task(Operation::hook, costs_.launch.hook);
    hook.parameter = index;
    hook.bucket = owner;
    if (training_.strategy == Strategy::overlap) {
      all_reduce(owner);
      return;
    }
    if (delays_all_reduce(training_)) return;
    if (!marked_unused_) {
      if (training_.join && !training_.join->divide_by_initial_world_size)
        host_reads(active_ranks_);
      for (const std::int32_t each : unused_) ready(each);
    }
    marked_unused_ = true;
    ready(index);
  }

  /// Its part of the bucket is in place; what is full and has its turn is launched.
  void ready(std::int32_t index) {
    const std::int32_t owner = bucket_of_[at(index)];
    fill(index);
    if (--pending_[at(owner)] == 0) fill_together(owner);
    while (next_bucket_ < launched_in_turn_ && pending_[next_bucket_] == 0) {
      launch(static_cast<std::int32_t>(next_bucket_));
      ++next_bucket_;
    }
    if (next_bucket_ == launched_in_turn_ && training_.find_unused_parameters &&
        !training_.static_graph)
      send_used_map();
  }

  /// A gradient into its bucket, as section 2.4 of the reference has it.
  void fill(std::int32_t index) {
    const std::int32_t owner = bucket_of_[at(index)];
    const auto one = [&](Operation operation, const KernelCost& cost) {
      Task& task = kernel_task(operation, cost);
      task.parameter = index;
      task.bucket = owner;
    };
    if (is_sparse(costs_, schedule_.buckets[at(owner)]) && !unused(index))
      one(Operation::divide, costs_.copy_in[at(index)]);
    else if (fills_together() && !unused(index))
      return;
    else if (!is_view() || unused(index))
      one(Operation::copy_in, costs_.copy_in[at(index)]);
    else if (!schedule_.comm_hook)
      one(Operation::divide, costs_.divide[at(index)]);
    gradient_[at(owner)] = last_kernel_;
  }

  bool fills_together() const { return training_.batched_grad_copy && !schedule_.comm_hook; }

  /// All gradients of a bucket at once (rule R25); unused ones have been filled with zeros.
  void fill_together(std::int32_t index) {
    const Bucket& bucket = schedule_.buckets[at(index)];
    const std::vector<std::int32_t> filled = used(bucket.parameters);
    if (!fills_together() || is_sparse(costs_, bucket) || filled.empty()) return;
    if (!is_view())
      kernel_task(Operation::concatenate, costs_.copy_together(filled)).bucket = index;
    kernel_task(Operation::divide, costs_.divide_bucket(bucket.size)).bucket = index;
    gradient_[at(index)] = last_kernel_;
  }

  /// Does `.grad` lie in the bucket already? After zero_grad dropped it, only once an earlier
  /// micro-batch has communicated.
  bool is_view() const {
    const bool earlier = micro_batch_ > 0 && !training_.no_sync && !copies_back();
    return views_survive(training_) || (training_.gradient_as_bucket_view && earlier);
  }

  void send_used_map() {
    const std::int64_t parameters = ddp_parameters();
    used_map_ = tell(Operation::all_reduce, Message::used_map, parameters * flag);
  }

  /// Bucket by bucket: wait, copy back. The host has to read the used map before it may leave the
  /// gradients of unused parameters alone; otherwise nobody hurries to wait for it.
  void finalize() {
    bool map_read = false;
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(launched_in_turn_); ++b) {
      if (launched_[at(b)] == nobody) continue;
      wait(b);
      const Bucket& bucket = schedule_.buckets[at(b)];
      const bool all_used = std::none_of(bucket.parameters.begin(), bucket.parameters.end(),
                                         [this](std::int32_t index) { return unused(index); });
      if (!all_used && used_map_ != nobody && !map_read) {
        host_reads(used_map_);
        map_read = true;
      }
      if (copies_back() && !is_sparse(costs_, bucket))
        per_parameter(Operation::copy_out, costs_.copy_out, b);
    }
    if (used_map_ != nobody && !map_read) await(used_map_);
  }

  /// A static graph's first backward: it has only counted its hooks.
  void communicate_late() {
    send_used_map();
    if (training_.join && !training_.join->divide_by_initial_world_size) host_reads(active_ranks_);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(costs_.gradients.size()); ++i)
      if (!is_delayed(i)) fill(i);
    const auto buckets = static_cast<std::int32_t>(launched_in_turn_);
    for (std::int32_t b = 0; b < buckets; ++b) fill_together(b);
    for (std::int32_t b = 0; b < buckets; ++b) launch(b);
  }

  void after_backward() {
    switch (training_.strategy) {
      case Strategy::none:
        return;
      case Strategy::naive:
        for (std::int32_t b = 0; b < static_cast<std::int32_t>(schedule_.buckets.size()); ++b) {
          all_reduce(b);
          wait(b);
          per_parameter(Operation::divide, costs_.divide, b);
        }
        return;
      case Strategy::flat:
        kernel_task(Operation::concatenate, costs_.concatenate).bucket = 0;
        all_reduce(0);
        wait(0);
        kernel_task(Operation::divide, costs_.flat_divide).bucket = 0;
        per_parameter(Operation::copy_out, costs_.copy_out, 0);
        return;
      case Strategy::overlap:
        for (std::int32_t b = 0; b < static_cast<std::int32_t>(schedule_.buckets.size()); ++b) {
          wait(b);
          per_parameter(Operation::divide, costs_.divide, b);
        }
        return;
      case Strategy::bucketed:
        if (delays_all_reduce(training_)) communicate_late();
        return finalize();
    }
  }

  /// Gradients that are views of their bucket need no copy, nor do those an optimizer took in there.
  bool copies_back() const {
    if (training_.comm_hook.kind == CommHookKind::optimizer_overlap) return false;
    return !training_.gradient_as_bucket_view || !result_in_bucket(training_.comm_hook);
  }

  void per_parameter(Operation operation, const std::vector<KernelCost>& costs,
                     std::int32_t bucket) {
    for (const std::int32_t index : schedule_.buckets[at(bucket)].parameters) {
      if (unused(index)) continue;
      Task& task = kernel_task(operation, costs[at(index)]);
      task.parameter = index;
      task.bucket = bucket;
    }
  }

  /// What DDP does with a full bucket: reduces it, or calls the comm hook.
  void launch(std::int32_t bucket) {
    const std::vector<std::int32_t>& members = schedule_.buckets[at(bucket)].parameters;
    launched_[at(bucket)] = sent_[at(bucket)] = nobody;
    if (training_.skip_all_reduce_unused_params && used(members).empty()) return;
    if (is_sparse(costs_, schedule_.buckets[at(bucket)])) return gather_sparse(bucket);
    if (!schedule_.comm_hook) return all_reduce(bucket);
    // A hook without collectives is done when what it was given is.
    launched_[at(bucket)] = last_kernel_;
    const auto& steps = schedule_.buckets[at(bucket)].steps;
    std::int32_t before = last_kernel_;  // the step that this one waits for
    bool aside = false;
    std::uint8_t communicator = 0;
    const bool last = at(bucket) + 1 == launched_in_turn_;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (steps[s].action == CommAction::update &&
          training_.comm_hook.kind == CommHookKind::zero_step) {
        if (last) update_buckets(s);
        return;
      }
      const bool collective = is_collective(steps[s].operation);
      if (collective) {
        before = given(steps[s].payload, before, bucket);
        communicator = steps[s].communicator;
      }
      Task& task = comm_task(steps[s], bucket, aside);
      if (task.stream == Stream::communication) task.communicator = communicator;
      task.bucket = bucket;
      task.step = static_cast<std::int32_t>(s);
      if (steps[s].action == CommAction::send_parameters ||
          (steps[s].action == CommAction::update && zero_step()))
        task.owner = owner_of_bucket(bucket, costs_.ranks);
      if (before != nobody) depend(task, before);
      if (task.host_waits && last_kernel_ != nobody && last_kernel_ != before)
        depend(task, last_kernel_);
      before = collective ? received(steps[s].payload) : newest();
      aside = aside || collective;
      // DDP waits for parameters with the last bucket only.
      if (steps[s].action == CommAction::send_parameters && !last) return;
      if (aside)
        launched_[at(bucket)] = before;
      else
        last_kernel_ = launched_[at(bucket)] = before;
    }
  }

  /// What zero_step does in the last bucket's hook, for all buckets: `update` is that step of theirs, and
  /// the broadcast follows it.
  void update_buckets(std::size_t update) {
    std::int32_t sent = nobody;
    const auto mark = [&](Task& task, std::int32_t bucket, std::size_t step) {
      task.bucket = bucket;
      task.step = static_cast<std::int32_t>(step);
      task.owner = owner_of_bucket(bucket, costs_.ranks);
    };
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(launched_in_turn_); ++b) {
      const auto& steps = schedule_.buckets[at(b)].steps;
      await(launched_[at(b)]);
      mark(schedule_.tasks.back(), b, update);
      mark(comm_task(steps[update], b, false), b, update);
      last_kernel_ = newest();
      Task& broadcast = comm_task(steps[update + 1], b, false);
      mark(broadcast, b, update + 1);
      depend(broadcast, last_kernel_);
      sent = newest();
    }
    await(sent);  // and so for all before it
  }

  Task& comm_task(const CommStep& step, std::int32_t bucket, bool aside) {
    if (step.operation == Operation::synchronize) {
      Task& task = host_task(step.operation, Duration::zero());
      task.host_waits = true;
      return task;
    }
    if (!is_collective(step.operation)) {
      const KernelCost cost = step.operation == Operation::optimizer
                                  ? costs_.optimizer_share(schedule_.buckets[at(bucket)].parameters)
                                  : costs_.comm_kernel(step.operation, step.kernel, aside);
      Task& task = priced(add(step.operation, aside ? aside_stream() : kernel_stream_), cost);
      task.host += step.host;
      return task;
    }
    const bool subgroup = step.action == CommAction::reduce_subgroup;
    const int members = training_.comm_hook.post_local_sgd.subgroup_of(costs_.ranks_per_node);
    const CollectiveCost cost =
        subgroup ? costs_.in_subgroup(kind_of(step.operation), step.payload, members)
                 : cost_of(step.operation, step.payload);
    Task& task = collective_task(step.operation, cost,
                                 costs_.interference.beside(cost, step.payload), step.payload);
    if (!aside) task.handover = costs_.launch.handover;
    task.gradient = gradient_[at(bucket)];
    return task;
  }

  Stream aside_stream() const { return costs_.synchronous ? Stream::communication : Stream::aside; }

  /// ProcessGroupGloo.cpp AsyncSparseAllreduceWork: shapes, indices and values from everybody, one
  /// after the other; each rank adds them up (that is not priced).
  void gather_sparse(std::int32_t bucket) {
    const StepCosts::Sparse& sparse =
        costs_.sparse[at(schedule_.buckets[at(bucket)].parameters.front())];
    const auto gather = [&](Message message, Bytes size) {
      const std::int32_t sent = tell(Operation::all_gather, message, size, launched_[at(bucket)]);
      Task& task = schedule_.tasks[at(collective_of(sent))];
      sent_[at(bucket)] = collective_of(sent);
      task.bucket = bucket;
      task.gradient = gradient_[at(bucket)];
      task.handover = costs_.launch.handover;
      launched_[at(bucket)] = sent;
    };
    gather(Message::sparse_shape, sparse_shape);
    gather(Message::sparse_indices, sparse.indices);
    gather(Message::sparse_values, sparse.values);
  }

  void all_reduce(std::int32_t bucket) {
    const Reduction& cost = collectives_[at(bucket)];
    const Bytes size = schedule_.buckets[at(bucket)].size;
    const std::int32_t ready = given(size, last_kernel_, bucket);
    Task& task = collective_task(Operation::all_reduce, cost.cost, cost.beside, size);
    task.bucket = bucket;
    // Launched by hooks, in the midst of kernels.
    if (training_.strategy == Strategy::overlap || training_.strategy == Strategy::bucketed)
      task.handover = costs_.launch.handover;
    task.gradient = gradient_[at(bucket)];
    if (ready != nobody) depend(task, ready);
    launched_[at(bucket)] = received(size);
  }

  /// Asynchronous devices: the compute stream stands in line behind the collective, the host goes
  /// on. On a synchronous one the host itself waits.
  void wait(std::int32_t bucket) { await(launched_[at(bucket)], bucket); }

  struct Reduction {
    CollectiveCost cost;
    Interference beside;
  };

  const Training& training_;
  bool synced_ = false;
  std::size_t next_bucket_ = 0;          ///< the first that has not been launched
  std::size_t launched_in_turn_ = 0;     ///< buckets: all, or all but the delayed one
  std::vector<std::int32_t> pending_;    ///< [bucket] gradients still to come
  std::vector<std::int32_t> bucket_of_;  ///< [parameter]
  std::vector<std::int32_t> gradient_;   ///< [bucket] task that put its latest gradient in place
  std::vector<std::int32_t> launched_;   ///< [bucket] task that has its latest result
  std::vector<Reduction> collectives_;   ///< [bucket]
  HookGroups hook_groups_;
  std::vector<std::vector<Module>> modules_;  ///< [layer], or empty
  std::vector<std::int32_t> unused_;          ///< ascending
  bool marked_unused_ = false;                ///< in this backward
  std::int32_t used_map_ = nobody;            ///< task that reduces it, of this backward
  std::int32_t active_ranks_ = nobody;        ///< task that tells of this rank, of this forward
};

}  // namespace

Schedule build_schedule(const StepCosts& costs, const Training& training) {
  return Builder(costs, training).build();
}

}  // namespace ddpsim
