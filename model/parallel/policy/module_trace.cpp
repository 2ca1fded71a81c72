#include "model/parallel/policy/module_trace.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace ddpsim {
namespace {

KernelRange both(const KernelRange& a, const KernelRange& b) {
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

}  // namespace

ModuleTrace::ModuleTrace(const StepWorks& works, const ZeroSettings& settings)
    : settings_(settings),
      is_there_(works.parameters(), false),
      module_of_(works.parameters(), 0),
      turn_of_(works.parameters(), 0) {
  for (const GradientInfo& each : works.gradients) {
    elements_.push_back(each.size.count / size_of(each.dtype).count);
    persists_.push_back(elements_.back() <= settings.param_persistence_threshold);
  }
  find_modules(works);
  for (std::size_t t = 0; t < trace_.size(); ++t)
    for (const std::int32_t each : modules_[trace_[t]].parameters)
      queue_.push_back({each, static_cast<std::int64_t>(t)});
  find_turns(works);
}

void ModuleTrace::find_modules(const StepWorks& works) {
  std::vector<std::int32_t> order(works.parameters());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {},
                           [&](std::int32_t each) { return works.uses[at(each)].forward.first; });
  std::map<std::string, std::size_t> known;
  std::vector<std::size_t> depths;  // [module] modules around it
  const auto module = [&](const std::string& name, std::size_t depth, const ParameterUse& use) {
    const auto [found, is_new] = known.try_emplace(name, modules_.size());
    if (is_new) {
      modules_.push_back({{}, use.forward, use.backward});
      depths.push_back(depth);
    }
    TracedModule& made = modules_[found->second];
    made.forward = both(made.forward, use.forward);
    made.backward = both(made.backward, use.backward);
    return found->second;
  };
  for (const std::int32_t each : order) {
    const std::string& name = works.names[at(each)];
    std::size_t depth = 0;
    std::size_t mine = module("", depth, works.uses[at(each)]);
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      mine = module(name.substr(0, dot), ++depth, works.uses[at(each)]);
    modules_[mine].parameters.push_back(each);
    module_of_[at(each)] = mine;
  }
  for (TracedModule& each : modules_) std::ranges::sort(each.parameters);
  find_orders(depths);
}

/// What contains others begins before these and ends behind them, in either pass. Those that begin,
/// or end, with the same kernel do so in the order of the forward pass, or the reverse of it.
void ModuleTrace::find_orders(const std::vector<std::size_t>& depths) {
  const auto sorted = [&](auto key) {
    std::vector<std::size_t> order(modules_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, key);
    return order;
  };
  const auto forward = [](std::size_t each) { return static_cast<std::int64_t>(each); };
  const auto depth = [&](std::size_t each) { return static_cast<std::int64_t>(depths[each]); };
  const auto& all = modules_;
  trace_ = sorted([&](std::size_t m) { return std::tuple(all[m].forward.first, forward(m)); });
  ends_ =
      sorted([&](std::size_t m) { return std::tuple(all[m].forward.last, -depth(m), forward(m)); });
  const auto backward = sorted(
      [&](std::size_t m) { return std::tuple(all[m].backward.first, depth(m), -forward(m)); });
  const auto backward_ends = sorted(
      [&](std::size_t m) { return std::tuple(all[m].backward.last, -depth(m), -forward(m)); });
  trace_.insert(trace_.end(), backward.begin(), backward.end());
  ends_.insert(ends_.end(), backward_ends.begin(), backward_ends.end());
}

void ModuleTrace::find_turns(const StepWorks& works) {
  for (auto layer = works.layers.rbegin(); layer != works.layers.rend(); ++layer) {
    std::vector<std::vector<std::int32_t>> of_layer;  // as their last gradients come
    for (const auto& completed : layer->completes)
      for (const std::int32_t each : completed) {
        const auto found = std::ranges::find_if(of_layer, [&](const auto& turn) {
          return module_of_[at(turn.front())] == module_of_[at(each)];
        });
        if (found == of_layer.end())
          of_layer.emplace_back();
        else
          std::rotate(found, found + 1, of_layer.end());
        of_layer.back().push_back(each);
      }
    for (std::vector<std::int32_t>& turn : of_layer) {
      std::ranges::sort(turn);
      for (const std::int32_t each : turn) turn_of_[at(each)] = turns_.size();
      turns_.push_back(std::move(turn));
    }
  }
}

