#include "backend/gloo/memory.hpp"

#include <algorithm>

#include "backend/execute/start_values.hpp"

namespace ddpsim {
namespace {

std::vector<std::span<float>> spans_in(std::vector<float>& store, const Workload& workload) {
  std::vector<std::span<float>> spans;
  std::size_t offset = 0;
  for (const Parameter& parameter : workload.parameters) {
    const auto count = static_cast<std::size_t>(parameter.elements());
    spans.push_back(std::span(store).subspan(offset, count));
    offset += count;
  }
  return spans;
}

}  // namespace

Memory::Memory(const Workload& workload, Optimizer optimizer, int rank)
    : workload_(workload), sparse_(workload, rank), operands_(rank) {
  const auto elements = static_cast<std::size_t>(workload.elements());
  parameter_store_ = execute::random_values(workload.elements(), 1);  // the same on all ranks
  parameters_ = spans_in(parameter_store_, workload);
  gradient_store_.assign(elements, 0);
  gradients_ = spans_in(gradient_store_, workload);
  offsets_ = gradient_offsets(workload, sizeof(float));
  bucket_store_.assign(elements, 0);
  const bool adam = optimizer == Optimizer::adam || optimizer == Optimizer::adamw ||
                    optimizer == Optimizer::adamw_fused || optimizer == Optimizer::adamw_loop;
  if (adam || optimizer == Optimizer::sgd) {
    momentum_store_.assign(elements, 0);
    momenta_ = spans_in(momentum_store_, workload);
  }
  if (adam) {
    variance_store_.assign(elements, 0);
    variances_ = spans_in(variance_store_, workload);
  }
  slices_.resize(workload.parameters.size());

  std::int64_t most = 1;
  for (const Parameter& parameter : workload.parameters)
    most = std::max(most, parameter.elements());
  for (const Layer& layer : workload.layers) {
    for (const Kernel& kernel : layer.forward)
      most = std::max(most, reach(kernel.traffic, kernel.gemm));
    for (const Kernel& kernel : layer.backward)
      most = std::max(most, reach(kernel.traffic, kernel.gemm));
    forward_.emplace_back(layer.forward.size());
    backward_.emplace_back(layer.backward.size());
  }
  operands_.reserve(most);
  std::int64_t buffer_bytes = 0;
  for (const BufferGroup& group : workload.buffers)
    buffer_bytes = std::max(buffer_bytes, group.size.count);
  buffers_.assign(2 * static_cast<std::size_t>(buffer_bytes), 0);

  auto gradients = bind_gradients(workload);
  const std::vector<WeightBindings> weights = bind_weights(workload, gradients);
  for (std::size_t layer = 0; layer < gradients.size(); ++layer) {
    for (std::size_t k = 0; k < weights[layer].forward.size(); ++k)
      forward_[layer][k].weight = weights[layer].forward[k];
    for (std::size_t k = 0; k < gradients[layer].size(); ++k)
      backward_[layer][k] = {std::move(gradients[layer][k]), weights[layer].backward[k]};
  }
}

void Memory::arrange(const Schedule& schedule) {
  if (fresh_store_.empty() && std::any_of(schedule.tasks.begin(), schedule.tasks.end(),
                                          [](const Task& task) { return task.micro_batch > 0; })) {
    fresh_store_.assign(gradient_store_.size(), 0);
    fresh_ = spans_in(fresh_store_, workload_);
  }
  std::size_t notes = 0;
  note_begin_.assign(schedule.tasks.size(), 0);
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    note_begin_[i] = notes;
    if (!is_note(schedule, schedule.tasks[i])) continue;
    const Bytes payload = schedule.work_of(schedule.tasks[i]).payload;
    notes += static_cast<std::size_t>(payload.count) / sizeof(float);
  }
  notes_.assign(notes, 0);
  const Placement placement = place(schedule, workload_, offsets_);
  const auto span_of = [&](const Place& place, std::int64_t bytes) {
    return std::span(place.in_buckets ? bucket_store_ : gradient_store_)
        .subspan(static_cast<std::size_t>(place.offset) / sizeof(float),
                 static_cast<std::size_t>(bytes) / sizeof(float));
  };
  for (std::size_t p = 0; p < gradients_.size(); ++p) {
    const std::int64_t bytes = workload_.parameters[p].size().count;
    gradients_[p] = span_of(placement.gradients[p], bytes);
    slices_[p] = span_of(placement.slices[p], bytes);
  }
  buckets_.clear();
  for (std::size_t b = 0; b < schedule.buckets.size(); ++b) {
    std::int64_t bytes = 0;  // of a sparse gradient all rows, though fewer are sent
    for (const std::int32_t p : schedule.buckets[b].parameters)
      bytes += workload_.parameters[at(p)].size().count;
    buckets_.push_back(span_of(placement.buckets[b], bytes));
  }
  const bool sends_parameters = std::ranges::any_of(schedule.buckets, [](const Bucket& bucket) {
    return std::ranges::any_of(bucket.steps, [](const CommStep& step) {
      return step.action == CommAction::send_parameters;
    });
  });
  if (sends_parameters) join_parameters(schedule);
}

/// Moves the parameters of each bucket next to each other, in the bucket's order, unless they lie
/// so already.
void Memory::join_parameters(const Schedule& schedule) {
  std::vector<std::int32_t> order;
  bucket_parameters_.clear();
  for (const Bucket& bucket : schedule.buckets)
    order.insert(order.end(), bucket.parameters.begin(), bucket.parameters.end());
  const bool joined =
      std::is_sorted(order.begin(), order.end(), [this](std::int32_t a, std::int32_t b) {
        return parameters_[at(a)].data() < parameters_[at(b)].data();
      });
  if (!joined) {
    std::vector<float> store;
    store.reserve(parameter_store_.size());
    for (const std::int32_t p : order) {
      store.insert(store.end(), parameters_[at(p)].begin(), parameters_[at(p)].end());
      parameters_[at(p)] = std::span(store).last(parameters_[at(p)].size());
    }
    parameter_store_ = std::move(store);
  }
  std::size_t offset = 0;
  for (const Bucket& bucket : schedule.buckets) {
    std::size_t count = 0;
    for (const std::int32_t p : bucket.parameters) count += parameters_[at(p)].size();
    bucket_parameters_.push_back(std::span(parameter_store_).subspan(offset, count));
    offset += count;
  }
}

void Memory::clear_gradients() {
  std::fill(gradient_store_.begin(), gradient_store_.end(), 0.0F);
  std::fill(bucket_store_.begin(), bucket_store_.end(), 0.0F);
}

void Memory::end_average() {
  for (std::span<float>& each : parameters_)
    each =
        std::span(average_store_)
            .subspan(static_cast<std::size_t>(each.data() - parameter_store_.data()), each.size());
  parameter_store_.swap(average_store_);
}

std::span<float> Memory::note(std::uint32_t task, Bytes size) {
  return std::span(notes_).subspan(note_begin_[task],
                                   static_cast<std::size_t>(size.count) / sizeof(float));
}

}  // namespace ddpsim
