#include "backend/device/cuda/gpu_device.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "backend/comm_hooks/quantization.hpp"
#include "backend/execute/chunks.hpp"
#include "backend/execute/operand_refusal.hpp"
#include "backend/execute/start_values.hpp"

namespace ddpsim {

using namespace program;  // NOLINT: the names of all actions
using execute::Doing;
using execute::Piece;

namespace {

GpuGemmLayout gemm_layout(Layout layout) {
  switch (layout) {
    case Layout::plain:
      break;
    case Layout::left_transposed:
      return GpuGemmLayout::tn;
    case Layout::right_transposed:
      return GpuGemmLayout::nt;
  }
  return GpuGemmLayout::nn;
}

/// How often one step goes over each element: parameter and gradient are read, the parameter is
/// written, and so is each part of its state, which is read too.
int passes(Optimizer optimizer) {
  return 3 + 2 * static_cast<int>(state_slices(optimizer));
}

}  // namespace

/// What each kind of action enqueues.
class GpuActions {
 public:
  GpuActions(GpuDevice& device, const Doing& doing)
      : device_(device), gpu_(device.gpu_), doing_(doing), stream_(doing.task.stream) {}

  // What the executor does itself, and what only takes the host time.
  void operator()(const Wait&) {}
  void operator()(const Meet&) {}
  void operator()(const Collective&) {}
  void operator()(const Send&) {}
  void operator()(const Receive&) {}
  void operator()(const Call&) {}
  // What is refused.
  void operator()(const Chunked&) {}
  void operator()(const TakeRows&) {}
  void operator()(const AddRows&) {}
  void operator()(const Select&) {}
  void operator()(const Spread&) {}
  void operator()(const Clip&) {}
  void operator()(const Noise&) {}
  void operator()(const Plugin&) {}

  void operator()(const Pause&) { gpu_.spin(stream_, doing_.work().host); }

  void operator()(const Compute& compute) {
    const Work& work = doing_.work();
    const std::uint32_t seed = execute::seed_in(compute.seed, doing_.task.micro_batch);
    const auto fills = doing_.of(compute.fills);
    Bytes left = work.traffic;  // of which what fills gradients is a part
    for (std::uint32_t i = 0; i < fills.size(); ++i) {
      const Piece to = at(fills[i]);
      gpu_.scale(stream_, to.data, device_.operands_.at(to.type, seed + 2 + i), to.count, to.type,
                 0.5F);
      left = std::max(Bytes{}, left - 2 * to.count * size_of(to.type));
    }
    if (work.gemm) return multiply(compute, *work.gemm, seed);
    if (work.known_time && work.traffic == Bytes{}) return gpu_.spin(stream_, *work.known_time);
    if (work.traffic == Bytes{}) return;
    device_.operands_.move(stream_, left,
                           std::max(1, work.launches - static_cast<int>(fills.size())), seed + 3,
                           compute.motion);
  }

  void operator()(const Scale& action) {
    scale(at(action.to), at(action.from), quotient(action.factor, action.mean_over));
  }
  void operator()(const Fill& fill) {
    const Piece to = at(fill.to);
    if (fill.value == 0)
      gpu_.clear(stream_, to.data, size_in_bytes(to));
    else
      gpu_.set(stream_, to.data, to.count, to.type, static_cast<float>(fill.value));
  }
  void operator()(const Combine& combine) {
    const Piece to = at(combine.to);
    gpu_.combine(stream_, to.data, at(combine.left).data, at(combine.right).data, to.count, to.type,
                 combine.a, combine.b);
  }
  void operator()(const Cast& cast) {
    const Piece to = at(cast.to), from = at(cast.from);
    gpu_.convert(stream_, to.data, to.type, from.data, from.type, to.count);
  }

  void operator()(const Chunk& chunk) {
    execute::each_chunk(
        at(chunk.to), chunk.to.begin, doing_.of(chunk.places), doing_.pieces(chunk.from),
        chunk.parts, [this](const Piece& packed, const Piece& tensor) { scale(packed, tensor, 1); },
        [this](const Piece& rest) { gpu_.clear(stream_, rest.data, size_in_bytes(rest)); });
  }
  void operator()(const Unchunk& unchunk) {
    execute::each_chunk(
        at(unchunk.from), unchunk.from.begin, doing_.of(unchunk.places), doing_.pieces(unchunk.to),
        unchunk.parts,
        [this](const Piece& packed, const Piece& tensor) { scale(tensor, packed, 1); },
        [](const Piece&) {});
  }

