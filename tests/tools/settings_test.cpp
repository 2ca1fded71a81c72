#include "tools/study/settings.hpp"

#include <cstdlib>
#include <random>

#include <catch2/catch.hpp>

namespace ddpsim {

TEST_CASE("25 MiB is the roundest cap wherever it will do", "[tools][settings]") {
  CHECK(round_cap(Bytes{1}, no_cap).mib == "25");
  CHECK(round_cap(25 * MiB, 25 * MiB).mib == "25");
  CHECK(round_cap(25 * MiB, 25 * MiB).bytes == 25 * MiB);
}

TEST_CASE("caps are as round as the range allows", "[tools][settings]") {
  CHECK(round_cap(31 * MiB, 64 * MiB).mib == "50");
  CHECK(round_cap(95 * MiB, 130 * MiB).mib == "100");
  CHECK(round_cap(31 * MiB, 39 * MiB).mib.size() == 2);
  CHECK(round_cap(MiB + Bytes{1}, 2 * MiB - Bytes{1}).mib == "1.5");
}

TEST_CASE("what is printed means a cap in the range, by PyTorch's arithmetic",
          "[tools][settings]") {
  std::mt19937_64 random(5);
  for (int draw = 0; draw < 20'000; ++draw) {
    const auto low =
        static_cast<std::int64_t>(random() % (std::uint64_t{1} << (random() % 36 + 1))) + 1;
    const Bytes high{low +
                     static_cast<std::int64_t>(random() % (std::uint64_t{1} << (random() % 24)))};
    const RoundCap cap = round_cap({low}, high);
    CAPTURE(low, high.count, cap.mib);
    REQUIRE(cap.bytes >= Bytes{low});
    REQUIRE(cap.bytes <= high);
    // A number, or a quotient that Python takes as well.
    char* end = nullptr;
    double mib = std::strtod(cap.mib.c_str(), &end);
    if (*end != '\0') mib /= std::strtod(end + 3, nullptr);
    REQUIRE(static_cast<std::int64_t>(mib * 1024 * 1024) == cap.bytes.count);
  }
}

TEST_CASE("names of any kind survive in the buckets of a scenario", "[tools][settings]") {
  Workload workload;
  for (const char* name : {"a: b\nc", "quote\"back\\slash"}) {
    Parameter& parameter = workload.parameters.emplace_back();
    parameter.name = name;
    parameter.shape = {4};
  }
  CHECK(buckets_yaml({{1}, {0}}, workload) ==
        "training:\n  strategy: bucketed\n  buckets:\n"
        "    - [\"quote\\\"back\\\\slash\"]\n"
        "    - [\"a: b\\nc\"]\n");
}

}  // namespace ddpsim
