// A comm hook on a GPU.
//
// A step of a comm hook works on "the data": the bucket itself, or, after a cast, a copy in the
// other type, or, in batched PowerSGD, a padded square. Every bucket has memory of its own for all
// of it, so that buckets need no order between them besides that of the streams; the schedule's
// order puts the steps of one bucket behind each other.

#include "backend/nccl/comm_hook/gpu_hook_data.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// Why GPUs do not do it; null: they do.
const char* refusal(const CommStep& step, int ranks) {
  const ActionMeaning does = meaning_of(step.action);
  if (does.target == HookPiece::pairs || does.source == HookPiece::pairs)
    return "topk runs on the gloo backend only";
  if (does.target == HookPiece::plugin_payload || does.source == HookPiece::plugin_payload)
    return "a plugin's comm hook works on the host's memory, so on the gloo backend only";
  if (step.group > 0 || (does.primitive == HookPrimitive::divide && step.divisor != ranks))
    return "all-reduces in subgroups of ranks run on the gloo backend only: set subgroup to all "
           "ranks";
  if (does.primitive == HookPrimitive::broadcast && does.target == HookPiece::parameters)
    return "ranks that update different parameters run on the gloo backend only";
  return nullptr;
}

QuantizeCall quantization(GpuBucketData& data, int part) {
  QuantizeCall call;
  call.values = data.values;
  call.count = data.count;
  call.type = data.type;
  call.channel = data.channels.width;
  call.channels = data.channels.count;
  call.scales = reinterpret_cast<float*>(data.memory_of(HookPiece::scales).get()) +
                std::int64_t{2} * part * data.channels.count;
  call.codes = reinterpret_cast<std::uint8_t*>(data.memory_of(HookPiece::codes).get()) +
               part * data.channels.padded();
  return call;
}

}  // namespace

void GpuHookData::check(const Schedule& schedule) {
  for (const Bucket& bucket : schedule.buckets) {
    std::int64_t elements = 0;
    for (const MatrixShape& each : bucket.gradients) elements += each.rows * each.columns;
    check_rank(bucket, elements);
    for (const CommStep& step : bucket.steps)
      if (const char* why = refusal(step, schedule.ranks); why != nullptr)
        throw std::invalid_argument(fmt::format("comm_hook {}: no \"{}\" on the nccl backend: {}",
                                                schedule.hook_label(), name_of(step.action), why));
  }
}

bool GpuHookData::fits(const Schedule& schedule) const {
  if (hook_state_ != schedule.hook_state || buckets_.size() != schedule.buckets.size())
    return false;
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    if (!buckets_[b].of(schedule.buckets[b], memory_.type_of(schedule.buckets[b]))) return false;
  return true;
}

void GpuHookData::arrange(const Schedule& schedule) {
  if (schedule.hook_state.empty()) return;
  if (!fits(schedule)) {
    hook_state_ = schedule.hook_state;
    seeds_.emplace(schedule.hook_seed);
    next_seed_ = 0;
    buckets_.clear();
    for (const Bucket& bucket : schedule.buckets)
      buckets_.emplace_back(bucket, memory_.type_of(bucket));
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    buckets_[b].bucket = memory_.bucket(static_cast<std::int32_t>(b));
    for (const CommStep& step : schedule.buckets[b].steps) make_room(buckets_[b], step);
    begin_q(b, schedule.buckets[b].steps);
  }
}

/// A steady state has no beginning, but needs a Q.
void GpuHookData::begin_q(std::size_t bucket, const std::vector<CommStep>& steps) {
  GpuBucketData& data = buckets_[bucket];
  if (data.drawn) return;
  for (const CommStep& step : steps) {
    const ActionMeaning does = meaning_of(step.action);
    if (does.primitive == HookPrimitive::draw) return;
    if (does.primitive != HookPrimitive::orthogonalize) continue;
    data.type = step.type;
    draw(bucket);
    for (std::size_t c = 0; c < data.low_rank.compressed.size(); ++c)
      put_q(data, c, Stream::compute);
    return;
  }
}

