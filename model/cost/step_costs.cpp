#include "model/cost/step_costs.hpp"

#include <algorithm>
#include <cmath>

#include "model/cost/calibrated_times.hpp"

namespace ddpsim {
namespace {

/// find_unused_parameters walks every autograd node on the host; a microsecond each is an
/// assumption (a node is an operation of the forward pass).
constexpr Duration graph_walk_per_operation = std::chrono::microseconds{1};

using Pass = std::vector<KernelCost*>;

/// Device times follow the factor. So do host times where the host bounds the pass, or else its length
/// would not; where the device does, a slow one does not slow the host, and a fast one needs it to keep up.
void scale_pass(const Pass& pass, double factor) {
  double host = 0, work = 0;
  for (const KernelCost* cost : pass) {
    host += in_seconds(cost->host);
    work += in_seconds(cost->work);
  }
  const double host_factor = host > work ? factor : std::min(factor, 1.0);
  for (KernelCost* cost : pass) {
    cost->host = scaled(cost->host, host_factor);
    cost->work = scaled(cost->work, factor);
    cost->last_launch = scaled(cost->last_launch, factor);
  }
}

/// Measured in the job itself where a calibration says so (1 there: not measured), else what the
/// profile's spread makes likely.
double slowest_of(const Workload& workload, const Cluster& cluster) {
  if (cluster.calibration && cluster.calibration->slowest_rank > 1)
    return cluster.calibration->slowest_rank;
  if (workload.step_spread == 0) return 1;
  return 1 + workload.step_spread * expected_largest(cluster.ranks());
}

}  // namespace

/// What a kernel costs on a cluster, measured or by law.
class Prices {
 public:
  explicit Prices(const Cluster& cluster) : cluster_(cluster) {
    if (cluster_.calibration) measured_.emplace(*cluster_.calibration);
  }

  KernelCost of(Operation operation, const Kernel& kernel, Caller caller,
                bool aside = false) const {
    std::optional<Duration> time;
    if (measured_) time = measured_->time(operation, kernel, aside);
    KernelCost cost = time ? taking(*time, kernel, caller) : by_law(kernel, caller);
    // What was measured is enqueued by ddpsim, which no Python slows.
    if (measured_)
      cost.host =
          cluster_.device.synchronous ? Duration::zero() : kernel.launches * cluster_.launch.kernel;
    return cost;
  }

  /// Of one that reads and writes `traffic`.
  KernelCost copy(Operation operation, Bytes traffic, Caller caller, int launches = 1) const {
    Kernel kernel;
    kernel.traffic = traffic;
    kernel.launches = launches;
    return of(operation, kernel, caller);
  }

  /// The law of a single node's ranks.
  CollectiveLaw node_collective() const {
    Cluster node = cluster_;
    node.nodes = 1;
    return CollectiveLaw(node);
  }

 private:
  KernelCost by_law(const Kernel& kernel, Caller caller) const {
    return kernel_cost(kernel, cluster_.device, cluster_.launch.kernel, caller);
  }

  KernelCost taking(Duration time, const Kernel& kernel, Caller caller) const {
    Kernel timed = kernel;
    timed.time = time;
    KernelCost cost = by_law(timed, caller);
    if (!kernel.time) cost.memory_fraction = kernel.gemm ? 0 : 1;  // as interference was measured
    return cost;
  }

