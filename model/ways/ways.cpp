#include "model/ways/ways.hpp"

#include "model/ways/fsdp_ways.hpp"
#include "model/ways/zero_ways.hpp"

namespace ddpsim {

int WayToShard::changes() const {
  return training.strategy == Strategy::fsdp ? fsdp_changes(*this) : zero_changes(training);
}

bool WayToShard::is_like(const Training& other) const {
  if (other.strategy == Strategy::fsdp) return is_same_fsdp(training, other);
  return *training.zero() == *other.zero();
}

std::optional<std::string> why_no_ways(const Training& training) {
  if (!training.is_fsdp1()) return std::nullopt;
  return "training.fsdp.variant: what is tried are settings of fully_shard: take variant: fsdp1 "
         "out";
}

std::vector<WayToShard> ways_to_shard(const Scenario& scenario) {
  return scenario.training.strategy == Strategy::fsdp ? fsdp_ways(scenario) : zero_ways(scenario);
}

std::vector<WayToShard> variations(const Scenario& scenario, const WayToShard& way) {
  return scenario.training.strategy == Strategy::fsdp ? with_prefetches(scenario, way)
                                                      : with_buckets(scenario, way);
}

Training usual_settings(Training training) {
  if (training.strategy == Strategy::fsdp)
    static_cast<FsdpSettings&>(training) = {};
  else
    set_zero(training, standard_zero(training));
  return training;
}

}  // namespace ddpsim
