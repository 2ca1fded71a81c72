// What each comm hook does with a bucket, statement by statement of PyTorch's code: which tensors
// it reads and writes gives every kernel's traffic, in bytes of the data's type.
//
//     N elements of e bytes, W ranks      fp16: cast (N e + 2 N), divide (2 x 2 N), all-reduce 2 N,
//                                         cast back (2 N + N e)
//
// Check values of PowerSGD are in the reference, section 4.1, and in
// tests/model/comm_hook_test.cpp.

#include <algorithm>
#include <cmath>

#include "model/parallel/comm_hook.hpp"

namespace ddpsim {
namespace {

/// What torch.randn takes for a number on one core: torch 1.13, an AMD EPYC of 2.6 GHz.
constexpr Duration random_number = std::chrono::nanoseconds{3};

/// Column i of r: norm (1 pass), division (2), then of those behind it the product with the column
/// (3), its sum (1), and the subtraction of the outer product (5).
/// Source: powerSGD_hook.py _orthogonalize_gram_schmidt; QR of more columns is counted the same.
Kernel orthogonalization(std::int64_t rows, std::int64_t rank, Bytes element) {
  Kernel kernel;
  const std::int64_t passes = 3 * rank + 9 * rank * (rank - 1) / 2;
  kernel.traffic = Bytes{passes * rows * element.count};
  kernel.launches = static_cast<int>(2 * rank + 4 * (rank - 1));
  return kernel;
}

class Steps {
 public:
  Steps(const CommHook& hook, const CommBucket& bucket, int ranks, int ranks_per_node,
        bool synchronous, int iteration)
      : hook_(hook),
        bucket_(bucket),
        ranks_(ranks),
        ranks_per_node_(ranks_per_node),
        synchronous_(synchronous),
        iteration_(iteration),
        elements_(bucket.elements()),
        type_(bucket.type) {}

  std::vector<CommStep> all() {
    for (const DType wrapper : hook_.wrappers) narrow(wrapper);
    switch (hook_.kind) {
      case CommHookKind::none:
        if (!hook_.wrappers.empty()) plain();
        break;
      case CommHookKind::noop:
        break;
      case CommHookKind::allreduce:
        plain();
        break;
      case CommHookKind::fp16_compress:
        compressed(DType::fp16);
        break;
      case CommHookKind::bf16_compress:
        compressed(DType::bf16);
        break;
      case CommHookKind::powersgd:
        if (before(hook_.powersgd.start_iteration))
          plain();
        else
          powersgd();
        break;
      case CommHookKind::batched_powersgd:
        if (before(hook_.powersgd.start_iteration))
          plain();
        else
          batched_powersgd();
        break;
      case CommHookKind::quantization_pertensor:
        quantization(1, elements_);
        break;
      case CommHookKind::quantization_perchannel: {
        // PyTorch's code always pads, even a size that 512 divides.
        const std::int64_t channels = elements_ / quantization_channel + 1;
        quantization(channels, channels * quantization_channel);
        break;
      }
      case CommHookKind::post_local_sgd:
        post_local_sgd();
        break;
      case CommHookKind::optimizer_overlap:
        collective(CommAction::reduce, Operation::all_reduce, data(1));
        kernel(CommAction::divide, Operation::divide, data(2));
        kernel(CommAction::update, Operation::optimizer, Bytes{});
        break;
      case CommHookKind::zero_step:
      case CommHookKind::zero_step_interleaved:
        plain();
        kernel(CommAction::update, Operation::optimizer, Bytes{});
        collective(CommAction::send_parameters, Operation::broadcast, data(1));
        break;
      case CommHookKind::steps:
        for (const OwnStep& step : hook_.steps) own(step);
        break;
      case CommHookKind::plugin: {
        const Bytes payload = elements_ * size_of(hook_.plugin_type);
        kernel(CommAction::plugin_before, Operation::own_kernel, data(1) + payload).code =
            hook_.plugin;
        collective(CommAction::plugin_reduce, Operation::all_reduce, payload).type =
            hook_.plugin_type;
        kernel(CommAction::plugin_after, Operation::own_kernel, data(1) + payload).code =
            hook_.plugin;
        break;
      }
    }
    if (type_ != bucket_.type) widen();
    return std::move(steps_);
  }

