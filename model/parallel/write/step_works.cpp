#include "model/parallel/write/step_works.hpp"

#include <algorithm>

#include "model/parallel/comm_hook.hpp"

namespace ddpsim {
namespace {

/// What copying the gradient into its bucket reads and writes.
Bytes copied_in(const Parameter& parameter) {
  if (parameter.unused) return parameter.size();
  return 2 * (parameter.sparse ? parameter.sparse_values() : parameter.size());
}

/// What DDP's broadcast of buffers costs the host for each of them besides launches, in a warm
/// loop: to gather them for one flat tensor, and behind the broadcast to cut that into views and to
/// call a copy for each. In the steps of a profile of ResNet-101, which has 312, these take 1.5
/// times as long: 1 ms, 2 ms and, with the launch of a copy, 3.6 ms. In the steps of
/// tests/data/h200 that the device bounds, DistributedDataParallel with one rank makes forward
/// passes with batch norms 4.5 to 6.4 ms longer (276 to 312 buffers), and no others.
constexpr Duration gathering = std::chrono::nanoseconds{2150};
constexpr Duration restoring = std::chrono::nanoseconds{7950};

Operation operation_of(OwnCollective::Kind kind) {
  switch (kind) {
    case OwnCollective::Kind::all_reduce:
      return Operation::all_reduce;
    case OwnCollective::Kind::all_gather:
      return Operation::all_gather;
    case OwnCollective::Kind::reduce_scatter:
      return Operation::reduce_scatter;
    case OwnCollective::Kind::broadcast:
      return Operation::broadcast;
  }
  return Operation::all_reduce;
}

KernelRange counted(int begin, std::size_t kernels) {
  return {begin, begin + std::max(1, static_cast<int>(kernels)) - 1};
}

/// Of a parameter, trained or frozen, of that layer.
template <class AnyParameter>
ParameterUse use_of(const AnyParameter& parameter, const StepWorks::LayerWorks& layer) {
  const auto numbers = [](const std::optional<KernelRange>& own, const KernelRange& pass) {
    return own ? KernelRange{pass.first + own->first, pass.first + own->last} : pass;
  };
  return {at(parameter.layer), numbers(parameter.forward, layer.forward_kernels),
          numbers(parameter.backward, layer.backward_kernels)};
}

}  // namespace

StepWorks::StepWorks(const Workload& workload, const Cluster& cluster, Optimizer kind)
    : StepWorks(workload, workload, cluster, kind) {
  if (workload.cast) cast.reset(new StepWorks(*workload.cast, workload, cluster, kind));
}

StepWorks::StepWorks(const Workload& workload, const Workload& kept, const Cluster& cluster,
                     Optimizer kind)
    : WorkloadGradients(workload),
      updates(kind),
      outside(workload.outside),
      gradient_size(workload.gradient_size()),
      device(device_of(cluster)),
      ranks_per_node(cluster.ranks_per_node) {
  const auto known = [this](const Work& work) { return KnownWork{table.add(work)}; };
  const auto copying = [&](Operation operation, Bytes traffic) {
    return known(moving(operation, traffic));
  };
  for (const Layer& layer : workload.layers) {
    LayerWorks& works = layers.emplace_back();
    for (const Kernel& kernel : layer.forward) {
      works.forward.push_back(known(work_of(Operation::forward, kernel, Caller::forward_module)));
      works.rows_forward.push_back(reduces_rows(kernel));
      operations += kernel.calls > 0 ? kernel.calls : kernel.launches;
    }
    for (const Kernel& kernel : layer.backward) {
      works.backward.push_back(known(work_of(Operation::backward, kernel, Caller::autograd)));
      works.rows_backward.push_back(reduces_rows(kernel));
    }
    works.completes.resize(layer.backward.size());
  }
  auto gradients_of = bind_gradients(workload);
  auto weights_of = bind_weights(workload, gradients_of);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    layers[layer].gradients = std::move(gradients_of[layer]);
    layers[layer].weights = std::move(weights_of[layer]);
  }
  for (const Parameter& parameter : workload.parameters) {
    const Bytes size = parameter.size();
    copy_in.push_back(copying(Operation::copy_in, copied_in(parameter)));
    copy_out.push_back(known(moving(Operation::copy_out, 2 * size, Caller::python_loop)));
    Work back = moving(Operation::copy_out, 2 * size);
    back.known_time = workload.copy_back;
    copy_back.push_back(known(back));
    divide.push_back(known(moving(Operation::divide, 2 * size, Caller::python_loop)));
    divide_in_bucket.push_back(copying(Operation::divide, 2 * size));
    accumulate.push_back(known(moving(Operation::accumulate, 3 * size, Caller::autograd)));
    sparse.push_back(parameter.sparse
                         ? SparseSizes{parameter.sparse_indices(), parameter.sparse_values()}
                         : SparseSizes{});
    matrices.push_back(matrix_of(parameter.shape));
  }
  for (const Parameter& parameter : kept.parameters)
    kept_as.push_back(stored_type(parameter.dtype));
  concatenate = copying(Operation::concatenate, 2 * gradient_size);
  flat_divide = copying(Operation::divide, 2 * gradient_size);
  for (const BufferGroup& group : cut(workload.buffers)) {
    Work flatten = moving(Operation::concatenate, 2 * group.size);
    Work restore = moving(Operation::copy_out, 2 * group.size, Caller::library, group.tensors);
    flatten.call = group.tensors * gathering;
    restore.call = group.tensors * restoring;
    Work broadcast;
    broadcast.operation = Operation::broadcast;
    broadcast.payload = group.size;
    flatten.payload = restore.payload = group.size;
    flatten.message = restore.message = broadcast.message = Message::buffers;
    buffers.push_back({known(flatten), known(restore), known(broadcast), group.size});
  }
  if (kept.optimizer) {
    Kernel timed;
    timed.time = kept.optimizer;
    optimizer.push_back(known(work_of(Operation::optimizer, timed, Caller::library)));
  } else {
    clips_gradients = kept.clip_gradients;
    if (clips_gradients)
      for (const Kernel& kernel : clip_kernels(kept))
        optimizer.push_back(known(work_of(Operation::optimizer, kernel, Caller::library)));
    clipping = optimizer.size();
    for (const Kernel& kernel : optimizer_kernels(kind, kept))
      optimizer.push_back(known(work_of(Operation::optimizer, kernel, optimizer_caller(kind))));
  }
  if (device.ranks > 1)
    for (const OwnCollective& each : workload.collectives) {
      LayerWorks& layer = layers[at(each.layer)];
      (each.backward ? layer.sends_backward : layer.sends_forward)
          .push_back({at(each.after), operation_of(each.kind), each.size});
    }
  for (LayerWorks& layer : layers)
    for (auto* sends : {&layer.sends_forward, &layer.sends_backward})
      std::stable_sort(sends->begin(), sends->end(),
                       [](const OwnSend& a, const OwnSend& b) { return a.after < b.after; });
  for (const int index : arrival) {
    const Parameter& parameter = workload.parameters[at(index)];
    if (parameter.unused) continue;  // no gradient, no hook
    layers[at(parameter.layer)].completes[at(parameter.ready_after)].push_back(index);
  }
  count_kernels();
  find_uses(workload);
}

