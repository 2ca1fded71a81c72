#include "backend/gloo/communicator.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>
#include <net/if.h>

#include "backend/comm_hooks/float16.hpp"
#include "backend/device_error.hpp"
#include "backend/gloo/priority.hpp"

namespace ddpsim {
namespace {

using std::chrono::milliseconds;

/// Gloo's messages begin with a place in its source and may have several lines.
std::string plain(std::string message) {
  if (message.starts_with('['))
    if (const auto end = message.find("] "); end != std::string::npos) message.erase(0, end + 2);
  return message.substr(0, message.find('\n'));
}

/// Names this boot of this machine: equal where ranks share a clock.
std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, id);
  return id;
}

constexpr double most_gathered = 1 << 30;  // bytes of one rank

template <typename Value>
void add(void* to, const void* left, const void* right, std::size_t count) {
  auto* sum = static_cast<Value*>(to);
  const auto* a = static_cast<const Value*>(left);
  const auto* b = static_cast<const Value*>(right);
  for (std::size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

/// into += from, numbers of `type`.
void add_numbers(DType type, std::span<std::byte> into, std::span<const std::byte> from) {
  if (size_of(type) == Bytes{4}) {
    add<float>(into.data(), into.data(), from.data(), into.size() / sizeof(float));
    return;
  }
  add16(type, {reinterpret_cast<std::uint16_t*>(into.data()), into.size() / sizeof(std::uint16_t)},
        {reinterpret_cast<const std::uint16_t*>(from.data()), from.size() / sizeof(std::uint16_t)});
}

/// Beside those of Gloo's collectives and of aligning clocks. The tag stands above it.
constexpr std::uint64_t ring_slot = std::uint64_t{1} << 41;

}  // namespace

void check_interface(const std::string& interface) {
  if (!interface.empty() && if_nametoindex(interface.c_str()) == 0) {
    std::string known;
    if (struct if_nameindex* list = if_nameindex()) {
      for (auto* each = list; each->if_index != 0; ++each)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", each->if_name);
      if_freenameindex(list);
    }
    throw DeviceError(fmt::format("there is no network interface \"{}\"; this host has: {}",
                                  interface, known.empty() ? "none" : known));
  }
}

Communicator::Communicator(Rendezvous& rendezvous, int rank, int ranks,
                           const std::string& interface, milliseconds timeout)
    : rank_(rank), ranks_(ranks), timeout_(timeout) {
  guarded("connecting to the other ranks", [&] {
    gloo::transport::tcp::attr address;
    if (interface.empty())
      address.hostname = "127.0.0.1";
    else
      address.iface = interface;
    take_role(Role::transport);  // the device's thread inherits it
    auto device = gloo::transport::tcp::CreateDevice(address);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    // Gloo waits five timeouts for a connection.
    context->setTimeout(std::max(timeout / 5, milliseconds{200}));
    context->connectFullMesh(rendezvous.store(), device);
    context->setTimeout(timeout);
    context_ = context;
  });
  const std::string mine = boot_id();
  for (const auto& theirs : gather(std::as_bytes(std::span(mine))))
    one_host_ = one_host_ && !mine.empty() && theirs.size() == mine.size() &&
                std::memcmp(theirs.data(), mine.data(), mine.size()) == 0;
  std::array<std::int64_t, 1> epoch{
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count()};
  if (one_host_)
    broadcast({reinterpret_cast<char*>(epoch.data()), sizeof(epoch)});
  else
    barrier();
  epoch_ = std::chrono::nanoseconds{epoch[0]};
  rendezvous.leave();  // everyone has read it
}

Instant Communicator::now() const {
  return Instant{std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()) -
                 epoch_};
}

Communicator::~Communicator() = default;

void Communicator::disconnect() {
  if (context_) context_->closeConnections();
}

template <typename Call>
void Communicator::guarded(const char* what, Call call) {
  try {
    call();
  } catch (const gloo::Exception& problem) {
    const std::string text = plain(problem.what());
    const bool late = text.find("imed out") != std::string::npos;
    throw DeviceError(fmt::format("{}: {} ({})", what,
                                  late ? fmt::format("a rank did not answer within {:g} s",
                                                     static_cast<double>(timeout_.count()) / 1000)
                                       : "lost another rank",
                                  text));
  } catch (const gloo::EnforceNotMet& problem) {
    throw DeviceError(fmt::format("{}: {}", what, plain(problem.what())));
  }
}

template <typename Value>
void Communicator::all_reduce_of(std::span<Value> values, std::uint32_t tag) {
  if (ranks_ == 1 || values.empty()) return;
  guarded("all-reduce", [&] {
    gloo::AllreduceOptions options(context_);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(add<Value>);
    options.setTag(tag);
    options.setTimeout(timeout_);
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
    options.setTimeout(timeout_);
    gloo::allreduce(options);
  });
}

void Communicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                              std::uint32_t tag) {
  if (mine.empty()) return;
  if (all.size() != mine.size() * static_cast<std::size_t>(ranks_))
    throw DeviceError("all-gather: there is no room for everyone's part");
  if (ranks_ == 1) {
    std::memcpy(all.data(), mine.data(), mine.size());
    return;
  }
  guarded("all-gather", [&] {
    gloo::AllgatherOptions options(context_);
    options.setInput(const_cast<char*>(reinterpret_cast<const char*>(mine.data())), mine.size());
    options.setOutput(reinterpret_cast<char*>(all.data()), all.size());
    options.setTag(tag);
    options.setTimeout(timeout_);
    gloo::allgather(options);
  });
}