 private:
  bool before(int start) const { return iteration_ > 0 && iteration_ <= start; }
  Bytes element() const { return size_of(type_); }
  /// The bytes of `passes` passes over the data.
  Bytes data(std::int64_t passes) const { return Bytes{passes * elements_ * element().count}; }

  CommStep& add(CommAction action, Operation operation) {
    CommStep& step = steps_.emplace_back();
    step.action = action;
    step.operation = operation;
    step.type = type_;
    step.divisor = ranks_;
    return step;
  }
  CommStep& kernel(CommAction action, Operation operation, Bytes traffic, int launches = 1) {
    CommStep& step = add(action, operation);
    step.kernel.traffic = traffic;
    step.kernel.launches = launches;
    return step;
  }
  CommStep& collective(CommAction action, Operation operation, Bytes payload) {
    CommStep& step = add(action, operation);
    step.payload = payload;
    return step;
  }
  /// `count`, but at most what an int holds: a step of more launches takes hours anyway.
  static int launches(std::int64_t count) {
    return static_cast<int>(std::min<std::int64_t>(count, 1 << 30));
  }
  void synchronize() {
    if (!synchronous_) add(CommAction::synchronize, Operation::synchronize);
  }

  void narrow(DType type) {
    const Bytes from = element();
    type_ = type;
    kernel(CommAction::narrow, Operation::cast, Bytes{elements_ * (from.count + element().count)});
  }
  void widen() {
    kernel(CommAction::widen, Operation::cast,
           Bytes{elements_ * (element().count + size_of(bucket_.type).count)});
    type_ = steps_.back().type = bucket_.type;
  }

  void plain() {
    kernel(CommAction::divide, Operation::divide, data(2));
    collective(CommAction::reduce, Operation::all_reduce, data(1));
  }

  void compressed(DType type) {
    if (type_ != type) narrow(type);
    plain();
  }

  /// Q is drawn on the CPU and copied to the device.
  CommStep& draw(std::int64_t numbers) {
    CommStep& step =
        kernel(CommAction::draw_q, Operation::draw, Bytes{3 * numbers * element().count}, 2);
    if (!synchronous_) step.host = numbers * random_number;
    step.keeps_random = hook_.powersgd.warm_start;
    return step;
  }

  void powersgd() {
    const PowerSgd& state = hook_.powersgd;
    const Bytes e = element();
    const std::vector<LowRank> compressed = low_rank_gradients(state, bucket_.gradients);
    std::int64_t uncompressed = elements_, p_size = 0, q_size = 0;
    for (const LowRank& matrix : compressed) {
      uncompressed -= matrix.rows * matrix.columns;
      p_size += matrix.rank * matrix.rows;
      q_size += matrix.rank * matrix.columns;
    }
    const auto small = static_cast<int>(bucket_.gradients.size() - compressed.size());
    const auto each = [&](auto action) {
      for (const LowRank& matrix : compressed)
        action(matrix.tensor, matrix.rows, matrix.columns, matrix.rank);
    };
    const auto multiply = [&](CommAction action, std::int32_t i, Gemm gemm) {
      const std::int64_t touched = gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n;
      CommStep& step = kernel(action, Operation::multiply, Bytes{touched * e.count});
      step.kernel.gemm = gemm;
      step.kernel.type = synchronous_ ? DType::fp32 : type_;  // CPUs multiply 16 bit as fp32
      step.tensor = i;
    };
    if (state.error_feedback) {
      kernel(CommAction::add_error, Operation::correct, data(3));
      kernel(CommAction::keep_input, Operation::correct, data(2));
    }
    const bool fresh = !state.warm_start || iteration_ == state.start_iteration + 1;
    if (small > 0)
      kernel(CommAction::pack, Operation::pack, Bytes{2 * uncompressed * e.count}).keeps_random =
          !fresh;
    each([&](std::int32_t i, std::int64_t, std::int64_t m, std::int64_t r) {
      if (fresh) {
        draw(m * r).tensor = i;
      }
      CommStep& step = add(CommAction::orthogonalize_q, Operation::orthogonalize);
      step.kernel = orthogonalization(m, r, e);
      step.factor = state.orthogonalization_epsilon;
      step.tensor = i;
    });
    each([&](std::int32_t i, std::int64_t n, std::int64_t m, std::int64_t r) {
      multiply(CommAction::project, i, {n, r, m});
    });
    collective(CommAction::reduce_small, Operation::all_reduce, Bytes{uncompressed * e.count});
    if (small > 0)
      kernel(CommAction::unpack, Operation::pack, Bytes{4 * uncompressed * e.count}, small + 1);
    collective(CommAction::reduce_p, Operation::all_reduce, Bytes{p_size * e.count});
    each([&](std::int32_t i, std::int64_t n, std::int64_t, std::int64_t r) {
      CommStep& step = add(CommAction::orthogonalize_p, Operation::orthogonalize);
      step.kernel = orthogonalization(n, r, e);
      step.factor = state.orthogonalization_epsilon;
      step.tensor = i;
    });
    each([&](std::int32_t i, std::int64_t n, std::int64_t m, std::int64_t r) {
      multiply(CommAction::back_project, i, {m, r, n});
    });
    collective(CommAction::reduce_q, Operation::all_reduce, Bytes{q_size * e.count});
    if (!compressed.empty())
      kernel(CommAction::divide_q, Operation::divide, Bytes{2 * q_size * e.count});
    each([&](std::int32_t i, std::int64_t n, std::int64_t m, std::int64_t r) {
      multiply(CommAction::reconstruct, i, {n, m, r});
    });
    synchronize();
    if (state.error_feedback) kernel(CommAction::keep_error, Operation::correct, data(3));
  }

