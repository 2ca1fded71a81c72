#include "model/step_costs.hpp"

#include <algorithm>

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

}  // namespace

StepCosts::StepCosts(const Workload& workload, const Cluster& cluster, Optimizer kind)
    : launch(cluster.launch),
      collective(cluster),
      interference(cluster),
      synchronous(cluster.device.synchronous),
      ranks(cluster.ranks()) {
  const Device& device = cluster.device;
  const auto stream = [&](Bytes traffic, Caller caller) {
    return streaming_cost(traffic, 1, device, launch.kernel, caller);
  };
  int operations = 0;
  for (const Layer& layer : workload.layers) {
    LayerCosts& costs = layers.emplace_back();
    for (const Kernel& kernel : layer.forward) {
      costs.forward.push_back(kernel_cost(kernel, device, launch.kernel, Caller::forward_module));
      operations += kernel.launches;
    }
    for (const Kernel& kernel : layer.backward)
      costs.backward.push_back(kernel_cost(kernel, device, launch.kernel, Caller::autograd));
    hooks_of.emplace_back(layer.backward.size());
  }
  unused_search = operations * graph_walk_per_operation;
  for (const Parameter& parameter : workload.parameters) {
    copies.push_back(stream(2 * parameter.size(), Caller::library));
    accumulates.push_back(stream(3 * parameter.size(), Caller::autograd));
    gradients.push_back({parameter.size(), parameter.dtype, parameter.sparse});
  }
  flat_copy = stream(2 * workload.gradient_size(), Caller::library);
  for (const BufferGroup& group : workload.buffers)
    buffers.push_back(
        {stream(2 * group.size, Caller::library),
         streaming_cost(2 * group.size, group.tensors, device, launch.kernel, Caller::library),
         collective.broadcast(group.size)});
  if (workload.optimizer) {
    Kernel measured;
    measured.time = workload.optimizer;
    optimizer.push_back(kernel_cost(measured, device, launch.kernel, Caller::library));
  } else {
    for (const Kernel& kernel : optimizer_kernels(kind, workload))
      optimizer.push_back(kernel_cost(kernel, device, launch.kernel, optimizer_caller(kind)));
  }
  arrival = arrival_order(workload);
  for (const int index : arrival) {
    const Parameter& parameter = workload.parameters[static_cast<std::size_t>(index)];
    hooks_of[static_cast<std::size_t>(parameter.layer)]
            [static_cast<std::size_t>(parameter.ready_after)]
                .push_back(index);
  }
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

}  // namespace ddpsim
