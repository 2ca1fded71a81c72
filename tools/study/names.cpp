#include "tools/study/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/base/index.hpp"
#include "model/cost/cost_model.hpp"
#include "model/parallel/passes_of.hpp"
#include "sim/predict/simulated_ranks.hpp"

namespace ddpsim {

namespace {

/// "25 MiB"; "1+25 MiB" where the first bucket has a cap of its own, "25+1 MiB" where the last
/// one has.
std::string cap_label(const Training& training) {
  const std::string cap = to_string(training.bucket_cap);
  if (!has_own_first_cap(training)) return cap;
  const std::string own = to_string(*training.first_bucket_cap);
  const std::string& before = training.last_bucket_cap ? cap : own;
  const std::string& behind = training.last_bucket_cap ? own : cap;
  const std::size_t unit = before.rfind(' ');
  const bool one_unit = behind.ends_with(before.substr(unit));
  return fmt::format("{}+{}", one_unit ? before.substr(0, unit) : before, behind);
}

std::string buckets_label(const Training& training) {
  std::string name(name_of(training.strategy));
  if (training.strategy != Strategy::bucketed) return name;
  if (!training.buckets.empty()) return name + ", explicit";
  if (training.parameter_groups > 0)
    return fmt::format("{}, {} groups", name, training.parameter_groups);
  if (!training.bucket_caps.empty())
    return fmt::format("{}, {} caps", name, training.bucket_caps.size());
  return fmt::format("{}, {}", name, cap_label(training));
}

std::string name_of(const SimulatedRank& rank, bool of_own_work) {
  if (rank.slowest) return "the slowest rank";
  if (rank.exception && rank.exception->node) return name_of_one(*rank.exception);
  return rank.exception || of_own_work ? fmt::format("rank {}", rank.rank) : "";
}

}  // namespace

std::string name_of_one(const RankException& exception) {
  if (!exception.node) return name_of(exception);
  return fmt::format("{} rank of {}", exception.ranks > 1 ? "a" : "the", name_of(exception));
}

std::vector<std::string> names_of_real_ranks(const Cluster& cluster, std::size_t ranks) {
  std::vector<std::string> names;
  for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
    const RankException* exception = exception_of(cluster.exceptions, rank);
    names.push_back(exception == nullptr ? "" : name_of_one(*exception));
  }
  return names;
}

std::vector<std::string> names_of_ranks(const Scenario& scenario, const Step& step) {
  const CalibratedCluster& cluster = scenario.cluster;
  std::vector<std::string> names;
  if (cluster.exceptions.empty()) return names;
  if (step.times.measured) return names_of_real_ranks(cluster, step.ranks.size());
  const auto different = static_cast<int>(step.job().programs.size());
  for (const SimulatedRank& rank :
       simulated_ranks(cluster.exceptions, slowest_rank(cluster, scenario.workload.step_spread),
                       cluster.ranks(), different))
    names.push_back(name_of(rank, different > 1));
  return names;
}

std::string enumerated(const std::vector<std::string>& names) {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

std::string reshard_text(const std::optional<Reshard>& reshard) {
  if (!reshard) return "auto";
  if (reshard->frees && reshard->ranks > 0) return fmt::format("{}", reshard->ranks);
  return reshard->frees ? "true" : "false";
}

bool has_one_cap(const Training& training) {
  return training.strategy == Strategy::bucketed && training.buckets.empty() &&
         training.bucket_caps.empty() && training.parameter_groups == 0;
}

bool has_own_first_cap(const Training& training) {
  return has_one_cap(training) && training.first_bucket_cap &&
         *training.first_bucket_cap != training.bucket_cap;
}

bool is_in_label(const std::string& key, const Training& training) {
  return has_one_cap(training) &&
         (key == "training.bucket_cap" || key == "training.first_bucket_cap");
}

std::string strategy_label(const Training& training) {
  std::string buckets = buckets_label(training);
  if (training.strategy != Strategy::bucketed || !training.comm_hook) return buckets;
  return fmt::format("{}, {}", buckets, label(training.comm_hook));
}

std::string short_strategy_label(const Training& training) {
  const std::string label = buckets_label(training);
  return label == buckets_label(Training{}) ? std::string(name_of(training.strategy)) : label;
}

std::string short_label(const std::vector<Setting>& settings) {
  std::string text;
  for (const auto& [key, value, written] : settings) {
    const auto dot = key.rfind('.');
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ",
                        dot == std::string::npos ? key : key.substr(dot + 1), value);
  }
  return text;
}

std::string name_of_group(const program::Job& job, std::size_t group) {
  if (group == job.groups.size()) return "updated parameters";
  const std::string& name = job.groups[group].name;
  return name.empty() ? fmt::format("bucket {}", group) : name;
}

