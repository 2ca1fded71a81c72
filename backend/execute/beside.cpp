#include "backend/execute/beside.hpp"

#include <algorithm>
#include <thread>
#include <variant>

namespace ddpsim::execute {

using program::Collective;
using program::Job;
using program::Pause;
using program::Task;

std::string refusal_of_beside(const Job& job) {
  if (!job.beside) return "";
  const auto is_shared = [&](const Task& task, std::int16_t communicator) {
    for (const program::Program& program : job.programs)
      for (const Task& other : program.tasks)
        if (other.stream == task.stream ||
            (communicator != nobody &&
             program::communicator_of(job.deed_of(other).action) == communicator))
          return true;
    return false;
  };
  const std::vector<Task>& tasks = job.beside->tasks;
  for (const Task& task : tasks) {
    const program::Action& action = job.deed_of(task).action;
    const auto* collective = std::get_if<Collective>(&action);
    if (collective == nullptr && !std::holds_alternative<Pause>(action))
      return "what runs beside the programs is pauses and all-reduces";
    if (is_shared(task, program::communicator_of(action)))
      return "what runs beside the programs has a stream and a communicator of its own";
    if (collective == nullptr) continue;
    const auto& groups = job.communicators[at(collective->communicator)].groups;
    if (collective->what != program::Collectives::all_reduce ||
        collective->reduction != program::Reduction::sum || !(collective->from == collective->to) ||
        collective->to.empty() || job.buffers[collective->to.buffer].type != DType::fp32 ||
        groups.size() != 1 || groups.front().size() != job.ranks())
      return "what runs beside the programs adds up fp32 numbers of all ranks in place";
  }
  if (tasks.empty() || !std::holds_alternative<Collective>(job.deed_of(tasks.back()).action))
    return "what runs beside the programs ends with an all-reduce";
  return "";
}

void Beside::repeat() {
  while (!another_has_)
    for (const Task& task : job_.beside->tasks) {
      if (const auto* collective = std::get_if<Collective>(&job_.deed_of(task).action))
        collect(*collective, &task == &job_.beside->tasks.back());
      else
        std::this_thread::sleep_for(job_.works[task.work].host);
    }
}

void Beside::collect(const Collective& collective, bool is_last) {
  const Piece values = memory_.piece(collective.to);
  float& ended = reinterpret_cast<float*>(values.data)[values.count - 1];
  if (is_last) ended = computed_ ? 1.0F : 0.0F;
  const program::Membership& member = memory_.member(collective.communicator);
  const std::uint32_t tag =
      static_cast<std::uint32_t>(collective.communicator) << 16 | (issued_++ & 0xFFFF);
  const Instant arrival = link_.now();
  link_.run(collective,
            {.group = {*member.group, member.place}, .from = values, .to = values, .tag = tag});
  spans_.emplace_back(arrival, link_.now());
  if (is_last) another_has_ = ended > 0;
}

std::vector<Instant> Beside::arrivals() const {
  std::vector<Instant> arrivals;
  for (const auto& [arrival, end] : spans_) arrivals.push_back(arrival);
  return arrivals;
}

bool Beside::pauses() const {
  return std::ranges::any_of(job_.beside->tasks, [this](const Task& task) {
    return std::holds_alternative<Pause>(job_.deed_of(task).action);
  });
}

void Beside::report(std::span<const Instant> last, RankRun& run) const {
  run.background_begun = last.front() - Instant{};
  const Instant computed_at = Instant{} + run.computed;
  Duration under_way{};
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const Instant end = spans_[i].second;
    under_way += std::max(Duration::zero(), std::min(end, computed_at) - last[i]);
    run.background_ended += end < computed_at ? 1 : 0;
  }
  const Duration since = computed_at - last.front();
  if (since <= Duration::zero())
    run.background_busy = 0;  // too late
  else if (pauses())
    run.background_busy = std::min(1.0, in_seconds(under_way) / in_seconds(since));
}

}  // namespace ddpsim::execute
