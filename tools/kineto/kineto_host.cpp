// The host walks the tasks in order. The host of a task that runs on a stream is a launch (issued
// to enqueued); launches are gathered into the operator that makes them:
//
//     ProfilerStep#2                                              user_annotation
//       DistributedDataParallel.forward                           user_annotation
//         layers.0                                                cpu_op
//           cudaLaunchKernel, cudaLaunchKernel, ...               cuda_runtime
//     autograd::engine::evaluate_function: layers.0Backward0      cpu_op, on the autograd thread
//       cudaLaunchKernel, ...
//     autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
//       torch::autograd::AccumulateGrad
//       torch::distributed::reducer::mul_out
//         cudaLaunchKernel
//       c10d::allreduce_, record_param_comms, nccl:all_reduce
//         cudaLaunchKernelExC

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tools/kineto/kineto_rank.hpp"
#include "tools/kineto/kineto_words.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

std::string accumulate_node() {
  return fmt::format("{}{}", kineto::evaluate_function, kineto::accumulate_grad);
}

/// Tasks that follow each other with equal keys are one operator's.
struct OperatorKey {
  enum class Kind : std::uint8_t {
    forward,    ///< of a layer
    node,       ///< the autograd engine evaluates a layer's backward pass
    hook,       ///< likewise a gradient's accumulation, with all that its hooks do
    optimizer,  ///< all of it
    unit,       ///< a range of fully_shard: of a unit's gather, copy-out or reduce-scatter
    single      ///< of one task
  };
  Kind kind = Kind::single;
  std::int32_t index = 0;  ///< of a layer, or of a task
  std::int16_t micro_batch = 0;
  bool operator==(const OperatorKey&) const = default;
};
using Kind = OperatorKey::Kind;

/// An operator's span, as it grows.
struct OpenOperator {
  OperatorKey key;
  TraceRow row;
  std::string category, name;  ///< no name: its one task says all
  Instant start{}, end{};
  TraceEvents inner;
};

class HostWriter {
 public:
  HostWriter(const TracedStep& step, std::int64_t& correlation)
      : step_(step),
        bucketed_(step.step.training.strategy == Strategy::bucketed),
        correlation_(correlation),
        main_{step.where.host, step.where.host},
        autograd_{step.where.host, step.where.host + 1},
        launches_(step.of.program.tasks.size()) {
    find_backward();
    find_gradients();
  }

  std::vector<TracedLaunch> write(TraceEvents& events) {
    Instant now{}, last{};
    for (std::size_t i = 0; i < tasks().size(); ++i) {
      if (is_part_of_another(i)) continue;
      last = std::max({last, step_.times(i).end, done(i)});
      if (host_waits(i) && issued(i) > now) write_waiting(i, now);
      write_task(i);
      now = std::max(now, done(i));
    }
    close();
    // Readers take the first of equal spans for the outer one.
    const bool first = step_.step.training.iteration == 1;
    events.span(main_, kineto::user_annotation,
                fmt::format("{}{}", kineto::profiler_step, first ? 0 : 2), Instant{}, last);
    write_passes(events);
    events.append(host_);
    if (last > now && !step_.synchronous)
      events.span(main_, "cuda_runtime", "cudaDeviceSynchronize", now, last);
    return std::move(launches_);
  }

 private:
  const std::vector<program::Task>& tasks() const { return step_.of.program.tasks; }
  bool is_part_of_another(std::size_t index) const {
    return step_.of.is_part_of_another(tasks()[index]);
  }
  /// Does the host stand still until what the task waits for has ended?
  bool host_waits(std::size_t index) const {
    return step_.of.host_waits_before(index) ||
           (tasks()[index].stream == 0 && !step_.of.program.waits_for(index).empty());
  }
  bool is_hooks(std::size_t index) const { return step_.origin(index).label != 0; }
  Instant issued(std::size_t index) const { return step_.times(index).issued; }
  /// When the host is done with a task.
  Instant done(std::size_t index) const {
    const TaskTimes& times = step_.times(index);
    return tasks()[index].stream == 0 ? times.end : times.enqueued;
  }