  void operator()(const TakePart& take) {
    execute::each_taken(at(take.to), doing_.memory.member(take.of).place, take.begin,
                        doing_.of(take.places), doing_.pieces(take.from),
                        [this](const Piece& part, const Piece& tensor) { scale(part, tensor, 1); });
  }

  /// Pieces that lie side by side on both ends go in one kernel; where PyTorch has more of them
  /// than that, each in its share of these.
  void operator()(const Pack& pack) {
    const auto to = doing_.of(pack.to), from = doing_.of(pack.from);
    std::vector<std::pair<Piece, Piece>> pieces;
    std::size_t target = 0;
    std::int64_t filled = 0;  // of the target
    for (const Slice& each : from)
      for (Piece left = at(each); left.count > 0 && target < to.size();) {
        const Piece into = at(to[target]);
        const std::int64_t count = std::min(left.count, into.count - filled);
        add(pieces, into.part(filled, count), left.part(0, count));
        left = left.part(count, left.count - count);
        filled += count;
        if (filled < into.count) continue;
        ++target;
        filled = 0;
      }
    const float factor = quotient(pack.factor, pack.mean_over);
    const auto kernels = static_cast<std::int64_t>(std::max<std::size_t>(1, pieces.size()));
    const std::int64_t parts = std::max<std::int64_t>(1, doing_.work().launches / kernels);
    for (const auto& [into, source] : pieces) {
      const std::int64_t size = (into.count + parts - 1) / parts;
      for (std::int64_t begin = 0; begin < into.count; begin += size) {
        const std::int64_t count = std::min(size, into.count - begin);
        scale(into.part(begin, count), source.part(begin, count), factor);
      }
    }
    for (; pack.zeros_behind && target < to.size(); ++target, filled = 0) {
      const Piece into = at(to[target]);
      const Piece rest = into.part(filled, into.count - filled);
      if (!rest.empty()) gpu_.clear(stream_, rest.data, size_in_bytes(rest));
    }
  }

  void operator()(const Multiply& action) {
    const Piece to = at(action.to);
    GemmCall call;
    call.layout = gemm_layout(action.layout);
    call.gemm = {action.m, action.n, action.k};
    call.type = call.result_type = to.type;
    call.left = at(action.left).data;
    call.right = at(action.right).data;
    call.result = to.data;
    call.stream = stream_;
    gpu_.gemm(call);
  }
  void operator()(const Orthogonalize& action) {
    const Piece matrix = at(action.matrix);
    gpu_.orthogonalize(stream_, matrix.data, action.rows, action.columns, matrix.type,
                       static_cast<float>(action.epsilon));
  }
  void operator()(const Draw& draw) {
    device_.draw_on(stream_, doing_.job, draw.to.buffer, at(draw.to), draw.fresh);
  }

  void operator()(const Observe& action) {
    gpu_.observe(stream_, quantization(at(action.from), action.channel, at(action.scales), {}));
  }
  void operator()(const Quantize& action) {
    gpu_.quantize(stream_, quantization(at(action.from), action.channel, at(action.scales),
                                        at(action.codes)));
  }
  void operator()(const Dequantize& action) {
    const auto ranks = static_cast<int>(doing_.memory.member(action.mean_over).group->size());
    gpu_.dequantize(
        stream_, quantization(at(action.to), action.channel, at(action.scales), at(action.codes)),
        ranks, quotient(1, action.mean_over));
  }

  void operator()(const Touch&) {
    const Work& work = doing_.work();
    if (work.known_time) return gpu_.spin(stream_, *work.known_time);
    if (work.traffic > Bytes{})
      device_.operands_.move(stream_, work.traffic, work.launches, doing_.task.work);
  }

  void operator()(const Update& update) {
    const Work& work = doing_.work();
    if (work.known_time) return gpu_.spin(stream_, *work.known_time);
    const Whole whole = whole_optimizer();
    const bool is_share = work.optimizer_share > 0;
    if (is_share && whole.known_time > Duration::zero())
      return gpu_.spin(stream_, scaled(whole.known_time, work.optimizer_share));
    const Bytes moved = compute(update);
    Bytes all = work.traffic;
    int launches = work.launches;
    if (is_share) {
      all = Bytes{std::llround(work.optimizer_share * static_cast<double>(whole.traffic.count))};
      launches = static_cast<int>(std::llround(work.optimizer_share * whole.launches));
    }
    if (all > moved)
      device_.operands_.move(stream_, all - moved, std::max(1, launches - kernels_of(update)),
                             doing_.task.work);
  }