void ModuleTrace::begin() {
  next_ = next_end_ = next_in_queue_ = 0;
  live_ = 0;
  passed_.assign(elements_.size(), -1);
}

/// Has the module at that place of an order come to its bound by then?
bool ModuleTrace::is_due(std::size_t place, const std::vector<std::size_t>& order,
                         const PassKernel& kernel, int KernelRange::*bound) const {
  if (place == order.size()) return false;
  const bool is_forward = place < modules_.size();
  if (is_forward != (kernel.pass == program::Pass::forward)) return is_forward;
  const TracedModule& module = modules_[order[place]];
  return (is_forward ? module.forward : module.backward).*bound <= kernel.number;
}

const TracedModule* ModuleTrace::begins(const PassKernel& kernel) const {
  return is_due(next_, trace_, kernel, &KernelRange::first) ? &modules_[trace_[next_]] : nullptr;
}

const TracedModule* ModuleTrace::ends(const PassKernel& kernel) {
  return is_due(next_end_, ends_, kernel, &KernelRange::last) ? &modules_[ends_[next_end_++]]
                                                              : nullptr;
}

std::vector<std::int32_t> ModuleTrace::gathered_for(const TracedModule& module) {
  std::vector<std::int32_t> missing;
  for (const std::int32_t each : module.parameters) {
    if (persists(each) || is_there_[at(each)]) continue;
    is_gathered(each);
    missing.push_back(each);
  }
  return missing;
}

std::vector<std::int32_t> ModuleTrace::gathered_ahead(const TracedModule& module) {
  take_out_of_queue(module);
  const std::int64_t most =
      std::min(settings_.max_live_parameters - live_, settings_.prefetch_bucket_size);
  std::vector<std::int32_t> ahead;
  std::int64_t elements = 0;
  for (; next_in_queue_ < queue_.size() && elements < most; ++next_in_queue_) {
    const auto& [each, used_at] = queue_[next_in_queue_];
    passed_[at(each)] = std::max(passed_[at(each)], used_at);
    if (persists(each) || is_there_[at(each)]) continue;
    is_gathered(each);
    ahead.push_back(each);
    elements += elements_[at(each)];
  }
  ++next_;
  return ahead;
}

/// What the module uses is not gathered ahead any more.
void ModuleTrace::take_out_of_queue(const TracedModule& module) {
  std::set<std::int32_t> expected;
  for (const std::int32_t each : module.parameters)
    if (passed_[at(each)] < static_cast<std::int64_t>(next_)) expected.insert(each);
  for (; next_in_queue_ < queue_.size() && !expected.empty(); ++next_in_queue_) {
    const auto& [each, used_at] = queue_[next_in_queue_];
    passed_[at(each)] = used_at;
    expected.erase(each);
  }
}

std::vector<std::int32_t> ModuleTrace::released(const TracedModule& module) {
  std::vector<std::int32_t> released;
  for (const std::int32_t each : module.parameters) {
    if (persists(each) || !is_there_[at(each)] ||
        passed_[at(each)] > static_cast<std::int64_t>(next_))
      continue;
    std::int64_t gone_by = 0;
    bool is_used_soon = false;
    for (std::size_t t = next_;
         t < trace_.size() && gone_by < settings_.max_reuse_distance && !is_used_soon; ++t)
      for (const std::int32_t other : modules_[trace_[t]].parameters) {
        is_used_soon = is_used_soon || other == each;
        gone_by += elements_[at(other)];
      }
    if (is_used_soon) continue;
    is_there_[at(each)] = false;
    live_ -= elements_[at(each)];
    released.push_back(each);
  }
  return released;
}

}  // namespace ddpsim