  /// What the autograd engine's thread does: from the first backward kernel of a micro-batch to its
  /// last gradient, and DDP's own end of the backward pass.
  void find_backward() {
    for (std::size_t i = 0; i < tasks().size(); ++i) {
      if (is_part_of_another(i)) continue;
      const std::int16_t micro_batch = tasks()[i].micro_batch;
      const Operation operation = step_.operation(i);
      const bool last = bucketed_ && finishes_bucket(i);
      const auto found = backward_.find(micro_batch);
      if (found == backward_.end()) {
        if (operation == Operation::backward) backward_.emplace(micro_batch, std::pair(i, i));
      } else if (last || operation == Operation::backward || operation == Operation::accumulate ||
                 operation == Operation::hook || operation == Operation::gradient_hook ||
                 operation == Operation::copy_in || is_hooked(i)) {
        found->second.second = i;
      }
    }
  }
  /// Does it finish what a bucket, or the used map, sent: a wait for it, a copy back?
  bool finishes_bucket(std::size_t index) const {
    const bool of_bucket = step_.origin(index).group != nobody;
    const Operation operation = step_.operation(index);
    if (operation != Operation::wait) return operation == Operation::copy_out && of_bucket;
    return of_bucket || step_.work(index).message == Message::used_map;
  }
  /// An all-reduce that a gradient's hook issues.
  bool is_hooked(std::size_t index) const { return step_.work(index).handed_over; }
  bool in_backward(std::size_t index) const {
    const auto found = backward_.find(tasks()[index].micro_batch);
    return found != backward_.end() && index >= found->second.first &&
           index <= found->second.second;
  }
  TraceRow row_of(std::size_t index) const { return in_backward(index) ? autograd_ : main_; }

  /// Without DDP's hooks nothing in the schedule says when a gradient is accumulated: behind the
  /// kernel that completes it.
  void find_gradients() {
    for (std::size_t i = 0; i < tasks().size(); ++i)
      if (step_.operation(i) == Operation::hook) return;
    const Workload& workload = step_.scenario.workload;
    for (const int index : arrival_order(workload)) {
      const Parameter& parameter = step_.parameter(index);
      if (!parameter.unused) ready_[{parameter.layer, parameter.ready_after}].push_back(index);
    }
  }

  /// The passes, as annotations of the thread that calls them.
  void write_passes(TraceEvents& events) const {
    std::map<std::pair<std::int16_t, bool>, std::pair<Instant, Instant>> passes;
    for (std::size_t i = 0; i < tasks().size(); ++i) {
      const std::int16_t micro_batch = tasks()[i].micro_batch;
      const auto backward = backward_.find(micro_batch);
      const bool behind = backward == backward_.end() || i > backward->second.second;
      if (behind || is_part_of_another(i) || step_.operation(i) == Operation::outside) continue;
      const auto [pass, added] = passes.emplace(std::pair(micro_batch, i >= backward->second.first),
                                                std::pair(issued(i), done(i)));
      if (!added) pass->second.second = std::max(pass->second.second, done(i));
    }
    for (const auto& [key, times] : passes)
      events.span(main_, kineto::user_annotation,
                  key.second  ? "backward"
                  : bucketed_ ? kineto::ddp_forward
                              : "forward",
                  times.first, times.second);
  }

  std::string range_of(std::size_t index) const {
    return unit_range(step_.step.training, step_.of.job, tasks()[index]);
  }

