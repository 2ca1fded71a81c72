// What a CPU does for actions, on one rank.

#include <cstring>

#include <catch2/catch.hpp>

#include "backend/device/cpu/cpu_device.hpp"
#include "backend/device_error.hpp"
#include "backend/execute/memory.hpp"

namespace ddpsim::program {
namespace {

/// A gradient of 4 rows of 2, and room for the rows of two ranks that have two each.
struct Rows {
  Job job;
  CpuDevice device{0};
  execute::Memory memory{0, 1 << 20};
  Slice gradient, mine, all, values, all_values;

  Rows() {
    job.labels = {""};
    job.works.emplace_back();
    job.streams = {{.name = "host"}};
    job.programs.resize(1);
    job.program_of = {0};
    gradient = buffer(DType::fp32, 8);
    mine = buffer(DType::fp8_e4m3, 2 * 8);
    all = buffer(DType::fp8_e4m3, 4 * 8);
    values = buffer(DType::fp32, 4);
    all_values = buffer(DType::fp32, 8);
  }
  Slice buffer(DType type, std::int64_t elements) {
    job.buffers.push_back({.index = static_cast<std::int32_t>(job.buffers.size()),
                           .type = type,
                           .elements = elements,
                           .life = Life::step,
                           .start = Start::zeros});
    return {.buffer = static_cast<BufferId>(job.buffers.size() - 1), .count = elements};
  }
  void run(const Action& action) {
    job.own.deeds = {{action, {}}};
    const Task task;
    REQUIRE(device.refusal(job, task).empty());
    device.run({job, task, memory});
  }
  void begin() {
    memory.arrange(job, device);
    device.begin(job, 0);
  }
  template <typename Value>
  std::vector<Value> get(const Slice& slice) const {
    const execute::Piece piece = memory.piece(slice);
    std::vector<Value> found(piece.bytes().size() / sizeof(Value));
    std::memcpy(found.data(), piece.data, piece.bytes().size());
    return found;
  }
  template <typename Value>
  void put(const Slice& slice, const std::vector<Value>& what) {
    std::memcpy(memory.piece(slice).data, what.data(), what.size() * sizeof(Value));
  }
};

}  // namespace

TEST_CASE("a sparse gradient has values in the rows that it names, and zeros elsewhere",
          "[backend][execute][sparse]") {
  Rows rows;
  const Slice row{.buffer = rows.gradient.buffer, .count = 2};
  const Compute compute{.fills = rows.job.own.add(std::vector<Slice>{rows.gradient}),
                        .rows = rows.job.own.add(std::vector<Slice>{rows.mine, row})};
  rows.begin();
  rows.put(rows.gradient, std::vector<float>(8, 5));
  rows.run(compute);
  const std::vector<std::int64_t> numbers = rows.get<std::int64_t>(rows.mine);
  CHECK(numbers[0] < numbers[1]);
  const std::vector<float> gradient = rows.get<float>(rows.gradient);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i / 2);
    CHECK((gradient[i] != 0) == (number == numbers[0] || number == numbers[1]));
  }
  rows.run(TakeRows{.to = rows.values, .rows = rows.mine, .from = rows.gradient, .factor = 0.5F});
  const std::vector<float> taken = rows.get<float>(rows.values);
  for (std::size_t i = 0; i < taken.size(); ++i)
    CHECK(taken[i] == 0.5F * gradient[2 * static_cast<std::size_t>(numbers[i / 2]) + i % 2]);
}

TEST_CASE("rows of several ranks are added up in their order, and other rows stay",
          "[backend][execute][sparse]") {
  Rows rows;
  rows.begin();
  rows.put(rows.gradient, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  rows.put(rows.all, std::vector<std::int64_t>{0, 3, 1, 3});
  rows.put(rows.all_values, std::vector<float>{10, 20, 30, 40, 50, 60, 70, 80});
  rows.run(AddRows{.to = rows.gradient, .rows = rows.all, .from = rows.all_values});
  CHECK(rows.get<float>(rows.gradient) == std::vector<float>{10, 20, 50, 60, 5, 6, 100, 120});
}

TEST_CASE("a row of another rank that there is not ends the step", "[backend][execute][sparse]") {
  Rows rows;
  rows.begin();
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{4}, INT64_MAX}) {
    rows.put(rows.all, std::vector<std::int64_t>{0, wrong, 1, 2});
    CHECK_THROWS_AS(
        rows.run(AddRows{.to = rows.gradient, .rows = rows.all, .from = rows.all_values}),
        DeviceError);
  }
}

TEST_CASE("rows that do not fit their gradient are refused", "[backend][execute][sparse]") {
  Rows rows;
  const auto refusal = [&](const Action& action) {
    rows.job.own.deeds = {{action, {}}};
    return rows.device.refusal(rows.job, Task{});
  };
  Slice seven = rows.all_values, odd = rows.mine;
  seven.count = 7;
  odd.count = 15;
  const Slice row{.buffer = rows.gradient.buffer, .count = 2};
  CHECK(refusal(AddRows{.to = rows.gradient, .rows = rows.all, .from = rows.all_values}).empty());
  CHECK(!refusal(AddRows{.to = rows.gradient, .rows = rows.all, .from = seven}).empty());
  CHECK(!refusal(TakeRows{.to = rows.values, .rows = odd, .from = rows.gradient}).empty());
  CHECK(!refusal(TakeRows{.to = rows.values, .rows = {}, .from = rows.gradient}).empty());
  Slice short_gradient = rows.gradient;
  short_gradient.count = 2;
  const Operands fills = rows.job.own.add(std::vector<Slice>{short_gradient});
  CHECK(!refusal(
             Compute{.fills = fills, .rows = rows.job.own.add(std::vector<Slice>{rows.mine, row})})
             .empty());
}

}  // namespace ddpsim::program
