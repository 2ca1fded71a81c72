#include "backend/device/cpu/cpu_device.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <thread>
#include <variant>

#include <fmt/format.h>

#include "backend/comm_hooks/orthogonalize.hpp"
#include "backend/comm_hooks/pairs.hpp"
#include "backend/comm_hooks/quantized_bucket.hpp"
#include "backend/comm_hooks/values.hpp"
#include "backend/cpu/busy.hpp"
#include "backend/cpu/gemm.hpp"
#include "backend/device/cpu/noise.hpp"
#include "backend/device/cpu/optimizer_update.hpp"
#include "backend/device/cpu/piece_values.hpp"
#include "backend/device_error.hpp"
#include "backend/execute/chunks.hpp"
#include "backend/execute/start_values.hpp"

namespace ddpsim {

using namespace program;  // NOLINT: the names of all actions
using execute::Doing;
using execute::Piece;

namespace {

/// to = factor x from / ranks, the division only where ranks > 0.
void scale(const Piece& to, const Piece& from, float factor, std::size_t ranks) {
  const auto by = static_cast<float>(ranks);
  if (to.type == from.type && factor == 1 && ranks == 0) {
    if (to.data != from.data) std::memmove(to.data, from.data, from.bytes().size());
    return;
  }
  const auto compute = [&](std::span<float> into, std::span<const float> source) {
    if (ranks == 0)
      for (std::size_t i = 0; i < into.size(); ++i) into[i] = source[i] * factor;
    else if (factor == 1)
      for (std::size_t i = 0; i < into.size(); ++i) into[i] = source[i] / by;
    else
      for (std::size_t i = 0; i < into.size(); ++i) into[i] = source[i] * factor / by;
  };
  if (to.type == DType::fp32 && from.type == DType::fp32) return compute(floats(to), floats(from));
  Values::Room room;
  const Values into = values_of(to);
  values_of(from).each([&](std::span<const float> piece, std::size_t begin) {
    const std::span<float> result = std::span(room).first(piece.size());
    compute(result, piece);
    into.part(begin, piece.size()).assign(result);
  });
}

GemmLayout gemm_layout(Layout layout) {
  switch (layout) {
    case Layout::plain:
      break;
    case Layout::left_transposed:
      return GemmLayout::tn;
    case Layout::right_transposed:
      return GemmLayout::nt;
  }
  return GemmLayout::nn;
}

/// Reads and writes `traffic` bytes, half each.
void stream(std::int64_t traffic, const float* from, float* to, std::int64_t most) {
  for (std::int64_t left = traffic / 8; left > 0; left -= most) {
    const std::int64_t count = std::min(left, most);
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * 0.5F + 1.0F;
  }
}

}  // namespace

/// What each kind of action does.
class CpuActions {
 public:
  CpuActions(CpuDevice& device, const Doing& doing) : device_(device), doing_(doing) {}

  // What the executor does itself.
  void operator()(const Wait&) {}
  void operator()(const Meet&) {}
  void operator()(const Collective&) {}
  void operator()(const Send&) {}
  void operator()(const Receive&) {}
  // What only takes the host time.
  void operator()(const Call&) {}

  void operator()(const Pause&) { std::this_thread::sleep_for(doing_.work().host); }

  void operator()(const Chunked& chunked) { device_.take_in_pieces(chunked); }

  void operator()(const Compute& compute) {
    const Work& work = doing_.work();
    const std::uint32_t seed = execute::seed_in(compute.seed, doing_.task.micro_batch);
    const KernelOperands& operands = device_.operands_;
    fill(compute, seed);
    if (work.gemm) return multiply(compute, *work.gemm, seed);
    if (work.known_time && work.traffic == Bytes{}) return be_busy(*work.known_time);
    stream(work.traffic.count, operands.at(seed), device_.operands_.scratch(),
           device_.operands_.scratch_size());
  }

  void operator()(const Scale& action) {
    scale(at(action.to), at(action.from), action.factor, members(action.mean_over));
  }
  void operator()(const Fill& fill) {
    const Piece to = at(fill.to);
    if (fill.value == 0) {
      std::ranges::fill(to.bytes(), std::byte{0});
    } else if (to.type == DType::fp64) {
      std::fill_n(reinterpret_cast<double*>(to.data), to.count, fill.value);
    } else {
      values_of(to).change([&](std::span<float> piece, std::size_t) {
        std::ranges::fill(piece, static_cast<float>(fill.value));
      });
    }
  }

