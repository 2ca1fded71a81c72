#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "backend/job/handshake.hpp"

namespace ddpsim {

/// Where a rank waits for connections of the other ranks of its job, and lets in nobody else.
///
/// Whoever connects has a few seconds to show the job's secret (handshake.hpp). Who does not is
/// dropped and takes nobody's place: every visitor is heard beside the others, on a thread of the
/// door. The destructor shuts the door.
class Door {
 public:
  /// Listens at `address`, at a port that the system chooses. Throws DeviceError.
  Door(const sockaddr_storage& address, int self, const Secret& secret);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// With the port.
  const sockaddr_storage& address() const { return address_; }
  int self() const { return self_; }

  /// A connection with rank `other`, whoever of the two has to connect: the higher rank visits the
  /// lower one, which is at `there`. Returns a socket that does not block. Throws DeviceError that
  /// names the rank if there is none by `until`.
  int connection_with(int other, Channel channel, const sockaddr_storage& there, Deadline until);

 private:
  void listen();
  void watch();
  void accept_guests();
  void hear(Guest& guest, bool ready);
  int wait_for(int other, Channel channel, Deadline until);

  Secret secret_;
  int self_;
  sockaddr_storage address_;
  int listening_ = -1, wake_ = -1;
  std::vector<Guest> guests_;  ///< of the door's thread
  std::mutex mutex_;
  std::condition_variable came_in_;
  std::map<std::pair<Channel, std::uint32_t>, int> admitted_;  ///< sockets nobody has taken yet
  std::exception_ptr failure_;
  std::atomic<bool> shut_{false};
  std::thread thread_;
};

}  // namespace ddpsim
