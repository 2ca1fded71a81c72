// What comm hooks compute on a GPU, against the same on the host.

#include <cmath>
#include <cstring>

#include <catch2/catch.hpp>

#include "tests/gpu/device.hpp"

namespace ddpsim {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

std::vector<std::uint8_t> read_bytes(Gpu& gpu, const void* bytes, std::int64_t count) {
  const std::vector<float> words = gpu.read(bytes, (count + 3) / 4, DType::fp32);
  std::vector<std::uint8_t> result(at(count));
  std::memcpy(result.data(), words.data(), result.size());
  return result;
}

constexpr std::array stored{DType::fp32, DType::bf16, DType::fp16};

}  // namespace

TEST_CASE("casts round to nearest on every stream, also in place", "[gpu][calls][comm_hooks]") {
  const auto device = gpu();
  for (const DType from_type : stored)
    for (const DType to_type : stored)
      for (const GpuStream stream : {0, 1, 2}) {
        const Values from(*device, 10'007, from_type, 1), to(*device, 10'007, to_type, 2);
        device->convert(stream, to.memory.get(), to_type, from.memory.get(), from_type, 10'000);
        const std::vector<float> result = device->read(to.memory.get(), to.count, to_type);
        for (std::size_t i = 0; i < result.size(); ++i) {
          const bool inside = i < 10'000;
          const double expected = inside ? from.host[i] : to.host[i];
          // fp16 is coarser below its normal numbers.
          const double allowed = inside ? std::max(epsilon(to_type) * std::abs(expected),
                                                   to_type == DType::fp16 ? 0x1p-25 : 0)
                                        : 0;
          REQUIRE(std::abs(result[i] - expected) <= allowed);
        }
      }
  const Values twice(*device, 1000, DType::bf16, 3);
  device->convert(2, twice.memory.get(), DType::fp16, twice.memory.get(), DType::bf16, 1000);
  const std::vector<float> result = device->read(twice.memory.get(), 1000, DType::fp16);
  // Of 8 significant bits, none is lost in 11, but for those of the smallest numbers.
  for (std::size_t i = 0; i < result.size(); ++i)
    REQUIRE(std::abs(result[i] - twice.host[i]) <= 0x1p-25);
}

TEST_CASE("values written from the host are there, rounded, before what follows",
          "[gpu][calls][comm_hooks]") {
  const auto device = gpu();
  for (const DType type : stored) {
    const Values to(*device, 5000, type, 1);
    std::vector<float> values(5000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    const std::vector<float> kept = values;
    device->write(2, to.memory.get(), values, type);
    values.assign(values.size(), 1e9F);  // it is the caller's again
    device->scale(2, to.memory.get(), to.memory.get(), 5000, type, 2);
    const std::vector<float> result = device->read(to.memory.get(), 5000, type);
    for (std::size_t i = 0; i < result.size(); ++i)
      REQUIRE(std::abs(result[i] - 2.0 * kept[i]) <= 2 * epsilon(type));
  }
}

TEST_CASE("differences equal the host's", "[gpu][calls][comm_hooks]") {
  const auto device = gpu();
  for (const DType type : stored) {
    const Values left(*device, 9999, type, 1), right(*device, 9999, type, 2);
    device->combine(2, left.memory.get(), left.memory.get(), right.memory.get(), 9999, type, 1, -1);
    const std::vector<float> result = device->read(left.memory.get(), 9999, type);
    for (std::size_t i = 0; i < result.size(); ++i)
      REQUIRE(std::abs(result[i] - (static_cast<double>(left.host[i]) - right.host[i])) <=
              2 * epsilon(type));
  }
}

TEST_CASE("columns become orthogonal, of length one, and span what they spanned",
          "[gpu][calls][comm_hooks]") {
  const auto device = gpu();
  for (const DType type : stored)
    for (const std::int64_t rows : {5, 1000, 30'001})
      for (const std::int64_t columns : {1, 2, 5}) {
        CAPTURE(name_of(type), rows, columns);
        const Values matrix(*device, rows * columns, type, 7);
        device->orthogonalize(2, matrix.memory.get(), rows, columns, type, 0);
        const std::vector<float> q = device->read(matrix.memory.get(), rows * columns, type);
        const auto product = [&](const std::vector<float>& a, std::int64_t i,
                                 const std::vector<float>& b, std::int64_t j) {
          double sum = 0;
          for (std::int64_t row = 0; row < rows; ++row)
            sum += static_cast<double>(a[at(row * columns + i)]) * b[at(row * columns + j)];
          return sum;
        };
        // Columns of random numbers are far from parallel; five of five rows less so.
        const double tolerance = (rows == 5 ? 2000 : 20) * epsilon(type);
        for (std::int64_t i = 0; i < columns; ++i) {
          CHECK(std::abs(product(q, i, q, i) - 1) <= 20 * epsilon(type));
          for (std::int64_t j = 0; j < i; ++j) CHECK(std::abs(product(q, i, q, j)) <= tolerance);
        }
        // The first column keeps its direction.
        const double length = std::sqrt(product(matrix.host, 0, matrix.host, 0));
        CHECK(product(matrix.host, 0, q, 0) == Approx(length).epsilon(20 * epsilon(type)));
      }
}

TEST_CASE("a column of zeros needs an epsilon", "[gpu][calls][comm_hooks]") {
  const auto device = gpu();
  const auto zeros = device->allocate(Bytes{400}, "zeros");
  for (const float epsilon : {0.0F, 1e-8F}) {
    device->clear(2, zeros.get(), Bytes{400});
    device->orthogonalize(2, zeros.get(), 100, 1, DType::fp32, epsilon);
    for (const float value : device->read(zeros.get(), 100, DType::fp32))
      REQUIRE((epsilon > 0 ? value == 0 : std::isnan(value)));
  }
}

TEST_CASE("GEMMs of the stream aside do not disturb those of the compute stream",
          "[gpu][calls][comm_hooks]") {
  const auto device = gpu();
  const Gemm g{300, 4, 200, 1};
  const Values a(*device, g.m * g.k, DType::fp32, 1), b(*device, g.k * g.n, DType::fp32, 2);
  const Values here(*device, g.m * g.n, DType::fp32, 3), there(*device, g.m * g.n, DType::fp32, 4);
  for (int i = 0; i < 20; ++i)
    for (const GpuStream stream : {0, 2})
      device->gemm({GpuGemmLayout::nn, g, DType::fp32, DType::fp32, a.memory.get(), b.memory.get(),
                    (stream == 2 ? there : here).memory.get(), stream});
  const std::vector<float> one = device->read(here.memory.get(), here.count, DType::fp32);
  const std::vector<float> other = device->read(there.memory.get(), there.count, DType::fp32);
  for (std::int64_t i = 0; i < g.m; ++i)
    for (std::int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < g.k; ++l)
        sum += static_cast<double>(a.host[at(i * g.k + l)]) * b.host[at(l * g.n + j)];
      REQUIRE(std::abs(one[at(i * g.n + j)] - sum) <= 200 * 0x1p-22);
      REQUIRE(std::abs(other[at(i * g.n + j)] - sum) <= 200 * 0x1p-22);
    }
}

TEST_CASE("8-bit codes equal the host's, per tensor and per channel", "[gpu][calls][comm_hooks]") {
  const auto device = gpu();
  for (const DType type : stored)
    for (const std::int64_t count : {1, 511, 512, 100'000})
      for (const bool channels : {false, true}) {
        CAPTURE(name_of(type), count, channels);
        const Values values(*device, count, type, 5);
        QuantizeCall call;
        call.values = values.memory.get();
        call.count = count;
        call.type = type;
        call.channel = channels ? 512 : count;
        call.channels = channels ? count / 512 + 1 : 1;
        const std::int64_t padded = call.channel * call.channels;
        // Of two ranks; the second says twice what the first says.
        const auto scales = device->allocate(Bytes{16 * call.channels}, "scales");
        const auto codes = device->allocate(Bytes{2 * padded + 8}, "codes");
        call.scales = reinterpret_cast<float*>(scales.get());
        call.codes = reinterpret_cast<std::uint8_t*>(codes.get());
        device->observe(2, call);
        device->quantize(2, call);
        std::vector<float> s = device->read(scales.get(), 2 * call.channels, DType::fp32);
        const std::vector<std::uint8_t> c = read_bytes(*device, codes.get(), padded);
        for (std::int64_t channel = 0; channel < call.channels; ++channel) {
          float least = 0, most = 0;
          for (std::int64_t i = channel * call.channel;
               i < std::min(count, (channel + 1) * call.channel); ++i) {
            least = std::min(least, values.host[at(i)]);
            most = std::max(most, values.host[at(i)]);
          }
          const float scale = std::max((most - least) / 255, 0x1p-23F);
          REQUIRE(s[at(channel)] == scale);
          REQUIRE(s[at(call.channels + channel)] ==
                  std::min(255.0F, -std::nearbyint(least / scale)));
        }
        for (std::int64_t i = 0; i < padded; ++i) {
          const std::int64_t channel = i / call.channel;
          const float value = i < count ? values.host[at(i)] : 0;
          const float code =
              std::nearbyint(value / s[at(channel)]) + s[at(call.channels + channel)];
          REQUIRE(static_cast<float>(c[at(i)]) == std::clamp(code, 0.0F, 255.0F));
        }
        std::vector<float> both = s;
        for (std::int64_t i = 0; i < call.channels; ++i) both.push_back(2 * s[at(i)]);
        both.insert(both.end(), s.begin() + call.channels, s.end());
        device->write(2, scales.get(), both, DType::fp32);
        std::vector<std::uint8_t> twice = c;
        twice.insert(twice.end(), c.begin(), c.end());
        twice.resize((twice.size() + 3) / 4 * 4);
        std::vector<float> words(twice.size() / 4);
        std::memcpy(words.data(), twice.data(), twice.size());
        device->write(2, codes.get(), words, DType::fp32);
        device->dequantize(2, call, 2, 0.5F);
        const std::vector<float> result = device->read(values.memory.get(), count, type);
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t channel = i / call.channel;
          const float once =
              s[at(channel)] * (static_cast<float>(c[at(i)]) - s[at(call.channels + channel)]);
          REQUIRE(std::abs(result[at(i)] - 1.5 * once) <= 4 * epsilon(type) * std::abs(once));
        }
      }
}

TEST_CASE("one rank gathers from itself and scatters to itself by NCCL",
          "[gpu][calls][comm_hooks]") {
  const auto device = gpu();
  device->connect(device->make_id(), 0, 1, 0);
  for (const DType type : stored) {
    const Values values(*device, 1000, type, 1);
    const Values there(*device, 1000, type, 2);
    // In the communicator of all ranks, and in one that is made of it; in place, and elsewhere.
    for (const int communicator : {0, device->split(0, 0)})
      for (void* to : {values.memory.get(), there.memory.get()}) {
        const RanksCall call{communicator, 1, values.memory.get(), to, 1000, type};
        device->all_gather(call);
        for (const bool mean : {false, true}) {
          device->reduce_scatter(call, mean);
          device->all_reduce(call, mean);
        }
        device->broadcast(call, 0);
        CHECK(device->read(to, 1000, type) == values.host);
      }
  }
  CHECK(device->failure().empty());
}

TEST_CASE("the stream aside waits for events as the others do, and only for those",
          "[gpu][calls][comm_hooks][time]") {
  const auto device = gpu();
  const Values values(*device, 1000, DType::fp32, 1);
  device->record(0, first_stream);
  device->spin(first_stream, std::chrono::milliseconds{20});
  device->record(1, first_stream);
  device->combine(2, values.memory.get(), values.memory.get(), values.memory.get(), 1000,
                  DType::fp32, 1, -1);
  device->record(2, 2);
  device->wait(2, 1);
  device->record(3, 2);
  wait_for(*device, 2);
  CHECK_FALSE(device->reached(3));
  wait_for(*device, 3);
  CHECK(device->between(0, 2) < std::chrono::milliseconds{15});
  CHECK(device->between(0, 3) >= device->between(0, 1));
}

}  // namespace ddpsim
