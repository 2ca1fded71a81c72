#include "tests/backend/execute/plain_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>
#include <variant>

#include "backend/device/cpu/kernel_operands.hpp"
#include "backend/execute/start_values.hpp"

namespace ddpsim::program {

PlainRanks::Operand operands_of_cpus(const Job& job) {
  const auto of_ranks = std::make_shared<std::vector<KernelOperands>>();
  for (std::size_t rank = 0; rank < job.ranks(); ++rank)
    of_ranks->emplace_back(static_cast<int>(rank)).reserve(job);
  return [of_ranks](std::int32_t rank, std::uint32_t seed, std::int64_t index) {
    return (*of_ranks)[at(rank)].at(seed)[index];
  };
}

PlainRanks::PlainRanks(const Job& job, Operand operand)
    : job_(job),
      operand_(std::move(operand)),
      memory_(job.ranks()),
      next_(job.ranks(), 0),
      rounds_(job.ranks(), 0) {
  for (std::vector<Numbers>& of_rank : memory_)
    for (const Buffer& buffer : job.buffers)
      of_rank.emplace_back(static_cast<std::size_t>(buffer.elements), 0.0);
}

void PlainRanks::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(job_.ranks()); ++rank)
      while (step(rank)) moved = true;
  }
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(job_.ranks()); ++rank)
    if (next_of(rank) != nullptr) throw std::logic_error("ranks wait for each other in vain");
}

const Action* PlainRanks::next_of(std::int32_t rank) const {
  const Program& program = program_of(rank);
  if (next_[at(rank)] == program.tasks.size()) return nullptr;
  return &job_.deed_of(program.tasks[next_[at(rank)]]).action;
}

/// Does the rank's next task, if it can; false: it cannot, or there is none.
bool PlainRanks::step(std::int32_t rank) {
  const Action* action = next_of(rank);
  if (action == nullptr) return false;
  if (const auto* collective = std::get_if<Collective>(action)) return collect(rank, *collective);
  if (const auto* received = std::get_if<Receive>(action)) {
    if (!receive(rank, *received)) return false;
  } else if (const auto* send = std::get_if<Send>(action)) {
    const Membership member = membership(job_.communicators[at(send->communicator)], rank);
    sent_[{send->communicator, rank, (*member.group)[at(send->peer)]}].push_back(
        read(rank, send->what));
  } else {
    compute(rank, program_of(rank).tasks[next_[at(rank)]]);
  }
  ++next_[at(rank)];
  if (next_of(rank) == nullptr && ++rounds_[at(rank)] < program_of(rank).rounds)
    next_[at(rank)] = 0;
  return true;
}

bool PlainRanks::receive(std::int32_t rank, const Receive& receive) {
  const Membership member = membership(job_.communicators[at(receive.communicator)], rank);
  std::vector<Numbers>& waiting =
      sent_[{receive.communicator, (*member.group)[at(receive.peer)], rank}];
  if (waiting.empty()) return false;
  write(rank, receive.what, waiting.front());
  waiting.erase(waiting.begin());
  return true;
}

void PlainRanks::compute(std::int32_t rank, const Task& task) {
  const Action& action = job_.deed_of(task).action;
  if (const auto* fill = std::get_if<Fill>(&action)) {
    write(rank, fill->to, Numbers(static_cast<std::size_t>(fill->to.count), fill->value));
  } else if (const auto* combine = std::get_if<Combine>(&action)) {
    Numbers sum = read(rank, combine->left);
    const Numbers right = read(rank, combine->right);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = combine->a * sum[i] + combine->b * right[i];
    write(rank, combine->to, sum);
  } else if (const auto* scale = std::get_if<Scale>(&action)) {
    Numbers numbers = read(rank, scale->from);
    const double ranks =
        scale->mean_over == nobody
            ? 1.0
            : static_cast<double>(
                  membership(job_.communicators[at(scale->mean_over)], rank).group->size());
    for (double& each : numbers) each *= scale->factor / ranks;
    write(rank, scale->to, numbers);
  } else if (const auto* move = std::get_if<Move>(&action)) {
    write(rank, move->to, read(rank, move->from));
  } else if (const auto* packed = std::get_if<Pack>(&action)) {
    pack(rank, task, *packed);
  } else if (const auto* kernel = std::get_if<Compute>(&action)) {
    std::uint32_t seed = execute::seed_in(kernel->seed, task.micro_batch) + 2;
    for (const Slice& each : job_.actions_of(task).of(kernel->fills)) {
      Numbers numbers;
      for (std::int64_t i = 0; i < each.count; ++i)
        numbers.push_back(0.5 * static_cast<double>(operand_(rank, seed, i)));
      write(rank, each, numbers);
      ++seed;
    }
  } else if (!std::holds_alternative<Wait>(action) && !std::holds_alternative<Touch>(action) &&
             !std::holds_alternative<Call>(action) && !std::holds_alternative<Meet>(action)) {
    throw std::logic_error("an action that plain ranks do not know");
  }
}

