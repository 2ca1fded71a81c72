#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/cpu/float16.hpp"
#include "backend/device/cpu/cpu_device.hpp"
#include "backend/device/cpu/piece_values.hpp"
#include "backend/execute/memory.hpp"
#include "model/program/check.hpp"
#include "tests/model/parallel/hook_tasks.hpp"

namespace ddpsim {

/// [rank]: a bucket's values.
using PerRank = std::vector<std::vector<float>>;

/// The steps of a comm hook on all ranks, in one thread: what ranks compute by themselves CPUs do,
/// as in a real job, and collectives are done here, in the plainest way. What the hook keeps stays
/// from bucket to bucket and from step to step.
class HookedRanks {
 public:
  /// `seed`: of the hook's random numbers. `state`: as Job::state.
  HookedRanks(std::uint32_t seed, int ranks, std::string state = "hook")
      : seed_(seed), state_(std::move(state)) {
    for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(rank));
  }

  /// One iteration on one bucket, in place: `values` becomes every rank's result. `call` says all
  /// but the ranks.
  void run(const CommHook& hook, const CommBucket& bucket, HookCall call, std::int32_t index,
           PerRank& values) {
    call.ranks = static_cast<int>(ranks_.size());
    WrittenHook written = written_hook(hook, bucket, call, index);
    const program::Slice data = written.data;
    program::Job& job = written.memory.job;
    add_program(job, written.tasks);
    program::check(job);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r]->memory.arrange(job, ranks_[r]->device);
      ranks_[r]->device.begin(job, 0);
      std::ranges::copy(values[r], floats(ranks_[r]->memory.piece(data)).begin());
    }
    for (const program::Task& task : job.programs.front().tasks) {
      if (const auto* collective = std::get_if<program::Collective>(&job.deed_of(task).action)) {
        communicate(job, *collective);
        continue;
      }
      for (const auto& rank : ranks_) rank->device.run({job, task, rank->memory});
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      std::ranges::copy(floats(ranks_[r]->memory.piece(data)), values[r].begin());
      keep_error(job, index, *ranks_[r]);
    }
  }

  /// What PowerSGD lost of a bucket, as of its last step; empty: none yet.
  std::vector<float> error(std::size_t rank, std::int32_t bucket) const {
    const auto found = ranks_[rank]->errors.find(bucket);
    return found == ranks_[rank]->errors.end() ? std::vector<float>() : found->second;
  }
  /// As Device::overflows.
  std::int64_t overflows(std::size_t rank) { return ranks_[rank]->device.overflows(); }

 private:
  struct Rank {
    explicit Rank(int rank) : device(rank), memory(rank, std::int64_t{1} << 30) {}
    CpuDevice device;
    execute::Memory memory;
    std::map<std::int32_t, std::vector<float>> errors;  ///< [bucket]
  };

  /// The tasks one after the other, but for the optimizer and waits of the host.
  void add_program(program::Job& job, const std::vector<HookTask>& tasks) const {
    job.streams = {{.name = "host"}};
    job.programs.resize(1);
    job.program_of.assign(ranks_.size(), 0);
    job.state = state_;
    job.seed = seed_;
    const auto add = [&](const program::Action& action, const HookTask& task) {
      Work work;
      work.traffic = task.work.traffic;
      job.programs.front().tasks.push_back(
          {.work = static_cast<std::uint32_t>(job.works.size()),
           .deed = static_cast<std::uint32_t>(job.own.deeds.size())});
      job.works.push_back(work);
      job.own.deeds.push_back({action, {}});
    };
    for (const HookTask& task : tasks) {
      if (std::holds_alternative<program::Update>(task.action) ||
          std::holds_alternative<program::Wait>(task.action))
        continue;
      program::Action action = task.action;
      if (auto* collective = std::get_if<program::Collective>(&action))
        collective->communicator =
            communicator_in(job, static_cast<int>(ranks_.size()), task.work.group);
      add(action, task);
      if (task.then) add(*task.then, task);
    }
  }

  void communicate(const program::Job& job, const program::Collective& collective) {
    for (const auto& group : job.communicators[at(collective.communicator)].groups) {
      std::vector<execute::Piece> from, to;
      for (const std::int32_t rank : group) {
        from.push_back(ranks_[at(rank)]->memory.piece(collective.from));
        to.push_back(ranks_[at(rank)]->memory.piece(collective.to));
      }
      if (from.front().empty()) continue;
      communicate(collective, from, to);
    }
  }

  static void communicate(const program::Collective& collective,
                          const std::vector<execute::Piece>& from,
                          const std::vector<execute::Piece>& to) {
    const std::size_t ranks = from.size();
    const bool in_place = collective.from == collective.to;
    const std::int64_t part = (from.front().count + static_cast<std::int64_t>(ranks) - 1) /
                              static_cast<std::int64_t>(ranks);
    const auto part_of = [&](const execute::Piece& whole, std::size_t rank) {
      const std::int64_t begin = std::min(whole.count, static_cast<std::int64_t>(rank) * part);
      return whole.part(begin, std::min(part, whole.count - begin));
    };
    switch (collective.what) {
      case program::Collectives::all_reduce:
        return sum(from);
      case program::Collectives::reduce_scatter:  // leaves every rank its part, else garbage
        sum(from);
        for (std::size_t r = 0; r < ranks; ++r)
          for (std::size_t k = 0; k < ranks; ++k)
            if (k != r) std::ranges::fill(part_of(to[r], k).bytes(), std::byte{0x55});
        return;
      case program::Collectives::broadcast:
        for (std::size_t r = 1; r < ranks; ++r) copy(to[r], from.front());
        return;
      case program::Collectives::all_gather:
        if (collective.reduction != program::Reduction::none) return sum(from);
        for (std::size_t r = 0; r < ranks; ++r)
          for (std::size_t k = 0; k < ranks; ++k)
            if (in_place)
              copy(part_of(to[r], k), part_of(from[k], k));
            else
              copy(to[r].part(static_cast<std::int64_t>(k) * from[k].count, from[k].count),
                   from[k]);
        return;
      case program::Collectives::all_to_all:
        throw std::logic_error("no hook sends all to all");
    }
  }

  static void copy(const execute::Piece& to, const execute::Piece& from) {
    if (to.data != from.data) std::memcpy(to.data, from.data, from.bytes().size());
  }

  static void sum(const std::vector<execute::Piece>& pieces) {
    const execute::Piece& first = pieces.front();
    const auto count = static_cast<std::size_t>(first.count);
    for (std::size_t r = 1; r < pieces.size(); ++r) {
      if (size_of(first.type) == Bytes{2}) {
        add16(first.type, {reinterpret_cast<std::uint16_t*>(first.data), count},
              {reinterpret_cast<const std::uint16_t*>(pieces[r].data), count});
        continue;
      }
      const std::span<float> into = floats(first), more = floats(pieces[r]);
      for (std::size_t i = 0; i < count; ++i) into[i] += more[i];
    }
    for (const execute::Piece& each : pieces) copy(each, first);
  }

  static void keep_error(const program::Job& job, std::int32_t index, Rank& rank) {
    const bool corrects = std::ranges::any_of(job.own.deeds, [&](const program::Deed& deed) {
      const auto* combine = std::get_if<program::Combine>(&deed.action);
      return combine != nullptr && name_of(job, combine->to) == "error";
    });
    if (!corrects) return;
    for (program::BufferId id = 0; id < job.buffers.size(); ++id) {
      const program::Slice whole{.buffer = id, .count = job.buffers[id].elements};
      if (name_of(job, whole) != "error") continue;
      std::vector<float>& kept = rank.errors[index];
      kept.resize(static_cast<std::size_t>(whole.count));
      values_of(rank.memory.piece(whole)).each([&](std::span<const float> piece, std::size_t at) {
        std::ranges::copy(piece, kept.begin() + static_cast<std::ptrdiff_t>(at));
      });
    }
  }
  static std::string name_of(const program::Job& job, const program::Slice& slice) {
    return job.labels[at(job.buffers[slice.buffer].name)];
  }

  std::uint32_t seed_;
  std::string state_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace ddpsim
