#include "model/parallel/write/step_buffers.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ddpsim {
namespace {

using program::Holds;
using program::Life;
using program::nowhere;
using program::Slice;
using program::Start;

constexpr std::int64_t number_size = 8;  ///< bytes of a row's number

constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

}  // namespace

StepBuffers::StepBuffers(program::JobMemory& memory, const StepWorks& works)
    : memory_(memory),
      works_(works),
      gradients_(works.parameters()),
      fresh_(works.parameters()),
      slots_(works.parameters()),
      where_(works.parameters()),
      sent_(works.parameters(), false),
      module_buffers_(works.buffers.size()),
      flat_buffers_(works.buffers.size()) {
  memory_.job.buffers.reserve(4 * works.parameters() + 64);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(works.parameters()); ++i)
    weights_.push_back(memory_.add("w", i, Holds::parameter, type_of(i), elements_of(i), Life::job,
                                   Start::parameters));
}

DType StepBuffers::type_of(std::int32_t parameter) const {
  return stored_type(works_.gradients[at(parameter)].dtype);
}

std::int64_t StepBuffers::elements_of(std::int32_t parameter) const {
  return works_.gradients[at(parameter)].size.count / size_of(type_of(parameter)).count;
}

void StepBuffers::add_bucket(const Bucket& bucket) {
  const std::int32_t first = bucket.parameters.front();
  if (bucket.in_place || bucket.sparse) {
    buckets_.push_back(gradient(first));
    slots_[at(first)] = buckets_.back();
    return;
  }
  const bool mixed = std::ranges::any_of(
      bucket.parameters, [&](std::int32_t each) { return type_of(each) != type_of(first); });
  const bool in_bytes = mixed && !bucket.has_hook;
  const DType type = in_bytes ? DType::fp8_e4m3 : type_of(first);
  std::int64_t elements = 0;
  for (const std::int32_t each : bucket.parameters) {
    const std::int64_t count = in_bytes ? works_.gradients[at(each)].size.count : elements_of(each);
    elements = rounded_up(elements, bucket.align);
    slots_[at(each)] = {program::no_buffer, nowhere, elements, count};
    elements += count;
  }
  elements = rounded_up(elements, bucket.multiple);
  const auto index = static_cast<std::int32_t>(buckets_.size());
  const bool is_padded = bucket.align > 1 || bucket.multiple > 1;
  buckets_.push_back(memory_.add("b", index, Holds::bucket, type, elements, Life::step,
                                 is_padded ? Start::zeros : Start::undefined));
  for (const std::int32_t each : bucket.parameters) {
    slots_[at(each)].buffer = buckets_.back().buffer;
    if (bucket.views && !works_.gradients[at(each)].unused) where_[at(each)] = slots_[at(each)];
  }
}

Slice StepBuffers::put_together(const Bucket& bucket, std::int32_t index) {
  const DType type = memory_.job.buffers[buckets_[at(index)].buffer].type;
  const Slice whole = memory_.add("weights", index, Holds::parameter, type,
                                  buckets_[at(index)].count, Life::job, Start::zeros);
  for (const std::int32_t each : bucket.parameters) {
    Slice& inside = memory_.job.buffers[weights_[at(each)].buffer].inside;
    inside = slots_[at(each)];
    inside.buffer = whole.buffer;
  }
  return whole;
}

StepBuffers::WeightsTogether StepBuffers::put_weights_together(
    const std::vector<std::int32_t>& parameters, std::int32_t index, std::int64_t align,
    std::int64_t multiple) {
  WeightsTogether together;
  std::int64_t end = 0;
  for (const std::int32_t each : parameters) {
    end = rounded_up(end, align);
    together.places.push_back({program::no_buffer, nowhere, end, elements_of(each)});
    end += elements_of(each);
  }
  together.all = memory_.add("weights", index, Holds::parameter, type_of(parameters.front()),
                             rounded_up(end, multiple), Life::job, Start::zeros);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    together.places[i].buffer = together.all.buffer;
    memory_.job.buffers[weights_[at(parameters[i])].buffer].inside = together.places[i];
  }
  return together;
}

void StepBuffers::share_gradient(std::int32_t parameter, std::int64_t begin, const Slice& where,
                                 std::int16_t communicator) {
  parts_.resize(works_.parameters());
  shared_.resize(works_.parameters());
  parts_[at(parameter)] = {communicator, elements_of(parameter), begin, true};
  shared_[at(parameter)] = where;
}