  void operator()(const Combine& combine) {
    const Piece to = at(combine.to), left = at(combine.left), right = at(combine.right);
    const auto compute = [&](std::span<float> into, const float* one, const float* other) {
      for (std::size_t i = 0; i < into.size(); ++i)
        into[i] = combine.a * one[i] + combine.b * other[i];
    };
    if (to.type == DType::fp32 && left.type == DType::fp32 && right.type == DType::fp32)
      return compute(floats(to), floats(left).data(), floats(right).data());
    Values::Room result, other;
    const Values into = values_of(to), by = values_of(right);
    values_of(left).each([&](std::span<const float> piece, std::size_t begin) {
      const std::span<float> room = std::span(result).first(piece.size());
      compute(room, piece.data(), by.part(begin, piece.size()).in_fp32(other).data());
      into.part(begin, piece.size()).assign(room);
    });
  }

  /// Counts what becomes infinite by rounding; and, of what is widened, what has become so since it
  /// was narrowed.
  void operator()(const Cast& cast) {
    const Piece to = at(cast.to), from = at(cast.from);
    const bool narrows = size_of(to.type) == Bytes{2}, widens = size_of(from.type) == Bytes{2};
    std::int64_t overflows = 0;
    if (!narrows && widens) overflows = std::max<std::int64_t>(0, not_finite(from) - known(from));
    const Values into = values_of(to);
    values_of(from).each([&](std::span<const float> piece, std::size_t begin) {
      if (narrows) overflows += count_overflows(to.type, piece);
      into.part(begin, piece.size()).assign(piece);
    });
    device_.overflows_ += overflows;
    if (!narrows) return;
    const std::int64_t now = not_finite(to);
    const std::lock_guard lock(device_.casting_);
    device_.not_finite_[to.data] = now;
  }

  void operator()(const TakeRows& take) { SparseRows::take(doing_, take); }
  void operator()(const AddRows& add) { SparseRows::add(doing_, add); }

  void operator()(const Pack& pack) {
    const auto to = doing_.of(pack.to), from = doing_.of(pack.from);
    std::size_t target = 0;
    std::int64_t filled = 0;  // of the target
    for (const Slice& each : from)
      for (Piece left = at(each); left.count > 0 && target < to.size();) {
        const Piece into = at(to[target]);
        const std::int64_t count = std::min(left.count, into.count - filled);
        scale(into.part(filled, count), left.part(0, count), pack.factor, members(pack.mean_over));
        left = left.part(count, left.count - count);
        filled += count;
        if (filled < into.count) continue;
        ++target;
        filled = 0;
      }
    for (; pack.zeros_behind && target < to.size(); ++target, filled = 0) {
      const Piece into = at(to[target]);
      std::ranges::fill(into.part(filled, into.count - filled).bytes(), std::byte{0});
    }
  }

  void operator()(const Chunk& chunk) {
    execute::each_chunk(
        at(chunk.to), chunk.to.begin, doing_.of(chunk.places), doing_.pieces(chunk.from),
        chunk.parts,
        [this](const Piece& packed, const Piece& tensor) { scale(packed, tensor, 1, 0); },
        [](const Piece& rest) { std::ranges::fill(rest.bytes(), std::byte{0}); });
  }
  void operator()(const Unchunk& unchunk) {
    execute::each_chunk(
        at(unchunk.from), unchunk.from.begin, doing_.of(unchunk.places), doing_.pieces(unchunk.to),
        unchunk.parts,
        [this](const Piece& packed, const Piece& tensor) { scale(tensor, packed, 1, 0); },
        [](const Piece&) {});
  }

  void operator()(const TakePart& take) {
    execute::each_taken(
        at(take.to), doing_.memory.member(take.of).place, take.begin, doing_.of(take.places),
        doing_.pieces(take.from),
        [this](const Piece& part, const Piece& tensor) { scale(part, tensor, 1, 0); });
  }

  void operator()(const Multiply& action) {
    const InFull to(values_of(at(action.to))), left(values_of(at(action.left))),
        right(values_of(at(action.right)));
    gemm(gemm_layout(action.layout), action.m, action.n, action.k, left.data(), right.data(),
         to.data());
    to.put_back();
  }

  void operator()(const Draw& draw) {
    device_.draw(doing_.job, draw.to.buffer, at(draw.to), draw.fresh);
  }

  void operator()(const Orthogonalize& action) {
    const Piece piece = at(action.matrix);
    const InFull matrix(values_of(piece));
    orthogonalize(matrix.get(), action.rows, action.columns, action.epsilon,
                  size_of(piece.type) < Bytes{4});
    matrix.put_back();
  }

