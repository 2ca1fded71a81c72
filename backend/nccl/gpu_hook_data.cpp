// A comm hook on a GPU.
//
// A step of a comm hook works on "the data": the bucket itself, or, after a cast, a copy in the other
// type, or, in batched PowerSGD, a padded square. Every bucket has memory of its own for all of it,
// so that buckets need no order between them besides that of the streams; the schedule's order puts
// the steps of one bucket behind each other.

#include "backend/nccl/gpu_hook_data.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

std::size_t at(std::int32_t index) {
  return static_cast<std::size_t>(index);
}

/// Why GPUs do not do it; null: they do.
const char* refusal(CommAction action) {
  switch (action) {
    case CommAction::select:
    case CommAction::gather_pairs:
    case CommAction::spread_pairs:
      return "topk runs on the gloo backend only";
    case CommAction::plugin_before:
    case CommAction::plugin_reduce:
    case CommAction::plugin_after:
      return "a plugin's comm hook works on the host's memory, so on the gloo backend only";
    case CommAction::reduce_subgroup:
    case CommAction::divide_subgroup:
      return "all-reduces in subgroups of ranks run on the gloo backend only: set subgroup to all "
             "ranks";
    case CommAction::send_parameters:
      return "ranks that update different parameters run on the gloo backend only";
    default:
      return nullptr;
  }
}

QuantizeCall quantization(const GpuBucketData& data, int part) {
  QuantizeCall call;
  call.values = data.values;
  call.count = data.count;
  call.type = data.type;
  call.channel = data.channel;
  call.channels = data.channels;
  call.scales = reinterpret_cast<float*>(data.scales.get()) + part * 2 * data.channels;
  call.codes =
      reinterpret_cast<std::uint8_t*>(data.codes.get()) + part * data.channel * data.channels;
  return call;
}

}  // namespace

void GpuHookData::check(const Schedule& schedule) {
  const CommHook& hook = schedule.comm_hook;
  for (const Bucket& bucket : schedule.buckets) {
    const std::int64_t elements = CommBucket{bucket.gradients, DType::fp32}.elements();
    if (hook.kind == CommHookKind::batched_powersgd && hook.powersgd.rank > batched_side(elements))
      throw std::invalid_argument(
          fmt::format("batched_powersgd of rank {} needs buckets of more than {} elements",
                      hook.powersgd.rank, elements));
    for (const CommStep& step : bucket.steps)
      if (const char* why = refusal(step.action); why != nullptr)
        throw std::invalid_argument(fmt::format("comm_hook {}: no \"{}\" on the nccl backend: {}",
                                                label(hook), name_of(step.action), why));
  }
}

void GpuHookData::arrange(const Schedule& schedule) {
  if (!schedule.comm_hook) return;
  bool same = hook_ == schedule.comm_hook && buckets_.size() == schedule.buckets.size();
  for (std::size_t b = 0; same && b < buckets_.size(); ++b)
    same = buckets_[b].of(schedule.buckets[b], memory_.type_of(schedule.buckets[b]));
  if (!same) {
    hook_ = schedule.comm_hook;
    seeds_.emplace(hook_.powersgd.seed);
    next_seed_ = 0;
    buckets_.clear();
    for (const Bucket& bucket : schedule.buckets)
      buckets_.emplace_back(hook_, bucket, memory_.type_of(bucket));
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    GpuBucketData& data = buckets_[b];
    data.bucket = memory_.bucket(static_cast<std::int32_t>(b));
    bool begins = data.drawn;
    for (const CommStep& step : schedule.buckets[b].steps) {
      make_room(data, step);
      begins = begins || step.action == CommAction::draw_q;
      if (begins || step.action != CommAction::orthogonalize_q) continue;
      // A steady state has no beginning, but needs a Q.
      data.type = step.type;
      draw(b);
      for (const std::size_t g : data.compressed) put_q(data, g, Stream::compute);
      begins = true;
    }
  }
}

void GpuHookData::make_room(GpuBucketData& data, const CommStep& step) {
  const Bytes element = size_of(step.type);
  const std::int64_t parts = collectives_.parts();
  const auto room = [&](GpuBucketData::Memory& memory, Bytes size, const char* what) {
    if (!memory) memory = gpu_.allocate(size, what);
  };
  const std::int64_t side = batched_side(data.elements);
  const bool padded = hook_.kind == CommHookKind::batched_powersgd;
  const std::int64_t values = padded ? side * side : data.elements;
  switch (step.action) {
    case CommAction::narrow:
      return room(data.copy, Bytes{(data.given == DType::fp32 ? 2 : 4) * data.elements},
                  "a cast bucket");
    case CommAction::pad:
      return room(data.square, values * element, "a padded bucket");
    case CommAction::add_error:
      if (data.error) return;
      room(data.error, values * element, "PowerSGD's error");
      gpu_.clear(Stream::compute, data.error.get(), values * element);
      data.error_type = step.type;
      data.error_size = values;
      return;
    case CommAction::keep_input:
      return room(data.input, values * element, "PowerSGD's input");
    case CommAction::pack:
      return room(data.small, data.small_size * element, "uncompressed gradients");
    case CommAction::orthogonalize_q:
      return room(data.q, data.q_size * element, "PowerSGD's Q");
    case CommAction::draw_q:
      return room(data.q, data.q_size * element, "PowerSGD's Q");
    case CommAction::project:
      return room(data.p, data.p_size * element, "PowerSGD's P");
    case CommAction::observe:
      return room(data.scales, Bytes{parts * 2 * 4 * data.channels}, "scales");
    case CommAction::quantize:
      return room(data.codes, Bytes{parts * data.channel * data.channels}, "8-bit codes");
    case CommAction::gather_sum:
    case CommAction::scatter_reduce:
    case CommAction::gather_parts: {
      // Parts of one bucket are rounded up; a cast may come between.
      const Bytes wanted = step.action == CommAction::gather_sum
                               ? parts * data.elements * element
                               : Bytes{4 * (data.elements + parts)};
      if (wanted > data.parts_room) data.parts.reset();
      data.parts_room = std::max(data.parts_room, wanted);
      return room(data.parts, wanted, "parts of buckets");
    }
    default:
      return;
  }
}

