#include "model/program/operands.hpp"

namespace ddpsim::program {
namespace {

/// Collects what each kind of action reads and writes.
class Accessor {
 public:
  Accessor(const Actions& actions, std::int32_t place, Accesses& found)
      : actions_(actions), place_(place), found_(found) {}

  void operator()(const Wait&) {}
  void operator()(const Meet&) {}
  void operator()(const Pause&) {}
  void operator()(const Call& call) { read(call.reads); }
  void operator()(const Chunked&) {}
  void operator()(const Compute& compute) {
    read(compute.weight);
    write(compute.result);
    write(compute.fills);
    const auto rows = actions_.of(compute.rows);
    for (std::size_t i = 0; i < rows.size(); i += 2) write(rows[i]);
  }
  void operator()(const Scale& scale) {
    read(scale.from);
    write(scale.to);
  }
  void operator()(const Fill& fill) { write(fill.to); }
  void operator()(const Combine& combine) {
    read(combine.left);
    read(combine.right);
    write(combine.to);
  }
  void operator()(const Cast& cast) {
    read(cast.from);
    write(cast.to);
  }
  void operator()(const TakeRows& take) {
    read(take.rows);
    read(take.from);
    write(take.to);
  }
  void operator()(const AddRows& add) {
    read(add.rows);
    read(add.from);
    change(add.to);
  }
  void operator()(const Pack& pack) {
    read(pack.from);
    write(pack.to);
  }
  void operator()(const Chunk& chunk) {
    read(chunk.from);
    write(chunk.to);
  }
  void operator()(const Unchunk& unchunk) {
    read(unchunk.from);
    write(unchunk.to);
  }
  void operator()(const TakePart& take) {
    read(take.from);
    change(take.to);
  }
  void operator()(const Multiply& multiply) {
    read(multiply.left);
    read(multiply.right);
    write(multiply.to);
  }
  void operator()(const Orthogonalize& orthogonalize) { change(orthogonalize.matrix); }
  void operator()(const Draw& draw) { write(draw.to); }
  void operator()(const Observe& observe) {
    read(observe.from);
    write(observe.scales);
  }
  void operator()(const Quantize& quantize) {
    read(quantize.from);
    read(quantize.scales);
    write(quantize.codes);
  }
  void operator()(const Dequantize& dequantize) {
    read(dequantize.codes);
    read(dequantize.scales);
    write(dequantize.to);
  }
  void operator()(const Select& select) {
    read(select.from);
    write(select.pairs);
  }
  void operator()(const Spread& spread) {
    read(spread.pairs);
    write(spread.to);
  }
  void operator()(const Clip& clip) {
    read(clip.gradients);
    write(clip.gradients);
  }
  void operator()(const Noise& noise) {
    read(noise.from);
    write(noise.to);
  }
  void operator()(const Plugin& plugin) {
    read(plugin.weight);
    read(plugin.reads);
    write(plugin.writes);
  }
  void operator()(const Touch& touch) { change(touch.what); }
  void operator()(const Update& update) {
    read(update.parameters);
    read(update.gradients);
    read(update.state);
    write(update.parameters);
    write(update.state);
  }
  void operator()(const Move& move) {
    read(move.from);
    write(move.to);
  }
  void operator()(const Collective& collective) {
    const bool sends = collective.what != Collectives::broadcast || collective.root == place_;
    if (sends) read(collective.from);
    read(collective.counts);
    write(collective.to);
  }
  void operator()(const Send& send) { read(send.what); }
  void operator()(const Receive& receive) { write(receive.what); }

 private:
  void read(const Slice& slice) {
    if (!slice.empty()) found_.reads.push_back(slice);
  }
  void write(const Slice& slice) {
    if (!slice.empty()) found_.writes.push_back(slice);
  }
  void change(const Slice& slice) {
    read(slice);
    write(slice);
  }
  void read(const Operands& operands) {
    for (const Slice& slice : actions_.of(operands)) read(slice);
  }
  void write(const Operands& operands) {
    for (const Slice& slice : actions_.of(operands)) write(slice);
  }

  const Actions& actions_;
  std::int32_t place_;
  Accesses& found_;
};

}  // namespace

void find_accesses(const Action& action, const Actions& actions, std::int32_t place,
                   Accesses& found) {
  found.reads.clear();
  found.writes.clear();
  Accessor accessor(actions, place, found);
  std::visit(accessor, action);
}

Accesses accesses_of(const Action& action, const Actions& actions, std::int32_t place) {
  Accesses found;
  find_accesses(action, actions, place, found);
  return found;
}

}  // namespace ddpsim::program