  void operator()(const Observe& action) {
    const InFull values(values_of(at(action.from)));
    QuantizedBucket quantized(quantization_channels(action.channel, action.from.count),
                              values.get().size());
    quantized.observe(values.get());
    std::ranges::copy(quantized.scales(), at(action.scales).data);
  }
  void operator()(const Quantize& action) {
    const InFull values(values_of(at(action.from)));
    QuantizedBucket quantized(quantization_channels(action.channel, action.from.count),
                              values.get().size());
    std::ranges::copy(at(action.scales).bytes(), quantized.scales().begin());
    quantized.quantize(values.get());
    std::ranges::copy(quantized.codes(), at(action.codes).data);
  }
  void operator()(const Dequantize& action) {
    const InFull values(values_of(at(action.to)));
    QuantizedBucket quantized(quantization_channels(action.channel, action.to.count),
                              values.get().size());
    const std::span<std::byte> scales = at(action.scales).bytes(), codes = at(action.codes).bytes();
    quantized.all_scales.assign(scales.begin(), scales.end());
    quantized.all_codes.assign(codes.begin(), codes.end());
    quantized.dequantize_mean(values.get(), static_cast<int>(members(action.mean_over)));
    values.put_back();
  }

  void operator()(const Select& select) {
    const Piece from = at(select.from), pairs = at(select.pairs);
    const std::size_t count = pairs.bytes().size() / wire_size(1, from.type);
    const Pairs largest = select_largest(InFull(values_of(from)).get(), count);
    write(largest, from.type, pairs.bytes().first(wire_size(largest.indices.size(), from.type)));
  }
  void operator()(const Spread& spread) {
    const Piece to = at(spread.to);
    const std::span<std::byte> all = at(spread.pairs).bytes();
    spread_pairs(all, all.size() / members(spread.of), to.type, values_of(to));
  }

  /// As torch's clip_grad_norm_: all x min(1, norm / (|all| + 1e-6)).
  void operator()(const Clip& clip) {
    double squares = 0;
    for (const Slice& each : doing_.of(clip.gradients))
      for (const float value : floats(at(each))) squares += static_cast<double>(value) * value;
    const double factor = clip.norm / (std::sqrt(squares) + 1e-6);
    if (factor >= 1) return;
    for (const Slice& each : doing_.of(clip.gradients))
      for (float& value : floats(at(each))) value *= static_cast<float>(factor);
  }
  void operator()(const Noise& noise) {
    const Piece to = at(noise.to);
    scale(to, at(noise.from), 1, 0);
    add_noise(floats(to), noise.deviation,
              noise_stream(noise.seed, doing_.memory.rank(), doing_.task.micro_batch));
  }

  void operator()(const Plugin& plugin) { device_.user_code_.run(doing_, plugin); }

  void operator()(const Touch& action) {
    const Piece what = at(action.what);
    if (!what.empty() && (size_of(what.type) == Bytes{4} || size_of(what.type) == Bytes{2}))
      touch(values_of(what), doing_.work().traffic.count);
  }

  void operator()(const Update& update) {
    const Work& work = doing_.work();
    if (work.known_time) return be_busy(*work.known_time);
    if (const Duration all = known_time_of_optimizer();
        work.optimizer_share > 0 && all > Duration::zero())
      return be_busy(scaled(all, work.optimizer_share));
    const auto parameters = doing_.of(update.parameters), gradients = doing_.of(update.gradients),
               kept = doing_.of(update.state);
    const std::size_t slices = state_slices(update.optimizer);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      OptimizerState state;
      if (slices > 0) state.momentum = floats(at(kept[slices * i]));
      if (slices > 1) state.variance = floats(at(kept[slices * i + 1]));
      update_parameter(update.optimizer, device_.updates_, floats(at(parameters[i])),
                       floats(at(gradients[i])), state);
    }
  }

  void operator()(const Move& move) { scale(at(move.to), at(move.from), 1, 0); }

 private:
  Piece at(const Slice& slice) const { return doing_.memory.piece(slice); }
  /// Ranks of this rank's group; 0: no communicator.
  std::size_t members(std::int16_t communicator) const {
    return communicator == nobody ? 0 : doing_.memory.member(communicator).group->size();
  }

