// How to set a ZeRO. Sizes count elements; tried are 1, 2 and 5 times powers of ten below that of
// all parameters, those by default and the scenario's. All combinations are tried of
//
//     torch       parameters_as_bucket_view
//     course      send
//     deepspeed   overlap_comm, and reduce_bucket_size
//     megatron    ddp_average_in_collective; none of the overlaps, or overlap_grad_reduce with
//                 ddp_bucket_size, without and with overlap_param_gather
//
// In stage 3 there are overlap_comm, stage3_prefetch_bucket_size, stage3_max_live_parameters,
// stage3_max_reuse_distance and stage3_param_persistence_threshold (0, by default and as given)
// first, all combinations; what is gathered when hardly depends on how gradients are reduced, so
// other sizes of buckets are tried with the best of these alone.
//
// Gradient buckets of torch and course are DistributedDataParallel's: tune of `bucketed` finds
// them. Whether the course has any (`gradients`) stays as given.

#include "model/ways/zero_ways.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

namespace ddpsim {
namespace {

using Sizes = std::set<std::int64_t>;

/// From `least` on, and below `all`; and those that are `given` or by default.
Sizes sizes_below(std::int64_t all, std::int64_t least, std::int64_t given, std::int64_t standard) {
  Sizes sizes{given, standard};
  for (std::int64_t power = 1; power < all; power *= 10)
    for (const std::int64_t size : {power, 2 * power, 5 * power})
      if (size >= least && size < all) sizes.insert(size);
  return sizes;
}

std::int64_t elements_of(const Workload& workload) {
  std::int64_t elements = 0;
  for (const Parameter& each : workload.parameters) elements += each.elements();
  return elements;
}

/// Smaller buckets are not tried, nor less that is gathered ahead.
constexpr std::int64_t least_size = 5'000'000;

Sizes bucket_sizes(std::int64_t all, const ZeroSettings& given, const ZeroSettings& standard) {
  return sizes_below(all, least_size, given.reduce_bucket_size, standard.reduce_bucket_size);
}

class ZeroWays {
 public:
  explicit ZeroWays(const Scenario& scenario)
      : given_(*scenario.training.zero()),
        standard_(standard_zero(scenario.training)),
        is_third_(scenario.training.strategy == Strategy::zero3),
        elements_(elements_of(scenario.workload)) {
    add(given_);
    add(standard_);
    add_others();
  }

  const std::vector<ZeroSettings>& all() const { return all_; }

 private:
  void add_others() {
    switch (given_.variant) {
      case ZeroVariant::torch:
        return add_torch();
      case ZeroVariant::course:
        return add_course();
      case ZeroVariant::deepspeed:
        return is_third_ ? add_gathers() : add_buckets();
      case ZeroVariant::megatron:
        return add_megatron();
    }
  }

  void add(const ZeroSettings& settings) {
    if (std::ranges::find(all_, settings) == all_.end()) all_.push_back(settings);
  }

  void add_torch() {
    for (const bool views : {false, true}) {
      ZeroSettings settings = given_;
      settings.parameters_as_bucket_view = views;
      add(settings);
    }
  }

  void add_course() {
    for (const ParameterSend send : all_parameter_sends) {
      ZeroSettings settings = given_;
      settings.send = send;
      add(settings);
    }
  }

  void add_buckets() {
    for (const bool overlaps : {false, true})
      for (const std::int64_t size : bucket_sizes(elements_, given_, standard_)) {
        ZeroSettings settings = given_;
        settings.overlap_comm = overlaps;
        settings.reduce_bucket_size = size;
        add(settings);
      }
  }

