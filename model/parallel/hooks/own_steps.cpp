// A list of steps that the user writes.

#include <algorithm>
#include <cmath>

#include "model/parallel/hooks/comm_hooks.hpp"

namespace ddpsim {
namespace {

using program::Collectives, program::Reduction, program::Slice;

class OwnSteps {
 public:
  explicit OwnSteps(HookWriter& writer) : writer_(writer) {}

  void write(const OwnStep& step) {
    const std::size_t before = writer_.tasks.size();
    make(step);
    for (std::size_t t = before; t < writer_.tasks.size(); ++t)
      if (writer_.tasks[t].is_collective())
        writer_.tasks[t].work.communicator = static_cast<std::uint8_t>(step.communicator);
  }

 private:
  void make(const OwnStep& step) {
    const Slice data = writer_.data();
    switch (step.kind) {
      case OwnStep::Kind::cast:
        if (step.type == writer_.type()) return;
        writer_.cast_back();
        if (step.type != writer_.type()) writer_.cast(step.type);
        return;
      case OwnStep::Kind::scale: {
        const double factor = step.factor.value_or(1.0 / writer_.call.ranks);
        writer_.kernel(
            "scale", Operation::divide, writer_.passes(2),
            program::Scale{.to = data, .from = data, .factor = static_cast<float>(factor)});
        return;
      }
      case OwnStep::Kind::topk:
        return select(step.share);
      case OwnStep::Kind::all_reduce:
        writer_.all_reduce("all-reduce", data);
        return;
      case OwnStep::Kind::reduce_scatter:
        writer_.collective("reduce-scatter", Operation::reduce_scatter,
                           {.what = Collectives::reduce_scatter,
                            .reduction = Reduction::sum,
                            .from = data,
                            .to = data});
        is_scattered_ = true;
        return;
      case OwnStep::Kind::all_gather:
        return gather();
      case OwnStep::Kind::broadcast:
        writer_.collective("broadcast", Operation::broadcast,
                           {.what = Collectives::broadcast, .from = data, .to = data});
        return;
      case OwnStep::Kind::kernel: {
        const auto pass = static_cast<double>(writer_.passes(1).count);
        writer_.kernel("own kernel", Operation::own_kernel, Bytes{std::llround(step.passes * pass)},
                       program::Touch{data}, step.launches);
        return;
      }
    }
  }

  std::int64_t element() const { return size_of(writer_.type()).count; }

  /// Magnitudes, a partial sort of some 4 passes, values and indices of what is left.
  void select(double share) {
    const Slice data = writer_.data();
    count_ = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil(share * static_cast<double>(data.count))));
    pairs_ = writer_.buffer("pairs", DType::fp8_e4m3, count_ * (element() + 4));
    writer_.kernel("select largest", Operation::select,
                   writer_.passes(6) + writer_.bytes_of(pairs_),
                   program::Select{.pairs = pairs_, .from = data}, 4);
  }

  /// What was selected or scattered comes together; of anything else the sum.
  void gather() {
    const Slice data = writer_.data();
    const int ranks = writer_.call.ranks;
    if (count_ > 0) {
      const Slice all = writer_.gathered("all pairs", pairs_);
      writer_.all_gather("all-gather pairs", pairs_, all);
      writer_.kernel("add up pairs", Operation::select,
                     writer_.passes(1) + Bytes{ranks * count_ * (3 * element() + 4)},
                     program::Spread{.to = data, .pairs = all, .of = writer_.call.communicator(0)},
                     ranks + 1);
      count_ = 0;
    } else if (is_scattered_) {
      writer_.all_gather("all-gather parts", data, data).work.payload =
          Bytes{(data.count + ranks - 1) / ranks * element()};
      is_scattered_ = false;
    } else {
      writer_.collective(
          "all-gather and add", Operation::all_gather,
          {.what = Collectives::all_gather, .reduction = Reduction::sum, .from = data, .to = data});
    }
  }

  HookWriter& writer_;
  std::int64_t count_ = 0;  ///< selected, not yet gathered
  Slice pairs_;             ///< these, with their indices
  bool is_scattered_ = false;
};

}  // namespace

void write_own_steps(HookWriter& writer) {
  OwnSteps steps(writer);
  for (const OwnStep& step : writer.hook.steps) steps.write(step);
}

}  // namespace ddpsim
