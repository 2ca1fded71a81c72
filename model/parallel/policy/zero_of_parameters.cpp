// ZeRO stage 1 of whole parameters: gradients are reduced as under DistributedDataParallel (or what
// stands in its place), each rank updates the parameters that it owns, with state for these alone,
// and sends them to the others.
//
//     variant torch    ZeroRedundancyOptimizer: parameters are owned by size; a broadcast for each,
//                      rank by rank, or one for each rank's parameters where these lie in one piece
//                      (parameters_as_bucket_view). All are issued, then all are waited for.
//     variant course   a sharded optimizer as students of CS336 write it: parameters are owned in
//                      turn; `send` says whether they travel one by one, a rank's in one piece, or
//                      all in one all-gather, padded to the longest. `gradients` says whether
//                      gradients are reduced in buckets or one by one.
//
// Source: torch/distributed/optim/zero_redundancy_optimizer.py; rules F79-F83.

#include <algorithm>

#include <fmt/format.h>

#include "model/parallel/policy/owned_parameters.hpp"
#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

using program::Collectives;
using program::Slice;

class ZeroOfParameters : public StrategyTasks {
 public:
  void plan(StepBuilder& step) override {
    check_hook(step);
    const Training& training = step.training;
    settings_ = *training.zero();
    ddp_ = settings_.overlaps_each() ? make_overlap()
           : training.own_buckets()  ? make_own_buckets()
                                     : make_bucketed();
    ddp_->plan(step);
    const int ranks = step.writer.device.ranks;
    owned_ = settings_.variant == ZeroVariant::torch ? owned_by_size(step.works, ranks)
                                                     : owned_in_turn(step.works, ranks);
    if (settings_.variant != ZeroVariant::torch || !settings_.parameters_as_bucket_view) return;
    for (std::size_t rank = 0; rank < owned_.size(); ++rank) {
      const auto index = static_cast<std::int32_t>(rank);
      // A rank that owns nothing sends one number.
      pieces_.push_back(owned_[rank].empty()
                            ? piece_of(step, rank, 1)
                            : step.memory.put_weights_together(owned_[rank], index, 1, 1).all);
    }
  }

  void laid_out(StepBuilder& step, std::int32_t bucket) override { ddp_->laid_out(step, bucket); }
  void before_forward(StepBuilder& step) override { ddp_->before_forward(step); }
  void before_layer(StepBuilder& step, program::Pass pass, std::size_t layer) override {
    ddp_->before_layer(step, pass, layer);
  }
  void after_layer(StepBuilder& step, program::Pass pass, std::size_t layer) override {
    ddp_->after_layer(step, pass, layer);
  }
  void before_backward(StepBuilder& step) override { ddp_->before_backward(step); }
  void gradient_ready(StepBuilder& step, std::int32_t parameter) override {
    ddp_->gradient_ready(step, parameter);
  }
  void after_backward(StepBuilder& step) override { ddp_->after_backward(step); }
  bool computes_aside(const StepBuilder& step) const override { return ddp_->computes_aside(step); }
  /// It writes its own.
  bool optimizer_follows(const StepBuilder&) const override { return false; }

  void after_optimizer(StepBuilder& step) override {
    clip(step);
    for (std::int32_t rank = 0; rank < step.writer.device.ranks; ++rank) update(step, rank);
    send(step);
    ddp_->after_optimizer(step);
  }

 private:
  static void check_hook(const StepBuilder& step) {
    const CommHookKind kind = step.training.comm_hook.kind;
    if (updates_parameters(kind))
      check(Refusal{"training.comm_hook",
                    fmt::format("{} updates parameters itself, and so does {}: take one of them "
                                "out",
                                name_of(kind), name_of(step.training.strategy)),
                    {}});
  }

  /// Each rank has all gradients, and scales them all.
  static void clip(StepBuilder& step) {
    for (std::size_t k = 0; k < step.works.clipping; ++k)
      step.writer.kernel_task(Operation::optimizer, step.works.optimizer[k], program::Touch{},
                              {.kernel = static_cast<std::int32_t>(k)});
  }

  void update(StepBuilder& step, std::int32_t rank) {
    const std::vector<std::int32_t> mine = step.used(owned_[at(rank)]);
    if (mine.empty()) return;
    const std::vector<KnownWork>& kernels = step.works.optimizer;
    const bool each_alone = kernels.size() - step.works.clipping == step.works.parameters();
    if (each_alone) {
      for (const std::int32_t each : mine)
        add_update(step, rank, step.works.clipping + at(each),
                   step.writer.number_of(kernels[step.works.clipping + at(each)]), {each});
      return;
    }
    Bytes size;
    for (const std::int32_t each : mine) size += step.works.gradients[at(each)].size;
    for (std::size_t k = step.works.clipping; k < kernels.size(); ++k)
      add_update(step, rank, k,
                 step.part_of_update(kernels[k], size.count, step.works.gradient_size.count),
                 k == step.works.clipping ? mine : std::vector<std::int32_t>{});
  }

  static void add_update(StepBuilder& step, std::int32_t rank, std::size_t kernel,
                         std::uint32_t work, const std::vector<std::int32_t>& parameters) {
    program::Action action = program::Touch{};
    if (!parameters.empty()) {
      std::vector<Slice> gradients;
      for (const std::int32_t each : parameters)
        gradients.push_back(step.memory.gradient_now(each));
      action = step.memory.update(parameters, gradients);
    }
    step.writer.kernel_task(Operation::optimizer, work, action,
                            {.kernel = static_cast<std::int32_t>(kernel)});
    step.writer.leave_to(rank);
  }

