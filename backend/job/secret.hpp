#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <span>

#include <gloo/rendezvous/store.h>

namespace ddpsim {

/// What the ranks of one job know and nobody else does. It is made anew for every job.
struct Secret {
  std::array<std::byte, 32> bytes{};

  /// HMAC with SHA-256 of `message` under this secret. Whoever does not know the secret can neither
  /// make it nor check it. Throws DeviceError if the library cannot.
  /// Source: RFC 2104; FIPS 180-4; computed by OpenSSL's libcrypto.
  std::array<std::byte, 32> sign(std::span<const std::byte> message) const;
};

/// Are the two equal? Takes the same time wherever they differ.
bool same(std::span<const std::byte, 32> left, std::span<const std::byte, 32> right);

/// Bytes that nobody can foresee. Throws DeviceError if the system has none.
std::array<std::byte, 32> random_bytes();

/// Rank 0 makes the job's secret and leaves it in `store`, where the others read it: whoever can
/// read the store can pass for a rank. Throws DeviceError if it does not come within `timeout`.
Secret share_secret(gloo::rendezvous::Store& store, int rank, std::chrono::milliseconds timeout);

}  // namespace ddpsim