void StepBuffers::shard(std::int32_t parameter, std::int64_t elements, std::int16_t communicator,
                        std::int64_t padded) {
  parts_.resize(works_.parameters());
  parts_[at(parameter)] = {communicator, elements_of(parameter)};
  shards_.resize(works_.parameters());
  shard_gradients_.resize(works_.parameters());
  Slice& weight = weights_[at(parameter)];
  memory_.job.buffers[weight.buffer].elements = elements;
  memory_.job.buffers[weight.buffer].type = kept_type(parameter);
  shards_[at(parameter)] = {weight.buffer, nowhere, 0, elements};
  weight = memory_.add("full", parameter, Holds::parameter, type_of(parameter),
                       std::max(elements_of(parameter), padded), Life::held);
  weight.count = elements_of(parameter);
}

void StepBuffers::shard_in_flat(std::int32_t parameter, std::int64_t begin, const Slice& shard,
                                std::int16_t communicator) {
  parts_.resize(works_.parameters());
  parts_[at(parameter)] = {communicator, elements_of(parameter), begin};
  shards_.resize(works_.parameters());
  shard_gradients_.resize(works_.parameters());
  program::Buffer& weight = memory_.job.buffers[weights_[at(parameter)].buffer];
  weight.inside = shard;
  weight.elements = shard.count;
  weight.type = kept_type(parameter);
  weight.name = memory_.label(fmt::format("w at {}", begin));
  shards_[at(parameter)] = {weights_[at(parameter)].buffer, nowhere, 0, shard.count};
}

const Slice& StepBuffers::gradient_memory(std::vector<Slice>& of, const char* name,
                                          std::int32_t parameter) {
  Slice& slice = of[at(parameter)];
  if (slice.buffer == program::no_buffer)
    slice = memory_.add(name, parameter, Holds::gradient, type_of(parameter),
                        elements_of(parameter), is_sharded(parameter) ? Life::held : Life::step,
                        is_sparse(parameter) ? Start::zeros : Start::undefined);
  return slice;
}

const Slice& StepBuffers::where(std::int32_t parameter) {
  Slice& where = where_[at(parameter)];
  if (where.buffer == program::no_buffer) where = gradient(parameter);
  return where;
}

const Slice& StepBuffers::fresh(std::int32_t parameter) {
  return gradient_memory(fresh_, "fresh", parameter);
}

const Slice& StepBuffers::computed(std::int32_t parameter) {
  return micro_batch_ == 0 || in_place_ ? where(parameter) : fresh(parameter);
}

std::vector<Slice> StepBuffers::slots(const Bucket& bucket) const {
  std::vector<Slice> slots;
  for (const std::int32_t each : bucket.parameters) slots.push_back(slot(each));
  return slots;
}

Slice StepBuffers::gradient_now(std::int32_t parameter) {
  if (is_sharded(parameter)) return shard_gradients_[at(parameter)];
  if (!shared_.empty() && !shared_[at(parameter)].empty()) return shared_[at(parameter)];
  return sent_[at(parameter)] ? slots_[at(parameter)] : where(parameter);
}

void StepBuffers::begin_micro_batch(std::int16_t number) {
  for (std::size_t i = 0; i < where_.size(); ++i)
    if (sent_[i]) where_[i] = slots_[i];
  sent_.assign(sent_.size(), false);
  micro_batch_ = number;
}

const Slice& StepBuffers::take_back(std::int32_t parameter) {
  where_[at(parameter)] = gradient(parameter);
  sent_[at(parameter)] = false;
  return gradient(parameter);
}

const StepBuffers::Rows& StepBuffers::rows_of(std::int32_t parameter) {
  const auto [found, is_new] = rows_.try_emplace(parameter);
  Rows& rows = found->second;
  if (!is_new) return rows;
  const StepWorks::SparseSizes& sizes = works_.sparse[at(parameter)];
  const auto add = [&](const char* name, Bytes size) {
    return memory_.bytes(name, parameter, Holds::gradient, size, Life::step, Start::zeros);
  };
  const auto add_values = [&](const char* name, Bytes size) {
    const DType type = type_of(parameter);
    return memory_.add(name, parameter, Holds::gradient, type, size.count / size_of(type).count,
                       Life::step, Start::zeros);
  };
  rows.numbers = add("rows", sizes.indices);
  rows.values = add_values("values of rows", sizes.values);
  rows.all_numbers = add("all rows", works_.device.ranks * sizes.indices);
  rows.all_values = add_values("values of all rows", works_.device.ranks * sizes.values);
  return rows;
}