  void operator()(const Move& move) { scale(at(move.to), at(move.from), 1); }

 private:
  Piece at(const Slice& slice) const { return doing_.memory.piece(slice); }
  static Bytes size_in_bytes(const Piece& piece) { return piece.count * size_of(piece.type); }

  /// The factor, over the ranks of a group. Where this rank stands for all, it sums nothing: there
  /// a mean over all ranks, also one that is told as a factor, is one over those that are real.
  float quotient(float factor, std::int16_t mean_over) const {
    if (device_.stands_for_ > 1)
      return factor == 1 / static_cast<float>(device_.stands_for_) ? 1 : factor;
    if (mean_over == nobody) return factor;
    return factor / static_cast<float>(doing_.memory.member(mean_over).group->size());
  }

  void scale(const Piece& to, const Piece& from, float factor) {
    if (to.type == from.type && execute::is_number(to.type))
      return gpu_.scale(stream_, to.data, from.data, to.count, to.type, factor);
    if (to.type == from.type)  // as bytes: the factor is 1
      return gpu_.copy(stream_, to.data, from.data, size_in_bytes(to));
    gpu_.convert(stream_, to.data, to.type, from.data, from.type, to.count);
    if (factor != 1) gpu_.scale(stream_, to.data, to.data, to.count, to.type, factor);
  }

  static void add(std::vector<std::pair<Piece, Piece>>& pieces, const Piece& to,
                  const Piece& from) {
    if (!pieces.empty()) {
      auto& [before, source] = pieces.back();
      if (before.type == to.type && source.type == from.type &&
          before.data + before.bytes().size() == to.data &&
          source.data + source.bytes().size() == from.data) {
        before.count += to.count;
        source.count += from.count;
        return;
      }
    }
    pieces.emplace_back(to, from);
  }

  /// Its result is a gradient, or nobody reads it.
  void multiply(const Compute& compute, const Gemm& gemm, std::uint32_t seed) {
    const DType type = doing_.work().type;
    GemmCall call;
    call.layout = gemm_layout(compute.layout);
    call.gemm = gemm;
    call.type = type;
    call.left = device_.operands_.at(stored_as(type), seed);
    const Piece weight = at(compute.weight);
    const bool reads = !weight.empty() && weight.type == stored_as(type) && gemm.batch == 1 &&
                       weight.count == gemm.k * gemm.n;
    call.right = reads ? weight.data : device_.operands_.at(stored_as(type), seed + 1);
    const Piece result = at(compute.result);
    call.result_type = result.empty() ? stored_as(type) : result.type;
    call.result = result.empty() ? device_.operands_.scratch() : result.data;
    call.stream = stream_;
    gpu_.gemm(call);
  }

  static QuantizeCall quantization(const Piece& values, std::int64_t channel, const Piece& scales,
                                   const Piece& codes) {
    const QuantizationChannels channels = quantization_channels(channel, values.count);
    QuantizeCall call;
    call.values = values.data;
    call.count = values.count;
    call.type = values.type;
    call.channel = channels.width;
    call.channels = channels.count;
    call.scales = reinterpret_cast<float*>(scales.data);
    call.codes = reinterpret_cast<std::uint8_t*>(codes.data);
    return call;
  }

  static int kernels_of(const Update& update) {
    const std::size_t most = UpdateCall::most_tensors;
    return update.optimizer == Optimizer::none
               ? 0
               : static_cast<int>((update.parameters.count + most - 1) / most);
  }

