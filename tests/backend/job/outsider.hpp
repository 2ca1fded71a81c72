#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ddpsim {

/// Connects to a port of the loopback address; -1: nobody is there.
inline int knock(const sockaddr_in& address) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return socket;
  close(socket);
  return -1;
}

/// Where processes of ours listen, of those that these sockets belong to.
inline std::vector<sockaddr_in> listening(pid_t process) {
  std::set<std::string> own;
  std::error_code gone;
  for (std::filesystem::directory_iterator each("/proc/" + std::to_string(process) + "/fd", gone),
       end;
       !gone && each != end; each.increment(gone)) {
    const std::string target = std::filesystem::read_symlink(each->path(), gone).string();
    if (!gone && target.starts_with("socket:[")) own.insert(target.substr(8, target.size() - 9));
    gone.clear();
  }
  std::vector<sockaddr_in> found;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, skipped, inode;
    fields >> number >> local >> remote >> state;
    for (int field = 0; field < 5; ++field) fields >> skipped;
    fields >> inode;
    if (state != "0A" || own.count(inode) == 0) continue;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = static_cast<in_addr_t>(std::stoul(local.substr(0, 8), nullptr, 16));
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(local.substr(9), nullptr, 16)));
    found.push_back(address);
  }
  return found;
}

/// What somebody does who connects and is no rank.
enum class Mischief { reset, garbage, half_a_greeting, whole_greeting, silence };
inline constexpr std::array all_mischief{Mischief::reset, Mischief::garbage,
                                         Mischief::half_a_greeting, Mischief::whole_greeting,
                                         Mischief::silence};

/// Knocks at all doors of a process again and again, each time in another way, until it is
/// destroyed.
class Outsider {
 public:
  explicit Outsider(pid_t process)
      : thread_([this, process] {
          while (!stop_)
            for (const sockaddr_in& door : listening(process)) visit(door);
        }) {}
  ~Outsider() {
    stop_ = true;
    thread_.join();
    for (const int socket : held_) close(socket);
  }
  Outsider(const Outsider&) = delete;
  Outsider& operator=(const Outsider&) = delete;
  int visits() const { return visits_; }

 private:
  void visit(const sockaddr_in& door) {
    const int socket = knock(door);
    if (socket < 0) return;
    const Mischief kind = all_mischief[static_cast<std::size_t>(visits_++) % all_mischief.size()];
    std::string bytes;
    if (kind == Mischief::garbage) bytes = std::string(300, 'x');
    if (kind == Mischief::half_a_greeting) bytes = "ddpsim01half";
    if (kind == Mischief::whole_greeting) bytes = "ddpsim01" + std::string(44 + 32, '\0');
    if (!bytes.empty()) {
      [[maybe_unused]] const auto sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    if (kind == Mischief::silence && held_.size() < 100) {
      held_.push_back(socket);
      return;
    }
    const linger now{1, 0};
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(socket);
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> visits_{0};
  std::vector<int> held_;
  std::thread thread_;
};

}  // namespace ddpsim
