#include "model/cost/cost_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "model/base/statistics.hpp"
#include "model/cost/collective_ports.hpp"
#include "model/cost/kernel_cost.hpp"

namespace ddpsim {
namespace {

/// find_unused_parameters walks every autograd node on the host; a microsecond each is an
/// assumption (a node is an operation of the forward pass).
constexpr Duration graph_walk_per_operation = std::chrono::microseconds{1};

/// The kernel a piece of work asks for, as the law of kernels takes it.
Kernel kernel_of(const Work& work) {
  Kernel kernel;
  kernel.gemm = work.gemm;
  kernel.traffic = work.traffic;
  kernel.launches = work.launches;
  kernel.type = work.type;
  kernel.tensors = work.tensors;
  kernel.call = work.call;
  kernel.time = work.known_time;
  kernel.by_class = work.by_class;
  return kernel;
}

bool is_pass(Operation operation) {
  return operation == Operation::forward || operation == Operation::backward ||
         operation == Operation::optimizer;
}
std::size_t pass_of(Operation operation) {
  return operation == Operation::forward ? 0 : operation == Operation::backward ? 1 : 2;
}

/// Does the host take longer to enqueue a pass than the device to compute it?
bool host_bounds(const std::vector<std::uint32_t>& pass, const Costs& costs) {
  double host = 0, work = 0;
  for (const std::uint32_t each : pass) {
    host += in_seconds(costs.works[each].host);
    work += in_seconds(costs.works[each].work);
  }
  return host > work;
}

/// [pass] What its host times are multiplied by; device times are by its factor. A fast device
/// needs a host that keeps up. A slow one does not slow the host: only where the host bounds a pass
/// is the host slower than its law, or the pass would not be longer. Where forward and backward
/// share a factor and the device bounds one of them, the factor is the device's.
std::array<double, 3> host_factors(const Passes& passes, const PassFactors& factors,
                                   const Costs& costs) {
  bool forward = host_bounds(passes.forward, costs), backward = host_bounds(passes.backward, costs);
  if (factors.forward == factors.backward) forward = backward = forward && backward;
  const auto on_host = [](double factor, bool host) {
    return host ? factor : std::min(factor, 1.0);
  };
  return {on_host(factors.forward, forward), on_host(factors.backward, backward),
          on_host(factors.optimizer, host_bounds(passes.optimizer, costs))};
}

}  // namespace

SkewSource skew_source(const CalibratedCluster& cluster, double step_spread) {
  if (cluster.calibration && cluster.calibration->slowest_rank > 1) return SkewSource::calibration;
  if (step_spread > 0 && !cluster.jitter) return SkewSource::profile;
  return cluster.skew_is_usual ? SkewSource::assumed : SkewSource::scenario;
}

std::string_view name_of(SkewSource source) {
  constexpr std::array<std::string_view, 4> names{"calibration", "profile", "scenario", "assumed"};
  return names[static_cast<std::size_t>(source)];
}

double RankSpread::together() const {
  return std::hypot(lasting, changing);
}

RankSpread rank_spread(const CalibratedCluster& cluster, double step_spread) {
  const double jitter = cluster.jitter.value_or(0);
  switch (skew_source(cluster, step_spread)) {
    case SkewSource::calibration: {
      const int ranks = cluster.ranks();
      const double all =
          ranks == 1 ? 0 : (cluster.calibration->slowest_rank - 1) / expected_largest(ranks);
      return {std::sqrt(std::max(0.0, all * all - jitter * jitter)), jitter};
    }
    case SkewSource::profile:
      return {0, step_spread};
    case SkewSource::scenario:
    case SkewSource::assumed:
      break;
  }
  return {cluster.skew, jitter};
}

double slowest_rank(const CalibratedCluster& cluster, double step_spread) {
  if (cluster.ranks() == 1) return 1;
  if (skew_source(cluster, step_spread) == SkewSource::calibration)
    return cluster.calibration->slowest_rank;
  const double spread = rank_spread(cluster, step_spread).together();
  return spread == 0 ? 1 : 1 + spread * expected_largest(cluster.ranks());
}

CostModel::CostModel(const CalibratedCluster& cluster, double step_spread)
    : launch(cluster.launch),
      collective(cluster),
      interference(cluster),
      synchronous(cluster.device.synchronous),
      backward_beside_hook(cluster.calibration ? cluster.calibration->backward_beside_hook : 1),
      slowest_rank(ddpsim::slowest_rank(cluster, step_spread)),
      ranks(cluster.ranks()),
      ranks_per_node(cluster.ranks_per_node.largest()),
      cluster_(cluster),
      measured_(cluster.calibration ? std::make_shared<const CalibratedTimes>(*cluster.calibration)
                                    : nullptr),
      buffers_(collective) {
  if (ranks == 1) return;
  for (const RankException& exception : cluster.exceptions)
    if (exception.computes_otherwise()) exceptions.push_back(exception);
}

void CostModel::use_links(const Link& intra_node, const Link& inter_node) {
  if (std::string_view(collective.name()) == "table")
    throw std::invalid_argument(
        "all-reduces take what a table of measurements says: another link would change nothing");
  cluster_.intra_node = intra_node;
  cluster_.inter_node = inter_node;
  renew_laws();
}

void CostModel::double_links() {
  if (std::string_view(collective.name()) == "table") {
    collective.change.transfer *= 0.5;
    return;
  }
  Link inside = cluster_.intra_node, between = cluster_.inter_node;
  for (Link* link : {&inside, &between}) {
    link->bandwidth.bytes_per_second *= 2;
    link->nccl_bandwidth.bytes_per_second *= 2;
  }
  for (RankException& exception : cluster_.exceptions)
    if (exception.nic) exception.nic->bytes_per_second *= 2;
  use_links(inside, between);
}

void CostModel::make_ranks_even() {
  slowest_rank = 1;
  exceptions.clear();
}

void CostModel::take_out_exceptions() {
  exceptions.clear();
  cluster_.exceptions.clear();
  renew_laws();
}

/// The laws of collectives for the cluster as it is now, with all that was fitted.
void CostModel::renew_laws() {
  InterferenceLaw beside(cluster_);
  beside.strength = interference.strength;
  interference = std::move(beside);
  CollectiveLaw law(cluster_, collective.nvls_tree_sizes());
  buffers_ = law;
  law.call_overhead = collective.call_overhead;
  law.change = collective.change;
  collective = law;
}

Costs CostModel::price(const std::vector<Work>& works, const Passes& of_work) const {
  Costs costs;
  costs.works.reserve(works.size());
  GroupLaws groups;
  for (const Work& work : works) costs.works.push_back(cost_of(work, groups));
  scale_passes(works, of_work, costs);
  share_optimizer(works, of_work, costs);
  for (std::size_t w = 0; w < works.size(); ++w) {
    WorkCost& cost = costs.works[w];
    const int launches = works[w].launches;
    if (works[w].handed_over) cost.take_up = launch.handover;
    cost.first_launch = launches > 1 ? cost.host / launches : cost.host;
    if (is_kernel(works[w].operation) && cost.work > Duration::zero())
      cost.launch_rate = static_cast<float>(launches / in_seconds(cost.work));
  }
  return costs;
}

void CostModel::scale_passes(const std::vector<Work>& works, const Passes& of_work,
                             Costs& costs) const {
  for (const PassFactors& factors : passes) {
    const std::array on_host = host_factors(of_work, factors, costs);
    const std::array on_device{factors.forward, factors.backward, factors.optimizer};
    for (std::size_t w = 0; w < works.size(); ++w) {
      const Work& work = works[w];
      if (!is_pass(work.operation)) continue;
      const std::size_t pass = pass_of(work.operation);
      WorkCost& cost = costs.works[w];
      cost.host = scaled(cost.host, on_host[pass]);
      cost.work = scaled(cost.work, on_device[pass]);
      cost.last_launch = scaled(cost.last_launch, on_device[pass]);
    }
  }
  for (std::size_t w = 0; w < works.size(); ++w) {
    WorkCost& cost = costs.works[w];
    if (free_launch && is_pass(works[w].operation)) cost.host = Duration::zero();
    if (works[w].beside_hook && backward_beside_hook != 1)
      cost.work = scaled(cost.work, backward_beside_hook);
  }
}

/// An update of some parameters is that part of the whole optimizer.
void CostModel::share_optimizer(const std::vector<Work>& works, const Passes& of_work,
                                Costs& costs) const {
  for (std::size_t w = 0; w < works.size(); ++w) {
    const double share = works[w].optimizer_share;
    if (share <= 0) continue;
    WorkCost sum;
    sum.memory_fraction = 1;
    for (const std::uint32_t kernel : of_work.optimizer) {
      sum.work += scaled(costs.works[kernel].work, share);
      sum.host += scaled(costs.works[kernel].host, share);
    }
    costs.works[w] = sum;
  }
}

WorkCost CostModel::cost_of(const Work& work, GroupLaws& groups) const {
  switch (traits_of(work.operation).kind) {
    case OperationTraits::Kind::kernel:
      return work.computes() ? kernel(work) : host_only(work);
    case OperationTraits::Kind::collective:
      return collective_cost(work, groups);
    case OperationTraits::Kind::transfer: {
      WorkCost cost;
      cost.host = work.launches * launch.kernel;
      if (cluster_.through_host) cost.work = work.payload / *cluster_.through_host;
      if (work.known_time) cost.work = *work.known_time;
      return cost;
    }
    case OperationTraits::Kind::host:
      return host_only(work);
  }
  return {};
}

/// A kernel on the device, with what the host does besides enqueueing it.
WorkCost CostModel::kernel(const Work& work) const {
  Kernel kernel = kernel_of(work);
  const auto time = measured_ ? measured_->time(work) : std::nullopt;
  if (time) kernel.time = time;
  const KernelCost by_law =
      kernel_cost(kernel, cluster_.device, cluster_.launch.kernel, work.caller);
  WorkCost cost;
  cost.host = by_law.host;
  cost.work = by_law.work;
  cost.last_launch = by_law.last_launch;
  cost.memory_fraction = by_law.memory_fraction;
  // Interference was measured on such kernels.
  if (time && !work.known_time) cost.memory_fraction = work.gemm ? 0 : 1;
  // What was measured is enqueued by ddpsim, which no Python slows.
  if (measured_)
    cost.host = synchronous ? Duration::zero() : work.launches * cluster_.launch.kernel;
  if (is_pass(work.operation)) return cost;
  if (copy_factor != 1) {
    cost.work = scaled(cost.work, copy_factor);
    cost.last_launch = scaled(cost.last_launch, copy_factor);
  }
  // Launches that cost nothing hold nothing back, whatever else the host has to do for it.
  if (launch.kernel == Duration::zero()) cost.host = cost.last_launch = Duration::zero();
  cost.host += host_only(work).host;
  return cost;
}

WorkCost CostModel::host_only(const Work& work) const {
  WorkCost cost;
  cost.host = work.host + work.hook_calls * launch.hook;
  if (work.operation == Operation::search_unused && !free_launch)
    cost.host += work.launches * graph_walk_per_operation;
  if (work.operation == Operation::unit_hook && !free_launch)
    cost.host += work.launches * launch.kernel;
  // A wait for buffers was not measured.
  if (work.operation == Operation::wait && synchronous && work.launches > 0 &&
      work.message != Message::buffers)
    cost.host += wait_for(work.awaited);
  return cost;
}

/// What it costs the host to wait for such a collective, besides the collective.
Duration CostModel::wait_for(Operation collective) const {
  std::optional<Duration> own;
  if (collective == Operation::all_gather) own = launch.wait_all_gather;
  if (collective == Operation::reduce_scatter) own = launch.wait_reduce_scatter;
  return own.value_or(launch.wait);
}

WorkCost CostModel::collective_cost(const Work& work, GroupLaws& groups) const {
  WorkCost cost;
  cost.host = launch.collective;
  if (work.message == Message::buffers && work.operation == Operation::broadcast) {
    cost.work = buffers_.broadcast(work.payload);
    return cost;
  }
  const CollectiveCost priced = among(work, groups);
  cost.work = priced.time();
  cost.latency = priced.latency;
  cost.filling = priced.filling;
  cost.choice = priced.choice;
  cost.beside = interference.beside(priced, work.payload);
  cost.links = links_of(work);
  return cost;
}

/// The cluster as a group of ranks has it of which each is `stride` ranks behind the one before: as
/// many of its members are on each node, and all groups that lie there share the node's NICs. None:
/// such groups are not alike, or it is measured what collectives take.
std::optional<CalibratedCluster> CostModel::across_nodes(std::int32_t group,
                                                         std::int32_t stride) const {
  const bool is_even = cluster_.ranks_per_node.equal();
  const int members = std::max(1, ranks_per_node / stride);  // of a group on a node
  const bool is_whole =
      stride >= ranks_per_node ? stride % ranks_per_node == 0 : ranks_per_node % stride == 0;
  if (!is_even || !is_whole || group % members != 0 || group == members ||
      std::string_view(collective.name()) == "table")
    return std::nullopt;
  CalibratedCluster across = cluster_;
  across.nodes = group / members;
  across.ranks_per_node = members;
  across.inter_node.bandwidth = slowest_nic(cluster_);
  across.exceptions.clear();
  const int nics = nics_per_node(cluster_), groups = ranks_per_node / members;
  across.inter_node.nics = std::max(1, nics / groups);
  const double share = std::min(1.0, static_cast<double>(nics) / groups);
  const double slower =
      across.inter_node.bandwidth.bytes_per_second / cluster_.inter_node.bandwidth.bytes_per_second;
  across.inter_node.bandwidth.bytes_per_second *= share;
  across.inter_node.nccl_bandwidth.bytes_per_second *= share * slower;
  return across;
}

/// A group of neighbours on one node fills that node's links alone, and one of a rank on each node
/// the network alone.
FilledLinks CostModel::links_of(const Work& work) const {
  if (work.group == 0 || ranks_per_node == ranks || !cluster_.ranks_per_node.equal())
    return FilledLinks::all;
  if (work.stride >= ranks_per_node && work.stride % ranks_per_node == 0 && ranks_per_node > 1)
    return FilledLinks::between;
  const bool is_inside = work.stride == 1 && ranks_per_node % work.group == 0;
  return is_inside ? FilledLinks::inside : FilledLinks::all;
}

/// The price of a collective among all ranks, or among a group of ranks: within one node if the
/// group fits in a node.
CollectiveCost CostModel::among(const Work& work, GroupLaws& groups) const {
  if (work.group == 0) return collective.of(work.operation, work.payload);
  const auto by = [&](std::int32_t size, std::int32_t stride, const CalibratedCluster& cluster) {
    const auto [found, is_new] = groups.try_emplace({size, stride}, cluster);
    if (is_new) found->second.change = collective.change;
    return &found->second;
  };
  if (work.stride > 1 && work.group > 1 && ranks_per_node < ranks) {
    if (const auto across = across_nodes(work.group, work.stride))
      return by(work.group, work.stride, *across)->of(work.operation, work.payload);
    return collective.of(work.operation, work.payload, work.group);
  }
  if (work.group > ranks_per_node || ranks_per_node == ranks)
    return collective.of(work.operation, work.payload, work.group);
  if (ranks_per_node == 1 || work.group == 1) return {};
  CalibratedCluster one_node = cluster_;
  one_node.nodes = 1;
  one_node.ranks_per_node = ranks_per_node;
  one_node.forced.algorithm.reset();  // it may be one between nodes
  return by(ranks_per_node, 1, one_node)->of(work.operation, work.payload, work.group);
}

Costs price(const program::Job& job, const CalibratedCluster& cluster) {
  return CostModel(cluster).price(job.works, job.passes);
}

}  // namespace ddpsim