  /// The real update. Returns what it reads and writes.
  Bytes compute(const Update& update) {
    if (update.optimizer == Optimizer::none) return Bytes{};
    const auto parameters = doing_.of(update.parameters), gradients = doing_.of(update.gradients),
               kept = doing_.of(update.state);
    const std::size_t slices = state_slices(update.optimizer);
    std::vector<UpdatedTensor> tensors;
    UpdateCall call;
    call.optimizer = update.optimizer;
    call.step = device_.updates_;
    call.stream = stream_;
    Bytes moved;
    const auto enqueue = [&] {
      call.tensors = tensors;
      if (!tensors.empty()) gpu_.update(call);
      tensors.clear();
    };
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Piece parameter = at(parameters[i]);
      if (parameter.type != call.type || tensors.size() == UpdateCall::most_tensors) enqueue();
      call.type = parameter.type;
      UpdatedTensor& tensor = tensors.emplace_back();
      tensor.parameter = parameter.data;
      tensor.gradient = at(gradients[i]).data;
      if (slices > 0) tensor.momentum = at(kept[slices * i]).data;
      if (slices > 1) tensor.variance = at(kept[slices * i + 1]).data;
      tensor.count = parameter.count;
      moved += passes(update.optimizer) * size_in_bytes(parameter);
    }
    enqueue();
    return moved;
  }

  /// All kernels of the optimizer together.
  struct Whole {
    Duration known_time{};
    Bytes traffic;
    int launches = 0;
  };
  Whole whole_optimizer() const {
    Whole whole;
    for (const std::uint32_t number : doing_.job.passes.optimizer) {
      if (number >= doing_.job.works.size()) continue;
      const Work& work = doing_.job.works[number];
      whole.known_time += work.known_time.value_or(Duration{});
      whole.traffic += work.traffic;
      whole.launches += work.launches;
    }
    return whole;
  }

  GpuDevice& device_;
  Gpu& gpu_;
  const Doing& doing_;
  GpuStream stream_;
};

void GpuDevice::load() {
  updates_ = 0;
  draws_.forget();
}

std::shared_ptr<std::byte> GpuDevice::allocate(Bytes size, std::string_view what) {
  gpu_.make_stream(first_stream);
  auto memory = gpu_.allocate(size, std::string(what).c_str());
  gpu_.clear(first_stream, memory.get(), size);
  return memory;
}

void GpuDevice::clear(const Piece& piece) {
  gpu_.clear(first_stream, piece.data, piece.count * size_of(piece.type));
}

/// Pieces that overlap go by way of memory of their own.
void GpuDevice::copy(const Piece& to, const Piece& from) {
  const Bytes size = to.count * size_of(to.type);
  const auto between = gpu_.allocate(size, "contents that move");
  gpu_.copy(first_stream, between.get(), from.data, size);
  gpu_.copy(first_stream, to.data, between.get(), size);
  gpu_.read(between.get(), 1, DType::fp32);  // waits: the memory goes
}

void GpuDevice::put_parameters(const Job& job, std::span<const execute::Beginning> parameters) {
  for (const execute::Beginning& each : parameters) {
    const Piece& piece = each.piece;
    const std::uint64_t seed =
        (std::uint64_t{1} << 32) + static_cast<std::uint64_t>(job.buffers[each.buffer].index + 1);
    if (each.filled() == each.whole) {
      gpu_.fill(piece.data, each.whole, piece.type, seed);
      if (each.whole < piece.count) clear(piece.part(each.whole, piece.count - each.whole));
      continue;
    }
    const Bytes element = size_of(piece.type);
    const auto whole = gpu_.allocate(each.whole * element, "a parameter of which this is a part");
    gpu_.fill(whole.get(), each.whole, piece.type, seed);
    clear(piece);
    if (each.filled() > 0)
      gpu_.copy(first_stream, piece.data, whole.get() + (each.begin * element).count,
                each.filled() * element);
    gpu_.read(whole.get(), 1, piece.type);  // waits: the memory goes
  }
}

void GpuDevice::draw(const Job& job, BufferId buffer, const Piece& piece, bool fresh) {
  draw_on(first_stream, job, buffer, piece, fresh);
}

void GpuDevice::draw_on(GpuStream stream, const Job& job, BufferId buffer, const Piece& piece,
                        bool fresh) {
  std::vector<float> numbers(static_cast<std::size_t>(piece.count));
  draws_.draw(job, buffer, numbers, fresh);
  if (!numbers.empty()) gpu_.write(stream, piece.data, numbers, piece.type);
}

void GpuDevice::begin(const Job& job, std::size_t program) {
  operands_.reserve(job);
  has_update_ = std::ranges::any_of(job.programs[program].tasks, [&](const program::Task& task) {
    return std::holds_alternative<Update>(job.deed_of(task).action);
  });
}

void GpuDevice::begin_round() {
  if (has_update_) ++updates_;
}

void GpuDevice::run(const Doing& doing) {
  std::visit(GpuActions(*this, doing), doing.action());
}

}  // namespace ddpsim
