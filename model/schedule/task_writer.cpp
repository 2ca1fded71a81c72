#include "model/schedule/task_writer.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {

Task& TaskWriter::add(Operation operation, Stream stream) {
  if (schedule_.tasks.size() >= most_tasks)
    throw std::invalid_argument(
        fmt::format("a step of more than {} tasks is beyond what is simulated: take fewer "
                    "layers, micro-batches or steps of a comm hook",
                    most_tasks));
  Task& task = schedule_.tasks.emplace_back();
  task.operation = operation;
  task.stream = stream;
  task.micro_batch = micro_batch_;
  task.after_begin = static_cast<std::uint32_t>(schedule_.after.size());
  return task;
}

void TaskWriter::depend(Task& task, std::int32_t on) {
  schedule_.after.push_back(static_cast<std::uint32_t>(on));
  ++task.after_count;
}

Task& TaskWriter::host_task(Operation operation, Duration host) {
  Task& task = add(operation, Stream::host);
  task.host = host;
  return task;
}

Task& TaskWriter::kernel_task(Operation operation, const KernelCost& cost) {
  Task& task = priced(add(operation, kernel_stream_), cost);
  last_kernel_ = newest();
  return task;
}

Task& TaskWriter::priced(Task& task, const KernelCost& cost) {
  task.host = cost.host;
  task.work = cost.work;
  task.last_launch = cost.last_launch;
  task.memory_fraction = cost.memory_fraction;
  task.launches = cost.launches;
  return task;
}

Task& TaskWriter::collective_task(Operation operation, const CollectiveCost& cost,
                                  Interference beside, Bytes size) {
  Task& task = add(operation, Stream::communication);
  task.host = costs_.launch.collective;
  task.work = cost.time();
  task.latency = cost.latency;
  task.beside = beside;
  task.bytes = size;
  return task;
}

Collective TaskWriter::kind_of(Operation operation) {
  switch (operation) {
    case Operation::all_gather:
      return Collective::all_gather;
    case Operation::reduce_scatter:
      return Collective::reduce_scatter;
    case Operation::broadcast:
      return Collective::broadcast;
    default:
      return Collective::all_reduce;
  }
}

CollectiveCost TaskWriter::cost_of(Operation collective, Bytes size) const {
  return costs_.collective.of(kind_of(collective), size);
}

std::int32_t TaskWriter::given(Bytes size, std::int32_t ready, std::int32_t bucket) {
  if (!costs_.through_host) return ready;
  Task& copy = add(Operation::copy_to_host, Stream::to_host);
  copy.host = costs_.launch.kernel;
  copy.work = size / *costs_.through_host;
  copy.bytes = size;
  copy.bucket = bucket;
  if (ready != nobody) depend(copy, ready);
  return newest();
}

std::int32_t TaskWriter::received(Bytes size) {
  const std::int32_t sent = newest();
  if (!costs_.through_host) return sent;
  const Task collective = schedule_.tasks.back();
  if (collective.bucket != nobody) sent_[at(collective.bucket)] = sent;
  Task& copy = add(Operation::copy_to_device, Stream::to_device);
  copy.message = collective.message;
  copy.bytes = collective.operation == Operation::all_gather ? costs_.ranks * size
               : collective.operation == Operation::reduce_scatter
                   ? Bytes{size.count / costs_.ranks}
                   : size;
  copy.work = copy.bytes / *costs_.through_host;
  copy.bucket = collective.bucket;
  depend(copy, sent);
  return sent + 1;
}

std::int32_t TaskWriter::collective_of(std::int32_t task) const {
  const Task& result = schedule_.tasks[at(task)];
  if (result.operation != Operation::copy_to_device) return task;
  return static_cast<std::int32_t>(schedule_.waits_for(result).front());
}

void TaskWriter::host_waits_for_collective(std::int32_t task, std::int32_t bucket) {
  const std::int32_t sent = bucket != nobody ? sent_[at(bucket)] : collective_of(task);
  if (sent == nobody) return;
  Task& wait = add(Operation::wait, Stream::host);
  wait.message = schedule_.tasks[at(sent)].message;
  wait.bucket = bucket;
  wait.host_waits = true;
  depend(wait, sent);
}

std::int32_t TaskWriter::tell(Operation operation, Message message, Bytes size,
                              std::int32_t before) {
  const std::int32_t ready = given(size, last_kernel_, nobody);
  const CollectiveCost cost = cost_of(operation, size);
  Task& task = collective_task(operation, cost, costs_.interference.beside(cost, size), size);
  task.message = message;
  if (ready != nobody) depend(task, ready);
  if (before != nobody) depend(task, before);
  return received(size);
}

void TaskWriter::host_reads(std::int32_t task) {
  Task& wait = add(Operation::wait, Stream::host);
  wait.message = schedule_.tasks[at(task)].message;
  wait.host_waits = true;
  if (costs_.synchronous) wait.host = costs_.launch.wait;
  depend(wait, task);
  if (last_kernel_ != nobody && last_kernel_ != task) depend(wait, last_kernel_);
  if (costs_.synchronous) last_kernel_ = newest();
}

void TaskWriter::await(std::int32_t task, std::int32_t bucket) {
  if (costs_.through_host) host_waits_for_collective(task, bucket);
  Task& wait = add(Operation::wait, kernel_stream_);
  wait.message = schedule_.tasks[at(task)].message;
  wait.bucket = bucket;
  wait.host_waits = costs_.synchronous;
  if (costs_.synchronous) wait.host = costs_.launch.wait;
  depend(wait, task);
  last_kernel_ = newest();
}

}  // namespace ddpsim
