#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/socket.h>

#include "backend/job/secret.hpp"

namespace ddpsim {

/// What a connection between two ranks is for.
enum class Channel : std::uint32_t {
  data = 1,   ///< Gloo's
  pulse = 2,  ///< signs of life
};

/// Who connects to whom, and for what.
struct Claim {
  Channel channel = Channel::data;
  std::uint32_t from = 0, to = 0;

  bool operator==(const Claim&) const = default;
};

using Deadline = std::chrono::steady_clock::time_point;

/// Somebody who has connected and has still to show that they are a rank of this job.
///
/// Owns the socket, which does not block, until it is taken.
class Guest {
 public:
  enum class State { unknown, admitted, refused };

  Guest(int socket, Deadline until) : socket_(socket), until_(until) {}
  ~Guest();
  Guest(Guest&& other) noexcept;
  Guest& operator=(Guest&& other) noexcept;

  /// Reads what has arrived, answers it, and says what is known now.
  State advance(const Secret& secret, std::uint32_t self);
  int socket() const { return socket_; }
  Deadline until() const { return until_; }
  /// What the visitor claimed to be. Call only once it was admitted.
  const Claim& claim() const { return claim_; }
  int take();

 private:
  bool greeted(const Secret& secret, std::uint32_t self);
  bool proven(const Secret& secret) const;

  int socket_;
  Deadline until_;
  Claim claim_;
  std::array<std::byte, 52> received_{};
  std::size_t size_ = 0;
  bool answered_ = false;
  std::array<std::byte, 32> ours_{}, theirs_{};  ///< the numbers both have drawn
};

/// Connects to the rank that waits at `address`, shows it that this is rank `claim.from`, and sees
/// that it is rank `claim.to`. Tries again if somebody else comes between, until `until`. Returns
/// the socket. Throws DeviceError that names the rank.
int visit(const sockaddr_storage& address, const Claim& claim, const Secret& secret,
          Deadline until);

/// "127.0.0.1:4711".
std::string text_of(const sockaddr_storage& address);

}  // namespace ddpsim
