#include "model/parallel/policy/strategy_tasks.hpp"

namespace ddpsim {
namespace {

class None : public StrategyTasks {
 public:
  bool communicates() const override { return false; }
  void plan(StepBuilder& step) override {
    if (step.training.updates_part)
      step.shards = step.writer.device.ranks / step.training.replicate;
  }
};

std::unique_ptr<StrategyTasks> make_zero(const Training& training) {
  switch (training.zero()->variant) {
    case ZeroVariant::torch:
    case ZeroVariant::course:
      return make_zero_of_parameters();
    case ZeroVariant::deepspeed:
      return training.strategy == Strategy::zero3 ? make_deepspeed_stage3() : make_deepspeed();
    case ZeroVariant::megatron:
      return make_megatron();
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<StrategyTasks> make_strategy(const Training& training) {
  switch (training.strategy) {
    case Strategy::none:
      return std::make_unique<None>();
    case Strategy::naive:
      return make_naive();
    case Strategy::flat:
      return make_flat();
    case Strategy::overlap:
      return make_overlap();
    case Strategy::bucketed:
      return training.own_buckets() ? make_own_buckets() : make_bucketed();
    case Strategy::zero1:
    case Strategy::zero2:
    case Strategy::zero3:
      return make_zero(training);
    case Strategy::fsdp:
      return training.is_fsdp1() ? make_fsdp1() : make_fsdp();
  }
  return nullptr;
}

}  // namespace ddpsim