void GpuHookData::run(const Schedule& schedule, const Task& task) {
  GpuBucketData& data = buckets_[at(task.bucket)];
  const CommStep& step = schedule.buckets[at(task.bucket)].steps[at(task.step)];
  const Stream stream = task.stream;
  if (task.step == 0) {
    data.values = data.bucket;
    data.type = data.given;
    data.count = data.elements;
  }
  const auto scale = [&](void* values, std::int64_t count, float factor) {
    gpu_.scale(stream, values, values, count, data.type, factor);
  };
  const auto orthogonalize = [&](void* values, std::int64_t rows) {
    // Batched PowerSGD passes no epsilon on.
    const bool batched = hook_.kind == CommHookKind::batched_powersgd;
    gpu_.orthogonalize(stream, values, rows, data.matrix_of(step).rank, data.type,
                       batched ? 0 : static_cast<float>(hook_.powersgd.orthogonalization_epsilon));
  };
  switch (step.action) {
    case CommAction::divide:
      return scale(data.values, data.count, mean());
    case CommAction::narrow:
    case CommAction::widen:
      return cast(data, step.type, stream);
    case CommAction::scale: {
      // 1 / ranks is one over those that are summed.
      const bool averages = step.factor == 1.0 / collectives_.parts();
      return scale(data.values, data.count, averages ? mean() : static_cast<float>(step.factor));
    }
    case CommAction::pad: {
      const GpuMatrix& whole = data.matrices.front();
      copy(stream, data.square.get(), data.values, data.elements, data.type);
      data.values = data.square.get();
      data.count = whole.rows * whole.columns;
      const Bytes zeros = (data.count - data.elements) * size_of(data.type);
      if (zeros > Bytes{}) gpu_.clear(stream, data.at(data.square, data.elements), zeros);
      return;
    }
    case CommAction::unpad:
      data.values = data.home();
      data.count = data.elements;
      return copy(stream, data.values, data.square.get(), data.count, data.type);
    case CommAction::add_error:
      return gpu_.add(stream, data.values, data.error.get(), data.count, data.type);
    case CommAction::keep_input:
      return copy(stream, data.input.get(), data.values, data.count, data.type);
    case CommAction::keep_error:
      return gpu_.subtract(stream, data.error.get(), data.input.get(), data.values, data.count,
                           data.type);
    case CommAction::pack:
      return pack(data, stream);
    case CommAction::unpack:
      return unpack(data, stream);
    case CommAction::draw_q: {
      if (data.normals.empty()) draw(at(task.bucket));
      return put_q(data, GpuBucketData::gradient_of(step), stream);
    }
    case CommAction::orthogonalize_q: {
      const GpuMatrix& matrix = data.matrix_of(step);
      return orthogonalize(data.at(data.q, matrix.q_begin), matrix.columns);
    }
    case CommAction::orthogonalize_p: {
      const GpuMatrix& matrix = data.matrix_of(step);
      return orthogonalize(data.at(data.p, matrix.p_begin), matrix.rows);
    }
    case CommAction::project:
    case CommAction::back_project:
    case CommAction::reconstruct:
      return multiply(data, step, stream);
    case CommAction::divide_q:
      return scale(data.q.get(), data.q_size, mean());
    case CommAction::observe:
      return gpu_.observe(stream, quantization(data, collectives_.rank()));
    case CommAction::quantize:
      return gpu_.quantize(stream, quantization(data, collectives_.rank()));
    case CommAction::dequantize:
      return gpu_.dequantize(stream, quantization(data, 0), collectives_.parts(), mean());
    case CommAction::touch:
      return memory_.move(stream, step.kernel.traffic, step.kernel.launches,
                          static_cast<std::uint32_t>(task.bucket));
    case CommAction::update:
      return memory_.update_bucket(schedule, task);
    case CommAction::synchronize:  // the host has waited
      return;
    case CommAction::reduce:
    case CommAction::reduce_small:
    case CommAction::reduce_p:
    case CommAction::reduce_q:
    case CommAction::gather_scales:
    case CommAction::gather_codes:
    case CommAction::scatter_reduce:
    case CommAction::gather_parts:
    case CommAction::gather_sum:
    case CommAction::broadcast:
      return collect(data, step);
    case CommAction::select:
    case CommAction::gather_pairs:
    case CommAction::spread_pairs:
    case CommAction::reduce_subgroup:
    case CommAction::divide_subgroup:
    case CommAction::plugin_before:
    case CommAction::plugin_reduce:
    case CommAction::plugin_after:
    case CommAction::send_parameters:
      throw std::invalid_argument(refusal(step.action));
  }
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

std::vector<float> GpuHookData::error(int bucket) const {
  if (at(bucket) >= buckets_.size() || !buckets_[at(bucket)].error) return {};
  const GpuBucketData& data = buckets_[at(bucket)];
  return gpu_.read(data.error.get(), data.error_size, data.error_type);
}

}  // namespace ddpsim