void PlainRanks::pack(std::int32_t rank, const Task& task, const Pack& pack) {
  Numbers all;
  for (const Slice& each : job_.actions_of(task).of(pack.from))
    for (const double number : read(rank, each)) all.push_back(pack.factor * number);
  std::size_t next = 0;
  for (const Slice& each : job_.actions_of(task).of(pack.to)) {
    Numbers numbers = read(rank, each);
    for (double& number : numbers) {
      if (next < all.size())
        number = all[next];
      else if (pack.zeros_behind)
        number = 0;
      ++next;
    }
    write(rank, each, numbers);
  }
}

/// Once all of the group have come to a collective of the communicator.
bool PlainRanks::collect(std::int32_t rank, const Collective& collective) {
  const Communicator& communicator = job_.communicators[at(collective.communicator)];
  const std::vector<std::int32_t>& group = *membership(communicator, rank).group;
  std::vector<Collective> theirs;
  for (const std::int32_t each : group) {
    const Action* action = next_of(each);
    const auto* other = action == nullptr ? nullptr : std::get_if<Collective>(action);
    if (other == nullptr || other->communicator != collective.communicator) return false;
    theirs.push_back(*other);
  }
  std::vector<Numbers> inputs, outputs;
  for (std::size_t i = 0; i < group.size(); ++i) {
    inputs.push_back(read(group[i], theirs[i].from));
    outputs.push_back(read(group[i], theirs[i].to));
  }
  const bool in_place = collective.from == collective.to;
  std::vector<std::size_t> counts;
  for (const double count : read(rank, collective.counts))
    counts.push_back(static_cast<std::size_t>(count));
  if (counts.empty()) {
    const bool by_output = collective.what == Collectives::all_gather && in_place;
    const std::size_t whole = by_output ? outputs[0].size() : inputs[0].size();
    const std::size_t each = (whole + group.size() - 1) / group.size();
    for (std::size_t k = 0; k < group.size(); ++k) {
      const std::size_t rest = whole - std::min(whole, k * each);
      counts.push_back(collective.what == Collectives::all_gather && !in_place
                           ? inputs[0].size()
                           : std::min(each, rest));
    }
  }
  const std::vector<Numbers> results = results_of(collective, inputs, outputs, counts, in_place);
  for (std::size_t i = 0; i < group.size(); ++i) {
    write(group[i], theirs[i].to, results[i]);
    ++next_[at(group[i])];
    if (next_of(group[i]) == nullptr && ++rounds_[at(group[i])] < program_of(group[i]).rounds)
      next_[at(group[i])] = 0;
  }
  return true;
}

/// [place] what its output becomes.
std::vector<PlainRanks::Numbers> PlainRanks::results_of(const Collective& collective,
                                                        const std::vector<Numbers>& inputs,
                                                        const std::vector<Numbers>& outputs,
                                                        const std::vector<std::size_t>& counts,
                                                        bool in_place) const {
  const std::size_t ranks = inputs.size();
  std::vector<Numbers> results = outputs;
  Numbers sum(inputs[0].size(), 0.0);
  for (const Numbers& each : inputs)
    for (std::size_t i = 0; i < std::min(sum.size(), each.size()); ++i) sum[i] += each[i];
  if (collective.reduction == Reduction::mean)
    for (double& each : sum) each /= static_cast<double>(ranks);
  for (std::size_t me = 0; me < ranks; ++me) {
    std::size_t begin = 0;  // of the part of rank k
    if (collective.what == Collectives::broadcast) results[me] = inputs[at(collective.root)];
    if (collective.what == Collectives::all_reduce ||
        (collective.what == Collectives::all_gather && collective.reduction != Reduction::none)) {
      results[me] = sum;
      continue;
    }
    for (std::size_t k = 0; k < ranks; begin += counts[k], ++k)
      for (std::size_t i = 0; i < counts[k]; ++i) {
        if (collective.what == Collectives::all_gather)
          results[me][begin + i] = inputs[k][in_place ? begin + i : i];
        if (collective.what == Collectives::reduce_scatter && k == me)
          results[me][in_place ? begin + i : i] = sum[begin + i];
        if (collective.what == Collectives::all_to_all)
          results[me][begin + i] = inputs[k][me * counts[k] + i];
      }
  }
  return results;
}

PlainRanks::Numbers PlainRanks::read(std::int32_t rank, const Slice& slice) const {
  if (slice.empty()) return {};
  const Slice where = placed(job_, slice, rank);
  const auto begin = memory_[at(rank)][where.buffer].begin() + where.begin;
  return {begin, begin + where.count};
}

void PlainRanks::write(std::int32_t rank, const Slice& slice, const Numbers& numbers) {
  if (slice.empty()) return;
  const Slice where = placed(job_, slice, rank);
  std::ranges::copy(numbers, memory_[at(rank)][where.buffer].begin() + where.begin);
  for (const double number : numbers) largest_ = std::max(largest_, std::abs(number));
}

}  // namespace ddpsim::program
