#include "backend/link/nccl/nccl_link.hpp"

#include <algorithm>
#include <numeric>
#include <variant>

#include <fmt/format.h>

namespace ddpsim {

using execute::Exchange;
using execute::Piece;
using program::Collective;

namespace {

bool is_summed(DType type) {
  return type == DType::fp32 || type == DType::fp16 || type == DType::bf16;
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

std::int64_t numbers_in(Bytes size) {
  return std::max<std::int64_t>(1, size.count / 4);
}

}  // namespace

NcclLink::NcclLink(Gpu& gpu, GpuClock& clock, Communicator& hosts, const GpuLink& link, int rank,
                   int ranks)
    : gpu_(gpu),
      clock_(clock),
      hosts_(hosts),
      link_(link),
      rank_(rank),
      ranks_(ranks),
      everyone_(static_cast<std::size_t>(ranks)) {
  std::iota(everyone_.begin(), everyone_.end(), 0);
  if (is_loopback())
    collectives_ = std::make_unique<LoopbackCollectives>(gpu);
  else
    collectives_ = std::make_unique<RankCollectives>(gpu);
}

void NcclLink::connect(int channels) {
  std::vector<std::byte> id;
  if (rank_ == 0) id = gpu_.make_id();
  const auto ids = hosts_.gather(id);
  gpu_.connect(ids.front(), rank_, ranks_, channels);
  made_.clear();
}

std::string NcclLink::refusal(const program::Action& action, DType type) const {
  const auto* collective = std::get_if<Collective>(&action);
  if (collective == nullptr)
    return is_loopback() ? "in loopback there is nobody to send a message to" : "";
  if (!collective->counts.empty())
    return "sparse gradients are reduced in simulation and by the gloo backend only";
  if (collective->reduction != program::Reduction::none && !is_summed(type))
    return fmt::format("the nccl backend reduces no {}", name_of(type));
  return "";
}

void NcclLink::begin(const execute::Running& running) {
  const program::Job& job = running.job;
  numbers_.clear();
  std::map<Groups, int> occurrences;
  for (const program::Communicator& communicator : job.communicators)
    numbers_.push_back(communicator_for(communicator.groups, occurrences[communicator.groups]++));
  const auto reserve = [&](const program::Task& task) {
    const auto* collective = std::get_if<Collective>(&job.deed_of(task).action);
    if (collective == nullptr) return;
    const program::Membership& member = running.memory.member(collective->communicator);
    reserve_room(task.stream, collectives_->room_for(
                                  *collective, {.group = {*member.group, member.place},
                                                .from = running.memory.piece(collective->from),
                                                .to = running.memory.piece(collective->to)}));
  };
  for (const program::Task& task : running.program.tasks) reserve(task);
}

/// The first of all ranks, in their order, is the one that they connected with. In loopback this
/// rank is alone with itself in all of them.
int NcclLink::communicator_for(const Groups& groups, int occurrence) {
  if (is_loopback()) return 0;
  if (occurrence == 0 && groups.size() == 1 && groups.front() == everyone_) return 0;
  const auto [found, is_new] = made_.try_emplace({groups, occurrence}, 0);
  if (!is_new) return found->second;
  int colour = -1, place = 0;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (const auto mine = std::ranges::find(groups[g], rank_); mine != groups[g].end()) {
      colour = static_cast<int>(g);
      place = static_cast<int>(mine - groups[g].begin());
    }
  found->second = gpu_.split(colour, place);
  return found->second;
}

void NcclLink::reserve_room(GpuStream stream, Bytes size) {
  Room& room = rooms_[stream];
  if (size <= room.size) return;
  room.memory.reset();
  room.memory = gpu_.allocate(size, "the buffers of collectives");
  gpu_.clear(first_stream, room.memory.get(), size);
  room.size = size;
}

void NcclLink::run(const Collective& collective, const Exchange& exchange) {
  collectives_->run(
      collective, exchange,
      {number_of(collective.communicator), exchange.stream, rooms_[exchange.stream].memory.get()});
}

void NcclLink::send(std::int32_t peer, const Exchange& exchange) {
  const std::vector<GpuMessage> sent{
      {peer, exchange.from.data, exchange.from.count * size_of(exchange.from.type), false}};
  gpu_.exchange(number_of(exchange.communicator), exchange.stream, sent);
}

void NcclLink::receive(std::int32_t peer, const Exchange& exchange) {
  const std::vector<GpuMessage> received{
      {peer, exchange.to.data, exchange.to.count * size_of(exchange.to.type), true}};
  gpu_.exchange(number_of(exchange.communicator), exchange.stream, received);
}

namespace {

/// A sum in place, of numbers that all ranks have.
struct ValuesReduced {
  ValuesReduced(std::byte* values, Bytes size, const std::vector<std::int32_t>& ranks)
      : piece{DType::fp32, values, numbers_in(size)}, exchange{.group = {ranks, 0}} {
    exchange.from = exchange.to = piece;
  }
  Piece piece;
  Exchange exchange;
  Collective collective{.reduction = program::Reduction::sum};
};

}  // namespace

void NcclLink::reserve_values(Bytes size, GpuStream stream) {
  const Bytes wanted{std::max(aligned(4 * numbers_in(size)), 2 * gpu_.description().l2.count)};
  if (wanted > values_.size) {
    values_.memory.reset();
    values_.memory = gpu_.allocate(wanted, "the buffers of all-reduces");
    gpu_.clear(first_stream, values_.memory.get(), wanted);
    values_.size = wanted;
  }
  const std::vector<std::int32_t> group(static_cast<std::size_t>(ranks()), 0);
  const ValuesReduced reduced(values_.memory.get(), size, group);
  reserve_room(stream, collectives_->room_for(reduced.collective, reduced.exchange));
}

void NcclLink::reduce_values(Bytes size, GpuStream stream, int communicator) {
  const std::int64_t unit = aligned(4 * numbers_in(size));
  if (next_value_ + unit > values_.size.count) next_value_ = 0;
  const std::vector<std::int32_t> group(static_cast<std::size_t>(ranks()), 0);
  const ValuesReduced reduced(values_.memory.get() + next_value_, size, group);
  next_value_ += unit;
  collectives_->run(reduced.collective, reduced.exchange,
                    {communicator, stream, rooms_[stream].memory.get()});
}

}  // namespace ddpsim