// Part k travels once around the ring, from member k + 1 on, and every member adds its own; with
// `everywhere` the finished parts then travel once more.
void Communicator::ring_reduce(DType type, std::span<std::byte> values,
                               std::span<const int> members, bool everywhere, std::uint32_t tag) {
  const std::size_t n = members.size();
  if (n <= 1 || values.empty()) return;
  const auto self = std::find(members.begin(), members.end(), rank_);
  if (self == members.end()) throw DeviceError("reduce: this rank is not one of those that do");
  const auto me = static_cast<std::size_t>(self - members.begin());
  const int next = members[(me + 1) % n], previous = members[(me + n - 1) % n];
  const auto element = static_cast<std::size_t>(size_of(type).count);
  const std::size_t count = values.size() / element;
  const auto begin = [&](std::size_t part) { return part_begin(count, part, n) * element; };
  std::vector<std::byte> arrived((count + n - 1) / n * element);
  const std::uint64_t slot = ring_slot + (std::uint64_t{tag % 4096} << 42);
  guarded("reduce", [&] {
    auto sender = context_->createUnboundBuffer(values.data(), values.size());
    auto receiver = context_->createUnboundBuffer(arrived.data(), arrived.size());
    const auto step = [&](std::size_t sent, std::size_t received, auto take) {
      const std::size_t out = begin(sent + 1) - begin(sent);
      const std::size_t in = begin(received + 1) - begin(received);
      if (in > 0) receiver->recv(previous, slot, 0, in);
      if (out > 0) sender->send(next, slot, begin(sent), out);
      if (in > 0) receiver->waitRecv(timeout_);
      if (out > 0) sender->waitSend(timeout_);
      take(values.subspan(begin(received), in), std::span(arrived).first(in));
    };
    for (std::size_t hop = 0; hop + 1 < n; ++hop)
      step((me + 2 * n - 1 - hop) % n, (me + 2 * n - 2 - hop) % n,
           [&](std::span<std::byte> mine, std::span<const std::byte> theirs) {
             add_numbers(type, mine, theirs);
           });
    for (std::size_t hop = 0; everywhere && hop + 1 < n; ++hop)
      step((me + n - hop) % n, (me + 2 * n - 1 - hop) % n,
           [](std::span<std::byte> mine, std::span<const std::byte> theirs) {
             std::copy(theirs.begin(), theirs.end(), mine.begin());
           });
  });
}

void Communicator::broadcast(std::span<char> bytes, int root, std::uint32_t tag) {
  if (ranks_ == 1 || bytes.empty()) return;
  guarded("broadcast", [&] {
    gloo::BroadcastOptions options(context_);
    options.setOutput(bytes.data(), bytes.size());
    options.setRoot(root);
    options.setTag(tag);
    options.setTimeout(timeout_);
    gloo::broadcast(options);
  });
}

void Communicator::barrier() {
  if (ranks_ == 1) return;
  guarded("barrier", [&] {
    gloo::BarrierOptions options(context_);
    options.setTimeout(timeout_);
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
    options.setTimeout(timeout_);
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

std::vector<Instant> Communicator::latest(std::vector<Instant> mine) {
  for (Instant& each : mine) each = to_rank_0(each);
  std::vector<Instant> last = mine;
  for (const auto& bytes : gather(std::as_bytes(std::span(mine)))) {
    if (bytes.size() != mine.size() * sizeof(Instant))
      throw DeviceError("the ranks ran different numbers of collectives");
    for (std::size_t k = 0; k < last.size(); ++k) {
      Instant theirs;
      std::memcpy(&theirs, bytes.data() + k * sizeof(Instant), sizeof(Instant));
      last[k] = std::max(last[k], theirs);
    }
  }
  for (Instant& each : last) each = to_local(each);
  return last;
}

void Communicator::align_clock() {
  if (one_host_ || ranks_ == 1) return;
  constexpr int rounds = 8;
  guarded("aligning clocks", [&] {
    std::array<std::int64_t, 1> value{};
    auto buffer = context_->createUnboundBuffer(value.data(), sizeof(value));
    constexpr std::uint64_t slot = std::uint64_t{1} << 40;  // beside those of the collectives
    if (rank_ == 0) {
      for (int other = 1; other < ranks_; ++other)
        for (int round = 0; round < rounds; ++round) {
          buffer->recv(other, slot);
          buffer->waitRecv(timeout_);
          value[0] = now().time_since_epoch().count();
          buffer->send(other, slot);
          buffer->waitSend(timeout_);
        }
      return;
    }
    Duration fastest = Duration::max();
    for (int round = 0; round < rounds; ++round) {
      const Instant sent = now();
      buffer->send(0, slot);
      buffer->waitSend(timeout_);
      buffer->recv(0, slot);
      buffer->waitRecv(timeout_);
      const Duration trip = now() - sent;
      if (trip >= fastest) continue;
      fastest = trip;
      offset_ = (sent + trip / 2) - Instant{Duration{value[0]}};
    }
  });
}

}  // namespace ddpsim