  void batched_powersgd() {
    const PowerSgd& state = hook_.powersgd;
    const std::int64_t side = batched_side(elements_), rank = state.rank;
    const std::int64_t given = elements_;
    const Bytes e = element();
    elements_ = side * side;
    const auto multiply = [&](CommAction action, Gemm gemm) {
      const std::int64_t touched = gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n;
      CommStep& step = kernel(action, Operation::multiply, Bytes{touched * e.count});
      step.kernel.gemm = gemm;
      step.kernel.type = synchronous_ ? DType::fp32 : type_;  // CPUs multiply 16 bit as fp32
    };
    const auto orthogonalize = [&](CommAction action) {
      CommStep& step = add(action, Operation::orthogonalize);
      step.kernel = orthogonalization(side, rank, e);
      step.factor = 0;
    };
    kernel(CommAction::pad, Operation::pack,
           Bytes{std::max<std::int64_t>(1, elements_ - given) * e.count});
    if (state.error_feedback) {
      kernel(CommAction::add_error, Operation::correct, data(3));
      kernel(CommAction::keep_input, Operation::correct, data(2));
    }
    if (!state.warm_start || iteration_ == state.start_iteration + 1) draw(side * rank);
    orthogonalize(CommAction::orthogonalize_q);
    multiply(CommAction::project, {side, rank, side});
    collective(CommAction::reduce_p, Operation::all_reduce, Bytes{side * rank * e.count});
    orthogonalize(CommAction::orthogonalize_p);
    multiply(CommAction::back_project, {side, rank, side});
    collective(CommAction::reduce_q, Operation::all_reduce, Bytes{side * rank * e.count});
    kernel(CommAction::divide_q, Operation::divide, Bytes{2 * side * rank * e.count});
    multiply(CommAction::reconstruct, {side, side, rank});
    if (state.error_feedback) kernel(CommAction::keep_error, Operation::correct, data(3));
    synchronize();
    kernel(CommAction::unpad, Operation::pack, Bytes{e.count});  // only the size changes
    elements_ = given;
  }

  /// Per channel PyTorch loops in Python: a few kernels for each.
  void quantization(std::int64_t channels, std::int64_t padded) {
    const std::size_t first = steps_.size();
    const std::int64_t e = element().count;
    const bool padding = padded != elements_;
    kernel(CommAction::observe, Operation::quantize, Bytes{(padding ? 3 : 1) * padded * e},
           padding ? 8 : 6);
    synchronize();  // the scales are made on the host
    collective(CommAction::gather_scales, Operation::all_gather, Bytes{8 * channels});
    // Divide, round, add the zero point: 2 passes each; clamp and cast.
    kernel(CommAction::quantize, Operation::quantize, Bytes{8 * padded * e + padded * (e + 1)},
           launches(3 * std::int64_t{channels} + 2));
    collective(CommAction::gather_codes, Operation::all_gather, Bytes{padded});
    // For each rank: cast, subtract, multiply, add to the sum; then divide.
    kernel(CommAction::dequantize, Operation::dequantize,
           Bytes{ranks_ * padded * (1 + e + 7 * e) + 2 * padded * e},
           launches(ranks_ * (2 * std::int64_t{channels} + 2) + 1));
    if (hook_.kind == CommHookKind::quantization_perchannel)
      for (std::size_t s = first; s < steps_.size(); ++s) steps_[s].channel = quantization_channel;
  }

