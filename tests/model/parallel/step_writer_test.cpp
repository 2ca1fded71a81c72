#include "model/parallel/write/step_writer.hpp"

#include <catch2/catch.hpp>

#include "tests/model/program/handmade.hpp"

using namespace ddpsim;
using namespace ddpsim::handmade;

namespace {

struct Table {
  WorkTable works;
  KnownWork kernel{works.add(moved(Operation::forward, 100))};
  KnownWork copy{works.add(moved(Operation::copy_in, 100))};
};

StepWriter::Device on_hosts() {
  StepWriter::Device device;
  device.ranks = 4;
  device.through_host = true;
  return device;
}

void compute(StepWriter& writer, KnownWork work) {
  writer.kernel_task(Operation::forward, work, program::Compute{});
}

}  // namespace

TEST_CASE("work stands once in a step, whether it was known before or comes as it is",
          "[model][step_writer]") {
  const Table table;
  StepWriter writer(table.works, {});
  CHECK(writer.number_of(table.copy) == 0);  // in the order in which it is used, not known
  CHECK(writer.number_of(table.kernel) == 1);
  CHECK(writer.number_of(moved(Operation::forward, 100)) == 1);
  CHECK(writer.number_of(moved(Operation::forward, 200)) == 2);
  CHECK(writer.number_of(moved(Operation::forward, 200)) == 2);
  CHECK(writer.number_of(table.kernel) == 1);
  CHECK(writer.memory.job.works.size() == 3);
  // The other way round.
  StepWriter other(table.works, {});
  CHECK(other.number_of(moved(Operation::copy_in, 100)) == 0);
  CHECK(other.number_of(table.copy) == 0);
  CHECK(other.memory.job.works == std::vector<Work>{moved(Operation::copy_in, 100)});
}

TEST_CASE("what is known and not used is no part of a step", "[model][step_writer]") {
  const Table table;
  StepWriter writer(table.works, {});
  compute(writer, table.copy);
  CHECK(writer.finish(0, {}).works == std::vector<Work>{moved(Operation::copy_in, 100)});
}

TEST_CASE("a writer says where kernels run and which was the last", "[model][step_writer]") {
  const Table table;
  const bool synchronous = GENERATE(false, true);
  StepWriter::Device device;
  device.ranks = 3;
  device.synchronous = synchronous;
  device.collectives_at_once = 2;
  StepWriter writer(table.works, device);
  CHECK(writer.last_kernel == nobody);
  writer.micro_batch = 1;
  compute(writer, table.kernel);
  writer.host_task(Operation::hook, sent(Operation::hook, 0), program::Call{});
  CHECK(writer.last_kernel == 0);
  CHECK(writer.newest() == 1);
  writer.announce(Operation::all_reduce, Message::used_map, {12});
  const FlatStep step = flat(writer.finish(0, {}));
  CHECK(step.ranks == 3);
  CHECK(step.collectives_at_once == 2);
  CHECK(step.tasks[0].stream == (synchronous ? StepStream::host : StepStream::compute));
  CHECK(step.tasks[0].micro_batch == 1);
}

TEST_CASE("collectives on the devices wait for their input and are awaited themselves",
          "[model][step_writer]") {
  const Table table;
  StepWriter writer(table.works, {});
  compute(writer, table.kernel);
  const std::int32_t sum = writer.announce(Operation::all_reduce, Message::used_map, {12});
  CHECK(sum == 1);
  CHECK(writer.collective_of(sum) == sum);
  writer.await(sum);
  CHECK(writer.last_kernel == 2);
  const FlatStep step = flat(writer.finish(0, {}));
  REQUIRE(step.tasks.size() == 3);
  CHECK(step.waits_for(step.tasks[1])[0] == 0);
  CHECK(step.waits_for(step.tasks[2])[0] == 1);
  CHECK(step.tasks[2].stream == StepStream::compute);
  CHECK(step.work_of(step.tasks[2]).message == Message::used_map);
}

