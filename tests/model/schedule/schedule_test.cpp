#include "model/schedule/schedule.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "tests/model/schedule/handmade.hpp"

using namespace ddpsim;
using namespace ddpsim::handmade;

TEST_CASE("every stream and every message has a name of its own", "[model][schedule]") {
  std::set<std::string_view> names;
  for (const Stream stream : all_streams) CHECK(names.insert(name_of(stream)).second);
  CHECK(name_of(Stream::host) == "host");
  CHECK(name_of(Stream::compute) == "compute");
  CHECK(name_of(Stream::communication) == "communication");
  for (int i = 0; i <= static_cast<int>(Message::sparse_values); ++i)
    CHECK(names.insert(name_of(static_cast<Message>(i))).second);
  CHECK_FALSE(names.contains("?"));
}

TEST_CASE("a note is a small collective of no bucket", "[model][schedule]") {
  Schedule schedule;
  const auto is_one = [&](Operation operation, Message message, std::int32_t bucket) {
    add(schedule, sent(operation, 4, message), Stream::communication).bucket = bucket;
    return is_note(schedule, schedule.tasks.back());
  };
  for (int i = 0; i <= static_cast<int>(Message::sparse_values); ++i) {
    const auto message = static_cast<Message>(i);
    const bool large = message == Message::gradients || message == Message::buffers ||
                       message == Message::parameters || message == Message::own;
    CAPTURE(name_of(message));
    CHECK(is_one(Operation::all_reduce, message, nobody) == !large);
    CHECK(is_one(Operation::broadcast, message, nobody) == !large);
    CHECK_FALSE(is_one(Operation::all_gather, message, 0));
    CHECK_FALSE(is_one(Operation::wait, message, nobody));
  }
}

TEST_CASE("a bucket is finished by a wait for it or a copy out of it, the used map by a wait",
          "[model][schedule]") {
  Schedule schedule;
  const auto finishes = [&](Operation operation, Message message, std::int32_t bucket) {
    add(schedule, sent(operation, 0, message), Stream::compute).bucket = bucket;
    return finishes_bucket(schedule, schedule.tasks.back());
  };
  CHECK(finishes(Operation::wait, Message::gradients, 0));
  CHECK(finishes(Operation::copy_out, Message::gradients, 0));
  CHECK(finishes(Operation::wait, Message::used_map, nobody));
  CHECK_FALSE(finishes(Operation::wait, Message::buffers, nobody));
  CHECK_FALSE(finishes(Operation::copy_out, Message::buffers, nobody));
  CHECK_FALSE(finishes(Operation::all_reduce, Message::gradients, 0));
  CHECK_FALSE(finishes(Operation::copy_in, Message::gradients, 0));
}

TEST_CASE("a hook computes aside if a kernel of it does", "[model][schedule]") {
  Schedule schedule;
  add(schedule, moved(Operation::cast, 100), Stream::compute);
  add(schedule, sent(Operation::all_reduce, 100), Stream::communication);
  CHECK_FALSE(computes_aside(schedule));
  Work waiting;
  waiting.operation = Operation::synchronize;
  waiting.aside = true;
  add(schedule, waiting, Stream::host);
  CHECK_FALSE(computes_aside(schedule));
  Work aside = moved(Operation::cast, 100);
  aside.aside = true;
  add(schedule, aside, Stream::aside);
  CHECK(computes_aside(schedule));
}

TEST_CASE("ranks differ that own a task, and one more that owns none", "[model][schedule]") {
  Schedule schedule;
  add(schedule, moved(Operation::forward, 100), Stream::compute);
  add(schedule, sent(Operation::broadcast, 10), Stream::communication).owner = 5;
  CHECK(different_ranks(schedule, 8) == 1);  // everybody takes part in a broadcast
  add(schedule, moved(Operation::optimizer, 10), Stream::compute).owner = 0;
  CHECK(different_ranks(schedule, 8) == 2);
  add(schedule, moved(Operation::optimizer, 10), Stream::compute).owner = 2;
  CHECK(different_ranks(schedule, 8) == 4);
  CHECK(different_ranks(schedule, 3) == 3);
  CHECK(is_of_another_rank(schedule.tasks[2], 1));
  CHECK_FALSE(is_of_another_rank(schedule.tasks[2], 0));
  CHECK_FALSE(is_of_another_rank(schedule.tasks[1], 0));
  CHECK_FALSE(is_of_another_rank(schedule.tasks[0], 0));
}
