#include "backend/gloo/handed_over.hpp"

namespace ddpsim {
namespace {

std::size_t communicators_of(const Schedule& schedule) {
  std::size_t most = 1;
  for (const Work& task : schedule.works)
    most = std::max<std::size_t>(most, task.communicator + 1U);
  return most;
}

}  // namespace

HandedOver::HandedOver(Connection& connection, const Schedule& schedule)
    : connection_(connection),
      schedule_(schedule),
      arrivals_(schedule.tasks.size()),
      tickets_(schedule.tasks.size(), 0) {
  connection_.threads().arrange(communicators_of(schedule), schedule.collectives_at_once);
}

std::vector<std::uint64_t> HandedOver::awaited(const Task& task) const {
  std::vector<std::uint64_t> tickets;
  for (const std::uint32_t earlier : schedule_.waits_for(task))
    if (tickets_[earlier] != 0) tickets.push_back(tickets_[earlier]);
  return tickets;
}

void HandedOver::wait_for_inputs(const Task& task) {
  for (const std::uint64_t ticket : awaited(task)) connection_.threads().wait(ticket);
}

void HandedOver::finish() {
  connection_.threads().wait_for_all();
  connection_.threads().arrange(1, 1);
}

std::vector<std::uint32_t> HandedOver::collectives() const {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < tickets_.size(); ++i)
    if (tickets_[i] != 0 && is_collective(schedule_.tasks[i].operation)) indices.push_back(i);
  return indices;
}

}  // namespace ddpsim
