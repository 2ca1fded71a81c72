#include "model/workload/convolution.hpp"

#include "model/workload/eager_kernels.hpp"

namespace ddpsim {
namespace {

constexpr CallParts::Least any{};
constexpr std::int64_t long_sum = 2048;  // products added up for one result
constexpr std::int64_t short_sum = 256;
constexpr std::int64_t few_tiles = 10, split_tiles = 16;
constexpr std::int64_t wide_result = 256;
constexpr std::int64_t small_picture = 784;

std::int64_t tiles(std::int64_t m, std::int64_t n) {
  return (m + 127) / 128 * ((n + 127) / 128);
}

/// A call's tensors, and what depends on them.
class Rules {
 public:
  explicit Rules(const ConvolutionCall& call)
      : call_(call),
        shape_(call.shape),
        inputs_(shape_.channels / shape_.groups),
        outputs_(shape_.outputs / shape_.groups),
        element_(size_of(call.type)),
        data_(shape_.pictures * shape_.channels * shape_.pixels * element_),
        weight_(shape_.outputs * inputs_ * shape_.window * element_),
        result_(shape_.pictures * shape_.outputs * shape_.places * element_) {}

  void forward(CallParts& parts) const {
    const bool single = call_.by_channel();
    const bool changes = on_tensor_cores() && aligned() && changes_layout() && !plain();
    const bool as_ampere = changes && wide() && sum() <= short_sum;
    if (changes) {
      relay(parts, data_, Call::convolution);
      relay(parts, weight_);
    }
    product(parts, ConvolutionDirection::forward, data_ + weight_ + result_, aligned(),
            changes ? Call::follows : Call::convolution);
    if (on_tensor_cores() && aligned() && !single && shape_.groups == 1 && !as_ampere)
      help(parts, shape_.places, outputs_, shape_.pictures);
    if (changes && !as_ampere)
      relay(parts, result_, Call::follows, sum() >= long_sum ? any : CallParts::hopper);
    if (call_.biased) move(parts, PatternKind::strided, 2 * result_);
  }

  void input(CallParts& parts) const {
    const bool changes = on_tensor_cores() && !plain() && changes_layout();
    if (changes) {
      relay(parts, weight_, Call::convolution);
      relay(parts, result_);
    }
    product(parts, ConvolutionDirection::input, result_ + weight_ + data_, !call_.by_channel(),
            changes ? Call::follows : Call::convolution);
    if (on_tensor_cores() && !call_.by_channel() && shape_.groups == 1)
      help(parts, shape_.places, inputs_, shape_.pictures);
    if (changes) relay(parts, data_);
  }

  /// `first`: of its call.
  void weight(CallParts& parts, bool first) const {
    const bool parts_are_less = outputs_ * inputs_ < (outputs_ + inputs_) * shape_.pixels;
    const bool by_picture = plain() && parts_are_less;
    const bool changes = on_tensor_cores() && (plain() ? !parts_are_less : changes_layout());
    const Bytes each = 4 * shape_.outputs * inputs_ * shape_.window * Bytes{1};
    const bool summed = on_tensor_cores() && by_picture && shape_.pictures > 1;
    const Call begins = first ? Call::convolution : Call::follows;
    if (changes) {
      relay(parts, result_, begins);
      relay(parts, data_);
    }
    product(
        parts, ConvolutionDirection::weight,
        result_ + data_ + (by_picture && shape_.pictures > 1 ? shape_.pictures * each : weight_),
        !call_.by_channel(), changes ? Call::follows : begins);
    if (summed) {
      move(parts, PatternKind::elementwise, shape_.pictures * each + weight_);
    } else if (last_point()) {
      if (shape_.groups == 1 && tiles(outputs_, inputs_) <= split_tiles)
        move(parts, PatternKind::elementwise, each + weight_);
    } else if (call_.by_channel()) {
      if (shape_.channels_last && on_tensor_cores())
        move(parts, PatternKind::elementwise, 2 * weight_);
    } else if (on_tensor_cores() && !by_picture && shape_.groups == 1) {
      parts.add_clearing(CallParts::hopper);
      if (tiles(outputs_, inputs_ * shape_.window) < few_tiles)
        move(parts, PatternKind::elementwise, 2 * weight_);
    }
    if (changes && shape_.window > 1) relay(parts, weight_);
  }

  void bias(CallParts& parts) const {
    const bool last = shape_.channels_last;
    DeviceKernel sum = moving(last ? PatternKind::sum_of_rows : PatternKind::reduce, result_);
    auto& pattern = std::get<MemoryPattern>(sum.shape);
    pattern.rows = last ? shape_.pictures * shape_.places : shape_.outputs;
    pattern.columns = last ? shape_.outputs : shape_.pictures * shape_.places;
    parts.add(sum, Call::follows);
  }

