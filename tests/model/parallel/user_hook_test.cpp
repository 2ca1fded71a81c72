#include "model/parallel/user_hook.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace ddpsim;
using namespace std::chrono_literals;

TEST_CASE("chunks take host time: memory, whole rounds of the pool, a hand-over each",
          "[model][user_hook]") {
  Chunks chunks;
  chunks.count = 4;
  chunks.threads = 3;
  chunks.output = Bytes{1'000'000};
  chunks.time = 8ms;
  // 2 MB at 10 GB/s; two rounds of pieces of 2 ms; four times 10 us
  CHECK(host_time(chunks) == 200us + 4ms + 40us);
  chunks.threads = 4;
  CHECK(host_time(chunks) == 200us + 2ms + 40us);
}

TEST_CASE("a star in a pattern stands for any text", "[model][user_hook]") {
  CHECK(matches("*", "blocks.3.bias"));
  CHECK(matches("*", ""));
  CHECK(matches("*.bias", "blocks.3.bias"));
  CHECK(matches("blocks.*.bias", "blocks.3.attn.bias"));
  CHECK(matches("a*b*c", "aXbYbZc"));
  CHECK(matches("head", "head"));
  CHECK_FALSE(matches("head", "head.weight"));
  CHECK_FALSE(matches("*.bias", "blocks.3.weight"));
  CHECK_FALSE(matches("", "a"));
  CHECK_FALSE(matches("a?b", "axb"));
  // Stars upon stars take no more than length times length.
  const std::string stars(200, '*');
  CHECK_FALSE(matches(fmt::format("{}b{}c", stars, stars), std::string(4000, 'b')));
}