  void fill(const Compute& compute, std::uint32_t seed) {
    const auto gradients = doing_.of(compute.fills), rows = doing_.of(compute.rows);
    for (std::uint32_t i = 0; i < gradients.size(); ++i) {
      const Piece to = at(gradients[i]);
      const float* from = device_.operands_.at(seed + 2 + i);
      if (!rows.empty() && !rows[2 * i].empty()) {
        const auto which = static_cast<std::uint64_t>(doing_.job.buffers[rows[2 * i].buffer].index);
        device_.sparse_rows_.fill(to, rows[2 * i + 1].count, at(rows[2 * i]), which, from);
        continue;
      }
      const std::span<float> gradient = floats(to);
      for (std::size_t e = 0; e < gradient.size(); ++e) gradient[e] = from[e] * 0.5F;
    }
  }

  void multiply(const Compute& compute, const Gemm& g, std::uint32_t seed) {
    KernelOperands& operands = device_.operands_;
    const float* left = operands.at(seed);
    const bool reads = !compute.weight.empty();
    const float* right = reads ? floats(at(compute.weight)).data() : operands.at(seed + 1);
    float* result = compute.result.empty() ? operands.scratch() : floats(at(compute.result)).data();
    const GemmLayout layout = gemm_layout(compute.layout);
    for (std::int64_t b = 0; b < g.batch; ++b)
      gemm(layout, g.m, g.n, g.k, left + b * g.m * g.k, right + (reads ? 0 : b * g.k * g.n),
           result + b * g.m * g.n);
  }

  static std::int64_t not_finite(const Piece& narrow) {
    return count_not_finite(narrow.type, {reinterpret_cast<const std::uint16_t*>(narrow.data),
                                          static_cast<std::size_t>(narrow.count)});
  }
  std::int64_t known(const Piece& narrow) const {
    const std::lock_guard lock(device_.casting_);
    const auto found = device_.not_finite_.find(narrow.data);
    return found == device_.not_finite_.end() ? 0 : found->second;
  }
  Duration known_time_of_optimizer() const {
    Duration all{};
    for (const std::uint32_t work : doing_.job.passes.optimizer)
      if (work < doing_.job.works.size())
        all += doing_.job.works[work].known_time.value_or(Duration{});
    return all;
  }

  CpuDevice& device_;
  const Doing& doing_;
};

void CpuDevice::load(const Workload& workload) {
  user_code_.load(workload);
  updates_ = 0;
  draws_.forget();
}

void CpuDevice::begin(const Job& job, std::size_t program) {
  operands_.reserve(job);
  not_finite_.clear();
  has_update_ = std::ranges::any_of(job.programs[program].tasks, [&](const Task& task) {
    return std::holds_alternative<Update>(job.deed_of(task).action);
  });
}

/// Numbers of 16 bits are fp32's, rounded (torch draws 16 and more of them from coarser uniform
/// ones).
void CpuDevice::draw(const Job& job, BufferId buffer, const Piece& piece, bool fresh) {
  if (piece.empty()) return draws_.draw(job, buffer, {}, fresh);
  const InFull numbers(values_of(piece));
  draws_.draw(job, buffer, numbers.get(), fresh);
  numbers.put_back();
}

std::shared_ptr<std::byte> CpuDevice::allocate(Bytes size, std::string_view what) {
  const auto bytes = static_cast<std::size_t>(size.count);
  std::shared_ptr<std::byte> made(new (std::nothrow) std::byte[bytes](),
                                  std::default_delete<std::byte[]>());
  if (!made) throw DeviceError(fmt::format("there is no memory for {} bytes of {}", bytes, what));
  return made;
}

void CpuDevice::clear(const Piece& piece) {
  std::ranges::fill(piece.bytes(), std::byte{0});
}

void CpuDevice::copy(const Piece& to, const Piece& from) {
  std::memmove(to.data, from.data, from.bytes().size());
}

void CpuDevice::put_parameters(const Job& job, std::span<const execute::Beginning> parameters) {
  execute::put_start_values(job, parameters);
}

void CpuDevice::take_in_pieces(const Chunked& chunked) {
  constexpr std::int64_t longest = 16 << 20;  // values; longer outputs begin again
  const auto length = static_cast<std::size_t>(
      std::min({longest, operands_.scratch_size(),
                std::max<std::int64_t>(1, chunked.output.count / std::int64_t{sizeof(float)})}));
  if (output_.size() < length) output_.resize(length);
  ChunkPool& pool = pools_.try_emplace(chunked.threads, chunked.threads).first->second;
  pool.run(chunked, {operands_.scratch(), length}, std::span(output_).first(length));
}

void CpuDevice::begin_round() {
  if (has_update_) ++updates_;
}

void CpuDevice::run(const Doing& doing) {
  std::visit(CpuActions(*this, doing), doing.action());
}

}  // namespace ddpsim