void GpuHookData::make_room(GpuBucketData& data, const CommStep& step) {
  const ActionMeaning does = meaning_of(step.action);
  const auto room = [&](GpuBucketData::Memory& memory, Bytes size, const char* what) {
    if (!memory) memory = gpu_.allocate(size, what);
  };
  if (does.primitive == HookPrimitive::cast)
    room(data.copy, Bytes{(data.bucket_type == DType::fp32 ? 2 : 4) * data.elements},
         "a cast bucket");
  if (does.primitive == HookPrimitive::pad)
    room(data.square, data.low_rank.compressed.front().m.count * size_of(step.type),
         "a padded bucket");
  for (const HookPiece piece : {does.target, does.source, does.second_source})
    make_room(data, piece, step.type);
  make_room_for_parts(data, does, step.type);
}

void GpuHookData::make_room(GpuBucketData& data, HookPiece piece, DType type) {
  const auto room = [&](Bytes size, const char* what) {
    GpuBucketData::Memory& memory = data.memory_of(piece);
    if (memory || size == Bytes{}) return;
    memory = gpu_.allocate(size, what);
    if (piece != HookPiece::error) return;
    gpu_.clear(Stream::compute, memory.get(), size);
    data.error_type = type;
  };
  const Bytes element = size_of(type);
  const std::int64_t parts = collectives_.parts();
  switch (piece) {
    case HookPiece::p:
      return room(data.count_of(piece) * element, "PowerSGD's P");
    case HookPiece::q:
      return room(data.count_of(piece) * element, "PowerSGD's Q");
    case HookPiece::small:
      return room(data.count_of(piece) * element, "uncompressed gradients");
    case HookPiece::input:
      return room(data.count_of(piece) * element, "PowerSGD's input");
    case HookPiece::error:
      return room(data.count_of(piece) * element, "PowerSGD's error");
    case HookPiece::scales:
      return room(Bytes{parts * 2 * 4 * data.channels.count}, "scales");
    case HookPiece::codes:
      return room(Bytes{parts * data.channels.padded()}, "8-bit codes");
    case HookPiece::none:
    case HookPiece::data:
    case HookPiece::matrix:
    case HookPiece::own_part:
    case HookPiece::pairs:
    case HookPiece::plugin_payload:
    case HookPiece::parameters:
      return;
  }
}

/// Parts of one bucket are rounded up; a cast may come between those of scatter and gather.
void GpuHookData::make_room_for_parts(GpuBucketData& data, const ActionMeaning& does, DType type) {
  const bool sums = does.primitive == HookPrimitive::all_gather && does.target == HookPiece::data;
  const bool by_part =
      does.primitive == HookPrimitive::reduce_scatter || does.target == HookPiece::own_part;
  if (!sums && !by_part) return;
  const std::int64_t parts = collectives_.parts();
  const Bytes wanted =
      sums ? parts * data.elements * size_of(type) : Bytes{4 * (data.elements + parts)};
  if (wanted > data.parts_room) data.parts.reset();
  data.parts_room = std::max(data.parts_room, wanted);
  if (!data.parts) data.parts = gpu_.allocate(wanted, "parts of buckets");
}

/// 1 / ranks is one over those that are summed.
float GpuHookData::factor_of(const CommStep& step) const {
  const bool averages = step.factor == 1.0 / collectives_.parts();
  return averages ? mean() : static_cast<float>(step.factor);
}

