#include "sim/engine/plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

namespace ddpsim {
namespace {

std::optional<JobChannel> channel_of(const program::Action& action) {
  if (const auto* collective = std::get_if<program::Collective>(&action))
    return JobChannel{collective->communicator, 0, JobChannel::With::group};
  if (const auto* send = std::get_if<program::Send>(&action))
    return JobChannel{send->communicator, send->peer, JobChannel::With::to_peer};
  if (const auto* receive = std::get_if<program::Receive>(&action))
    return JobChannel{receive->communicator, receive->peer, JobChannel::With::from_peer};
  return std::nullopt;
}

/// Numbers the channels of the job's deeds.
class Channels {
 public:
  explicit Channels(const program::Job& job) {
    of_deed_.reserve(job.known_deeds() + job.own.deeds.size());
    if (job.known) add(job.known->deeds);
    add(job.own.deeds);
  }

  std::uint16_t of(const program::Task& task) const { return of_deed_.at(task.deed); }
  const std::vector<JobChannel>& all() const { return channels_; }

 private:
  void add(const std::vector<program::Deed>& deeds) {
    for (const program::Deed& deed : deeds) {
      const auto channel = channel_of(deed.action);
      of_deed_.push_back(channel ? number(*channel) : Plan::no_channel);
    }
  }

  std::uint16_t number(const JobChannel& channel) {
    const auto [found, added] =
        numbers_.try_emplace(channel, static_cast<std::uint16_t>(channels_.size()));
    if (added) {
      if (channels_.size() == Plan::no_channel)
        throw std::invalid_argument("a job communicates in at most 65535 ways");
      channels_.push_back(channel);
    }
    return found->second;
  }

  std::vector<std::uint16_t> of_deed_;
  std::vector<JobChannel> channels_;
  std::map<JobChannel, std::uint16_t> numbers_;
};

Plan plan_of(const program::Job& job, const program::Program& program, const Channels& channels) {
  if (program.rounds != 1)
    throw std::invalid_argument("a program that is repeated is measured, not simulated");
  Plan plan;
  plan.of_stream.resize(job.streams.size());
  plan.of_channel.resize(channels.all().size());
  plan.channel.resize(program.tasks.size());
  std::uint32_t after = 0;
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    const program::Task& task = program.tasks[t];
    for (; after < task.after_end; ++after)
      if (program.after[after] >= t) throw std::invalid_argument("a task waits for a later one");
    plan.of_stream.at(task.stream).push_back(t);
    const std::uint16_t channel = channels.of(task);
    plan.channel[t] = channel;
    if (channel == Plan::no_channel) continue;
    if (task.stream == 0) throw std::invalid_argument("a host enqueues collectives on a stream");
    plan.of_channel[channel].push_back(t);
  }
  for (auto* lists : {&plan.of_stream, &plan.of_channel})
    for (std::vector<std::uint32_t>& list : *lists) list.push_back(Plan::no_task);
  return plan;
}

}  // namespace

Plans plans_of(const program::Job& job) {
  Plans plans;
  const Channels channels(job);
  plans.channels = channels.all();
  for (const program::Program& program : job.programs)
    plans.of_program.push_back(plan_of(job, program, channels));
  return plans;
}

}  // namespace ddpsim
