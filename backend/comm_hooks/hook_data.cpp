#include "backend/comm_hooks/hook_data.hpp"

#include <cassert>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/comm_hooks/pairs.hpp"
#include "backend/comm_hooks/power_sgd.hpp"
#include "backend/comm_hooks/quantization.hpp"

namespace ddpsim {

/// What is kept of one bucket. The data is the bucket itself, or lies `apart`: cast, or padded.
struct BucketData {
  // What it was made for.
  std::size_t elements = 0;
  std::vector<CommBucket::Matrix> gradients;

  bool apart = false;
  Numbers own;
  std::int64_t not_finite = 0;  ///< of the data when it was cast to 16 bit

  std::optional<PowerSgdBucket> powersgd;

  // Quantisation: scale and zero point of each channel (a row of scales, then one of zero points),
  // and a byte for each element and the padding.
  std::vector<float> scales;
  std::vector<std::uint8_t> codes;

  Pairs pairs;
  std::vector<std::byte> sent, received, received_scales;
  std::vector<std::byte> plugin_payload;

  Values values(std::span<float> bucket) { return apart ? own.values() : Values(bucket); }
};

namespace {

/// Scale and zero point of one rank's channel.
QuantizationScale scale_of(std::span<const float> scales, std::size_t channel) {
  return {scales[channel], scales[scales.size() / 2 + channel]};
}

/// f(first, count, channel) for every channel's elements. The last is padded: with zeros that nobody
/// reads again.
template <class Function>
void each_channel(std::size_t elements, std::size_t channels, Function f) {
  const std::size_t width = channels == 1 ? elements : quantization_channel;
  for (std::size_t c = 0; c < channels; ++c)
    f(std::min(elements, c * width), std::min(width, elements - std::min(elements, c * width)), c);
}

void scale_by(const Values& values, float factor) {
  values.change([&](std::span<float> piece, std::size_t) {
    for (float& value : piece) value *= factor;
  });
}

void divide_by(const Values& values, int divisor) {
  const auto by = static_cast<float>(divisor);
  values.change([&](std::span<float> piece, std::size_t) {
    for (float& value : piece) value /= by;
  });
}

/// Reads and writes so many bytes of these, over and over; changes nothing.
void touch(const Values& values, std::int64_t traffic) {
  volatile float opaque = 1;
  const float one = opaque;
  const std::span<std::byte> bytes = values.bytes();
  const auto pass = 2 * static_cast<std::int64_t>(bytes.size());
  const std::size_t element = bytes.size() / std::max<std::size_t>(1, values.size());
  for (; pass > 0 && traffic > 0; traffic -= pass) {
    const auto count = static_cast<std::size_t>(std::min(traffic, pass)) / (2 * element);
    scale_by(values.part(0, count), one);
  }
}

int ranks_of_subgroup(int rank, int ranks, int subgroup) {
  return std::min(subgroup, ranks - rank / subgroup * subgroup);
}

}  // namespace

HookData::HookData(const CommHook& hook, int rank, int ranks)
    : hook_(hook), rank_(rank), ranks_(ranks), seeds_(hook.powersgd.seed) {}

HookData::~HookData() = default;

BucketData& HookData::data_of(const Bucket& what, int index, std::size_t elements) {
  BucketData* data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto at = static_cast<std::size_t>(index);
    if (at >= buckets_.size()) buckets_.resize(at + 1);
    if (!buckets_[at]) buckets_[at] = std::make_unique<BucketData>();
    data = buckets_[at].get();
  }
  if (data->elements != elements || data->gradients != what.gradients) {
    *data = BucketData{};
    data->elements = elements;
    data->gradients = what.gradients;
  }
  return *data;
}