  OperatorKey key_of(std::size_t index) const {
    const std::int16_t micro_batch = tasks()[index].micro_batch;
    const std::int32_t layer = step_.origin(index).layer;
    const OperatorKey single{Kind::single, static_cast<std::int32_t>(index), micro_batch};
    if (const std::string range = range_of(index); !range.empty()) {
      const bool same = open_ && open_->key.kind == Kind::unit && open_->name == range;
      return same ? open_->key : OperatorKey{Kind::unit, single.index, micro_batch};
    }
    switch (step_.operation(index)) {
      case Operation::forward:
        return {Kind::forward, layer, micro_batch};
      case Operation::backward:
        return {Kind::node, layer, micro_batch};
      case Operation::optimizer:
        if (!is_hooks(index)) return {Kind::optimizer, 0, micro_batch};
        break;
      case Operation::hook:
        return {Kind::hook, single.index, micro_batch};
      case Operation::wait:
      case Operation::copy_out:
        return single;
      case Operation::accumulate:
      case Operation::copy_in:
      case Operation::concatenate:
      case Operation::all_reduce:
      case Operation::divide:
      case Operation::broadcast:
      case Operation::search_unused:
      case Operation::copy_to_host:
      case Operation::copy_to_device:
      case Operation::gradient_hook:
      case Operation::module_hook:
      case Operation::all_gather:
      case Operation::reduce_scatter:
      case Operation::cast:
      case Operation::correct:
      case Operation::pack:
      case Operation::draw:
      case Operation::multiply:
      case Operation::orthogonalize:
      case Operation::quantize:
      case Operation::dequantize:
      case Operation::select:
      case Operation::own_kernel:
      case Operation::synchronize:
      case Operation::outside:
      case Operation::meet:
      case Operation::pause:
      case Operation::all_to_all:
      case Operation::send_receive:
      case Operation::unit_hook:
        break;
    }
    // What a hook does goes on until something else begins.
    return open_ && open_->key.kind == Kind::hook && in_backward(index) ? open_->key : single;
  }

  /// Before the task the host waited for the device, or for a collective.
  void write_waiting(std::size_t index, Instant since) {
    close();
    const bool collective = step_.synchronous;
    host_.span(row_of(index), collective ? kineto::cpu_op : "cuda_runtime",
               collective ? fmt::format("{}Work::wait", kineto::c10d) : "cudaStreamSynchronize",
               since, issued(index));
  }

  void write_task(std::size_t index) {
    const Operation operation = step_.operation(index);
    const OperatorKey key = key_of(index);
    if (open_ && !(open_->key == key)) close();
    if (!open_) open(index, key);
    open_->end = std::max(open_->end, done(index));
    if (operation == Operation::hook)
      open_->inner.span(open_->row, kineto::cpu_op, kineto::accumulate_grad, issued(index),
                        done(index), parameter_of_task(index));
    else if (done(index) > issued(index))
      write_inside(index);
    if (operation == Operation::backward) write_gradients(index);
  }

  void open(std::size_t index, const OperatorKey& key) {
    const std::int32_t layer = step_.origin(index).layer;
    OpenOperator& opened = open_.emplace();
    opened.key = key;
    opened.row = row_of(index);
    opened.category = kineto::cpu_op;
    opened.start = opened.end = issued(index);
    switch (key.kind) {
      case Kind::forward:
        opened.name = step_.scenario.workload.layers[at(layer)].name;
        break;
      case Kind::node:
        opened.name = fmt::format("{}{}Backward0", kineto::evaluate_function,
                                  step_.scenario.workload.layers[at(layer)].name);
        break;
      case Kind::hook:
        opened.name = accumulate_node();
        break;
      case Kind::optimizer:
        opened.category = kineto::user_annotation;
        opened.name = optimizer_annotation(step_.scenario.optimizer);
        break;
      case Kind::unit:
        opened.category = kineto::user_annotation;
        opened.name = range_of(index);
        break;
      case Kind::single:
        break;
    }
  }

  void close() {
    if (!open_) return;
    if (!open_->name.empty())
      host_.span(open_->row, open_->category, open_->name, open_->start, open_->end);
    host_.append(open_->inner);
    open_.reset();
  }

  TraceArguments parameter_of_task(std::size_t index) const {
    const std::int32_t parameter = step_.origin(index).parameter;
    return parameter == nobody || is_hooks(index) ? TraceArguments{} : parameter_of(parameter);
  }
  TraceArguments parameter_of(std::int32_t index) const {
    const Parameter& parameter = step_.parameter(index);
    return TraceArguments{}
        .add("parameter", parameter.name)
        .add_json(kineto::input_dims, fmt::format("[[{}]]", fmt::join(parameter.shape, ",")))
        .add_json(kineto::input_type, fmt::format("[\"{}\"]", tensor_type(parameter.dtype)));
  }

