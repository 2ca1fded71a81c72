#include "model/schedule/schedule_writer.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {

ScheduleWriter::ScheduleWriter(const WorkTable& known, const Device& where)
    : device(where),
      kernel_stream(where.synchronous ? Stream::host : Stream::compute),
      known_(known),
      numbers_(known.size(), unused) {
  schedule.ranks = device.ranks;
  schedule.synchronous = device.synchronous;
  schedule.collectives_at_once = device.collectives_at_once;
}

std::uint32_t ScheduleWriter::number_of(KnownWork known) {
  std::uint32_t& number = numbers_[known.number];
  if (number == unused) {
    number = static_cast<std::uint32_t>(schedule.works.size());
    schedule.works.push_back(known_[known.number]);
  }
  return number;
}

std::uint32_t ScheduleWriter::number_of(const Work& work) {
  const std::uint32_t fresh = fresh_.add(work);
  if (fresh < fresh_numbers_.size()) return fresh_numbers_[fresh];
  if (const auto known = known_.find(work)) {
    fresh_numbers_.push_back(number_of(KnownWork{*known}));
  } else {
    fresh_numbers_.push_back(static_cast<std::uint32_t>(schedule.works.size()));
    schedule.works.push_back(work);
  }
  return fresh_numbers_.back();
}

Task& ScheduleWriter::add(Operation operation, Stream stream, std::uint32_t work) {
  if (schedule.tasks.size() >= most_tasks)
    throw std::invalid_argument(
        fmt::format("a step of more than {} tasks is beyond what is simulated: take fewer "
                    "layers, micro-batches or steps of a comm hook",
                    most_tasks));
  Task& task = schedule.tasks.emplace_back();
  task.operation = operation;
  task.stream = stream;
  task.work = work;
  task.micro_batch = micro_batch;
  task.after_begin = static_cast<std::uint32_t>(schedule.after.size());
  return task;
}

void ScheduleWriter::depend(Task& task, std::int32_t on) {
  schedule.after.push_back(static_cast<std::uint32_t>(on));
  ++task.after_count;
}

Task& ScheduleWriter::host_task(Operation operation, const Work& work) {
  return add(operation, Stream::host, number_of(work));
}

Task& ScheduleWriter::kernel_task(Operation operation, std::uint32_t work) {
  Task& task = add(operation, kernel_stream, work);
  last_kernel = newest();
  return task;
}

Task& ScheduleWriter::kernel_task(Operation operation, KnownWork work) {
  return kernel_task(operation, number_of(work));
}

Task& ScheduleWriter::collective_task(const Work& work) {
  return add(work.operation, Stream::communication, number_of(work));
}

std::int32_t ScheduleWriter::input_of(Message message, Bytes size, std::int32_t ready,
                                      std::int32_t bucket) {
  if (!device.through_host) return ready;
  Work work;
  work.operation = Operation::copy_to_host;
  work.message = message;
  work.launches = 1;
  work.payload = size;
  Task& copy = add(work.operation, Stream::to_host, number_of(work));
  copy.bucket = bucket;
  if (ready != nobody) depend(copy, ready);
  return newest();
}

std::int32_t ScheduleWriter::result_of(Bytes size) {
  const std::int32_t collective_index = newest();
  if (!device.through_host) return collective_index;
  const Task collective = schedule.tasks.back();
  if (collective.bucket != nobody) sent[at(collective.bucket)] = collective_index;
  Work work;
  work.operation = Operation::copy_to_device;
  work.message = message_of(collective_index);
  work.launches = 0;  // the host that ran the collective enqueues it
  work.payload = collective.operation == Operation::all_gather ? device.ranks * size
                 : collective.operation == Operation::reduce_scatter
                     ? Bytes{size.count / device.ranks}
                     : size;
  Task& copy = add(work.operation, Stream::to_device, number_of(work));
  copy.bucket = collective.bucket;
  depend(copy, collective_index);
  return collective_index + 1;
}

std::int32_t ScheduleWriter::collective_of(std::int32_t result) const {
  const Task& task = schedule.tasks[at(result)];
  if (task.operation != Operation::copy_to_device) return result;
  return static_cast<std::int32_t>(schedule.waits_for(task).front());
}

Task& ScheduleWriter::wait_task(Stream stream, std::int32_t result, std::int32_t bucket) {
  Work work;
  work.operation = Operation::wait;
  work.message = message_of(result);
  Task& task = add(work.operation, stream, number_of(work));
  task.bucket = bucket;
  depend(task, result);
  return task;
}

void ScheduleWriter::host_waits_for_collective(std::int32_t result, std::int32_t bucket) {
  const std::int32_t collective = bucket != nobody ? sent[at(bucket)] : collective_of(result);
  if (collective == nobody) return;
  wait_task(Stream::host, collective, bucket).host_waits = true;
}

std::int32_t ScheduleWriter::announce(Operation operation, Message message, Bytes size,
                                      std::int32_t before, bool handed_over) {
  const std::int32_t ready = input_of(message, size, last_kernel, nobody);
  Work work;
  work.operation = operation;
  work.message = message;
  work.payload = size;
  work.handed_over = handed_over;
  Task& task = collective_task(work);
  if (ready != nobody) depend(task, ready);
  if (before != nobody) depend(task, before);
  return result_of(size);
}

void ScheduleWriter::host_reads(std::int32_t task) {
  Task& wait = wait_task(Stream::host, task, nobody);
  wait.host_waits = true;
  if (last_kernel != nobody && last_kernel != task) depend(wait, last_kernel);
  if (device.synchronous) last_kernel = newest();
}

void ScheduleWriter::await(std::int32_t result, std::int32_t bucket) {
  if (device.through_host) host_waits_for_collective(result, bucket);
  wait_task(kernel_stream, result, bucket).host_waits = device.synchronous;
  last_kernel = newest();
}

}  // namespace ddpsim