void HookData::run(const Bucket& what, int index, const CommStep& step, std::span<float> bucket) {
  BucketData& data = data_of(what, index, bucket.size());
  const Values values = data.values(bucket);
  switch (step.action) {
    case CommAction::narrow:
    case CommAction::widen:
    case CommAction::pad:
    case CommAction::unpad:
      return cast(data, step, bucket);
    case CommAction::divide:
      return divide_by(values, ranks_);
    case CommAction::divide_subgroup:
      return divide_by(
          values, ranks_of_subgroup(rank_, ranks_, std::max(1, static_cast<int>(step.factor))));
    case CommAction::scale:
      return scale_by(values, static_cast<float>(step.factor));
    case CommAction::touch:
      return touch(values, step.kernel.traffic.count);

    case CommAction::add_error:
    case CommAction::keep_input:
    case CommAction::keep_error:
    case CommAction::pack:
    case CommAction::unpack:
    case CommAction::draw_q:
    case CommAction::orthogonalize_q:
    case CommAction::orthogonalize_p:
    case CommAction::project:
    case CommAction::back_project:
    case CommAction::divide_q:
    case CommAction::reconstruct: {
      if (!data.powersgd)
        data.powersgd.emplace(hook_.powersgd, hook_.kind == CommHookKind::batched_powersgd, ranks_,
                              what.gradients, bucket.size());
      return data.powersgd->run(step, values, [&] {
        const std::lock_guard lock(mutex_);
        return seeds_.next();
      });
    }

    case CommAction::observe:
    case CommAction::quantize:
    case CommAction::dequantize:
      return quantization(data, step, bucket);

    case CommAction::select: {
      const auto count = static_cast<std::size_t>(
          std::max(1.0, std::ceil(step.factor * static_cast<double>(values.size()))));
      data.pairs = select_largest(InFull(values).get(), count);
      return;
    }
    case CommAction::spread_pairs: {
      const InFull sum(values);
      std::ranges::fill(sum.get(), 0.0F);
      add_pairs(data.received, data.sent.size(), step.type, sum.get());
      return sum.put_back();
    }
    case CommAction::plugin_before:
    case CommAction::plugin_after:
      return plugin(what, data, step, values);

    case CommAction::reduce:
    case CommAction::reduce_small:
    case CommAction::reduce_p:
    case CommAction::reduce_q:
    case CommAction::gather_scales:
    case CommAction::gather_codes:
    case CommAction::gather_pairs:
    case CommAction::scatter_reduce:
    case CommAction::gather_parts:
    case CommAction::gather_sum:
    case CommAction::broadcast:
    case CommAction::reduce_subgroup:
    case CommAction::plugin_reduce:
    case CommAction::synchronize:
    case CommAction::update:
    case CommAction::send_parameters:
      throw std::invalid_argument(
          fmt::format("no kernel of a comm hook: {}", name_of(step.action)));
  }
}

void HookData::cast(BucketData& data, const CommStep& step, std::span<float> bucket) {
  switch (step.action) {
    case CommAction::narrow: {
      Numbers from;
      if (data.apart) std::swap(from, data.own);  // from the other 16-bit type
      data.own.resize(step.type, bucket.size());
      std::int64_t overflows = 0;
      (data.apart ? from.values() : Values(bucket)).each([&](auto piece, std::size_t begin) {
        overflows += count_overflows(step.type, piece);
        data.own.values().part(begin, piece.size()).assign(piece);
      });
      data.apart = true;
      data.not_finite = data.own.count_not_finite();
      overflows_ += overflows;
      return;
    }
    case CommAction::widen:
      if (!data.apart) return;
      overflows_ += std::max<std::int64_t>(0, data.own.count_not_finite() - data.not_finite);
      copy(Values(bucket), data.own.values().part(0, bucket.size()));
      data.apart = false;
      return;
    case CommAction::pad: {
      const auto side =
          static_cast<std::size_t>(batched_side(static_cast<std::int64_t>(bucket.size())));
      data.own.resize(step.type, bucket.size());
      data.own.resize(step.type, side * side);
      if (!data.apart) copy(data.own.values().part(0, bucket.size()), Values(bucket));
      data.apart = true;
      return;
    }
    case CommAction::unpad:
      if (!data.apart) return;
      if (size_of(step.type) < Bytes{4}) return data.own.resize(step.type, bucket.size());
      copy(Values(bucket), data.own.values().part(0, bucket.size()));
      data.apart = false;
      return;
    default:
      return;
  }
}

void HookData::quantization(BucketData& data, const CommStep& step, std::span<float> bucket) {
  const std::size_t elements = bucket.size();
  const bool per_channel = hook_.kind == CommHookKind::quantization_perchannel;
  const std::size_t channels = per_channel ? elements / quantization_channel + 1 : 1;
  data.scales.resize(2 * channels);
  data.codes.resize(per_channel ? channels * quantization_channel : elements);
  const Values values = data.values(bucket);
  switch (step.action) {
    case CommAction::observe: {
      const InFull full(values);
      each_channel(elements, channels, [&](std::size_t first, std::size_t count, std::size_t c) {
        const QuantizationScale scale = observe(full.get().subspan(first, count));
        data.scales[c] = scale.scale;
        data.scales[channels + c] = scale.zero_point;
      });
      return;
    }
    case CommAction::quantize: {
      const InFull full(values);
      each_channel(elements, channels, [&](std::size_t first, std::size_t count, std::size_t c) {
        quantize(full.get().subspan(first, count), scale_of(data.scales, c),
                 std::span(data.codes).subspan(first, count));
      });
      return;
    }
    case CommAction::dequantize: {
      const InFull mean(values);
      std::ranges::fill(mean.get(), 0.0F);
      const std::size_t ranks = data.received.size() / std::max<std::size_t>(1, data.codes.size());
      std::vector<float> scales(data.scales.size());
      const std::size_t scale_bytes = scales.size() * sizeof(float);
      for (std::size_t r = 0; r < ranks; ++r) {
        assert((r + 1) * scale_bytes <= data.received_scales.size());
        std::memcpy(scales.data(), data.received_scales.data() + r * scale_bytes, scale_bytes);
        const auto* codes =
            reinterpret_cast<const std::uint8_t*>(data.received.data()) + r * data.codes.size();
        each_channel(elements, channels, [&](std::size_t first, std::size_t count, std::size_t c) {
          add_dequantized({codes + first, count}, scale_of(scales, c),
                          mean.get().subspan(first, count));
        });
      }
      for (float& value : mean.get()) value /= static_cast<float>(ranks_);
      return mean.put_back();
    }
    default:
      return;
  }
}

