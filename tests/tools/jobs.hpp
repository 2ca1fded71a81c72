#pragma once

#include <chrono>
#include <fstream>
#include <thread>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "tests/tools/program.hpp"

namespace ddpsim {

/// A small scenario for real runs.
inline const char* small_mlp =
    "name: small\n"
    "workload:\n"
    "  model: {family: mlp, widths: [64, 96, 64, 32]}\n"
    "  batch: 8\n"
    "  dtype: fp32\n"
    "  optimizer: sgd\n"
    "cluster:\n"
    "  device: generic-cpu\n"
    "  launch: sync\n"
    "  ranks_per_node: 2\n"
    "  intra_node: {latency: 30 us, bandwidth: 1 GB/s}\n"
    "training: {bucket_cap: 16 KiB, first_bucket_cap: 4 KiB}\n";

/// The processes started by `parent`, and by those.
inline std::vector<pid_t> descendants(pid_t parent) {
  std::vector<pid_t> found;
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  for (pid_t child = 0; file >> child;) {
    found.push_back(child);
    for (const pid_t deeper : descendants(child)) found.push_back(deeper);
  }
  return found;
}

/// Waits until `condition` holds; false after 30 seconds.
template <typename Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return false;
}

/// A socket on a free port of the loopback address, closed with it; `listening`: it accepts, and never
/// answers.
class LocalPort {
 public:
  explicit LocalPort(bool listening) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, generic, size) != 0 || (listening && listen(socket_, 8) != 0) ||
        getsockname(socket_, generic, &size) != 0)
      throw std::runtime_error("no free port");
    number_ = ntohs(address.sin_port);
  }
  ~LocalPort() { close(socket_); }
  LocalPort(const LocalPort&) = delete;
  LocalPort& operator=(const LocalPort&) = delete;
  std::string number() const { return std::to_string(number_); }

 private:
  int socket_;
  int number_ = 0;
};

inline bool alive(pid_t process) {
  return kill(process, 0) == 0;
}

}  // namespace ddpsim
