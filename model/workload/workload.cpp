#include "model/workload/workload.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <unordered_set>
#include <variant>

#include <fmt/format.h>

namespace ddpsim {

std::int64_t Parameter::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
}

bool reduces_rows(const Kernel& kernel) {
  return kernel.reduces_rows || std::ranges::any_of(kernel.parts, [](const KernelPart& part) {
           const auto* pattern = std::get_if<MemoryPattern>(&part.kernel.shape);
           return pattern != nullptr && reduces_rows(pattern->of);
         });
}

Bytes FrozenParameter::size() const {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  return elements * size_of(dtype);
}

Bytes Parameter::size() const {
  return elements() * size_of(dtype);
}

namespace {

std::int64_t rows_sent(const Parameter& parameter) {
  return parameter.sparse_rows > 0 ? parameter.sparse_rows : parameter.shape.front();
}

}  // namespace

Bytes Parameter::sparse_values() const {
  return elements() / shape.front() * rows_sent(*this) * size_of(dtype);
}

Bytes Parameter::sparse_indices() const {
  return Bytes{8 * rows_sent(*this)};
}

std::vector<BufferGroup> cut(const std::vector<BufferGroup>& groups, Bytes most) {
  std::vector<BufferGroup> parts;
  for (BufferGroup rest : groups) {
    const double tensor = static_cast<double>(rest.size.count) / std::max(rest.tensors, 1);
    const double count = std::ceil(static_cast<double>(most.count) / std::max(tensor, 1.0));
    while (rest.tensors > count) {
      const auto tensors = static_cast<int>(count);
      parts.push_back({tensors, Bytes{static_cast<std::int64_t>(tensors * tensor)}});
      rest.tensors -= tensors;
      rest.size = rest.size - parts.back().size;
    }
    parts.push_back(rest);
  }
  return parts;
}

std::int64_t Workload::elements() const {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters) sum += parameter.elements();
  return sum;
}

Bytes Workload::gradient_size() const {
  Bytes sum;
  for (const Parameter& parameter : parameters) sum += parameter.size();
  return sum;
}

bool has_memory(const Workload& workload) {
  return std::all_of(workload.layers.begin(), workload.layers.end(),
                     [](const Layer& layer) { return !layer.memory.empty(); });
}

bool has_shapes(const Workload& workload) {
  for (const Layer& layer : workload.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const Kernel& kernel : *pass)
        if (!kernel.gemm && kernel.time && kernel.traffic == Bytes{}) return false;
  return true;
}

bool has_measured_kernels(const Workload& workload) {
  for (const Layer& layer : workload.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const Kernel& kernel : *pass)
        if (kernel.time) return true;
  return false;
}

std::optional<DType> main_format(const Workload& workload) {
  std::map<DType, double> flops;
  for (const Layer& layer : workload.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const Kernel& kernel : *pass)
        if (kernel.gemm) flops[kernel.type] += kernel.gemm->flops();
  const auto most = std::max_element(
      flops.begin(), flops.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == flops.end() ? std::nullopt : std::optional(most->first);
}

std::vector<int> arrival_order(const Workload& workload) {
  const auto unused_last = [&](std::vector<int> order) {
    const auto unused = std::stable_partition(order.begin(), order.end(), [&](int index) {
      return !workload.parameters[static_cast<std::size_t>(index)].unused;
    });
    std::sort(unused, order.end());
    return order;
  };
  if (!workload.arrival.empty()) return unused_last(workload.arrival);
  std::vector<int> order(workload.parameters.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const Parameter& first = workload.parameters[static_cast<std::size_t>(a)];
    const Parameter& second = workload.parameters[static_cast<std::size_t>(b)];
    if (first.layer != second.layer) return first.layer > second.layer;
    if (first.ready_after != second.ready_after) return first.ready_after < second.ready_after;
    return a > b;
  });
  return unused_last(std::move(order));
}