namespace {

/// name_of_group; of a bucket of one parameter, that one's name.
std::string group_label(const Workload& workload, const program::Job& job, std::int32_t group) {
  const std::vector<std::int32_t>& parameters = job.groups[at(group)].parameters;
  const bool is_one = parameters.size() == 1 && job.groups[at(group)].name.empty();
  return is_one ? workload.parameters[at(parameters.front())].name : name_of_group(job, at(group));
}

std::string hook_label(const Workload& workload, const UserHook& hook,
                       const program::Origin& origin) {
  if (origin.layer != nobody)
    return fmt::format("{} of {}", label(hook), workload.layers[at(origin.layer)].name);
  const Parameter& first = workload.parameters[at(origin.parameter)];
  const bool alone = hook.groups[at(origin.kernel)].size() == 1;
  return fmt::format("{} of {}", label(hook),
                     alone ? first.name : workload.layers[at(first.layer)].name);
}

}  // namespace

std::string task_label(const Scenario& scenario, const Step& step, const program::Task& task) {
  const Workload& workload = scenario.workload;
  const program::Job& job = step.job();
  const program::Origin& origin = job.deed_of(task).origin;
  const Operation what = operation_of(job, task);
  const std::string operation(name_of(what));
  if (origin.label != 0 && origin.parameter == nobody && origin.group == nobody)
    return job.labels[at(origin.label)];
  if (origin.label != 0)
    return fmt::format("{} of {}", job.labels[at(origin.label)],
                       origin.parameter == nobody ? name_of_group(job, at(origin.group))
                                                  : workload.parameters[at(origin.parameter)].name);
  if (origin.hook != nobody)
    return hook_label(workload, step.training.hooks[at(origin.hook)], origin);
  switch (what) {
    case Operation::forward: {
      const Layer& layer = passes_of(workload, step.training).layers[at(origin.layer)];
      return layer.name + " " + layer.forward[at(origin.kernel)].name;
    }
    case Operation::backward: {
      const Layer& layer = passes_of(workload, step.training).layers[at(origin.layer)];
      return layer.name + " " + layer.backward[at(origin.kernel)].name;
    }
    case Operation::optimizer:
      return fmt::format("optimizer {}", origin.kernel);
    case Operation::all_gather:
    case Operation::reduce_scatter:
      if (origin.group != nobody && !job.groups[at(origin.group)].name.empty())
        return fmt::format("{} {}", operation, group_label(workload, job, origin.group));
      break;
    case Operation::all_reduce:
    case Operation::wait:
      if (origin.group != nobody)
        return fmt::format("{} {}", operation, group_label(workload, job, origin.group));
      return fmt::format("{} {}", operation, name_of(job.works[task.work].message));
    case Operation::broadcast:
      return fmt::format("broadcast {}", name_of(job.works[task.work].message));
    case Operation::accumulate:
    case Operation::hook:
    case Operation::copy_in:
    case Operation::concatenate:
    case Operation::divide:
    case Operation::copy_out:
    case Operation::search_unused:
    case Operation::copy_to_host:
    case Operation::copy_to_device:
    case Operation::gradient_hook:
    case Operation::module_hook:
    case Operation::cast:
    case Operation::correct:
    case Operation::pack:
    case Operation::draw:
    case Operation::multiply:
    case Operation::orthogonalize:
    case Operation::quantize:
    case Operation::dequantize:
    case Operation::select:
    case Operation::own_kernel:
    case Operation::synchronize:
    case Operation::outside:
    case Operation::meet:
    case Operation::pause:
    case Operation::all_to_all:
    case Operation::send_receive:
    case Operation::unit_hook:
      break;
  }
  if (origin.parameter != nobody)
    return operation + " " + workload.parameters[at(origin.parameter)].name;
  return operation;
}

std::string choice_text(const CollectiveChoice& choice) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (choice.algorithm) add(std::string(name_of(*choice.algorithm)));
  if (choice.gloo) add(std::string(name_of(*choice.gloo)));
  if (choice.copy_engines) add("copy engines");
  if (choice.protocol) text += fmt::format(" {}", name_of(*choice.protocol));
  if (choice.channels > 0)
    add(fmt::format("{} channel{}", choice.channels, choice.channels > 1 ? "s" : ""));
  if (choice.nics > 0) add(fmt::format("{} NIC{}", choice.nics, choice.nics > 1 ? "s" : ""));
  if (choice.bound != CollectiveBound::unknown) add(fmt::format("by {}", name_of(choice.bound)));
  return text;
}

std::string describe(const Fit& fit) {
  const PassFactors& passes = fit.passes;
  const std::string compute =
      passes.forward == passes.backward
          ? fmt::format("forward and backward x {:.3f}", passes.forward)
          : fmt::format("forward x {:.3f}, backward x {:.3f}", passes.forward, passes.backward);
  const std::string optimizer =
      passes.optimizer == 1 ? "" : fmt::format(", optimizer x {:.3f}", passes.optimizer);
  return fmt::format("{}{}, {:+.1f} us per collective, interference x {:.2f}", compute, optimizer,
                     in_us(fit.call_overhead), fit.interference);
}

std::string describe_calibration(const Fit& fit) {
  std::string text =
      fit.rows > 0 ? fmt::format("calibrated on the measured rows: {}\n", describe(fit)) : "";
  for (const std::string& note : fit.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace ddpsim
