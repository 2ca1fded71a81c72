#include "backend/job/secret.hpp"

#include <cstring>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <gloo/rendezvous/hash_store.h>

#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes) text += fmt::format("{:02x}", static_cast<int>(each));
  return text;
}

}  // namespace

TEST_CASE("a signature is that of the standard", "[backend][secret]") {
  // RFC 4231, test case 2. Its key, "Jefe", is short: HMAC takes it with zeros behind it.
  Secret secret;
  std::memcpy(secret.bytes.data(), "Jefe", 4);
  const std::string message = "what do ya want for nothing?";
  CHECK(hexadecimal(secret.sign(std::as_bytes(std::span(message)))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("two signatures are the same if every bit is", "[backend][secret]") {
  const auto one = random_bytes();
  auto other = one;
  CHECK(same(one, other));
  for (std::size_t k = 0; k < other.size(); ++k) {
    other[k] ^= std::byte{1};
    CHECK_FALSE(same(one, other));
    other[k] ^= std::byte{1};
  }
}

TEST_CASE("ranks share one secret, and two jobs have two", "[backend][secret]") {
  gloo::rendezvous::HashStore store, another;
  const Secret made = share_secret(store, 0, 1s);
  CHECK(share_secret(store, 1, 1s).bytes == made.bytes);
  CHECK(share_secret(store, 2, 1s).bytes == made.bytes);
  CHECK(share_secret(another, 0, 1s).bytes != made.bytes);
}

TEST_CASE("a secret that does not come, or is none, is an error", "[backend][secret]") {
  gloo::rendezvous::HashStore store;
  CHECK_THROWS_WITH(share_secret(store, 1, 10ms),
                    "connecting to the other ranks: rank 0 left no secret within 0.01 s");
  store.set("ddpsim-secret", {'x'});
  CHECK_THROWS_AS(share_secret(store, 1, 10ms), DeviceError);
}

}  // namespace ddpsim
