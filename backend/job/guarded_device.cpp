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
#include <unistd.h>

#include "backend/job/gloo_errors.hpp"

namespace ddpsim {
namespace {

namespace tcp = gloo::transport::tcp;
using std::chrono::milliseconds;

class GuardedPair : public tcp::Pair {
 public:
  GuardedPair(tcp::Context* context, tcp::Device* device, int rank, milliseconds timeout,
              Door& door, Deadline until)
      : tcp::Pair(context, device, rank, timeout),
        door_(door),
        until_(until),
        meeting_point_(door.address()) {
    stop_listening();
  }

  const tcp::Address& address() const override { return meeting_point_; }

  void connect(const std::vector<char>& bytes) override {
    const tcp::Address there(bytes);
    const int socket = door_.connection_with(rank_, Channel::data, there.getSockaddr(), until_);
    const std::lock_guard lock(m_);
    fd_ = socket;
    handleConnected();
  }

  /// On Gloo's thread, where an exception would end the process.
  void handleEvents(int events) override {
    try {
      if (problem_.empty()) return tcp::Pair::handleEvents(events);
    } catch (const std::exception& problem) {
      problem_ = plain_gloo_message(problem.what());
    }
    // Who holds the lock may be waiting for this very thread: then at the next event, which comes
    // at once, for what could not be read is still there.
    const std::unique_lock lock(m_, std::try_to_lock);
    if (lock && state_ != CLOSED) signalException(problem_);
  }

 private:
  /// Back to where a pair is before it listens, whoever has connected since.
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

  Door& door_;
  Deadline until_;
  tcp::Address meeting_point_;
  std::string problem_;  ///< of Gloo's thread
};

class GuardedContext : public tcp::Context {
 public:
  GuardedContext(std::shared_ptr<tcp::Device> device, int self, int ranks, Door& door,
                 Deadline until)
      : tcp::Context(std::move(device), self, ranks), door_(door), until_(until) {}

  std::unique_ptr<gloo::transport::Pair>& createPair(int other) override {
    pairs_[static_cast<std::size_t>(other)] =
        std::make_unique<GuardedPair>(this, device_.get(), other, getTimeout(), door_, until_);
    return pairs_[static_cast<std::size_t>(other)];
  }

 private:
  Door& door_;
  Deadline until_;
};

class GuardedDevice : public tcp::Device {
 public:
  GuardedDevice(const tcp::attr& address, Door& door, Deadline until)
      : tcp::Device(address), door_(door), until_(until) {}

  std::shared_ptr<gloo::transport::Context> createContext(int rank, int size) override {
    return std::make_shared<GuardedContext>(shared_from_this(), rank, size, door_, until_);
  }

 private:
  Door& door_;
  Deadline until_;
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

std::shared_ptr<gloo::transport::Device> guarded_device(Door& door, Deadline until) {
  return std::make_shared<GuardedDevice>(out_of_the_way(), door, until);
}

}  // namespace ddpsim
