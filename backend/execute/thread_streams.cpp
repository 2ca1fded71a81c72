#include "backend/execute/thread_streams.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/execute/timed.hpp"

namespace ddpsim::execute {

using program::Job;

namespace {

constexpr int most_threads = 64;  // beside the host's

}  // namespace

std::string ThreadStreams::refusal(const Job& job) const {
  int threads = 0;
  for (const program::Stream& stream : job.streams) threads += stream.lanes;
  if (threads > most_threads)
    return fmt::format("the streams have {} lanes, and a rank at most {} threads", threads,
                       most_threads);
  return refusal_of_beside(job);
}

void ThreadStreams::begin(const Running& running) {
  running_.emplace(running);
  const Job& job = running.job;
  const program::Program& program = running.program;
  tickets_.assign(program.tasks.size(), 0);
  std::vector<bool> used(job.streams.size(), false);
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t)
    if (program.tasks[t].stream != 0 || running.communicates(t))
      used[program.tasks[t].stream] = true;
  if (job.beside) used[job.beside->tasks.front().stream] = true;
  std::vector<int> lanes, at_once;
  queue_of_.assign(job.streams.size(), 0);
  for (std::size_t s = 0; s < job.streams.size(); ++s) {
    if (!used[s]) continue;
    queue_of_[s] = lanes.size();
    lanes.push_back(s == 0 ? 1 : job.streams[s].lanes);
  }
  if (lanes.empty()) lanes.push_back(1);
  for (const program::Communicator& communicator : job.communicators)
    at_once.push_back(communicator.at_once);
  threads_.arrange(lanes, at_once);
  beside_.reset();
  if (job.beside) beside_.emplace(job, running.memory, link_);
}

void ThreadStreams::start() {
  if (beside_)
    threads_.submit([this] { beside_->repeat(); },
                    queue_of_[running_->job.beside->tasks.front().stream]);
}

void ThreadStreams::begin_round(int) {
  std::ranges::fill(tickets_, 0);
}

void ThreadStreams::end_round() {
  if (running_->program.rounds == 1) return;
  for (const std::uint64_t ticket : tickets_)
    if (ticket != 0) threads_.wait(ticket);
}

void ThreadStreams::submit(std::uint32_t task, std::function<void()> call) {
  const program::Action& action = running_->action_of(task);
  std::optional<std::size_t> line;
  if (running_->communicates(task)) line = at(program::communicator_of(action));
  TaskTimes& times = running_->times[task];
  const bool by_its_processor = by_processor(running_->options, action);
  tickets_[task] = threads_.submit(
      [this, &times, by_its_processor, call = std::move(call)] {
        timed(
            times, by_its_processor, [this] { return link_.now(); }, call);
      },
      queue_of_[running_->program.tasks[task].stream], awaited(task), line);
}

std::vector<std::uint64_t> ThreadStreams::awaited(std::uint32_t task) const {
  std::vector<std::uint64_t> tickets;
  for (const std::uint32_t earlier : running_->program.waits_for(task))
    if (tickets_[earlier] != 0) tickets.push_back(tickets_[earlier]);
  return tickets;
}

void ThreadStreams::wait(std::uint32_t task) {
  if (tickets_[task] != 0) threads_.wait(tickets_[task]);
}

Instant ThreadStreams::finish() {
  if (beside_) beside_->computed();
  const Instant computed = link_.now();
  threads_.wait_for_all();
  threads_.arrange(1, 1);
  return computed;
}

void ThreadStreams::abandon() {
  threads_.abandon();
}

std::vector<Instant> ThreadStreams::arrivals_beside() const {
  return beside_ ? beside_->arrivals() : std::vector<Instant>{};
}

void ThreadStreams::report_beside(std::span<const Instant> last, RankRun& run) const {
  if (beside_) beside_->report(last, run);
}

}  // namespace ddpsim::execute