void GpuHookData::run(const Schedule& schedule, const Task& task) {
  GpuBucketData& data = buckets_[at(task.bucket)];
  const CommStep& step = schedule.buckets[at(task.bucket)].steps[at(task.step)];
  const ActionMeaning does = meaning_of(step.action);
  const Stream stream = task.stream;
  const auto values_of = [&](HookPiece piece) { return data.all_of(piece).values; };
  if (task.step == 0) {
    data.values = data.bucket;
    data.type = data.bucket_type;
    data.count = data.elements;
  }
  switch (does.primitive) {
    case HookPrimitive::nothing:  // the host has waited
      return;
    case HookPrimitive::cast:
      return cast(data, step.type, stream);
    case HookPrimitive::divide:
      return scale(data, does.target, mean(), stream);
    case HookPrimitive::scale:
      return scale(data, does.target, factor_of(step), stream);
    case HookPrimitive::copy:
      return copy(stream, values_of(does.target), values_of(does.source), data.count, data.type);
    case HookPrimitive::add:
      return gpu_.add(stream, values_of(does.target), values_of(does.source), data.count,
                      data.type);
    case HookPrimitive::subtract:
      return gpu_.subtract(stream, values_of(does.target), values_of(does.source),
                           values_of(does.second_source), data.count, data.type);
    case HookPrimitive::pad:
      return pad(data, stream);
    case HookPrimitive::unpad:
      return unpad(data, stream);
    case HookPrimitive::pack:
      return pack(data, stream);
    case HookPrimitive::unpack:
      return unpack(data, stream);
    case HookPrimitive::draw:
      if (data.normals.empty()) draw(at(task.bucket));
      return put_q(data, step, stream);
    case HookPrimitive::orthogonalize:
      return orthogonalize(data, does.target, step, stream);
    case HookPrimitive::multiply:
      return multiply(data, does.target, step, stream);
    case HookPrimitive::observe:
      return gpu_.observe(stream, quantization(data, collectives_.rank()));
    case HookPrimitive::quantize:
      return gpu_.quantize(stream, quantization(data, collectives_.rank()));
    case HookPrimitive::dequantize:
      return gpu_.dequantize(stream, quantization(data, 0), collectives_.parts(), mean());
    case HookPrimitive::touch:
      return traffic_.move(stream, step.kernel.traffic, step.kernel.launches,
                           static_cast<std::uint32_t>(task.bucket));
    case HookPrimitive::update:
      return optimizer_.update_bucket(schedule, task);
    case HookPrimitive::all_reduce:
    case HookPrimitive::reduce_scatter:
    case HookPrimitive::all_gather:
    case HookPrimitive::broadcast:
      return collect(data, does);
    case HookPrimitive::select:
    case HookPrimitive::spread:
    case HookPrimitive::plugin_before:
    case HookPrimitive::plugin_after:
      throw std::invalid_argument(refusal(step, schedule.ranks));
  }
}

void GpuHookData::scale(const GpuBucketData& data, HookPiece piece, float factor, Stream stream) {
  const GpuNumbers all = data.all_of(piece);
  gpu_.scale(stream, all.values, all.values, all.count, data.type, factor);
}

void GpuHookData::copy(Stream stream, void* to, const void* from, std::int64_t count, DType type) {
  gpu_.scale(stream, to, from, count, type, 1);
}

/// Nested wrappers cast again what lies in the copy: between types of 16 bits, in place.
void GpuHookData::cast(GpuBucketData& data, DType to, Stream stream) {
  const std::byte* from = data.values;
  const DType before = data.type;
  data.type = to;
  data.values = data.home();
  if (from != data.values || before != to)
    gpu_.convert(stream, data.values, to, from, before, data.count);
}

void GpuHookData::pad(GpuBucketData& data, Stream stream) {
  copy(stream, data.square.get(), data.values, data.elements, data.type);
  data.values = data.square.get();
  data.count = data.low_rank.compressed.front().m.count;
  const Bytes zeros = (data.count - data.elements) * size_of(data.type);
  if (zeros > Bytes{})
    gpu_.clear(stream, data.values + (data.elements * size_of(data.type)).count, zeros);
}

void GpuHookData::unpad(GpuBucketData& data, Stream stream) {
  data.values = data.home();
  data.count = data.elements;
  copy(stream, data.values, data.square.get(), data.count, data.type);
}

std::vector<float> GpuHookData::error(int bucket) const {
  if (at(bucket) >= buckets_.size()) return {};
  const GpuBucketData& data = buckets_[at(bucket)];
  const std::byte* error = data.at(HookPiece::error, 0);
  if (error == nullptr) return {};
  return gpu_.read(error, data.count_of(HookPiece::error), data.error_type);
}

}  // namespace ddpsim
