#include "tests/backend/modules/process_gpu.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
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

/// What fake GPUs of ranks that are processes share. Rank 0 is the hub: the others send it what
/// they have over sockets of the kernel's own name space, and it sends back what comes of that.
/// Like NCCL, it says nothing of a rank that is gone or stopped: it is only `late`.
class ProcessLink : public FakeLink {
 public:
  /// `id`: a name that no other job has. Milliseconds that a rank waits for another come from
  /// DDPSIM_FAKE_PATIENCE.
  ProcessLink(const std::string& id, int rank, int ranks) : FakeLink(ranks), rank_(rank) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, id.data(), std::min<std::size_t>(id.size(), 64));
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (rank == 0) {
      const int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const bool open = bind(door, generic, sizeof address) == 0 && listen(door, ranks) == 0;
      set_patience(door);
      for (int other = 1; open && other < ranks; ++other)
        others_.push_back(accept4(door, nullptr, nullptr, SOCK_CLOEXEC));
      close(door);
    } else {
      others_.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      for (int tries = 0; ::connect(others_[0], generic, sizeof address) != 0; ++tries) {
        if (tries == 1000) throw DeviceError("the fake hub does not answer");
        usleep(2000);
      }
    }
    for (const int other : others_) set_patience(other);
  }
  ~ProcessLink() override {
    for (const int other : others_) close(other);
  }

  bool late() const { return late_; }

  void all_reduce(float* values, std::int64_t count) override {
    const auto size = static_cast<std::size_t>(count) * sizeof(float);
    if (rank_ != 0) return send_and_receive(values, size, values, size);
    std::vector<float> theirs(static_cast<std::size_t>(count));
    for (const int other : others_) {
      receive(other, theirs.data(), size);
      for (std::size_t i = 0; i < theirs.size(); ++i) values[i] += theirs[i];
    }
    for (const int other : others_) send_all(other, values, size);
  }
  /// The hub takes the ranks in the order in which they came; all have the same size.
  void all_gather(std::byte* parts, int rank, std::size_t size) override {
    const std::size_t whole = static_cast<std::size_t>(ranks()) * size;
    std::byte* mine = parts + static_cast<std::size_t>(rank) * size;
    if (rank_ != 0) {
      send_all(others_[0], &rank, sizeof rank);
      return send_and_receive(mine, size, parts, whole);
    }
    for (const int other : others_) {
      int who = 0;
      receive(other, &who, sizeof who);
      receive(other, parts + static_cast<std::size_t>(who) * size, size);
    }
    for (const int other : others_) send_all(other, parts, whole);
  }

 private:
  static void set_patience(int socket) {
    const char* text = std::getenv("DDPSIM_FAKE_PATIENCE");
    const long milliseconds = text == nullptr ? 60'000 : std::atol(text);
    const timeval limit{milliseconds / 1000, milliseconds % 1000 * 1000};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  void send_and_receive(const void* from, std::size_t sent, void* to, std::size_t received) {
    send_all(others_[0], from, sent);
    receive(others_[0], to, received);
  }
  void send_all(int other, const void* from, std::size_t size) {
    const auto* bytes = static_cast<const char*>(from);
    for (std::size_t done = 0; done < size && !late_;) {
      const ssize_t count = send(other, bytes + done, size - done, MSG_NOSIGNAL);
      if (count > 0) done += static_cast<std::size_t>(count);
      late_ = late_ || (count <= 0 && errno != EINTR);
    }
  }
  void receive(int other, void* to, std::size_t size) {
    auto* bytes = static_cast<char*>(to);
    for (std::size_t done = 0; done < size && !late_;) {
      const ssize_t count = recv(other, bytes + done, size - done, 0);
      if (count > 0) done += static_cast<std::size_t>(count);
      late_ = late_ || count == 0 || (count < 0 && errno != EINTR);
    }
  }

  int rank_;
  std::vector<int> others_;  ///< the hub's: all; another's: the hub
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
  void all_reduce(void* values, std::int64_t count, DType type) override {
    begin();
    FakeGpu::all_reduce(values, count, type);
    end();
  }
  void broadcast(void* bytes, Bytes size) override {
    begin();
    FakeGpu::broadcast(bytes, size);
    end();
  }
  void all_gather(void* parts, Bytes size) override {
    begin();
    FakeGpu::all_gather(parts, size);
    end();
  }

 private:
  static void begin() {
    if (ddpsim_fault_at_collective != nullptr) ddpsim_fault_at_collective();
  }
  void end() { stuck = stuck || (processes_ && processes_->late()); }

  std::unique_ptr<ProcessLink> processes_;
};

}  // namespace

std::unique_ptr<Gpu> make_process_gpu() {
  return std::make_unique<ProcessGpu>();
}

}  // namespace ddpsim