void StepWorks::count_kernels() {
  int begin = 0;
  for (LayerWorks& layer : layers) {
    layer.forward_kernels = counted(begin, layer.forward.size());
    begin += static_cast<int>(layer.forward.size());
  }
  begin = 0;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    layer->backward_kernels = counted(begin, layer->backward.size());
    begin += static_cast<int>(layer->backward.size());
  }
}

void StepWorks::find_uses(const Workload& workload) {
  for (const Parameter& each : workload.parameters) {
    uses.push_back(use_of(each, layers[at(each.layer)]));
    if (each.unused) uses.back().layer = 0;
  }
  for (const FrozenParameter& each : frozen)
    frozen_uses.push_back(use_of(each, layers[at(each.layer)]));
}

std::vector<std::int32_t> StepWorks::in_backward() const {
  std::vector<std::int32_t> order;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
    for (const std::vector<std::int32_t>& completed : layer->completes)
      order.insert(order.end(), completed.begin(), completed.end());
  return order;
}

StepWriter::Device device_of(const Cluster& cluster) {
  return {cluster.ranks(), cluster.device.synchronous,
          cluster.through_host && !cluster.device.synchronous, cluster.collectives_at_once};
}

Work copy_together(const StepWorks& works, const std::vector<std::int32_t>& parameters) {
  Bytes size;
  std::int64_t elements = 0;
  for (const std::int32_t index : parameters) {
    const GradientInfo& gradient = works.gradients[at(index)];
    size += gradient.size;
    elements += gradient.size.count / size_of(gradient.dtype).count;
  }
  const auto batches = [](std::int64_t count, std::int64_t most) {
    return static_cast<int>((count + most - 1) / most);
  };
  const int launches = std::max({1, batches(static_cast<std::int64_t>(parameters.size()), 64),
                                 batches(elements, std::int64_t{320} * 65536)});
  return moving(Operation::concatenate, 2 * size, Caller::library, launches);
}

}  // namespace ddpsim