program::Operands StepBuffers::rows_filled(const std::vector<std::int32_t>& parameters) {
  if (std::ranges::none_of(parameters, [this](std::int32_t each) { return is_sparse(each); }))
    return {};
  std::vector<Slice> filled;
  for (const std::int32_t each : parameters) {
    if (!is_sparse(each)) {
      filled.resize(filled.size() + 2);
      continue;
    }
    const Rows& rows = rows_of(each);
    Slice first = computed(each);
    first.count = rows.values.count / (rows.numbers.count / number_size);
    filled.push_back(rows.numbers);
    filled.push_back(first);
  }
  return memory_.list(filled);
}

const Slice& StepBuffers::module_buffers(std::size_t group) {
  Slice& slice = module_buffers_[group];
  if (slice.buffer == program::no_buffer)
    slice = memory_.bytes("buffers", static_cast<std::int32_t>(group), Holds::module_buffer,
                          works_.buffers[group].size, Life::job, Start::zeros);
  return slice;
}

const Slice& StepBuffers::flat_buffers(std::size_t group) {
  Slice& slice = flat_buffers_[group];
  if (slice.buffer == program::no_buffer)
    slice = memory_.bytes("flat", static_cast<std::int32_t>(group), Holds::module_buffer,
                          works_.buffers[group].size);
  return slice;
}

const Slice& StepBuffers::model() {
  if (model_.buffer != program::no_buffer) return model_;
  std::int64_t elements = 0;
  bool mixed = false;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(works_.parameters()); ++i) {
    mixed = mixed || type_of(i) != type_of(0);
    elements += elements_of(i);
  }
  model_ = mixed ? memory_.bytes("model", nobody, Holds::parameter, works_.gradient_size)
                 : memory_.add("model", nobody, Holds::parameter, type_of(0), elements);
  return model_;
}

program::Update StepBuffers::update(const std::vector<std::int32_t>& which,
                                    const std::vector<Slice>& gradients) {
  std::vector<Slice> parameters, state;
  for (const std::int32_t each : which) {
    parameters.push_back(is_sharded(each) ? shard_of(each) : weight(each));
    for (std::size_t k = 0; k < state_slices(works_.updates); ++k)
      state.push_back(kept_by_optimizer(each, k));
  }
  const program::Operands updated = memory_.list(parameters), by = memory_.list(gradients);
  return {.optimizer = runs_on_ranks(works_.updates) ? works_.updates : Optimizer::none,
          .parameters = updated,
          .gradients = by,
          .state = memory_.list(state)};
}

program::Update StepBuffers::update(const std::vector<OwnPart>& parts) {
  std::vector<Slice> parameters, gradients, state;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parameters.push_back(parts[i].parameters);
    gradients.push_back(parts[i].gradients);
    for (std::size_t k = 0; k < state_slices(works_.updates); ++k)
      state.push_back(memory_.add(k == 0 ? "momentum" : "variance", static_cast<std::int32_t>(i),
                                  Holds::optimizer,
                                  memory_.job.buffers[parts[i].gradients.buffer].type,
                                  parts[i].parameters.count, Life::job, Start::zeros));
  }
  const program::Operands updated = memory_.list(parameters), by = memory_.list(gradients);
  return {.optimizer = runs_on_ranks(works_.updates) ? works_.updates : Optimizer::none,
          .parameters = updated,
          .gradients = by,
          .state = memory_.list(state)};
}

Slice StepBuffers::kept_by_optimizer(std::int32_t parameter, std::size_t which) {
  std::vector<Slice>& kept = kept_[which];
  kept.resize(works_.parameters());
  Slice& slice = kept[at(parameter)];
  if (slice.buffer == program::no_buffer)
    slice = memory_.add(which == 0 ? "momentum" : "variance", parameter, Holds::optimizer,
                        kept_type(parameter),
                        is_sharded(parameter) ? shard_of(parameter).count : elements_of(parameter),
                        Life::job, Start::zeros);
  return slice;
}

std::vector<Slice> StepBuffers::all_gradients() const {
  std::vector<Slice> all;
  for (const Slice& each : gradients_)
    if (each.buffer != program::no_buffer) all.push_back(each);
  all.insert(all.end(), buckets_.begin(), buckets_.end());
  return all;
}

}  // namespace ddpsim
