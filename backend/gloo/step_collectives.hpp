#pragma once

#include <mutex>
#include <vector>

#include "backend/backend.hpp"
#include "backend/comm_hooks/hook_data.hpp"
#include "backend/gloo/memory.hpp"
#include "backend/job/communicator.hpp"

namespace ddpsim {

/// Makes the collectives of one step on the buckets of `memory`, and counts what it hands to them.
/// Several threads may be at different tasks, each with a tag of its own.
class StepCollectives {
 public:
  /// `hook_data`: null without a comm hook. All must outlive this object.
  StepCollectives(Communicator& communicator, Memory& memory, HookData* hook_data,
                  const Schedule& schedule)
      : communicator_(communicator), memory_(memory), hook_data_(hook_data), schedule_(schedule) {}

  /// A collective task.
  void run(std::uint32_t index, std::uint32_t tag);

  /// What this rank has handed over so far.
  Sent sent() const;

 private:
  void reduce(std::uint32_t index, std::uint32_t tag);
  void broadcast(std::uint32_t index, std::uint32_t tag);
  void gather_sparse(const Task& task, std::uint32_t tag);
  void run_hook_step(const Task& task, std::uint32_t tag);
  void communicate(const Task& task, const CommStep& step, const HookData::Payload& payload,
                   std::uint32_t tag);
  void all_reduce(const HookData::Payload& payload, std::uint32_t tag);
  std::vector<int> everyone() const;
  std::vector<int> group_of(int size) const;
  void count(std::size_t bytes);

  Communicator& communicator_;
  Memory& memory_;
  HookData* hook_data_;
  const Schedule& schedule_;
  mutable std::mutex counting_;
  Sent sent_;
};

}  // namespace ddpsim