  void send(StepBuilder& step) {
    if (step.writer.device.ranks == 1) return;
    if (settings_.variant == ZeroVariant::torch)
      return pieces_.empty() ? broadcast_each(step) : broadcast_pieces(step);
    switch (settings_.send) {
      case ParameterSend::parameter:
        return broadcast_each(step);
      case ParameterSend::rank:
        return broadcast_packed(step);
      case ParameterSend::gather:
        return gather(step);
    }
  }

  void broadcast_each(StepBuilder& step) const {
    std::vector<std::int32_t> sent;
    for (std::size_t rank = 0; rank < owned_.size(); ++rank)
      for (const std::int32_t each : owned_[rank])
        sent.push_back(broadcast(step, rank, step.memory.weight(each)));
    for (const std::int32_t each : sent) step.writer.await(each);
  }

  void broadcast_pieces(StepBuilder& step) const {
    std::vector<std::int32_t> sent;
    for (std::size_t rank = 0; rank < pieces_.size(); ++rank)
      sent.push_back(broadcast(step, rank, pieces_[rank]));
    for (const std::int32_t each : sent) step.writer.await(each);
  }

  /// A rank's parameters in one piece, by torch's _flatten_dense_tensors, and back from it.
  void broadcast_packed(StepBuilder& step) const {
    std::vector<std::pair<std::size_t, Slice>> pieces;
    std::vector<std::int32_t> sent;
    for (std::size_t rank = 0; rank < owned_.size(); ++rank) {
      if (owned_[rank].empty()) continue;
      const Slice piece = piece_of(step, rank, elements(step, owned_[rank]));
      pack(step, {piece}, weights(step, owned_[rank]));
      step.writer.leave_to(static_cast<std::int32_t>(rank));
      pieces.emplace_back(rank, piece);
      sent.push_back(broadcast(step, rank, piece));
    }
    for (std::size_t i = 0; i < sent.size(); ++i) {
      step.writer.await(sent[i]);
      pack(step, weights(step, owned_[pieces[i].first]), {pieces[i].second});
    }
  }

  void gather(StepBuilder& step) const {
    std::int64_t longest = 0;
    for (const auto& mine : owned_) longest = std::max(longest, elements(step, mine));
    StepWriter& writer = step.writer;
    const Slice mine = piece_of(step, 0, longest);
    const Slice all = writer.memory.add("all pieces", nobody, program::Holds::gathered, type(step),
                                        longest * writer.device.ranks, program::Life::step);
    std::vector<Slice> to, from;
    for (std::size_t rank = 0; rank < owned_.size(); ++rank) {
      if (owned_[rank].empty()) continue;
      pack(step, {mine}, weights(step, owned_[rank]));
      writer.leave_to(static_cast<std::int32_t>(rank));
      std::int64_t begin = static_cast<std::int64_t>(rank) * longest;
      for (const std::int32_t each : owned_[rank]) {
        to.push_back(step.memory.weight(each));
        from.push_back({all.buffer, program::nowhere, begin, step.memory.elements(each)});
        begin += step.memory.elements(each);
      }
    }
    StepWriter::Sending sending = parameters_sent(step, mine);
    sending.work.operation = Operation::all_gather;
    sending.what.what = Collectives::all_gather;
    sending.what.to = all;
    writer.await(writer.send(sending));
    pack(step, to, from);
  }

  static StepWriter::Sending parameters_sent(StepBuilder& step, const Slice& what) {
    StepWriter::Sending sending;
    sending.work.message = Message::parameters;
    sending.work.payload = size_of(step.writer.memory.job, what);
    sending.what.from = sending.what.to = what;
    sending.input = step.writer.last_kernel;
    return sending;
  }

  static std::int32_t broadcast(StepBuilder& step, std::size_t root, const Slice& what) {
    StepWriter::Sending sending = parameters_sent(step, what);
    sending.work.operation = Operation::broadcast;
    sending.what.what = Collectives::broadcast;
    sending.what.root = static_cast<std::int16_t>(root);
    return step.writer.send(sending);
  }

  static void pack(StepBuilder& step, const std::vector<Slice>& to,
                   const std::vector<Slice>& from) {
    Bytes size;
    for (const Slice& each : from) size += size_of(step.writer.memory.job, each);
    Work work = moving(Operation::pack, 2 * size);
    work.message = Message::parameters;
    const program::Operands written = step.writer.memory.list(to);
    step.writer.kernel_task(Operation::pack, work,
                            program::Pack{.to = written, .from = step.writer.memory.list(from)});
  }

  static std::vector<Slice> weights(const StepBuilder& step,
                                    const std::vector<std::int32_t>& parameters) {
    std::vector<Slice> weights;
    for (const std::int32_t each : parameters) weights.push_back(step.memory.weight(each));
    return weights;
  }
  static std::int64_t elements(const StepBuilder& step,
                               const std::vector<std::int32_t>& parameters) {
    std::int64_t elements = 0;
    for (const std::int32_t each : parameters) elements += step.memory.elements(each);
    return elements;
  }
  static DType type(const StepBuilder& step) { return step.memory.type(0); }
  static Slice piece_of(StepBuilder& step, std::size_t rank, std::int64_t elements) {
    return step.writer.memory.add("piece", static_cast<std::int32_t>(rank),
                                  program::Holds::parameter, type(step), elements,
                                  program::Life::step, program::Start::zeros);
  }

  ZeroSettings settings_;
  std::unique_ptr<StrategyTasks> ddp_;
  OwnedParameters owned_;
  std::vector<Slice> pieces_;  ///< [rank] its parameters, where they lie in one; else empty
};

}  // namespace

std::unique_ptr<StrategyTasks> make_zero_of_parameters() {
  return std::make_unique<ZeroOfParameters>();
}

}  // namespace ddpsim
