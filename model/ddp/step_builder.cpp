#include "model/ddp/step_builder.hpp"

namespace ddpsim {

StepBuilder::StepBuilder(const StepWorks& all, const Training& how)
    : works(all), training(how), writer(all.table, all.device) {
  if (training.join) writer.schedule.ranks_without_inputs = training.join->joined_ranks;
}

std::vector<std::int32_t> StepBuilder::used(std::vector<std::int32_t> parameters) const {
  std::erase_if(parameters, [this](std::int32_t index) { return unused(index); });
  return parameters;
}

std::int32_t StepBuilder::divisor() const {
  return training.divisor(works.device.ranks);
}

Bucket& StepBuilder::add_bucket(std::vector<std::int32_t> parameters) {
  Bucket& bucket = buckets().emplace_back();
  bucket.parameters = std::move(parameters);
  for (const std::int32_t index : bucket.parameters) bucket.size += works.gradients[at(index)].size;
  return bucket;
}

void StepBuilder::index_buckets() {
  bucket_of.resize(works.parameters());
  for (std::int32_t b = 0; b < bucket_count(); ++b)
    for (const std::int32_t index : bucket(b).parameters) bucket_of[at(index)] = b;
  launched.assign(buckets().size(), nobody);
  gradient.assign(buckets().size(), nobody);
  writer.sent.assign(buckets().size(), nobody);
}

void StepBuilder::all_reduce(std::int32_t index, bool handed_over) {
  Work work;
  work.operation = Operation::all_reduce;
  work.payload = bucket(index).size;
  work.handed_over = handed_over;
  const std::int32_t ready = writer.input_of(work.message, work.payload, writer.last_kernel, index);
  Task& task = writer.collective_task(work);
  task.bucket = index;
  task.gradient = gradient[at(index)];
  if (!divides()) task.divisor = divisor();
  if (ready != nobody) writer.depend(task, ready);
  launched[at(index)] = writer.result_of(work.payload);
}

void StepBuilder::fire_hook(std::int32_t parameter, std::int32_t index) {
  Work work;
  work.operation = Operation::hook;
  work.hook_calls = 1;
  Task& task = writer.host_task(Operation::hook, work);
  task.parameter = parameter;
  task.bucket = index;
}

void StepBuilder::per_parameter(Operation operation, const std::vector<KnownWork>& work,
                                std::int32_t index) {
  for (const std::int32_t parameter : bucket(index).parameters) {
    if (unused(parameter)) continue;
    Task& task = writer.kernel_task(operation, work[at(parameter)]);
    task.parameter = parameter;
    task.bucket = index;
    if (operation == Operation::divide) task.divisor = divisor();
  }
}

}  // namespace ddpsim
