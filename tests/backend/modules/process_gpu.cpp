#include "tests/backend/modules/process_gpu.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/backend/nccl/fake_gpu.hpp"

// Of tests/faults/fault.c, where that is loaded: a collective is about to begin.
extern "C" __attribute__((weak)) void ddpsim_fault_at_collective();

namespace ddpsim {
namespace {

/// What fake GPUs of ranks that are processes share: sockets, in the kernel's own name space,
/// between every two of them. Like NCCL, it says nothing of a rank that is gone or stopped: it is
/// only `late`.
class ProcessLink : public FakeLink {
 public:
  /// `id`: a name that no other job has. Milliseconds that a rank waits for another come from
  /// DDPSIM_FAKE_PATIENCE.
  ProcessLink(const std::string& id, int rank, int ranks)
      : FakeLink(ranks), others_(static_cast<std::size_t>(ranks), -1) {
    const int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un mine = address_of(id, rank);
    const bool open = bind(door, reinterpret_cast<const sockaddr*>(&mine), sizeof mine) == 0 &&
                      listen(door, ranks) == 0;
    set_patience(door);
    for (int other = 0; other < rank; ++other) {
      const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_un theirs = address_of(id, other);
      for (int tries = 0;
           ::connect(made, reinterpret_cast<const sockaddr*>(&theirs), sizeof theirs) != 0;
           ++tries) {
        if (tries == 1000) throw DeviceError("a fake GPU does not answer");
        usleep(2000);
      }
      set_patience(made);
      send_all(made, &rank, sizeof rank);
      others_[static_cast<std::size_t>(other)] = made;
    }
    for (int more = rank + 1; open && more < ranks; ++more) {
      const int came = accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
      set_patience(came);
      int who = 0;
      receive_all(came, &who, sizeof who);
      if (!late_) others_.at(static_cast<std::size_t>(who)) = came;
    }
    close(door);
  }
  ~ProcessLink() override {
    for (const int other : others_)
      if (other >= 0) close(other);
  }

  bool late() const { return late_; }

  void send(int, int, int to, std::span<const std::byte> bytes) override {
    const std::uint64_t size = bytes.size();
    send_all(others_[static_cast<std::size_t>(to)], &size, sizeof size);
    send_all(others_[static_cast<std::size_t>(to)], bytes.data(), bytes.size());
  }
  Message receive(int, int from, int) override {
    std::uint64_t size = 0;
    receive_all(others_[static_cast<std::size_t>(from)], &size, sizeof size);
    if (late_) return {};
    Message message(size);
    receive_all(others_[static_cast<std::size_t>(from)], message.data(), size);
    return message;
  }
  /// Of each two the first one sends first, lest both wait for room.
  std::vector<Message> everyones(int communicator, const std::vector<int>& group, int me,
                                 std::span<const std::byte> mine) override {
    std::map<int, Message> by_rank{{me, Message(mine.begin(), mine.end())}};
    std::vector<int> ascending = group;
    std::sort(ascending.begin(), ascending.end());
    for (const int other : ascending) {
      if (other == me || late_) continue;
      if (me < other) send(communicator, me, other, mine);
      by_rank[other] = receive(communicator, other, me);
      if (me > other) send(communicator, me, other, mine);
    }
    if (late_) return {};
    std::vector<Message> all;
    for (const int each : group) all.push_back(by_rank[each]);
    return all;
  }

 private:
  static sockaddr_un address_of(const std::string& id, int rank) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, id.data(), std::min<std::size_t>(id.size(), 64));
    address.sun_path[66] = static_cast<char>(1 + rank);
    return address;
  }
  static void set_patience(int socket) {
    const char* text = std::getenv("DDPSIM_FAKE_PATIENCE");
    const long milliseconds = text == nullptr ? 60'000 : std::atol(text);
    const timeval limit{milliseconds / 1000, milliseconds % 1000 * 1000};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  void send_all(int other, const void* from, std::size_t size) {
    const auto* bytes = static_cast<const char*>(from);
    for (std::size_t done = 0; done < size && !late_;) {
      const ssize_t count = ::send(other, bytes + done, size - done, MSG_NOSIGNAL);
      if (count > 0) done += static_cast<std::size_t>(count);
      late_ = late_ || (count <= 0 && errno != EINTR);
    }
  }
  void receive_all(int other, void* to, std::size_t size) {
    auto* bytes = static_cast<char*>(to);
    for (std::size_t done = 0; done < size && !late_;) {
      const ssize_t count = recv(other, bytes + done, size - done, 0);
      if (count > 0) done += static_cast<std::size_t>(count);
      late_ = late_ || count == 0 || (count < 0 && errno != EINTR);
    }
  }

  std::vector<int> others_;  ///< [rank] sockets; -1: there is none
  bool late_ = false;
};

/// A fake GPU of a rank that is a process.
class ProcessGpu : public FakeGpu {
 public:
  std::vector<std::byte> make_id() override {
    std::random_device random;
    std::vector<std::byte> id(128);
    for (std::byte& each : id) each = static_cast<std::byte>(1 + random() % 255);
    return id;
  }
  void connect(std::span<const std::byte> id, int rank, int ranks, int most) override {
    FakeGpu::connect(id, rank, ranks, most);
    if (ranks == 1) return;
    processes_.reset();
    processes_ = std::make_unique<ProcessLink>(
        std::string(reinterpret_cast<const char*>(id.data()), id.size()), rank, ranks);
    link_ = processes_.get();
  }
  void record(int event, GpuStream stream) override {
    stuck = stuck || (processes_ && processes_->late());
    FakeGpu::record(event, stream);
  }

 private:
  void begin_collective() override {
    if (ddpsim_fault_at_collective != nullptr) ddpsim_fault_at_collective();
  }

  std::unique_ptr<ProcessLink> processes_;
};

}  // namespace

std::unique_ptr<Gpu> make_process_gpu() {
  return std::make_unique<ProcessGpu>();
}

}  // namespace ddpsim
