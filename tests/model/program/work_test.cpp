#include "model/program/work.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "tests/model/program/changes.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

/// A multiplication with something in every field.
Work full_work() {
  Work work;
  work.operation = Operation::multiply;
  work.gemm = Gemm{64, 32, 16, 1};
  work.traffic = 12 * KiB;
  work.known_time = Duration{0};
  work.tensors = 2;
  work.call = 4us;
  work.by_class = ClassCost{2us, 3us, 0.5F};
  work.launches = 3;
  work.host = 5us;
  work.hook_calls = 1;
  work.payload = 1 * MiB;
  return work;
}

Work collective(Operation operation, Bytes payload) {
  Work work;
  work.operation = operation;
  work.payload = payload;
  return work;
}

/// Works of few values, so that many of them are equal.
Work few_valued(std::mt19937_64& random) {
  const auto one_of = [&](int count) { return static_cast<int>(random() % std::uint64_t(count)); };
  Work work;
  work.operation = one_of(2) == 0 ? Operation::forward : Operation::all_reduce;
  work.launches = 1 + one_of(2);
  if (one_of(2) == 0) work.gemm = Gemm{1, 1, 1, 1 + one_of(2)};
  work.traffic = {one_of(3)};
  work.aside = one_of(2) == 0;
  return work;
}

}  // namespace

TEST_CASE("works are equal if all of their fields are", "[model][work]") {
  const Work work = full_work();
  CHECK(work == full_work());
  CHECK(WorkHash{}(work) == WorkHash{}(full_work()));
  int count = 0;
  std::set<std::size_t> hashes{WorkHash{}(work)};
  changes::for_each_change<Work>(work, [&](const Work& other) {
    ++count;
    CHECK_FALSE(other == work);
    // Nothing demands it of a hash, but a field that it left out would make tables slow.
    CHECK(hashes.insert(WorkHash{}(other)).second);
  });
  // Each field, the sides of the GEMM, the absence of the known time, and of the law's cost three
  // figures.
  CHECK(count == 22 + 4 + 1 + 3);
}

TEST_CASE("a kernel's work is its shape, traffic, type, launches, time and caller",
          "[model][work]") {
  Kernel kernel;
  kernel.name = "of no account";
  kernel.gemm = Gemm{1, 2, 3, 4};
  kernel.traffic = {5};
  kernel.launches = 6;
  kernel.type = DType::bf16;
  kernel.time = 7us;
  Work expected;
  expected.operation = Operation::backward;
  expected.gemm = kernel.gemm;
  expected.traffic = {5};
  expected.launches = 6;
  expected.type = DType::bf16;
  expected.known_time = 7us;
  expected.caller = Caller::autograd;
  CHECK(work_of(Operation::backward, kernel, Caller::autograd) == expected);
  Work copy;
  copy.operation = Operation::copy_in;
  copy.traffic = {8};
  copy.launches = 2;
  copy.caller = Caller::library;
  CHECK(moving(Operation::copy_in, {8}, Caller::library, 2) == copy);
}

TEST_CASE("only a kernel with something to do computes", "[model][work]") {
  Work work;
  CHECK_FALSE(work.computes());
  work.traffic = {1};
  CHECK(work.computes());
  work.operation = Operation::all_reduce;
  CHECK_FALSE(work.computes());
  work.operation = Operation::wait;
  CHECK_FALSE(work.computes());
  Work timed;
  timed.known_time = Duration{};
  CHECK(timed.computes());
  Work multiplying;
  multiplying.gemm = Gemm{1, 1, 1, 1};
  CHECK(multiplying.computes());
  Work updating;
  updating.operation = Operation::optimizer;
  updating.optimizer_share = 0.25;
  CHECK(updating.computes());
}

TEST_CASE("a calibration knows a kernel by operation, shape, traffic, type and place",
          "[model][work]") {
  for (const Operation operation : kernel_operations) {
    CAPTURE(name_of(operation));
    Work key;
    key.operation = operation;
    key.gemm = Gemm{64, 32, 16, 2};
    key.traffic = 12 * KiB;
    key.type = DType::bf16;
    key.aside = true;
    REQUIRE(measured_as(key) == key);
    // Whoever enqueues it, however often, with whatever the host does besides, in whichever queue.
    Work work = key;
    work.caller = Caller::python_loop;
    work.launches = 7;
    work.host = 3us;
    work.hook_calls = 2;
    work.communicator = 1;
    work.group = 4;
    work.payload = 1 * MiB;
    work.beside_hook = true;
    CHECK(measured_as(work) == key);
    // What it keeps makes a difference.
    Work other = work;
    other.aside = false;
    CHECK(measured_as(other) != measured_as(work));
    other = work;
    other.type = DType::fp32;
    CHECK(measured_as(other) != measured_as(work));
    other = work;
    other.gemm.reset();
    CHECK(measured_as(other) != measured_as(work));
    other = work;
    other.traffic = 13 * KiB;
    CHECK(measured_as(other) != measured_as(work));
  }
}

