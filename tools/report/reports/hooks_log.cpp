#include "tools/report/reports/hooks_log.hpp"

#include <algorithm>
#include <optional>

#include "tools/report/records/hook_fields.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/output.hpp"

namespace ddpsim {
namespace {

struct Firing {
  std::string hook, parameter, layer;
  int micro_batch = 0;
  std::optional<std::int32_t> bucket;
  Instant host{}, ready{};
};

/// When what hooks are fired for is there on the device. A gradient is what backward made of it, or
/// what has been done to itself since: a costly hook on one says nothing of another.
class Ready {
 public:
  explicit Ready(std::size_t parameters) : own_(parameters) {}

  Instant of(std::int32_t parameter) const {
    return parameter == nobody ? passed_ : own_[at(parameter)].value_or(passed_);
  }

  void after(const Step& step, const program::Task& task, Instant end) {
    if (task.micro_batch != micro_batch_) std::fill(own_.begin(), own_.end(), std::nullopt);
    micro_batch_ = task.micro_batch;
    const Operation operation = operation_of(step.job(), task);
    const program::Origin& origin = step.job().deed_of(task).origin;
    if (operation == Operation::forward || operation == Operation::backward ||
        operation == Operation::module_hook)
      passed_ = end;
    if (operation == Operation::accumulate && origin.parameter != nobody)
      own_[at(origin.parameter)] = end;
    // A hook that computes nothing only costs the host time.
    if (operation == Operation::gradient_hook && step.job().works[task.work].computes())
      for (const std::int32_t index :
           step.training.hooks[at(origin.hook)].groups[at(origin.kernel)])
        own_[at(index)] = end;
  }

 private:
  std::vector<std::optional<Instant>> own_;  ///< [parameter] end of the latest of its own
  Instant passed_{};                         ///< end of the latest kernel of the passes
  std::int16_t micro_batch_ = 0;
};

std::string name_in_log(const UserHook& hook) {
  return hook.kind == UserHookKind::plugin ? label(hook) : std::string(name_of(hook.kind));
}

std::vector<Firing> firings(const Workload& workload, const Step& step) {
  const RankOfJob rank = step.rank();
  const std::vector<std::int32_t> bucket_of =
      groups_of_parameters(rank.job, workload.parameters.size());
  std::vector<Firing> all;
  Ready ready(workload.parameters.size());
  const program::Origin* before = nullptr;
  for (std::size_t i = 0; i < rank.program.tasks.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    if (rank.is_part_of_another(task)) continue;
    const program::Origin& origin = rank.origin_of(task);
    const Operation operation = operation_of(rank.job, task);
    const bool user = origin.hook != nobody;
    // There and back from a GPU: one hook of several tasks.
    const bool goes_on = user && operation == Operation::module_hook && before != nullptr &&
                         before->hook == origin.hook && before->layer == origin.layer;
    if ((user || operation == Operation::hook) && !goes_on) {
      Firing firing;
      firing.hook = user ? name_in_log(step.training.hooks[at(origin.hook)]) : "ddp";
      std::int32_t layer = origin.layer;
      if (origin.parameter != nobody) {
        const Parameter& parameter = workload.parameters[at(origin.parameter)];
        firing.parameter = parameter.name;
        if (const std::int32_t bucket = bucket_of[at(origin.parameter)]; bucket != nobody)
          firing.bucket = bucket;
        layer = parameter.layer;
      }
      firing.layer = workload.layers[at(layer)].name;
      firing.micro_batch = task.micro_batch;
      firing.host = rank.times[i].issued;
      firing.ready = ready.of(origin.parameter);
      all.push_back(firing);
    }
    ready.after(step, task, rank.times[i].end);
    before = &origin;
  }
  return all;
}

}  // namespace

bool wants_json(const std::string& path) {
  return path.ends_with(".json");
}

std::string hooks_log(const Scenario& scenario, const std::vector<LoggedStep>& steps, bool json) {
  Table table{{fields::strategy, fields::source, fields::position, fields::hook, fields::parameter,
               fields::layer, fields::micro_batch, fields::bucket, fields::host_ms,
               fields::device_ready_ms}};
  for (const LoggedStep& logged : steps) {
    std::size_t position = 0;
    for (const Firing& firing : firings(scenario.workload, *logged.step))
      table.add({logged.strategy, logged.source, position++, firing.hook,
                 firing.parameter.empty() ? FieldValue() : FieldValue(firing.parameter),
                 firing.layer, firing.micro_batch, firing.bucket, in_ms(firing.host),
                 in_ms(firing.ready)});
  }
  if (!json) return csv_of(table);
  nlohmann::ordered_json root{{"format", "ddpsim.hooks/1"}, {"scenario", scenario.name}};
  root["hooks"] = json_of(table);
  return json_text(root);
}

}  // namespace ddpsim