  void add_gathers() {
    const Sizes ahead = sizes_below(elements_, least_size, given_.prefetch_bucket_size,
                                    standard_.prefetch_bucket_size),
                live = sizes_below(elements_, 20 * least_size, given_.max_live_parameters,
                                   standard_.max_live_parameters),
                reuse{0, given_.max_reuse_distance, standard_.max_reuse_distance},
                whole{0, given_.param_persistence_threshold, standard_.param_persistence_threshold};
    ZeroSettings settings = given_;
    for (const bool overlaps : {false, true})
      for (const std::int64_t threshold : whole)
        for (const std::int64_t distance : reuse)
          for (const std::int64_t most : live)
            for (const std::int64_t size : ahead) {
              settings.overlap_comm = overlaps;
              settings.param_persistence_threshold = threshold;
              settings.max_reuse_distance = distance;
              settings.max_live_parameters = most;
              settings.prefetch_bucket_size = size;
              add(settings);
            }
  }

  void add_megatron() {
    const std::int64_t usual = 40'000'000;
    for (const bool averages : {false, true}) {
      ZeroSettings settings = given_;
      settings.average_in_collective = averages;
      settings.overlap_grad_reduce = settings.overlap_param_gather = false;
      add(settings);
      settings.overlap_grad_reduce = true;
      for (const bool gathers : {false, true}) {
        settings.overlap_param_gather = gathers;
        for (const std::int64_t size : sizes_below(elements_, least_size, usual, usual)) {
          settings.ddp_bucket_size = size;
          add(settings);
        }
        settings.ddp_bucket_size = given_.ddp_bucket_size;
        add(settings);
      }
    }
  }

  const ZeroSettings given_, standard_;
  const bool is_third_;
  const std::int64_t elements_;
  std::vector<ZeroSettings> all_;
};

}  // namespace

std::vector<WayToShard> zero_ways(const Scenario& scenario) {
  std::vector<WayToShard> all;
  const ZeroWays ways(scenario);
  for (const ZeroSettings& settings : ways.all()) {
    WayToShard& made = all.emplace_back();
    made.training = scenario.training;
    made.training.iteration = 0;
    set_zero(made.training, settings);
  }
  return all;
}

std::vector<WayToShard> with_buckets(const Scenario& scenario, const WayToShard& way) {
  std::vector<WayToShard> all;
  if (scenario.training.strategy != Strategy::zero3) return all;
  ZeroSettings settings = *way.training.zero();
  for (const std::int64_t size :
       bucket_sizes(elements_of(scenario.workload), settings, standard_zero(way.training))) {
    if (size == way.training.zero()->reduce_bucket_size) continue;
    settings.reduce_bucket_size = size;
    set_zero(all.emplace_back(way).training, settings);
  }
  return all;
}

ZeroSettings standard_zero(const Training& training) {
  const Training standard;
  if (training.strategy == Strategy::zero2) return standard.zero2;
  if (training.strategy == Strategy::zero3) return standard.zero3;
  ZeroSettings settings = standard.zero1;
  settings.variant = training.zero1.variant;
  return settings;
}

void set_zero(Training& training, const ZeroSettings& settings) {
  (training.strategy == Strategy::zero1   ? training.zero1
   : training.strategy == Strategy::zero2 ? training.zero2
                                          : training.zero3) = settings;
}

int zero_changes(const Training& training) {
  const ZeroSettings &its = *training.zero(), standard = standard_zero(training);
  const std::array changed{its.parameters_as_bucket_view != standard.parameters_as_bucket_view,
                           its.send != standard.send,
                           its.gradients != standard.gradients,
                           its.reduce_bucket_size != standard.reduce_bucket_size,
                           its.overlap_comm != standard.overlap_comm,
                           its.prefetch_bucket_size != standard.prefetch_bucket_size,
                           its.param_persistence_threshold != standard.param_persistence_threshold,
                           its.max_live_parameters != standard.max_live_parameters,
                           its.max_reuse_distance != standard.max_reuse_distance,
                           its.ddp_bucket_size != standard.ddp_bucket_size,
                           its.overlap_grad_reduce != standard.overlap_grad_reduce,
                           its.overlap_param_gather != standard.overlap_param_gather,
                           its.average_in_collective != standard.average_in_collective};
  return static_cast<int>(std::ranges::count(changed, true));
}

}  // namespace ddpsim