  void post_local_sgd() {
    const PostLocalSgd& state = hook_.post_local_sgd;
    if (before(state.start_iteration)) return plain();
    if (!state.gradient_allreduce) return;
    if (state.subgroup_of(ranks_per_node_) >= ranks_) return plain();
    const int group = state.subgroup_of(ranks_per_node_);
    kernel(CommAction::divide_subgroup, Operation::divide, data(2)).divisor = group;
    CommStep& reduce = collective(CommAction::reduce_subgroup, Operation::all_reduce, data(1));
    reduce.communicator = 1;
    reduce.group = group;
  }

  void own(const OwnStep& step) {
    const std::size_t before = steps_.size();
    make(step);
    for (std::size_t s = before; s < steps_.size(); ++s)
      steps_[s].communicator = static_cast<std::uint8_t>(step.communicator);
  }

  /// Scales the bucket by a factor; without one by 1 / ranks.
  void scale(std::optional<double> factor) {
    CommStep& step = kernel(CommAction::scale, Operation::divide, data(2));
    step.factor = factor.value_or(1.0 / ranks_);
    if (factor) step.divisor = 1;
  }

  void make(const OwnStep& step) {
    const std::int64_t e = element().count;
    switch (step.kind) {
      case OwnStep::Kind::cast:
        if (step.type == type_) return;
        if (type_ != bucket_.type) widen();
        if (step.type != type_) narrow(step.type);
        return;
      case OwnStep::Kind::scale:
        scale(step.factor);
        return;
      case OwnStep::Kind::topk:
        // Magnitudes, a partial sort of some 4 passes, values and indices of what is left.
        pairs_ = std::max<std::int64_t>(
            1, static_cast<std::int64_t>(std::ceil(step.share * static_cast<double>(elements_))));
        kernel(CommAction::select, Operation::select, Bytes{data(6).count + pairs_ * (e + 4)}, 4)
            .factor = step.share;
        return;
      case OwnStep::Kind::all_reduce:
        collective(CommAction::reduce, Operation::all_reduce, data(1));
        return;
      case OwnStep::Kind::reduce_scatter:
        collective(CommAction::scatter_reduce, Operation::reduce_scatter, data(1));
        scattered_ = true;
        return;
      case OwnStep::Kind::all_gather:
        if (pairs_ > 0) {
          collective(CommAction::gather_pairs, Operation::all_gather, Bytes{pairs_ * (e + 4)});
          kernel(CommAction::spread_pairs, Operation::select,
                 Bytes{data(1).count + ranks_ * pairs_ * (3 * e + 4)}, ranks_ + 1);
          pairs_ = 0;
        } else if (scattered_) {
          collective(CommAction::gather_parts, Operation::all_gather,
                     Bytes{(elements_ + ranks_ - 1) / ranks_ * e});
          scattered_ = false;
        } else {
          collective(CommAction::gather_sum, Operation::all_gather, data(1));
        }
        return;
      case OwnStep::Kind::broadcast:
        collective(CommAction::broadcast, Operation::broadcast, data(1));
        return;
      case OwnStep::Kind::kernel: {
        CommStep& made = kernel(
            CommAction::touch, Operation::own_kernel,
            Bytes{std::llround(step.passes * static_cast<double>(data(1).count))}, step.launches);
        made.kernel.name = step.name;
        return;
      }
    }
  }

  const CommHook& hook_;
  const CommBucket& bucket_;
  int ranks_, ranks_per_node_;
  bool synchronous_;
  int iteration_;
  std::int64_t elements_;
  DType type_;
  std::int64_t pairs_ = 0;  // selected, not yet gathered
  bool scattered_ = false;
  std::vector<CommStep> steps_;
};

}  // namespace

std::vector<CommStep> comm_steps(const CommHook& hook, const CommBucket& bucket, int ranks,
                                 int ranks_per_node, bool synchronous, int iteration) {
  return Steps(hook, bucket, ranks, ranks_per_node, synchronous, iteration).all();
}

}  // namespace ddpsim