 private:
  bool wide() const { return element_ == size_of(DType::fp32); }
  bool on_tensor_cores() const { return call_.type != DType::fp32; }
  bool plain() const { return call_.is_plain(); }
  /// Tensor cores multiply in TF32 where channels come in fours.
  bool aligned() const { return inputs_ % 4 == 0 || !wide(); }
  /// Are tensors with channels first copied for it? Single channels have kernels of their own.
  bool changes_layout() const { return !shape_.channels_last && shape_.groups < shape_.channels; }
  /// A window of one pixel over channels that lie together: a product of matrices.
  bool last_point() const { return shape_.channels_last && shape_.window == 1 && !call_.strided; }
  std::int64_t sum() const { return inputs_ * shape_.window; }

  DeviceKernel moving(PatternKind kind, Bytes moved) const {
    DeviceKernel kernel;
    kernel.shape = MemoryPattern{.of = kind};
    kernel.type = wide() ? DType::fp32 : call_.type;
    kernel.traffic = moved;
    return kernel;
  }
  void move(CallParts& parts, PatternKind kind, Bytes moved) const {
    parts.add(moving(kind, moved), Call::follows);
  }
  /// A copy in the other layout.
  void relay(CallParts& parts, Bytes tensor, Call call = Call::follows,
             const CallParts::Least& least = any) const {
    parts.add(moving(PatternKind::layout, 2 * tensor), call, least);
  }

  void product(CallParts& parts, ConvolutionDirection direction, Bytes moved, bool tensor_cores,
               Call call) const {
    DeviceKernel kernel;
    ConvolutionShape shape = shape_;
    shape.direction = direction;
    kernel.shape = shape;
    kernel.type = call_.type == DType::tf32 && !tensor_cores ? DType::fp32 : call_.type;
    kernel.traffic = moved;
    if (kernel.type == DType::fp32) kernel.launches = launches_in_fp32(direction);
    parts.add(kernel, call);
  }

  /// What prepares the memory that blocks of Hopper's kernels count in.
  void help(CallParts& parts, std::int64_t rows, std::int64_t columns,
            std::int64_t pictures) const {
    constexpr std::int64_t counted_tiles = 1000, tile = 128 * 256;
    const bool product = plain() || last_point();
    if (product && wide() && (columns < wide_result || last_point())) return;
    if (product && !wide() && (rows * columns * pictures + tile - 1) / tile < counted_tiles) return;
    parts.add_clearing(CallParts::hopper);
  }

  /// How many kernels cuDNN's algorithms without tensor cores launch.
  int launches_in_fp32(ConvolutionDirection direction) const {
    if (shape_.groups > 1) return 1;
    if (inputs_ % 4 != 0) return direction == ConvolutionDirection::weight ? 2 : 1;
    const bool point = shape_.window == 1;
    const bool plain_window = shape_.window == 9 && !call_.strided;
    const std::int64_t places = shape_.places;
    switch (direction) {
      case ConvolutionDirection::forward:
        return plain_window && places <= small_picture ? 5 : 1;
      case ConvolutionDirection::input:
        if (plain_window && places >= small_picture && places <= 64 * 64)
          return 1 + 3 * (places <= 32 * 32 ? 1 : 4);
        return point && inputs_ >= shape_.outputs && places >= small_picture ? 1 : 2;
      case ConvolutionDirection::weight:
        if (plain_window) return 4;
        return places >= small_picture ? 2 : point ? 3 : 4;
    }
    return 1;
  }

  ConvolutionCall call_;
  ConvolutionShape shape_;
  std::int64_t inputs_, outputs_;  ///< channels of a group
  Bytes element_, data_, weight_, result_;
};

}  // namespace

std::vector<KernelPart> forward_parts(const ConvolutionCall& call) {
  CallParts parts(Pass::forward);
  Rules(call).forward(parts);
  return std::move(parts).take();
}

ConvolutionGradients gradient_parts(const ConvolutionCall& call, bool to_input) {
  const Rules rules(call);
  CallParts parts(Pass::backward);
  if (to_input) rules.input(parts);
  const auto input = static_cast<std::ptrdiff_t>(parts.size());
  rules.weight(parts, !to_input);
  const auto weight = static_cast<std::ptrdiff_t>(parts.size());
  if (call.biased) rules.bias(parts);
  const std::vector<KernelPart> all = std::move(parts).take();
  const auto begin = all.begin();
  return {{begin, begin + input}, {begin + input, begin + weight}, {begin + weight, all.end()}};
}

}  // namespace ddpsim
