#include "model/ddp/refusals.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "model/ddp/bucketing.hpp"

namespace ddpsim {

std::string zero_step_refusal(const Training& training) {
  if (never_rebuilt(training.find_unused_parameters, training.static_graph))
    return "ZeRO's hooks begin once DDP has rebuilt its buckets, which it never does with "
           "find_unused_parameters alone: set static_graph: true, or take find_unused_parameters "
           "out";
  if (training.skip_all_reduce_unused_params)
    return "ZeRO's hooks count on every bucket: take skip_all_reduce_unused_params out";
  if (training.join) return "ZeRO's hooks with uneven inputs are not modelled: take join out";
  return "";
}

std::string delayed_refusal(const Training& training) {
  if (!training.delayed) return "";
  const CommHookKind hook = training.comm_hook.kind;
  if (training.micro_batches > 1)
    return "delay_all_reduce: its hook divides the buffer with every backward: set micro_batches: "
           "1";
  if (training.join)
    return "delay_all_reduce: a rank without inputs would not send it: take join out";
  if (hook == CommHookKind::optimizer_overlap || is_zero_step(hook))
    return fmt::format("delay_all_reduce: {} updates parameters in DDP's buckets only: take it out",
                       name_of(hook));
  if (!training.buckets.empty() || training.parameter_groups > 0)
    return "delay_all_reduce goes with the buckets DDP makes: take buckets and parameter_groups "
           "out";
  return "";
}

void check_unused(const StepWorks& works, const Training& training,
                  const std::vector<std::int32_t>& unused) {
  if (unused.empty() || training.find_unused_parameters || training.static_graph) return;
  throw std::invalid_argument(
      fmt::format("no gradient reaches parameter {} (of {}), so DistributedDataParallel's next "
                  "forward would "
                  "fail: set training.find_unused_parameters or training.static_graph",
                  unused.front(), works.parameters()));
}

void check_delayed(const StepWorks& works, const Training& training) {
  if (const std::string why = delayed_refusal(training); !why.empty())
    throw std::invalid_argument(why);
  const DelayedAllReduce& delayed = *training.delayed;
  const auto unused = [&](std::int32_t index) { return works.gradients[at(index)].unused; };
  const auto sends = std::find(works.arrival.begin(), works.arrival.end(), delayed.hook);
  for (const std::int32_t index : delayed.parameters)
    if (unused(index) || unused(delayed.hook) ||
        std::find(works.arrival.begin(), sends, index) == sends)
      throw std::invalid_argument(fmt::format(
          "delay_all_reduce: parameter {} gets its gradient after the hook on parameter {} has "
          "sent them, or never: hook one that comes later",
          index, delayed.hook));
}

void check_zero_step(const StepWorks& works, const Training& training) {
  if (const std::string why = zero_step_refusal(training); !why.empty())
    throw std::invalid_argument(why);
  for (const GradientInfo& each : works.gradients)
    if (each.dtype != works.gradients.front().dtype)
      throw std::invalid_argument(
          "ZeRO's hooks take parameters of one type, and there are several");
  if (works.device.collectives_at_once > 1 || works.device.through_host)
    throw std::invalid_argument(
        "ZeRO's hooks are for NCCL, whose collectives run one at a time on the devices: take "
        "cluster.collectives_at_once and cluster.through_host out");
}

}  // namespace ddpsim