  const Cluster cluster_;
  std::optional<CalibratedTimes> measured_;
};

double expected_largest(int draws) {
  // Of a variable with distribution F: the integral of 1 - F above 0 less that of F below. By midpoints.
  constexpr double end = 9, width = 0.01;
  double sum = 0;
  for (double x = width / 2; x < end; x += width) {
    const double below = std::erfc(x / std::sqrt(2.0)) / 2;
    sum += 1 - std::pow(1 - below, draws) - std::pow(below, draws);
  }
  return sum * width;
}

StepCosts::StepCosts(const Workload& workload, const Cluster& cluster, Optimizer kind)
    : launch(cluster.launch),
      collective(cluster),
      interference(cluster),
      synchronous(cluster.device.synchronous),
      backward_beside_hook(cluster.calibration ? cluster.calibration->backward_beside_hook : 1),
      slowest_rank(slowest_of(workload, cluster)),
      ranks(cluster.ranks()),
      ranks_per_node(cluster.ranks_per_node),
      prices(std::make_shared<const Prices>(cluster)) {
  const Prices& price = *prices;
  int operations = 0;
  for (const Layer& layer : workload.layers) {
    LayerCosts& costs = layers.emplace_back();
    for (const Kernel& kernel : layer.forward) {
      costs.forward.push_back(price.of(Operation::forward, kernel, Caller::forward_module));
      operations += kernel.launches;
    }
    for (const Kernel& kernel : layer.backward)
      costs.backward.push_back(price.of(Operation::backward, kernel, Caller::autograd));
    hooks_of.emplace_back(layer.backward.size());
  }
  collectives_at_once = cluster.collectives_at_once;
  if (!synchronous) through_host = cluster.through_host;
  unused_search = operations * graph_walk_per_operation;
  for (const Parameter& parameter : workload.parameters) {
    const Bytes size = parameter.size();
    const Bytes before = parameter.unused   ? size
                         : parameter.sparse ? 2 * parameter.sparse_values()
                                            : 2 * size;
    copy_in.push_back(price.copy(Operation::copy_in, before, Caller::library));
    copy_out.push_back(price.copy(Operation::copy_out, 2 * size, Caller::library));
    divide.push_back(price.copy(Operation::divide, 2 * size, Caller::library));
    accumulates.push_back(price.copy(Operation::accumulate, 3 * size, Caller::autograd));
    gradients.push_back({size, parameter.dtype, parameter.sparse, parameter.unused});
    sparse.push_back(parameter.sparse
                         ? Sparse{parameter.sparse_indices(), parameter.sparse_values()}
                         : Sparse{});
    matrices.push_back(matrix_of(parameter.shape));
  }
  const Bytes all = workload.gradient_size();
  concatenate = price.copy(Operation::concatenate, 2 * all, Caller::library);
  flat_divide = price.copy(Operation::divide, 2 * all, Caller::library);
  for (const BufferGroup& group : cut(workload.buffers))
    buffers.push_back(
        {price.copy(Operation::concatenate, 2 * group.size, Caller::library),
         price.copy(Operation::copy_out, 2 * group.size, Caller::library, group.tensors),
         collective.broadcast(group.size), group.size});
  if (workload.optimizer) {
    Kernel timed;
    timed.time = workload.optimizer;
    optimizer.push_back(price.of(Operation::optimizer, timed, Caller::library));
  } else {
    for (const Kernel& kernel : optimizer_kernels(kind, workload))
      optimizer.push_back(price.of(Operation::optimizer, kernel, optimizer_caller(kind)));
  }
  arrival = arrival_order(workload);
  for (const int index : arrival) {
    const Parameter& parameter = workload.parameters[static_cast<std::size_t>(index)];
    if (parameter.unused) continue;  // no gradient, no hook
    hooks_of[static_cast<std::size_t>(parameter.layer)]
            [static_cast<std::size_t>(parameter.ready_after)]
                .push_back(index);
  }
}

KernelCost StepCosts::comm_kernel(Operation operation, const Kernel& kernel, bool aside) const {
  return adjusted(prices->of(operation, kernel, Caller::python_loop, aside));
}

KernelCost StepCosts::copy_together(const std::vector<std::int32_t>& parameters) const {
  Bytes size;
  std::int64_t elements = 0;
  for (const std::int32_t index : parameters) {
    const GradientInfo& gradient = gradients[static_cast<std::size_t>(index)];
    size += gradient.size;
    elements += gradient.size.count / size_of(gradient.dtype).count;
  }
  const auto batches = [](std::int64_t count, std::int64_t most) {
    return static_cast<int>((count + most - 1) / most);
  };
  const int launches = std::max({1, batches(static_cast<std::int64_t>(parameters.size()), 64),
                                 batches(elements, std::int64_t{320} * 65536)});
  return adjusted(prices->copy(Operation::concatenate, 2 * size, Caller::library, launches));
}

KernelCost StepCosts::divide_bucket(Bytes size) const {
  return adjusted(prices->copy(Operation::divide, 2 * size, Caller::library));
}

KernelCost StepCosts::adjusted(KernelCost cost) const {
  if (copy_factor != 1) {
    cost.work = scaled(cost.work, copy_factor);
    cost.last_launch = scaled(cost.last_launch, copy_factor);
  }
  if (launch.kernel == Duration::zero()) cost.host = cost.last_launch = Duration::zero();
  return cost;
}

CollectiveCost StepCosts::in_subgroup(Collective kind, Bytes payload, int subgroup) const {
  if (subgroup > ranks_per_node || ranks_per_node == ranks)
    return collective.of(kind, payload, subgroup);
  if (ranks_per_node == 1 || subgroup == 1) return {};
  CollectiveLaw node = prices->node_collective();
  node.latency_factor = collective.latency_factor;
  node.transfer_factor = collective.transfer_factor;
  return node.of(kind, payload, subgroup);
}

KernelCost StepCosts::hook_kernel(const UserHook& hook, Bytes size) const {
  const Kernel kernel = kernel_of(hook, size);
  KernelCost cost;
  if (kernel.traffic != Bytes{}) cost = comm_kernel(priced_as(hook.kind), kernel);
  cost.host += launch.hook + hook.host;
  return cost;
}

KernelCost StepCosts::optimizer_share(const std::vector<std::int32_t>& parameters) const {
  Bytes mine, all;
  for (const GradientInfo& gradient : gradients) all += gradient.size;
  for (const std::int32_t index : parameters)
    mine += gradients[static_cast<std::size_t>(index)].size;
  const double share = static_cast<double>(mine.count) / static_cast<double>(all.count);
  KernelCost sum;
  sum.memory_fraction = 1;
  for (const KernelCost& kernel : optimizer) {
    sum.work += scaled(kernel.work, share);
    sum.host += scaled(kernel.host, share);
  }
  return sum;
}

void scale(StepCosts& costs, const PassFactors& factors) {
  Pass forward, backward, optimizer;
  for (StepCosts::LayerCosts& layer : costs.layers) {
    for (KernelCost& cost : layer.forward) forward.push_back(&cost);
    for (KernelCost& cost : layer.backward) backward.push_back(&cost);
  }
  for (KernelCost& cost : costs.optimizer) optimizer.push_back(&cost);
  scale_pass(forward, factors.forward);
  scale_pass(backward, factors.backward);
  scale_pass(optimizer, factors.optimizer);
}

void scale_copies(StepCosts& costs, double factor) {
  const auto slow = [factor](KernelCost& cost) {
    cost.work = scaled(cost.work, factor);
    cost.last_launch = scaled(cost.last_launch, factor);
  };
  for (auto* each : {&costs.copy_in, &costs.copy_out, &costs.divide, &costs.accumulates})
    for (KernelCost& cost : *each) slow(cost);
  for (StepCosts::BufferCosts& group : costs.buffers) {
    slow(group.flatten);
    slow(group.restore);
  }
  costs.copy_factor *= factor;
  slow(costs.concatenate);
  slow(costs.flat_divide);
}

}  // namespace ddpsim