TEST_CASE("R38: collectives on the hosts run between copies, which hold what is sent and received",
          "[model][step_writer][rules]") {
  const Table table;
  const auto copied = [&](Operation operation) {
    StepWriter writer(table.works, on_hosts());
    const std::int32_t result = writer.announce(operation, Message::gradients, {1000});
    CHECK(result == 2);
    CHECK(writer.collective_of(result) == 1);
    const program::Job job = writer.finish(0, {});
    const FlatStep step = flat(job);
    REQUIRE(step.tasks.size() == 3);
    CHECK(step.tasks[0].stream == StepStream::to_host);
    CHECK(step.tasks[2].stream == StepStream::to_device);
    CHECK(step.work_of(step.tasks[0]).payload == Bytes{1000});
    const auto& there = std::get<program::Move>(job.own.deeds[0].action);
    const auto& collective = std::get<program::Collective>(job.own.deeds[1].action);
    const auto& back = std::get<program::Move>(job.own.deeds[2].action);
    CHECK(there.to == collective.from);
    CHECK(collective.to == back.from);
    CHECK(job.buffers[collective.from.buffer].place == program::Place::host);
    CHECK(job.buffers[back.to.buffer].place == program::Place::device);
    return step.work_of(step.tasks[2]).payload;
  };
  CHECK(copied(Operation::all_reduce) == Bytes{1000});
  CHECK(copied(Operation::broadcast) == Bytes{1000});
  CHECK(copied(Operation::all_gather) == Bytes{4000});
  CHECK(copied(Operation::reduce_scatter) == Bytes{250});
}

TEST_CASE("R38: the host stands still until a collective on the hosts has ended",
          "[model][step_writer][rules]") {
  const Table table;
  StepWriter writer(table.works, on_hosts());
  writer.await(writer.announce(Operation::all_reduce, Message::gradients, {1000}));
  const FlatStep step = flat(writer.finish(0, {}));
  REQUIRE(step.tasks.size() == 5);  // copy, collective, copy; the host's wait, the device's
  CHECK(step.tasks[3].stream == StepStream::host);
  CHECK(step.waits_for(step.tasks[3])[0] == 1);
  CHECK(step.tasks[4].stream == StepStream::compute);
  CHECK(step.waits_for(step.tasks[4])[0] == 2);
}

TEST_CASE("a host that reads stands still for all that was enqueued before",
          "[model][step_writer]") {
  const Table table;
  StepWriter writer(table.works, {});
  const std::int32_t sum = writer.announce(Operation::all_reduce, Message::early_end, {4});
  compute(writer, table.kernel);
  writer.host_reads(sum);
  CHECK(writer.last_kernel == 1);
  const FlatStep step = flat(writer.finish(0, {}));
  const FlatTask& wait = step.tasks.back();
  CHECK(wait.stream == StepStream::host);
  CHECK(step.work_of(wait).message == Message::early_end);
  REQUIRE(wait.after_count == 2);
  CHECK(step.waits_for(wait)[0] == 0);
  CHECK(step.waits_for(wait)[1] == 1);
}

TEST_CASE("a task that is left to one rank is in its program alone", "[model][step_writer]") {
  const Table table;
  StepWriter::Device device;
  device.ranks = 8;
  StepWriter writer(table.works, device);
  compute(writer, table.kernel);
  for (const std::int32_t owner : {0, 2}) {
    compute(writer, table.copy);
    writer.leave_to(owner);
  }
  writer.host_task(Operation::hook, sent(Operation::hook, 0), program::Call{});
  writer.depend(1);  // the first owner's
  const program::Job job = writer.finish(0, {});
  // As many as own something, those between them, and one more for all who own nothing.
  CHECK(job.program_of == std::vector<std::uint16_t>{0, 1, 2, 3, 3, 3, 3, 3});
  const auto deeds = [&](std::size_t kind) {
    std::vector<std::uint32_t> all;
    for (const program::Task& task : job.programs[kind].tasks) all.push_back(task.deed);
    return all;
  };
  CHECK(deeds(0) == std::vector<std::uint32_t>{0, 1, 3});
  CHECK(deeds(1) == std::vector<std::uint32_t>{0, 3});
  CHECK(deeds(2) == std::vector<std::uint32_t>{0, 2, 3});
  CHECK(program::deeds_of_all(job) == std::vector<bool>{true, false, false, true});
  // Who waits for what another rank does waits for what came before it on its stream.
  CHECK(job.programs[0].waits_for(2)[0] == 1);
  CHECK(job.programs[1].waits_for(1)[0] == 0);
}

TEST_CASE("ranks without inputs leave out what needs them, and send zeros",
          "[model][step_writer]") {
  const Table table;
  StepWriter::Device device;
  device.ranks = 3;
  StepWriter writer(table.works, device);
  const program::Slice sum = writer.note(0, {12});
  compute(writer, table.kernel);
  writer.announce(Operation::all_reduce, Message::used_map, {12});
  const program::Job job = writer.finish(1, {sum});
  CHECK(job.program_of == std::vector<std::uint16_t>{0, 0, 1});
  const program::Program& without = job.programs[1];
  REQUIRE(without.tasks.size() == 2);
  CHECK(std::get<program::Fill>(job.deed_of(without.tasks[0]).action).to == sum);
  CHECK(std::holds_alternative<program::Collective>(job.deed_of(without.tasks[1]).action));
}
