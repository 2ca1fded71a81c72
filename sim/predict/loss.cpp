#include "sim/predict/loss.hpp"

#include <algorithm>
#include <vector>

#include "sim/predict/predict.hpp"

namespace ddpsim {
namespace {

/// Does a rank that trains by itself run the operation as well?
bool trains(Operation operation) {
  switch (traits_of(operation).pass) {
    case OperationTraits::Pass::forward:
    case OperationTraits::Pass::optimizer:
      return true;
    case OperationTraits::Pass::backward:
      return operation != Operation::copy_in;
    case OperationTraits::Pass::none:
      return operation == Operation::outside;
  }
  return false;
}

/// Takes losses out of the costs of a step, one after the other.
class Removal {
 public:
  explicit Removal(const program::Job& none) {
    for (const Work& work : none.works)
      if (!trains(work.operation)) kept_.push_back(work);
  }

  void remove(Loss loss) { removed_[static_cast<std::size_t>(loss)] = true; }
  bool has(Loss loss) const { return removed_[static_cast<std::size_t>(loss)]; }

  void operator()(const std::vector<Work>& works, Costs& costs) const {
    for (std::size_t w = 0; w < costs.works.size(); ++w) {
      if (has(Loss::launches)) costs.works[w].take_up = Duration::zero();
      if (is_for_communication(works[w])) cheapen(works[w].operation, costs.works[w]);
    }
  }

 private:
  bool is_for_communication(const Work& work) const {
    return !trains(work.operation) && std::find(kept_.begin(), kept_.end(), work) == kept_.end();
  }

  void cheapen(Operation operation, WorkCost& cost) const {
    if (has(Loss::interference)) cost.beside = {};
    if (has(Loss::launches)) cost.host = cost.first_launch = Duration::zero();
    switch (traits_of(operation).kind) {
      case OperationTraits::Kind::collective:
        cheapen_collective(cost);
        break;
      case OperationTraits::Kind::transfer:
        if (has(Loss::transfer)) cost.work = Duration::zero();
        break;
      case OperationTraits::Kind::kernel:
        if (has(Loss::copies)) cost.work = cost.last_launch = Duration::zero();
        break;
      case OperationTraits::Kind::host:
        break;
    }
  }

  void cheapen_collective(WorkCost& cost) const {
    const Duration latency = std::min(cost.work, cost.latency - cost.filling),
                   transfer = cost.work - latency;
    if (has(Loss::latency)) cost.latency = cost.filling;
    cost.work = (has(Loss::latency) ? Duration::zero() : latency) +
                (has(Loss::transfer) ? Duration::zero() : transfer);
  }

  std::vector<Work> kept_;  ///< what `none` does as well, though it is no training
  std::array<bool, all_losses.size()> removed_{};
};

using Parts = std::array<Duration, all_losses.size()>;

PlannedStep plan_none(const StepModel& model, const Training& training) {
  return plan_step(model.works, training.without_communication());
}

/// all_losses with what lies between interference and the rest in the opposite order.
auto opposite_order() {
  auto order = all_losses;
  const auto interference = std::find(order.begin(), order.end(), Loss::interference);
  std::reverse(interference + 1, order.end() - 1);
  return order;
}

/// The mean of each part. What halves leave over goes to the next odd one, so that the means sum to
/// what both sum to.
Parts means(const Parts& one, const Parts& other) {
  Parts mean{};
  Duration left{};
  for (std::size_t part = 0; part < mean.size(); ++part) {
    const Duration sum = one[part] + other[part] + left;
    mean[part] = Duration(sum.count() >> 1);
    left = sum - 2 * mean[part];
  }
  return mean;
}

}  // namespace

std::string_view name_of(Loss loss) {
  constexpr std::array<std::string_view, all_losses.size()> names{
      "input", "interference", "slowest rank", "transfer", "latency", "copies", "launches", "rest"};
  return names[static_cast<std::size_t>(loss)];
}

Duration one_rank_step(const StepModel& model, const Training& training) {
  CostModel even = model.costs;
  even.make_ranks_even();
  even.least_step = training.least_step(1);
  return step_length(even, plan_none(model, training));
}

StepLoss step_loss(const StepModel& model, const Step& step) {
  const PlannedStep planned = plan_step(model.works, step.training);
  const PlannedStep none = plan_none(model, step.training);
  StepLoss loss;
  loss.one_rank = one_rank_step(model, step.training);
  const auto parts_in = [&](const auto& order) {
    Removal removal(none.job);
    CostModel costs = model.costs;
    Parts parts{};
    Duration before = step.metrics.step;
    for (const Loss part : order) {
      removal.remove(part);
      if (part == Loss::input) costs.least_step = step.training.least_step(1);
      if (part == Loss::interference) costs.backward_beside_hook = 1;
      if (part == Loss::slowest_rank) costs.make_ranks_even();
      const Duration after = part == Loss::rest
                                 ? loss.one_rank
                                 : std::min(before, step_length(costs, planned, removal));
      parts[static_cast<std::size_t>(part)] = before - after;
      before = after;
    }
    return parts;
  };
  loss.parts = means(parts_in(all_losses), parts_in(opposite_order()));
  return loss;
}

}  // namespace ddpsim
