#include "model/program/renumbered.hpp"

#include <variant>

namespace ddpsim::program {
namespace {

class Renumber {
 public:
  explicit Renumber(const Renumbering& numbers) : numbers_(numbers) {}

  void operator()(Wait&) const {}
  void operator()(Meet&) const {}
  void operator()(Pause&) const {}
  void operator()(Call& call) const { change(call.reads); }
  void operator()(Chunked&) const {}
  void operator()(Compute& compute) const {
    change(compute.weight, compute.result, compute.fills, compute.rows);
  }
  void operator()(Scale& scale) const {
    change(scale.to, scale.from);
    change_communicator(scale.mean_over);
  }
  void operator()(Fill& fill) const { change(fill.to); }
  void operator()(Combine& combine) const { change(combine.to, combine.left, combine.right); }
  void operator()(Cast& cast) const { change(cast.to, cast.from); }
  void operator()(TakeRows& take) const { change(take.to, take.rows, take.from); }
  void operator()(AddRows& add) const { change(add.to, add.rows, add.from); }
  void operator()(Pack& pack) const {
    change(pack.to, pack.from);
    change_communicator(pack.mean_over);
  }
  void operator()(Chunk& chunk) const { change(chunk.to, chunk.places, chunk.from); }
  void operator()(Unchunk& unchunk) const { change(unchunk.to, unchunk.places, unchunk.from); }
  void operator()(TakePart& take) const {
    change(take.to, take.places, take.from);
    change_communicator(take.of);
  }
  void operator()(Multiply& multiply) const { change(multiply.to, multiply.left, multiply.right); }
  void operator()(Orthogonalize& orthogonalize) const { change(orthogonalize.matrix); }
  void operator()(Draw& draw) const { change(draw.to); }
  void operator()(Observe& observe) const { change(observe.scales, observe.from); }
  void operator()(Quantize& quantize) const {
    change(quantize.codes, quantize.scales, quantize.from);
  }
  void operator()(Dequantize& dequantize) const {
    change(dequantize.to, dequantize.codes, dequantize.scales);
    change_communicator(dequantize.mean_over);
  }
  void operator()(Select& select) const { change(select.pairs, select.from); }
  void operator()(Spread& spread) const {
    change(spread.to, spread.pairs);
    change_communicator(spread.of);
  }
  void operator()(Clip& clip) const { change(clip.gradients); }
  void operator()(Noise& noise) const { change(noise.to, noise.from); }
  void operator()(Plugin& plugin) const {
    plugin.code = numbers_.labels[at(plugin.code)];
    change(plugin.weight, plugin.complete, plugin.reads, plugin.writes);
  }
  void operator()(Touch& touch) const { change(touch.what); }
  void operator()(Update& update) const {
    change(update.parameters, update.gradients, update.state);
  }
  void operator()(Move& move) const { change(move.to, move.from); }
  void operator()(Collective& collective) const {
    change(collective.from, collective.to, collective.counts);
    change_communicator(collective.communicator);
  }
  void operator()(Send& send) const {
    change(send.what);
    change_communicator(send.communicator);
  }
  void operator()(Receive& receive) const {
    change(receive.what);
    change_communicator(receive.communicator);
  }

  void change(Slice& slice) const {
    if (slice.buffer != no_buffer) slice.buffer = numbers_.buffers[slice.buffer];
    change_communicator(slice.part_of);
  }

 private:
  void change(Operands& operands) const { operands.begin += numbers_.slices; }
  void change_communicator(std::int16_t& communicator) const {
    if (communicator != nobody) communicator = numbers_.communicators[at(communicator)];
  }
  template <typename First, typename Second, typename... More>
  void change(First& first, Second& second, More&... more) const {
    change(first);
    change(second);
    (change(more), ...);
  }

  const Renumbering& numbers_;
};

}  // namespace

Slice renumbered(Slice slice, const Renumbering& numbers) {
  Renumber(numbers).change(slice);
  return slice;
}

Action renumbered(Action action, const Renumbering& numbers) {
  std::visit(Renumber(numbers), action);
  return action;
}

}  // namespace ddpsim::program
