#include "backend/comm_hooks/hook_data.hpp"

#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/comm_hooks/gathered.hpp"
#include "backend/comm_hooks/hook_values.hpp"
#include "backend/comm_hooks/pairs.hpp"
#include "backend/comm_hooks/power_sgd.hpp"
#include "backend/comm_hooks/quantized_bucket.hpp"

namespace ddpsim {

/// What is kept of one bucket.
struct BucketData {
  // What it was made for.
  std::size_t elements = 0;
  std::vector<MatrixShape> gradients;

  HookValues values;
  std::optional<PowerSgdBucket> power_sgd;
  std::optional<QuantizedBucket> quantized;
  Pairs pairs;
  std::vector<std::byte> sent, received;  ///< of gathered pairs, parts and data
  std::vector<std::byte> plugin_payload;
};

HookData::HookData(std::uint32_t seed, int rank, int ranks)
    : rank_(rank), ranks_(ranks), seeds_(seed) {}

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

PowerSgdBucket& HookData::power_sgd_of(BucketData& data, const Bucket& what, std::size_t elements) {
  if (!data.power_sgd)
    data.power_sgd.emplace(low_rank_layout(what, static_cast<std::int64_t>(elements)));
  return *data.power_sgd;
}

QuantizedBucket& HookData::quantized_of(BucketData& data, const CommStep& step,
                                        std::size_t elements) {
  if (!data.quantized)
    data.quantized.emplace(quantization_channels(step.channel, static_cast<std::int64_t>(elements)),
                           elements);
  return *data.quantized;
}

Values HookData::numbers_of(BucketData& data, HookPiece piece, const Bucket& what,
                            const CommStep& step, std::span<float> bucket) {
  const Values values = data.values.in(bucket);
  if (piece == HookPiece::data) return values;
  return power_sgd_of(data, what, bucket.size()).numbers(piece, step.type, values.size());
}

/// What a sum over ranks is divided by: the number of ranks in this rank's group. The last group
/// may be smaller than the others.
int HookData::divisor_of(const CommStep& step) const {
  const int size = std::max(1, step.divisor);
  return std::min(size, ranks_ - rank_ / size * size);
}

std::uint32_t HookData::next_seed() {
  const std::lock_guard lock(mutex_);
  return seeds_.next();
}

void HookData::run(const Bucket& what, int index, const CommStep& step, std::span<float> bucket) {
  BucketData& data = data_of(what, index, bucket.size());
  const ActionMeaning does = meaning_of(step.action);
  const auto numbers = [&](HookPiece piece) { return numbers_of(data, piece, what, step, bucket); };
  const auto power_sgd = [&]() -> PowerSgdBucket& {
    return power_sgd_of(data, what, bucket.size());
  };
  const PowerSgdBucket::NextSeed next = [this] { return next_seed(); };
  switch (does.primitive) {
    case HookPrimitive::cast:
      overflows_ += data.values.cast(step.type, bucket);
      return;
    case HookPrimitive::pad:
      return data.values.pad(step.type, bucket);
    case HookPrimitive::unpad:
      return data.values.unpad(step.type, bucket);
    case HookPrimitive::divide:
      return divide_by(numbers(does.target), divisor_of(step));
    case HookPrimitive::scale:
      return scale_by(numbers(does.target), static_cast<float>(step.factor));
    case HookPrimitive::copy:
      return copy(numbers(does.target), numbers(does.source));
    case HookPrimitive::add:
      return add(numbers(does.target), numbers(does.source));
    case HookPrimitive::subtract:
      copy(numbers(does.target), numbers(does.source));
      return subtract(numbers(does.target), numbers(does.second_source));
    case HookPrimitive::pack:
      return power_sgd().pack(step, data.values.in(bucket), next);
    case HookPrimitive::unpack:
      return power_sgd().unpack(step, data.values.in(bucket), divisor_of(step));
    case HookPrimitive::draw:
      return power_sgd().draw(step, next);
    case HookPrimitive::orthogonalize:
      return power_sgd().orthogonalize(does.target, step, next);
    case HookPrimitive::multiply:
      return power_sgd().multiply(does.target, step, data.values.in(bucket));
    case HookPrimitive::observe:
    case HookPrimitive::quantize:
    case HookPrimitive::dequantize:
      return run_quantization(data, does.primitive, step, bucket);
    case HookPrimitive::select:
      data.pairs = select_share(numbers(does.source), step.factor);
      return;
    case HookPrimitive::spread:
      return spread_pairs(data.received, data.sent.size(), step.type, numbers(does.target));
    case HookPrimitive::touch:
      return touch(numbers(does.target), step.kernel.traffic.count);
    case HookPrimitive::plugin_before:
    case HookPrimitive::plugin_after:
      return run_plugin(data, does.primitive, what, step, bucket);
    case HookPrimitive::nothing:
    case HookPrimitive::update:
    case HookPrimitive::all_reduce:
    case HookPrimitive::reduce_scatter:
    case HookPrimitive::all_gather:
    case HookPrimitive::broadcast:
      throw std::invalid_argument(
          fmt::format("no kernel of a comm hook: {}", name_of(step.action)));
  }
}

void HookData::run_quantization(BucketData& data, HookPrimitive primitive, const CommStep& step,
                                std::span<float> bucket) const {
  QuantizedBucket& quantized = quantized_of(data, step, bucket.size());
  const InFull values(data.values.in(bucket));
  if (primitive == HookPrimitive::observe) return quantized.observe(values.get());
  if (primitive == HookPrimitive::quantize) return quantized.quantize(values.get());
  quantized.dequantize_mean(values.get(), ranks_);
  values.put_back();
}

void HookData::run_plugin(BucketData& data, HookPrimitive primitive, const Bucket& what,
                          const CommStep& step, std::span<float> bucket) const {
  const InFull full(data.values.in(bucket));
  const auto count = static_cast<std::int64_t>(full.get().size());
  for (const CommStep& each : what.steps)
    if (each.action == CommAction::plugin_reduce)
      data.plugin_payload.resize(static_cast<std::size_t>(each.payload.count));
  if (!plugin_.before || !plugin_.after)
    throw std::invalid_argument(fmt::format("no comm hook \"{}\" is loaded", step.code));
  if (primitive == HookPrimitive::plugin_before)
    return plugin_.before(full.data(), count, data.plugin_payload);
  plugin_.after(full.data(), count, data.plugin_payload);
  full.put_back();
}

HookData::Payload HookData::payload(const Bucket& what, int index, const CommStep& step,
                                    std::span<float> bucket) {
  BucketData& data = data_of(what, index, bucket.size());
  const ActionMeaning does = meaning_of(step.action);
  if (!is_collective(does.primitive) || does.target == HookPiece::parameters)
    throw std::invalid_argument(
        fmt::format("no collective of a comm hook: {}", name_of(step.action)));
  Payload payload;
  if (does.primitive == HookPrimitive::all_gather) {
    payload = gathered(data, does.target, step, bucket);
  } else if (does.target == HookPiece::plugin_payload) {
    data.plugin_payload.resize(static_cast<std::size_t>(step.payload.count));
    payload.mine = data.plugin_payload;
  } else {
    if (does.target != HookPiece::data && !data.power_sgd)
      throw std::invalid_argument(
          fmt::format("{} before anything else of PowerSGD", name_of(step.action)));
    payload.mine = numbers_of(data, does.target, what, step, bucket).bytes();
  }
  payload.type = step.type;
  if (static_cast<std::int64_t>(payload.mine.size()) != step.payload.count)
    throw std::invalid_argument(fmt::format("{} of bucket {} has {} bytes, its schedule says {}",
                                            name_of(step.action), index, payload.mine.size(),
                                            step.payload.count));
  return payload;
}

/// What an all-gather of this piece sends, and room for what it brings.
HookData::Payload HookData::gathered(BucketData& data, HookPiece piece, const CommStep& step,
                                     std::span<float> bucket) const {
  const auto with_room = [this](std::span<std::byte> mine, std::vector<std::byte>& all) {
    all.assign(static_cast<std::size_t>(ranks_) * mine.size(), std::byte{0});
    return Payload{mine, all};
  };
  const Values values = data.values.in(bucket);
  if (piece == HookPiece::scales || piece == HookPiece::codes) {
    QuantizedBucket& quantized = quantized_of(data, step, bucket.size());
    return piece == HookPiece::scales ? with_room(quantized.scales(), quantized.all_scales)
                                      : with_room(quantized.codes(), quantized.all_codes);
  }
  if (piece == HookPiece::pairs) {
    data.sent.resize(wire_size(data.pairs.indices.size(), step.type));
    write(data.pairs, step.type, data.sent);
    return with_room(data.sent, data.received);
  }
  if (piece == HookPiece::own_part) {
    take_part(values, rank_, static_cast<std::size_t>(step.payload.count), data.sent);
    return with_room(data.sent, data.received);
  }
  return with_room(values.bytes(), data.received);
}

void HookData::arrived(const Bucket& what, int index, const CommStep& step,
                       std::span<float> bucket) {
  const ActionMeaning does = meaning_of(step.action);
  if (does.primitive != HookPrimitive::all_gather) return;
  BucketData& data = data_of(what, index, bucket.size());
  const Values values = data.values.in(bucket);
  if (does.target == HookPiece::own_part)
    put_parts_together(data.received, values);
  else if (does.target == HookPiece::data)
    sum_gathered(data.received, step.type, values);
}

std::int64_t HookData::overflows() {
  return overflows_.exchange(0);
}

std::vector<float> HookData::error(int index) const {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(index);
  if (at >= buckets_.size() || !buckets_[at] || !buckets_[at]->power_sgd) return {};
  return buckets_[at]->power_sgd->error();
}

}  // namespace ddpsim