void HookData::plugin(const Bucket& what, BucketData& data, const CommStep& step,
                      const Values& values) {
  const InFull full(values);
  const auto count = static_cast<std::int64_t>(values.size());
  for (const CommStep& each : what.steps)
    if (each.action == CommAction::plugin_reduce)
      data.plugin_payload.resize(static_cast<std::size_t>(each.payload.count));
  if (!plugin_.before || !plugin_.after)
    throw std::invalid_argument(fmt::format("no comm hook \"{}\" is loaded", hook_.plugin));
  if (step.action == CommAction::plugin_before) {
    plugin_.before(full.data(), count, data.plugin_payload);
  } else {
    plugin_.after(full.data(), count, data.plugin_payload);
    full.put_back();
  }
}

HookData::Payload HookData::payload(const Bucket& what, int index, const CommStep& step,
                                    std::span<float> bucket) {
  BucketData& data = data_of(what, index, bucket.size());
  const Values values = data.values(bucket);
  Payload payload;
  payload.type = step.type;
  const auto gather = [&](std::span<std::byte> mine, std::vector<std::byte>& all) {
    all.assign(static_cast<std::size_t>(ranks_) * mine.size(), std::byte{0});
    payload.mine = mine;
    payload.all = all;
  };
  switch (step.action) {
    case CommAction::reduce:
    case CommAction::reduce_subgroup:
    case CommAction::broadcast:
    case CommAction::scatter_reduce:
      payload.mine = values.bytes();
      break;
    case CommAction::reduce_small:
    case CommAction::reduce_p:
    case CommAction::reduce_q:
      if (!data.powersgd)
        throw std::invalid_argument(
            fmt::format("{} before anything else of PowerSGD", name_of(step.action)));
      payload.mine = data.powersgd->reduced(step).bytes();
      break;
    case CommAction::gather_scales:
      gather(std::as_writable_bytes(std::span(data.scales)), data.received_scales);
      break;
    case CommAction::gather_codes:
      gather(std::as_writable_bytes(std::span(data.codes)), data.received);
      break;
    case CommAction::gather_pairs:
      data.sent.resize(wire_size(data.pairs.indices.size(), step.type));
      write(data.pairs, step.type, data.sent);
      gather(data.sent, data.received);
      break;
    case CommAction::gather_parts: {
      const std::span<std::byte> bytes = values.bytes();
      const auto part = static_cast<std::size_t>(step.payload.count);
      const std::size_t begin = std::min(bytes.size(), static_cast<std::size_t>(rank_) * part);
      data.sent.assign(part, std::byte{0});
      std::ranges::copy(bytes.subspan(begin, std::min(part, bytes.size() - begin)),
                        data.sent.begin());
      gather(data.sent, data.received);
      break;
    }
    case CommAction::gather_sum:
      gather(values.bytes(), data.received);
      break;
    case CommAction::plugin_reduce:
      data.plugin_payload.resize(static_cast<std::size_t>(step.payload.count));
      payload.mine = data.plugin_payload;
      break;
    default:
      throw std::invalid_argument(
          fmt::format("no collective of a comm hook: {}", name_of(step.action)));
  }
  if (static_cast<std::int64_t>(payload.mine.size()) != step.payload.count)
    throw std::invalid_argument(fmt::format("{} of bucket {} has {} bytes, its schedule says {}",
                                            name_of(step.action), index, payload.mine.size(),
                                            step.payload.count));
  return payload;
}

void HookData::arrived(const Bucket& what, int index, const CommStep& step,
                       std::span<float> bucket) {
  BucketData& data = data_of(what, index, bucket.size());
  const Values values = data.values(bucket);
  const std::span<std::byte> mine = values.bytes();
  if (step.action == CommAction::gather_parts) {
    if (data.received.size() < mine.size())
      throw std::logic_error("a comm hook's parts are those of fewer ranks");
    std::ranges::copy(std::span(data.received).first(mine.size()), mine.begin());
  } else if (step.action == CommAction::gather_sum) {
    const InFull sum(values);
    std::ranges::fill(sum.get(), 0.0F);
    Numbers theirs;
    theirs.resize(step.type, values.size());
    for (std::size_t begin = 0; begin < data.received.size(); begin += mine.size()) {
      std::ranges::copy(std::span(data.received).subspan(begin, mine.size()),
                        theirs.values().bytes().begin());
      combine(Values(sum.get()), theirs.values(), [](auto into, auto from) {
        for (std::size_t i = 0; i < from.size(); ++i) into[i] += from[i];
      });
    }
    sum.put_back();
  }
}

std::int64_t HookData::overflows() {
  return overflows_.exchange(0);
}

std::vector<float> HookData::error(int index) const {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(index);
  if (at >= buckets_.size() || !buckets_[at] || !buckets_[at]->powersgd) return {};
  return buckets_[at]->powersgd->error();
}

}  // namespace ddpsim
