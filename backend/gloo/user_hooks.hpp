#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/device/cpu/chunk_pool.hpp"
#include "backend/gloo/memory.hpp"
#include "backend/plugin/gradient_hook_call.hpp"
#include "backend/plugin/plugins.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Does on the host thread of one rank what the user's hooks do (user_hook.hpp) to the gradients of
/// the micro-batch under way.
///
///     clip     all x min(1, norm / (|all| + 1e-6)), as torch's clip_grad_norm_
///     noise    normal numbers that are a function of (seed, rank, parameter, micro-batch,
///              element), so a step repeats its gradients
///     chunks   the layer's output copied by a pool of threads, piece by piece
///
/// Keeps track of which gradients are complete: a plugin that asks for another one gets an error.
class UserHooks {
 public:
  /// `plugins` may be null; all must outlive this object.
  UserHooks(const Workload& workload, int rank, int ranks, Memory& memory, const Plugins* plugins);

  /// The tasks of `schedule` are to be done, from the first. Throws std::invalid_argument for a
  /// plugin's hook that is not there.
  void begin(const Schedule& schedule);
  /// A backward kernel has ended: the gradients it completes are there.
  void computed(const Task& backward);
  /// A bucket is being reduced: gradients that lie in it are no longer to be read.
  void handed_over(const Bucket& bucket);
  /// Throws DeviceError for a plugin's hook that failed or asked for what is not ready.
  void run(const Schedule& schedule, const Task& task);

 private:
  /// Why `parameter` cannot be read in this micro-batch; empty: it can.
  std::string not_ready(std::int32_t parameter, int micro_batch) const;
  /// The gradient of the parameter of this name, for a plugin.
  OtherGradient readable(const std::string& name, int micro_batch) const;
  void clip(const std::vector<std::int32_t>& group, int micro_batch, double norm);
  void call_plugin(const UserHook& hook, const Task& task);

  enum class State : std::uint8_t { coming, complete, handed_over };
  struct Progress {
    int micro_batch = -1;
    State state = State::coming;
  };

  const Workload& workload_;
  int rank_, ranks_;
  Memory& memory_;
  const Plugins* plugins_;
  std::unordered_map<std::string, std::int32_t> index_of_;         // parameter
  std::vector<std::vector<std::vector<std::int32_t>>> completes_;  // [layer][backward kernel]
  bool watches_ = false;                                           // there is a plugin that may ask
  std::vector<Progress> progress_;                                 // [parameter]
  std::map<int, ChunkPool> pools_;                                 // by threads
  std::vector<float> output_;                                      // what chunks are copied to
};

}  // namespace ddpsim