  /// Where there are no hooks: the gradients that a kernel completes, each in an instant.
  void write_gradients(std::size_t index) {
    const program::Origin& origin = step_.origin(index);
    const auto found = ready_.find({origin.layer, origin.kernel});
    if (found == ready_.end()) return;
    const TraceRow row = open_->row;
    const Instant end = open_->end;
    close();
    for (const int parameter : found->second) {
      host_.span(row, kineto::cpu_op, accumulate_node(), end, end);
      host_.span(row, kineto::cpu_op, kineto::accumulate_grad, end, end, parameter_of(parameter));
    }
  }

  /// What the host does for one task, in the operator that is open.
  void write_inside(std::size_t index) {
    const program::Task& task = tasks()[index];
    const Operation operation = step_.operation(index);
    const bool launched = task.stream != 0;
    const bool device = is_kernel(operation) || is_transfer(operation);
    TraceEvents& inner = open_->inner;
    const auto span = [&](std::string_view category, std::string_view name) {
      inner.span(open_->row, category, name, issued(index), done(index), parameter_of_task(index));
    };
    if (step_.is_collective(index)) return write_call(index);
    if (operation == Operation::wait && launched)
      return span("cuda_runtime", "cudaStreamWaitEvent");
    if (operation == Operation::synchronize && !step_.synchronous)
      return span("cuda_runtime", "cudaDeviceSynchronize");
    if (operation == Operation::unit_hook && open_->key.kind == Kind::unit) return;
    if (!device) return span(kineto::cpu_op, step_.label(index));
    if (!launched || open_->key.kind == Kind::single || open_->key.kind == Kind::hook ||
        open_->key.kind == Kind::unit)
      span(kineto::cpu_op, operator_name(step_.scenario, step_.step.training, step_.of.job, task));
    if (launched)
      launch(index, device_name(step_.scenario, step_.step.training, step_.of.job, task).launch,
             done(index));
  }

  void launch(std::size_t index, std::string_view call, Instant end) {
    launches_[index] = {++correlation_, open_->row, issued(index)};
    open_->inner.span(open_->row, "cuda_runtime", call, issued(index), end,
                      TraceArguments{}.add(kineto::correlation, correlation_));
  }

  /// The spans that issue a collective, each a picosecond shorter than the one around it.
  void write_call(std::size_t index) {
    const CollectiveName named = step_.collective(index);
    const Instant start = issued(index), end = done(index);
    constexpr Duration inset{1};
    TraceEvents& inner = open_->inner;
    inner.span(open_->row, kineto::cpu_op, named.call, start, end);
    inner.span(open_->row, kineto::cpu_op, kineto::record_param_comms, start, end - inset,
               step_.message(named));
    if (step_.collectives_on_hosts) return;
    inner.span(open_->row, kineto::user_annotation, fmt::format("{}{}", kineto::nccl, named.word),
               start, end - 2 * inset);
    launch(index, "cudaLaunchKernelExC", end - 3 * inset);
  }

  const TracedStep& step_;
  const bool bucketed_;
  std::int64_t& correlation_;
  const TraceRow main_, autograd_;
  TraceEvents host_;
  std::optional<OpenOperator> open_;
  std::vector<TracedLaunch> launches_;
  /// [micro-batch] the first and the last task of its backward pass.
  std::map<std::int16_t, std::pair<std::size_t, std::size_t>> backward_;
  /// [layer, kernel] the parameters whose gradients it completes; empty: hooks tell.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<int>> ready_;
};

}  // namespace

std::vector<TracedLaunch> write_host(TraceEvents& events, const TracedStep& step,
                                     std::int64_t& correlation) {
  return HostWriter(step, correlation).write(events);
}

}  // namespace ddpsim
