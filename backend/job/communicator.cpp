#include "backend/job/communicator.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>
#include <net/if.h>

#include "backend/cpu/float16.hpp"
#include "backend/cpu/priority.hpp"
#include "backend/device_error.hpp"
#include "backend/job/door.hpp"
#include "backend/job/gloo_errors.hpp"
#include "backend/job/guarded_device.hpp"
#include "backend/job/secret.hpp"
#include "backend/thread_limits.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

constexpr double most_gathered = 1 << 30;  // bytes of one rank

template <typename Value>
void add(void* to, const void* left, const void* right, std::size_t count) {
  auto* sum = static_cast<Value*>(to);
  const auto* a = static_cast<const Value*>(left);
  const auto* b = static_cast<const Value*>(right);
  for (std::size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

/// Where rank 0 waits, as it leaves word in `store`.
sockaddr_storage share_address(gloo::rendezvous::Store& store, int rank,
                               const sockaddr_storage& mine, milliseconds timeout) {
  constexpr const char* key = "ddpsim-door";
  if (rank == 0) {
    const auto* begin = reinterpret_cast<const char*>(&mine);
    store.set(key, {begin, begin + sizeof mine});
    return mine;
  }
  store.wait({key}, timeout);
  const std::vector<char> found = store.get(key);
  sockaddr_storage address{};
  if (found.size() != sizeof address)
    throw DeviceError(
        "what was found in place of rank 0's address is no address: does another program write "
        "there?");
  std::memcpy(&address, found.data(), sizeof address);
  return address;
}

}  // namespace

void check_interface(const std::string& interface) {
  if (!interface.empty() && if_nametoindex(interface.c_str()) == 0) {
    std::string known;
    if (struct if_nameindex* list = if_nameindex()) {
      for (auto* each = list; each->if_index != 0; ++each)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", each->if_name);
      if_freenameindex(list);
    }
    throw std::invalid_argument(
        fmt::format("there is no network interface \"{}\"; this host has: {}", interface,
                    known.empty() ? "none" : known));
  }
}

Communicator::Communicator(Rendezvous& rendezvous, int rank, int ranks,
                           const std::string& interface, milliseconds timeout)
    : rank_(rank), ranks_(ranks), timeout_(timeout) {
  guarded("connecting to the other ranks", [&] { connect(rendezvous, interface); });
  barrier();
  rendezvous.leave();  // everyone has read it
}

void Communicator::connect(Rendezvous& rendezvous, const std::string& interface) {
  gloo::transport::tcp::attr wanted;
  if (interface.empty())
    wanted.hostname = "127.0.0.1";
  else
    wanted.iface = interface;
  const Deadline until = Deadline::clock::now() + timeout_;
  gloo::rendezvous::Store& store = rendezvous.store();
  const Secret secret = share_secret(store, rank_, timeout_);
  take_role(Role::transport);  // the threads of door and device inherit it
  Door door(gloo::transport::tcp::CreateDeviceAttr(wanted).ai_addr, rank_, secret);
  const sockaddr_storage at_rank_0 = share_address(store, rank_, door.address(), timeout_);
  const auto moved = std::make_shared<std::atomic<std::uint64_t>>(0);
  auto device = guarded_device(door, until, moved);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank_, ranks_);
  context->setTimeout(timeout_);
  context->connectFullMesh(store, device);
  context->setTimeout(patience());
  context_ = context;
  if (ranks_ == 1) return;
  std::vector<PulseLine> lines;
  for (int other = rank_ == 0 ? 1 : 0; other < (rank_ == 0 ? ranks_ : 1); ++other)
    lines.emplace_back(other, door.connection_with(other, Channel::pulse, at_rank_0, until));
  watchdog_ = std::make_unique<Watchdog>(
      Watchdog::Options{rank_, timeout_, !rendezvous.in_one_process(), [this] { disconnect(); }},
      std::move(lines), moved);
}

void Communicator::guarded(const char* what, const std::function<void()>& call) {
  const Watchdog::Waiting waiting(watchdog_.get());
  const auto error = [&](const std::string& text) {
    const std::string reason = watchdog_ ? watchdog_->reason() : "";
    return DeviceError(fmt::format("{}: {}", what, reason.empty() ? text : reason));
  };
  try {
    call();
  } catch (const gloo::Exception& problem) {
    const std::string text = plain_gloo_message(problem.what());
    const bool late = text.find("imed out") != std::string::npos ||
                      text.ends_with("within the time") || text.starts_with("Wait timeout");
    throw error(late ? fmt::format("a rank did not answer within {:g} s ({})",
                                   std::chrono::duration<double>(timeout_).count(), text)
                     : fmt::format("lost another rank ({})", text));
  } catch (const gloo::EnforceNotMet& problem) {
    throw error(plain_gloo_check(problem.what()));
  } catch (const std::system_error& problem) {  // no thread, as a rule
    throw error(fmt::format("the system refuses a thread: {}: {}", problem.code().message(),
                            what_limits_threads));
  }
}