TEST_CASE("a calibration has no time of what is no kernel", "[model][work]") {
  for (std::size_t i = 0; i < operation_count; ++i) {
    const auto operation = static_cast<Operation>(i);
    CAPTURE(name_of(operation));
    Work work = moving(operation, 1 * MiB);
    work.payload = 1 * MiB;
    CHECK(measured_as(work).has_value() == is_kernel(operation));
    work.traffic = {};
    CHECK_FALSE(measured_as(work));  // nothing is computed
  }
}

TEST_CASE("a calibration needs no time of a kernel whose time is known", "[model][work]") {
  for (const Operation operation : kernel_operations) {
    CAPTURE(name_of(operation));
    Work work = moving(operation, 1 * MiB);
    work.known_time = 5us;
    // But of a hook on a layer's output that is only what the user expects of host threads.
    REQUIRE(measured_as(work).has_value() == (operation == Operation::module_hook));
    if (operation == Operation::module_hook) CHECK(measured_as(work) == moving(operation, 1 * MiB));
    work.traffic = {};
    CHECK_FALSE(measured_as(work));
  }
}

TEST_CASE("a calibration has no time of part of an optimizer, nor of what prepares messages",
          "[model][work]") {
  Work share = moving(Operation::optimizer, 1 * MiB);
  CHECK(measured_as(share));
  share.optimizer_share = 0.5;
  CHECK_FALSE(measured_as(share));
  for (int i = 1; i <= static_cast<int>(Message::sparse_values); ++i) {
    Work work = moving(Operation::concatenate, 1 * MiB);
    work.message = static_cast<Message>(i);
    CHECK_FALSE(measured_as(work));
  }
}

TEST_CASE("a table numbers each distinct piece of work once, in the order they come",
          "[model][work]") {
  WorkTable table;
  const Work kernel = full_work(), sum = collective(Operation::all_reduce, 1 * MiB);
  CHECK_FALSE(table.find(kernel));
  CHECK(table.add(kernel) == 0);
  CHECK(table.add(sum) == 1);
  CHECK(table.add(full_work()) == 0);
  CHECK(table.add(collective(Operation::all_reduce, 2 * MiB)) == 2);
  CHECK(table.size() == 3);
  CHECK(table[1] == sum);
  CHECK(table.find(kernel) == 0U);
  CHECK(table.find(sum) == 1U);
  CHECK_FALSE(table.find(collective(Operation::broadcast, 1 * MiB)));
  CHECK(table.size() == 3);  // finding adds nothing
}

TEST_CASE("a table is the list in which one looks for each work from the start",
          "[model][work][oracle]") {
  std::mt19937_64 random(3);
  WorkTable table;
  std::vector<Work> list;
  for (int round = 0; round < 500; ++round) {
    const Work work = few_valued(random);
    const auto found = std::find(list.begin(), list.end(), work);
    const auto place = static_cast<std::uint32_t>(found - list.begin());
    if (found == list.end()) list.push_back(work);
    REQUIRE(table.add(work) == place);
  }
  REQUIRE(table.size() == list.size());
  for (std::uint32_t i = 0; i < list.size(); ++i) CHECK(table[i] == list[i]);
  CHECK(list.size() == 2 * 2 * 3 * 3 * 2);  // all there are
}

TEST_CASE("works are described for people", "[model][work]") {
  CHECK(describe(collective(Operation::all_reduce, 25 * MiB)) == "all-reduce of 25 MiB");
  Work multiplication = full_work();
  multiplication.payload = {};
  CHECK(describe(multiplication) == "multiply 64 x 32 x 16 fp32, 12 KiB");
  multiplication.gemm->batch = 4;
  multiplication.type = DType::bf16;
  multiplication.aside = true;
  CHECK(describe(multiplication) == "multiply 64 x 32 x 16 (4 times) bf16, 12 KiB, aside");
  Work buffers = collective(Operation::broadcast, 4 * KiB);
  buffers.message = Message::buffers;
  CHECK(describe(buffers) == "broadcast (buffers) of 4 KiB");
  CHECK(describe(moving(Operation::copy_in, 2 * MiB)) == "copy in, 2 MiB");
  Work wait;
  wait.operation = Operation::wait;
  CHECK(describe(wait) == "wait");
}
