// The real calls against the same computed on the host. Needs a GPU. Each of these tests touches
// CUDA in this process, so the tests of jobs, which fork, run in others, as ctest and
// tools/gpu_check have it. [time]:
// what a sanitizer slows.

#include <cmath>

#include <catch2/catch.hpp>

#include "backend/device_error.hpp"
#include "tests/gpu/device.hpp"

namespace ddpsim {

TEST_CASE("values are spread over [-1, 1) and repeat", "[gpu][calls]") {
  const auto device = gpu();
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16}) {
    const Values a(*device, 100'003, type, 7), b(*device, 100'003, type, 7),
        c(*device, 100'003, type, 8);
    CHECK(a.host == b.host);
    CHECK(a.host != c.host);
    double sum = 0, squares = 0;
    for (const float value : a.host) {
      REQUIRE(std::abs(value) <= 1);
      sum += value;
      squares += static_cast<double>(value) * value;
    }
    CHECK(std::abs(sum / 100'003) < 0.01);
    CHECK(std::abs(squares / 100'003 - 1.0 / 3) < 0.01);
  }
}

TEST_CASE("scaling and sums equal the host's, aligned and not", "[gpu][calls]") {
  const auto device = gpu();
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16})
    for (const std::int64_t skipped : {0, 1, 3})
      for (const GpuStream stream : {0, 1}) {
        const Values from(*device, 40'001, type, 1), to(*device, 40'001, type, 2);
        const std::int64_t count = from.count - skipped - 5;
        const std::int64_t offset = skipped * size_of(type).count;
        device->scale(stream, to.memory.get() + offset, from.memory.get() + offset, count, type,
                      0.25F);
        device->combine(stream, to.memory.get() + offset, to.memory.get() + offset,
                        from.memory.get() + offset, count, type, 1, 2);
        const std::vector<float> result = device->read(to.memory.get(), to.count, type);
        for (std::int64_t i = 0; i < to.count; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const bool inside = i >= skipped && i < skipped + count;
          const double expected = inside ? 2.25 * from.host[at] : to.host[at];
          REQUIRE(std::abs(result[at] - expected) <= 4 * epsilon(type));
        }
      }
}

TEST_CASE("GEMMs equal the host's in every layout and type", "[gpu][calls]") {
  const auto device = gpu();
  const Gemm g{70, 50, 90, 3};
  for (const DType type : {DType::fp32, DType::tf32, DType::bf16, DType::fp16})
    for (const GpuGemmLayout layout : {GpuGemmLayout::nn, GpuGemmLayout::nt, GpuGemmLayout::tn})
      for (const DType result_type : {DType::fp32, type}) {
        const Values a(*device, g.m * g.k * g.batch, type, 1),
            b(*device, g.k * g.n * g.batch, type, 2);
        const Values c(*device, g.m * g.n * g.batch, result_type, 3);
        device->gemm(
            {layout, g, type, result_type, a.memory.get(), b.memory.get(), c.memory.get()});
        const std::vector<float> result = device->read(c.memory.get(), c.count, result_type);
        double worst = 0;
        for (std::int64_t batch = 0; batch < g.batch; ++batch)
          for (std::int64_t i = 0; i < g.m; ++i)
            for (std::int64_t j = 0; j < g.n; ++j) {
              double sum = 0;
              for (std::int64_t l = 0; l < g.k; ++l)
                sum += static_cast<double>(a.host[static_cast<std::size_t>(
                           batch * g.m * g.k +
                           (layout == GpuGemmLayout::tn ? l * g.m + i : i * g.k + l))]) *
                       b.host[static_cast<std::size_t>(
                           batch * g.k * g.n +
                           (layout == GpuGemmLayout::nt ? j * g.k + l : l * g.n + j))];
              const double got = result[static_cast<std::size_t>(batch * g.m * g.n + i * g.n + j)];
              worst = std::max(worst, std::abs(got - sum));
            }
        // tf32 keeps 10 bits of each factor; sums of 90 products of [-1, 1).
        const double tolerance =
            type == DType::tf32 ? 90 * 0x1p-10 : 10 * epsilon(result_type) + 90 * 0x1p-22;
        CHECK(worst <= tolerance);
      }
}

TEST_CASE("optimizer steps equal the host's, of many tensors in one call", "[gpu][calls]") {
  const auto device = gpu();
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam, Optimizer::adamw}) {
    std::vector<Values> parameters, gradients;
    std::vector<std::shared_ptr<std::byte>> states;
    std::vector<UpdatedTensor> tensors;
    for (const std::int64_t count : {5'000, 1, 100'003, 7}) {
      const auto seed = static_cast<std::uint64_t>(count);
      parameters.emplace_back(*device, count, DType::fp32, seed);
      gradients.emplace_back(*device, count, DType::fp32, seed + 1);
      states.push_back(device->allocate(Bytes{2 * 4 * count}, "state"));
      device->clear(first_stream, states.back().get(), Bytes{2 * 4 * count});
      auto* momentum = reinterpret_cast<float*>(states.back().get());
      tensors.push_back({parameters.back().memory.get(), gradients.back().memory.get(), momentum,
                         momentum + count, count});
    }
    device->update({optimizer, tensors});
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const std::vector<float> result =
          device->read(tensors[t].parameter, tensors[t].count, DType::fp32);
      for (std::size_t i = 0; i < result.size(); ++i) {
        const double p = parameters[t].host[i], g = gradients[t].host[i];
        // The first step: sgd goes along gradient and decay, Adam by its learning rate in their
        // sign.
        const double decay = optimizer == Optimizer::adamw ? 1e-8 * p : 0;
        const double expected = optimizer == Optimizer::sgd
                                    ? p - 1e-4 * (g + 1e-4 * p)
                                    : p - decay - 1e-4 * g / (std::abs(g) + 1e-8);
        REQUIRE(std::abs(result[i] - expected) < 2e-6);
      }
    }
  }
}

