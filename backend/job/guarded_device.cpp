#include "backend/job/guarded_device.hpp"

#include <cstring>
#include <exception>
#include <mutex>
#include <string>

#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

#include "backend/job/gloo_errors.hpp"

namespace ddpsim {
namespace {

namespace tcp = gloo::transport::tcp;
using std::chrono::milliseconds;

using Moved = std::shared_ptr<std::atomic<std::uint64_t>>;

/// What all pairs of a device have in common.
struct Guard {
  Door& door;
  Deadline until;
  Moved moved;
};

class GuardedPair : public tcp::Pair {
 public:
  GuardedPair(tcp::Context* context, tcp::Device* device, int rank, milliseconds timeout,
              const Guard& guard)
      : tcp::Pair(context, device, rank, timeout),
        guard_(guard),
        meeting_point_(guard.door.address()) {
    stop_listening();
  }

  const tcp::Address& address() const override { return meeting_point_; }

  void connect(const std::vector<char>& bytes) override {
    const tcp::Address there(bytes);
    const int socket =
        guard_.door.connection_with(rank_, Channel::data, there.getSockaddr(), guard_.until);
    const std::lock_guard lock(m_);
    fd_ = socket;
    handleConnected();
  }

  /// Wakes those who wait for this pair; Gloo's own close() lets them wait until their timeout.
  void close() override {
    const std::lock_guard lock(m_);
    if (state_ != CLOSED && ex_ == nullptr) signalException("the connection was ended");
  }

  /// On Gloo's thread, where an exception would end the process.
  void handleEvents(int events) override {
    try {
      if (problem_.empty()) {
        give_way();
        return tcp::Pair::handleEvents(events);
      }
    } catch (const std::exception& problem) {
      problem_ = plain_gloo_message(problem.what());
    }
    // Who holds the lock may be waiting for this very thread: then at the next event, which comes
    // at once, for what could not be read is still there.
    const std::unique_lock lock(m_, std::try_to_lock);
    if (lock && state_ != CLOSED) signalException(problem_);
  }

 protected:
  bool read() override {
    const std::size_t before = rx_.nread;
    const bool whole = tcp::Pair::read();
    if (whole || rx_.nread != before) ++*guard_.moved;
    return whole;
  }

  bool write(tcp::Op& op) override {
    const std::size_t before = op.nwritten;
    const bool whole = tcp::Pair::write(op);
    if (whole || op.nwritten != before) ++*guard_.moved;
    return whole;
  }

 private:
  /// Lets whoever holds the lock run on, should it wait for this core. Where the lock is taken
  /// Gloo's handleEvents returns, and is called again at once: without this its thread polls for
  /// its whole slice. Who takes the lock between the two questions is met at the next call.
  void give_way() {
    if (!std::unique_lock(m_, std::try_to_lock)) sched_yield();
  }

  /// Brings the pair back to the state it has before it listens; whoever has connected since is
  /// dropped.
  void stop_listening() {
    const std::lock_guard lock(m_);
    if (fd_ >= 0) {
      device_->unregisterDescriptor(fd_, this);
      ::close(fd_);
    }
    fd_ = -1;
    state_ = INITIALIZING;
    rx_ = tcp::Op();
    ex_ = nullptr;
  }

  Guard guard_;
  tcp::Address meeting_point_;
  std::string problem_;  ///< of Gloo's thread
};

class GuardedContext : public tcp::Context {
 public:
  GuardedContext(std::shared_ptr<tcp::Device> device, int self, int ranks, const Guard& guard)
      : tcp::Context(std::move(device), self, ranks), guard_(guard) {}

  std::unique_ptr<gloo::transport::Pair>& createPair(int other) override {
    auto& pair = pairs_[static_cast<std::size_t>(other)];
    pair = std::make_unique<GuardedPair>(this, device_.get(), other, getTimeout(), guard_);
    return pair;
  }

 private:
  Guard guard_;
};

class GuardedDevice : public tcp::Device {
 public:
  GuardedDevice(const tcp::attr& address, const Guard& guard)
      : tcp::Device(address), guard_(guard) {}

  std::shared_ptr<gloo::transport::Context> createContext(int self, int ranks) override {
    return std::make_shared<GuardedContext>(shared_from_this(), self, ranks, guard_);
  }

 private:
  Guard guard_;
};

/// A loopback address of 2^24, at random, for the sockets that Gloo opens and nobody uses.
tcp::attr out_of_the_way() {
  tcp::attr address = tcp::CreateDeviceAttr(tcp::attr("127.0.0.1"));
  const auto random = random_bytes();
  auto& inet = reinterpret_cast<sockaddr_in&>(address.ai_addr);
  std::memcpy(reinterpret_cast<std::byte*>(&inet.sin_addr) + 1, random.data(), 3);
  return address;
}

}  // namespace

std::shared_ptr<gloo::transport::Device> guarded_device(Door& door, Deadline until, Moved moved) {
  return std::make_shared<GuardedDevice>(out_of_the_way(), Guard{door, until, std::move(moved)});
}

}  // namespace ddpsim
