#include "model/program/work.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// Mixes a value into a hash: multiplied by 2^64 over the golden ratio, the upper half folded into
/// the lower. Source: Knuth, The Art of Computer Programming, volume 3, section 6.4.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

}  // namespace

Work work_of(Operation operation, const Kernel& kernel, Caller caller) {
  Work work;
  work.operation = operation;
  work.gemm = kernel.gemm;
  work.traffic = kernel.traffic;
  work.type = kernel.type;
  work.launches = kernel.launches;
  work.tensors = kernel.tensors;
  work.call = kernel.call;
  work.known_time = kernel.time;
  work.by_class = kernel.by_class;
  work.caller = caller;
  return work;
}

Work moving(Operation operation, Bytes traffic, Caller caller, int launches) {
  Work work;
  work.operation = operation;
  work.traffic = traffic;
  work.launches = launches;
  work.caller = caller;
  return work;
}

std::optional<Work> measured_as(const Work& work) {
  if (!work.computes() || work.optimizer_share > 0) return std::nullopt;
  // Whole parameters of a unit are as large as its gradients, and copied as often.
  const bool is_of_unit = work.message == Message::parameters && work.operation == Operation::pack;
  if (work.message != Message::gradients && !is_of_unit) return std::nullopt;
  // The time of a hook on a layer's output is what the user expects of host threads.
  if (work.known_time && work.operation != Operation::module_hook) return std::nullopt;
  if (!work.gemm && work.traffic == Bytes{}) return std::nullopt;
  Work key;
  key.operation = work.operation;
  key.gemm = work.gemm;
  key.traffic = work.traffic;
  key.type = work.type;
  key.aside = work.aside;
  return key;
}

std::string describe(const Work& work) {
  std::string text(name_of(work.operation));
  if (work.message != Message::gradients) text += fmt::format(" ({})", name_of(work.message));
  if (work.gemm)
    text += fmt::format(" {} x {} x {}{} {}", work.gemm->m, work.gemm->n, work.gemm->k,
                        work.gemm->batch == 1 ? "" : fmt::format(" ({} times)", work.gemm->batch),
                        name_of(work.type));
  if (work.traffic != Bytes{}) text += fmt::format(", {}", to_string(work.traffic));
  if (work.payload != Bytes{}) text += fmt::format(" of {}", to_string(work.payload));
  if (work.aside) text += ", aside";
  return text;
}

std::size_t WorkHash::operator()(const Work& work) const {
  std::uint64_t hash = mixed(0, static_cast<std::uint64_t>(work.operation) |
                                    static_cast<std::uint64_t>(work.message) << 8 |
                                    static_cast<std::uint64_t>(work.type) << 16 |
                                    static_cast<std::uint64_t>(work.caller) << 24 |
                                    static_cast<std::uint64_t>(work.aside) << 32 |
                                    static_cast<std::uint64_t>(work.beside_hook) << 33 |
                                    static_cast<std::uint64_t>(work.handed_over) << 34 |
                                    static_cast<std::uint64_t>(work.communicator) << 40);
  if (work.gemm)
    for (const std::int64_t side : {work.gemm->m, work.gemm->n, work.gemm->k, work.gemm->batch})
      hash = mixed(hash, static_cast<std::uint64_t>(side));
  hash = mixed(hash, static_cast<std::uint64_t>(work.traffic.count));
  hash = mixed(hash, static_cast<std::uint64_t>(work.payload.count));
  hash = mixed(hash, static_cast<std::uint64_t>(work.launches) << 32 ^
                         static_cast<std::uint64_t>(work.group) ^
                         static_cast<std::uint64_t>(work.stride) << 16);
  if (work.known_time) hash = mixed(hash, static_cast<std::uint64_t>(work.known_time->count()));
  if (work.tensors > 0 || work.call != Duration::zero()) {
    hash = mixed(hash, static_cast<std::uint64_t>(work.tensors));
    hash = mixed(hash, static_cast<std::uint64_t>(work.call.count()));
  }
  if (work.by_class) {
    hash = mixed(hash, static_cast<std::uint64_t>(work.by_class->work.count()));
    hash = mixed(hash, static_cast<std::uint64_t>(work.by_class->host.count()) ^
                           std::bit_cast<std::uint32_t>(work.by_class->memory_fraction));
  }
  if (work.optimizer_share > 0)
    hash = mixed(hash, std::bit_cast<std::uint64_t>(work.optimizer_share));
  hash = mixed(hash, static_cast<std::uint64_t>(work.host.count()) ^
                         static_cast<std::uint64_t>(work.hook_calls) << 48 ^
                         static_cast<std::uint64_t>(work.awaited) << 56);
  return static_cast<std::size_t>(hash);
}

std::uint32_t WorkTable::add(const Work& work) {
  if (2 * (works_.size() + 1) > slots_.size()) grow();
  std::uint32_t& slot = slots_[slot_of(work)];
  if (slot == 0) {
    works_.push_back(work);
    slot = static_cast<std::uint32_t>(works_.size());
  }
  return slot - 1;
}

std::optional<std::uint32_t> WorkTable::find(const Work& work) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t slot = slots_[slot_of(work)];
  if (slot == 0) return std::nullopt;
  return slot - 1;
}

/// Where the work is, or the free slot where it belongs.
std::size_t WorkTable::slot_of(const Work& work) const {
  const std::size_t last = slots_.size() - 1;
  std::size_t slot = WorkHash{}(work)&last;
  while (slots_[slot] != 0 && works_[slots_[slot] - 1] != work) slot = (slot + 1) & last;
  return slot;
}

void WorkTable::grow() {
  slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), 0);
  for (std::size_t i = 0; i < works_.size(); ++i)
    slots_[slot_of(works_[i])] = static_cast<std::uint32_t>(i) + 1;
}

}  // namespace ddpsim
