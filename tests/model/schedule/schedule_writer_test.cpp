#include "model/schedule/schedule_writer.hpp"

#include <catch2/catch.hpp>

#include "tests/model/schedule/handmade.hpp"

using namespace ddpsim;
using namespace ddpsim::handmade;

namespace {

struct Table {
  WorkTable works;
  KnownWork kernel{works.add(moved(Operation::forward, 100))};
  KnownWork copy{works.add(moved(Operation::copy_in, 100))};
};

ScheduleWriter::Device on_hosts() {
  ScheduleWriter::Device device;
  device.ranks = 4;
  device.through_host = true;
  return device;
}

}  // namespace

TEST_CASE("work stands once in a schedule, whether it was known before or comes as it is",
          "[model][schedule_writer]") {
  const Table table;
  ScheduleWriter writer(table.works, {});
  CHECK(writer.number_of(table.copy) == 0);  // in the order in which it is used, not known
  CHECK(writer.number_of(table.kernel) == 1);
  CHECK(writer.number_of(moved(Operation::forward, 100)) == 1);
  CHECK(writer.number_of(moved(Operation::forward, 200)) == 2);
  CHECK(writer.number_of(moved(Operation::forward, 200)) == 2);
  CHECK(writer.number_of(table.kernel) == 1);
  CHECK(writer.schedule.works.size() == 3);
  // The other way round.
  ScheduleWriter other(table.works, {});
  CHECK(other.number_of(moved(Operation::copy_in, 100)) == 0);
  CHECK(other.number_of(table.copy) == 0);
  CHECK(other.schedule.works == std::vector<Work>{moved(Operation::copy_in, 100)});
}

TEST_CASE("what is known and not used is no part of a schedule", "[model][schedule_writer]") {
  const Table table;
  ScheduleWriter writer(table.works, {});
  writer.kernel_task(Operation::copy_in, table.copy);
  CHECK(writer.schedule.works == std::vector<Work>{moved(Operation::copy_in, 100)});
}

TEST_CASE("a writer says where kernels run and which was the last", "[model][schedule_writer]") {
  const Table table;
  const bool synchronous = GENERATE(false, true);
  ScheduleWriter::Device device;
  device.ranks = 3;
  device.synchronous = synchronous;
  device.collectives_at_once = 2;
  ScheduleWriter writer(table.works, device);
  CHECK(writer.schedule.ranks == 3);
  CHECK(writer.schedule.synchronous == synchronous);
  CHECK(writer.schedule.collectives_at_once == 2);
  CHECK(writer.last_kernel == nobody);
  writer.micro_batch = 1;
  const Task& kernel = writer.kernel_task(Operation::forward, table.kernel);
  CHECK(kernel.stream == (synchronous ? Stream::host : Stream::compute));
  CHECK(kernel.micro_batch == 1);
  writer.host_task(Operation::hook, sent(Operation::hook, 0));
  CHECK(writer.last_kernel == 0);
  CHECK(writer.newest() == 1);
}

TEST_CASE("collectives on the devices wait for their input and are awaited themselves",
          "[model][schedule_writer]") {
  const Table table;
  ScheduleWriter writer(table.works, {});
  writer.kernel_task(Operation::forward, table.kernel);
  const std::int32_t sum = writer.announce(Operation::all_reduce, Message::used_map, {12});
  CHECK(sum == 1);
  CHECK(writer.collective_of(sum) == sum);
  writer.await(sum);
  REQUIRE(writer.schedule.tasks.size() == 3);
  const Schedule& schedule = writer.schedule;
  CHECK(schedule.waits_for(schedule.tasks[1])[0] == 0);
  CHECK(schedule.waits_for(schedule.tasks[2])[0] == 1);
  CHECK(schedule.tasks[2].stream == Stream::compute);
  CHECK(schedule.work_of(schedule.tasks[2]).message == Message::used_map);
  CHECK(writer.last_kernel == 2);
}

TEST_CASE("R38: collectives on the hosts run between copies, which hold what is sent and received",
          "[model][schedule_writer][rules]") {
  const Table table;
  const auto copied = [&](Operation operation) {
    ScheduleWriter writer(table.works, on_hosts());
    const std::int32_t result = writer.announce(operation, Message::gradients, {1000});
    const Schedule& schedule = writer.schedule;
    REQUIRE(schedule.tasks.size() == 3);
    CHECK(schedule.tasks[0].stream == Stream::to_host);
    CHECK(schedule.tasks[2].stream == Stream::to_device);
    CHECK(result == 2);
    CHECK(writer.collective_of(result) == 1);
    CHECK(schedule.work_of(schedule.tasks[0]).payload == Bytes{1000});
    return schedule.work_of(schedule.tasks[2]).payload;
  };
  CHECK(copied(Operation::all_reduce) == Bytes{1000});
  CHECK(copied(Operation::broadcast) == Bytes{1000});
  CHECK(copied(Operation::all_gather) == Bytes{4000});
  CHECK(copied(Operation::reduce_scatter) == Bytes{250});
}

TEST_CASE("R38: the host stands still until a collective on the hosts has ended",
          "[model][schedule_writer][rules]") {
  const Table table;
  ScheduleWriter writer(table.works, on_hosts());
  writer.await(writer.announce(Operation::all_reduce, Message::gradients, {1000}));
  const Schedule& schedule = writer.schedule;
  REQUIRE(schedule.tasks.size() == 5);  // copy, collective, copy; the host's wait, the device's
  CHECK(schedule.tasks[3].stream == Stream::host);
  CHECK(schedule.tasks[3].host_waits);
  CHECK(schedule.waits_for(schedule.tasks[3])[0] == 1);
  CHECK(schedule.tasks[4].stream == Stream::compute);
  CHECK_FALSE(schedule.tasks[4].host_waits);
  CHECK(schedule.waits_for(schedule.tasks[4])[0] == 2);
}

TEST_CASE("a host that reads stands still for all that was enqueued before",
          "[model][schedule_writer]") {
  const Table table;
  ScheduleWriter writer(table.works, {});
  const std::int32_t sum = writer.announce(Operation::all_reduce, Message::early_end, {4});
  writer.kernel_task(Operation::forward, table.kernel);
  writer.host_reads(sum);
  const Schedule& schedule = writer.schedule;
  const Task& wait = schedule.tasks.back();
  CHECK(wait.host_waits);
  CHECK(wait.stream == Stream::host);
  CHECK(schedule.work_of(wait).message == Message::early_end);
  REQUIRE(wait.after_count == 2);
  CHECK(schedule.waits_for(wait)[0] == 0);
  CHECK(schedule.waits_for(wait)[1] == 1);
  CHECK(writer.last_kernel == 1);
}
