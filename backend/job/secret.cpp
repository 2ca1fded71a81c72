#include "backend/job/secret.hpp"

#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

constexpr const char* key = "ddpsim-secret";

}  // namespace

std::array<std::byte, 32> Secret::sign(std::span<const std::byte> message) const {
  std::array<std::byte, 32> signature{};
  unsigned int size = 0;
  const auto* made = HMAC(EVP_sha256(), bytes.data(), static_cast<int>(bytes.size()),
                          reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                          reinterpret_cast<unsigned char*>(signature.data()), &size);
  if (made == nullptr || size != signature.size())
    throw DeviceError("libcrypto computes no HMAC with SHA-256");
  return signature;
}

bool same(std::span<const std::byte, 32> left, std::span<const std::byte, 32> right) {
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::array<std::byte, 32> random_bytes() {
  std::array<std::byte, 32> bytes{};
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1)
    throw DeviceError("libcrypto has no random numbers");
  return bytes;
}

Secret share_secret(gloo::rendezvous::Store& store, int rank, std::chrono::milliseconds timeout) {
  Secret secret;
  if (rank == 0) {
    secret.bytes = random_bytes();
    const auto* begin = reinterpret_cast<const char*>(secret.bytes.data());
    store.set(key, {begin, begin + secret.bytes.size()});
    return secret;
  }
  try {
    store.wait({key}, timeout);
  } catch (const gloo::Exception&) {
    throw DeviceError(
        fmt::format("connecting to the other ranks: rank 0 left no secret within {:g} s",
                    static_cast<double>(timeout.count()) / 1000));
  }
  const std::vector<char> found = store.get(key);
  if (found.size() != secret.bytes.size())
    throw DeviceError(
        "what was found in place of the job's secret is no secret: does another program write "
        "there?");
  std::memcpy(secret.bytes.data(), found.data(), found.size());
  return secret;
}

}  // namespace ddpsim