TEST_CASE("memory is set and copied as it is", "[gpu][calls]") {
  const auto device = gpu();
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16}) {
    const Values from(*device, 10'001, type, 1), to(*device, 10'001, type, 2);
    device->copy(1, to.memory.get(), from.memory.get(), 10'000 * size_of(type));
    std::vector<float> expected = from.host;
    expected.back() = to.host.back();
    CHECK(device->read(to.memory.get(), to.count, type) == expected);
    device->set(1, to.memory.get(), 10'000, type, 0.5F);
    std::fill_n(expected.begin(), 10'000, 0.5F);
    CHECK(device->read(to.memory.get(), to.count, type) == expected);
  }
}

TEST_CASE("streams wait for each other's events, and only for those", "[gpu][calls][time]") {
  const auto device = gpu();
  const Values values(*device, 1000, DType::fp32, 1);
  device->record(0, first_stream);
  device->spin(first_stream, std::chrono::milliseconds{20});
  device->record(1, first_stream);
  device->scale(1, values.memory.get(), values.memory.get(), 1000, DType::fp32, 1);
  device->record(2, 1);
  device->wait(1, 1);
  device->scale(1, values.memory.get(), values.memory.get(), 1000, DType::fp32, 1);
  device->record(3, 1);
  wait_for(*device, 2);
  CHECK_FALSE(device->reached(3));
  wait_for(*device, 3);
  CHECK(device->between(0, 2) < std::chrono::milliseconds{15});
  CHECK(device->between(0, 1) >= std::chrono::milliseconds{20});
  CHECK(device->between(0, 3) >= device->between(0, 1));
}

TEST_CASE("moving memory takes what a GPU's memory takes", "[gpu][calls][time]") {
  const auto device = gpu();
  const Bytes traffic = GiB;
  const auto from = device->allocate(traffic, "from"), to = device->allocate(traffic, "to");
  for (int i = 0; i < 3; ++i) {
    device->record(0, first_stream);
    device->move(first_stream, from.get(), to.get(), traffic, 2 * traffic);
    device->record(1, first_stream);
  }
  wait_for(*device, 1);
  const double rate = static_cast<double>(traffic.count) / in_seconds(device->between(0, 1));
  CHECK(rate > 1e11);
  CHECK(rate < 2e13);
}

TEST_CASE("rows are normalised to a mean square of one", "[gpu][calls]") {
  const auto device = gpu();
  const Values from(*device, 4096, DType::fp32, 1), to(*device, 4096, DType::fp32, 2);
  device->normalise(first_stream, from.memory.get(), to.memory.get(), Bytes{2 * 4 * 4096}, GiB);
  const std::vector<float> result = device->read(to.memory.get(), 4096, DType::fp32);
  for (std::size_t row = 0; row < 4; ++row) {
    double squares = 0;
    for (std::size_t i = 1024 * row; i < 1024 * (row + 1); ++i) {
      squares += static_cast<double>(result[i]) * result[i];
      REQUIRE((result[i] < 0) == (from.host[i] < 0));
    }
    CHECK(squares / 1024 == Approx(1).epsilon(1e-3));
  }
}

TEST_CASE("memory that is not there is said with both amounts", "[gpu][calls]") {
  const auto device = gpu();
  CHECK_THROWS_WITH(device->allocate(Bytes{std::int64_t{1} << 46}, "optimizer state"),
                    Catch::Contains("optimizer state would take 64 TiB") ||
                        Catch::Contains("optimizer state would take"));
  CHECK_NOTHROW(device->allocate(MiB, "a little"));
}

TEST_CASE("one rank exchanges with itself by NCCL", "[gpu][calls]") {
  const auto device = gpu();
  for (const int channels : {0, 1, 4}) {
    device->connect(device->make_id(), 0, 1, channels);
    const Values from(*device, 1 << 20, DType::fp32, 1), to(*device, 1 << 20, DType::fp32, 2);
    const std::vector<GpuMessage> messages{{0, from.memory.get(), Bytes{4 << 20}, false},
                                           {0, to.memory.get(), Bytes{4 << 20}, true}};
    device->exchange(0, 1, messages);
    CHECK(device->read(to.memory.get(), 1 << 20, DType::fp32) == from.host);
    CHECK(device->failure().empty());
  }
}

}  // namespace ddpsim