namespace {

/// Of a parameter, trained or not, that is of a layer of the workload.
template <class AnyParameter>
bool ranges_are_in(const Layer& layer, const AnyParameter& parameter) {
  const auto is_in = [](const std::optional<KernelRange>& range, const std::vector<Kernel>& pass) {
    return !range || (range->first >= 0 && range->first <= range->last &&
                      static_cast<std::size_t>(range->last) < pass.size());
  };
  return is_in(parameter.forward, layer.forward) && is_in(parameter.backward, layer.backward);
}

}  // namespace

void check(const Workload& workload) {
  const auto fail = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("workload {}: {}", workload.name, what));
  };
  for (const Layer& layer : workload.layers) {
    for (const auto* pass : {&layer.forward, &layer.backward}) {
      for (const Kernel& kernel : *pass) {
        const bool shaped = !kernel.gemm || (kernel.gemm->m > 0 && kernel.gemm->n > 0 &&
                                             kernel.gemm->k > 0 && kernel.gemm->batch > 0);
        if (!shaped || kernel.traffic.count < 0 || kernel.launches < 1 || kernel.calls < 0)
          fail(fmt::format("kernel {} of layer {} has no positive size", kernel.name, layer.name));
      }
    }
  }
  if (workload.parameters.empty()) fail("no parameters");
  // 2^48 elements are far beyond any memory and keep every later sum inside 64 bits.
  constexpr std::int64_t limit = std::int64_t{1} << 48;
  std::int64_t all = 0;
  std::unordered_set<std::string> names;
  for (const Parameter& parameter : workload.parameters) {
    if (!names.insert(parameter.name).second) fail("two parameters are named " + parameter.name);
    std::int64_t elements = 1;
    for (const std::int64_t extent : parameter.shape) {
      if (extent < 1 || extent > limit / elements)
        fail(fmt::format("parameter {} has an extent of {}", parameter.name, extent));
      elements *= extent;
    }
    all += elements;
    if (all > limit)
      fail(fmt::format("up to parameter {} there are {} elements", parameter.name, all));
    if (parameter.sparse) {
      if (parameter.shape.empty())
        fail(
            fmt::format("parameter {} is a single number, which cannot be sparse", parameter.name));
      if (parameter.sparse_rows < 0 ||
          parameter.sparse_rows > limit / (elements / parameter.shape.front()))
        fail(fmt::format("parameter {} has {} rows in its sparse gradient", parameter.name,
                         parameter.sparse_rows));
    }
    const auto layer = static_cast<std::size_t>(parameter.layer);
    if (parameter.layer < 0 || layer >= workload.layers.size() || parameter.ready_after < 0 ||
        static_cast<std::size_t>(parameter.ready_after) >= workload.layers[layer].backward.size())
      fail(fmt::format("parameter {} waits for a kernel that does not exist", parameter.name));
    if (!ranges_are_in(workload.layers[layer], parameter) ||
        (parameter.backward && parameter.ready_after > parameter.backward->last))
      fail(
          fmt::format("the module of parameter {} runs kernels that do not exist, or none when "
                      "its gradient is complete",
                      parameter.name));
  }
  for (const FrozenParameter& frozen : workload.frozen_parameters)
    if (frozen.layer < 0 || static_cast<std::size_t>(frozen.layer) >= workload.layers.size() ||
        !ranges_are_in(workload.layers[static_cast<std::size_t>(frozen.layer)], frozen))
      fail(fmt::format("frozen parameter {} is of kernels that do not exist", frozen.name));
  if (std::all_of(workload.parameters.begin(), workload.parameters.end(),
                  [](const Parameter& each) { return each.unused; }))
    fail("no parameter is used");
  if (!workload.arrival.empty()) {
    std::vector<bool> seen(workload.parameters.size(), false);
    for (const int index : workload.arrival) {
      if (index < 0 || static_cast<std::size_t>(index) >= seen.size() ||
          seen[static_cast<std::size_t>(index)])
        fail("arrival must name every parameter index once");
      seen[static_cast<std::size_t>(index)] = true;
    }
    if (workload.arrival.size() != workload.parameters.size())
      fail("arrival must name every parameter index once");
  }
}

}  // namespace ddpsim