Communicator::~Communicator() = default;

void Communicator::disconnect() {
  if (context_) context_->closeConnections();
}

template <typename Value>
void Communicator::all_reduce_of(std::span<Value> values, std::uint32_t tag) {
  if (ranks_ == 1 || values.empty()) return;
  guarded("all-reduce", [&] {
    gloo::AllreduceOptions options(context_);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(add<Value>);
    options.setTag(tag);
    options.setTimeout(patience());
    gloo::allreduce(options);
  });
}

void Communicator::all_reduce(std::span<float> values, std::uint32_t tag) {
  all_reduce_of(values, tag);
}
void Communicator::all_reduce(std::span<double> values) {
  all_reduce_of(values, 0);
}

void Communicator::all_reduce(DType type, std::span<std::uint16_t> values, std::uint32_t tag) {
  if (ranks_ == 1 || values.empty()) return;
  guarded("all-reduce", [&] {
    gloo::AllreduceOptions options(context_);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(
        [type](void* to, const void* left, const void* right, std::size_t count) {
          auto* sum = static_cast<std::uint16_t*>(to);
          const auto* a = static_cast<const std::uint16_t*>(left);
          const auto* b = static_cast<const std::uint16_t*>(right);
          if (sum != a && sum != b) std::copy_n(a, count, sum);
          add16(type, {sum, count}, {sum == b ? a : b, count});
        });
    options.setTag(tag);
    options.setTimeout(patience());
    gloo::allreduce(options);
  });
}

void Communicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                              std::uint32_t tag) {
  if (all.empty()) return;
  const auto ranks = static_cast<std::size_t>(ranks_);
  if (mine.empty() ? all.size() % ranks != 0 : all.size() != mine.size() * ranks)
    throw DeviceError("all-gather: there is no room for everyone's part");
  if (ranks_ == 1) {
    if (!mine.empty()) std::memcpy(all.data(), mine.data(), mine.size());
    return;
  }
  guarded("all-gather", [&] {
    gloo::AllgatherOptions options(context_);
    if (!mine.empty())
      options.setInput(const_cast<char*>(reinterpret_cast<const char*>(mine.data())), mine.size());
    options.setOutput(reinterpret_cast<char*>(all.data()), all.size());
    options.setTag(tag);
    options.setTimeout(patience());
    gloo::allgather(options);
  });
}

void Communicator::broadcast(std::span<char> bytes, int root, std::uint32_t tag) {
  if (ranks_ == 1 || bytes.empty()) return;
  guarded("broadcast", [&] {
    gloo::BroadcastOptions options(context_);
    options.setOutput(bytes.data(), bytes.size());
    options.setRoot(root);
    options.setTag(tag);
    options.setTimeout(patience());
    gloo::broadcast(options);
  });
}

void Communicator::barrier() {
  if (ranks_ == 1) return;
  guarded("barrier", [&] {
    gloo::BarrierOptions options(context_);
    options.setTimeout(patience());
    gloo::barrier(options);
  });
}

std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> mine) {
  if (ranks_ == 1) return {{mine.begin(), mine.end()}};
  std::vector<double> sizes(static_cast<std::size_t>(ranks_), 0);
  sizes[static_cast<std::size_t>(rank_)] = static_cast<double>(mine.size());
  all_reduce(std::span(sizes));
  std::vector<std::size_t> counts;
  std::size_t total = 0;
  for (const double size : sizes) {
    if (!(size >= 0 && size <= most_gathered))
      throw DeviceError("gathering figures: a rank sent a size that makes no sense");
    // A byte each as padding: Gloo takes no empty parts.
    counts.push_back(static_cast<std::size_t>(size) + 1);
    total += counts.back();
  }
  std::vector<char> sent(mine.size() + 1, 0), all(total);
  if (!mine.empty()) std::memcpy(sent.data(), mine.data(), mine.size());
  guarded("gathering figures", [&] {
    gloo::AllgathervOptions options(context_);
    options.setInput(sent.data(), sent.size());
    options.setOutput(all.data(), counts);
    options.setTimeout(patience());
    gloo::allgatherv(options);
  });
  std::vector<std::vector<std::byte>> gathered;
  std::size_t offset = 0;
  for (const std::size_t count : counts) {
    const auto* begin = reinterpret_cast<const std::byte*>(all.data() + offset);
    gathered.emplace_back(begin, begin + count - 1);
    offset += count;
  }
  return gathered;
}

}  // namespace ddpsim
