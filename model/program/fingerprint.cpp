#include "model/program/fingerprint.hpp"

#include <variant>

#include <fmt/format.h>

#include "model/program/value_hash.hpp"

namespace ddpsim::program {
namespace {

class Hash : public ValueHash<Hash> {
 public:
  using ValueHash::add;

  void add(const Slice& slice) { add(slice.buffer, slice.part_of, slice.begin, slice.count); }
  void add(const Operands& operands) { add(operands.begin, operands.count); }
  void add(const Buffer& buffer) {
    add(buffer.holds, buffer.index, buffer.name, buffer.type, buffer.elements, buffer.place);
    add(buffer.life, buffer.start, buffer.inside);
  }

  void add(const Wait&) {}
  void add(const Meet&) {}
  void add(const Pause&) {}
  void add(const Call& call) { add(call.what, call.index, call.reads); }
  void add(const Chunked& chunked) {
    add(chunked.pieces, chunked.threads, chunked.output, chunked.time);
  }
  void add(const Compute& compute) {
    add(compute.seed, compute.layout, compute.motion, compute.weight, compute.result);
    add(compute.fills, compute.rows);
  }
  void add(const Scale& scale) {
    add(scale.to, scale.from, static_cast<double>(scale.factor), scale.mean_over);
  }
  void add(const Fill& fill) { add(fill.to, fill.value); }
  void add(const Combine& combine) {
    add(combine.to, combine.left, combine.right, static_cast<double>(combine.a),
        static_cast<double>(combine.b));
  }
  void add(const Cast& cast) { add(cast.to, cast.from); }
  void add(const TakeRows& take) {
    add(take.to, take.rows, take.from, static_cast<double>(take.factor));
  }
  void add(const AddRows& rows) { add(rows.to, rows.rows, rows.from); }
  void add(const Pack& pack) {
    add(pack.to, pack.from, static_cast<double>(pack.factor), pack.mean_over, pack.zeros_behind);
  }
  void add(const Chunk& chunk) { add(chunk.to, chunk.places, chunk.from, chunk.parts); }
  void add(const Unchunk& unchunk) { add(unchunk.to, unchunk.places, unchunk.from, unchunk.parts); }
  void add(const TakePart& take) { add(take.to, take.places, take.from, take.begin, take.of); }
  void add(const Multiply& multiply) {
    add(multiply.to, multiply.left, multiply.right, multiply.m, multiply.n, multiply.k);
    add(multiply.layout);
  }
  void add(const Orthogonalize& orthogonalize) {
    add(orthogonalize.matrix, orthogonalize.rows, orthogonalize.columns, orthogonalize.epsilon);
  }
  void add(const Draw& draw) { add(draw.to, draw.fresh); }
  void add(const Observe& observe) { add(observe.scales, observe.from, observe.channel); }
  void add(const Quantize& quantize) {
    add(quantize.codes, quantize.scales, quantize.from, quantize.channel);
  }
  void add(const Dequantize& dequantize) {
    add(dequantize.to, dequantize.codes, dequantize.scales, dequantize.channel,
        dequantize.mean_over);
  }
  void add(const Select& select) { add(select.pairs, select.from); }
  void add(const Spread& spread) { add(spread.to, spread.pairs, spread.of); }
  void add(const Clip& clip) { add(clip.gradients, clip.norm); }
  void add(const Noise& noise) { add(noise.to, noise.from, noise.deviation, noise.seed); }
  void add(const Plugin& plugin) {
    add(plugin.what, plugin.code, plugin.parameter, plugin.weight, plugin.complete);
    add(plugin.reads, plugin.writes);
  }
  void add(const Touch& touch) { add(touch.what); }
  void add(const Update& update) {
    add(update.optimizer, update.parameters, update.gradients, update.state);
  }
  void add(const Move& move) { add(move.to, move.from, move.unawaited); }
  void add(const Collective& collective) {
    add(collective.what, collective.reduction, collective.communicator, collective.root);
    add(collective.unawaited, collective.from, collective.to, collective.counts);
  }
  void add(const Send& send) { add(send.communicator, send.peer, send.what); }
  void add(const Receive& receive) { add(receive.communicator, receive.peer, receive.what); }
  void add(const Action& action) {
    add(action.index());
    std::visit([this](const auto& each) { add(each); }, action);
  }

  void add(const Origin& origin) {
    add(origin.pass, origin.purpose, origin.label, origin.layer, origin.kernel, origin.parameter);
    add(origin.group, origin.hook);
  }
  void add(const Deed& deed) { add(deed.action, deed.origin); }
  void add(const Actions& actions) { add(actions.deeds, actions.slices); }
  void add(const Stream& stream) { add(stream.name, stream.beside, stream.halts, stream.lanes); }
  void add(const Communicator& communicator) {
    add(communicator.name, communicator.at_once, communicator.groups);
  }
  void add(const Task& task) {
    add(task.work, task.deed, task.after_end, task.micro_batch, task.stream, task.communicator);
  }
  void add(const Part& part) { add(part.of, part.whole, part.begin, part.is_kept_whole); }
  void add(const ParameterGroup& group) { add(group.parameters, group.size, group.name); }
  void add(const Hold& hold) { add(hold.before, hold.buffer, hold.pool, hold.begins); }
  void add(const Mark& mark) { add(mark.kind, mark.task, mark.of); }
  void add(const Program& program) {
    add(program.tasks, program.after, program.holds, program.marks, program.rounds);
  }
};

}  // namespace

std::uint64_t fingerprint(const Job& job) {
  Hash hash;
  hash.add(job.streams, job.communicators, job.buffers, job.works, job.groups, job.labels);
  hash.add(job.known_deeds(), job.state, job.hook, job.seed);
  if (job.known) hash.add(*job.known);
  hash.add(job.own, job.passes, job.programs, job.program_of, job.beside, job.gradients);
  if (!job.parts.empty()) hash.add(job.parts);
  return hash.value();
}

std::string fingerprint_text(std::uint64_t fingerprint) {
  return fmt::format("{:016x}", fingerprint);
}

}  // namespace ddpsim::program
