#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/comm_hooks/hook_data.hpp"
#include "backend/plugin/plugins.hpp"
#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// What comm hooks keep on this rank from step to step: a HookData for each comm hook and list of
/// buckets that a schedule has had.
class KeptHooks {
 public:
  /// `plugins` may be null, and must outlive this object.
  KeptHooks(int rank, int ranks, const Plugins* plugins)
      : rank_(rank), ranks_(ranks), plugins_(plugins) {}

  /// Null without a comm hook. Throws std::invalid_argument for a plugin's comm hook that is not
  /// there.
  HookData* of(const Schedule& schedule);
  void clear() { kept_.clear(); }

 private:
  struct Kept {
    std::string hook_state;  ///< Schedule::hook_state
    std::vector<std::vector<std::int32_t>> buckets;
    std::unique_ptr<HookData> data;
  };

  int rank_, ranks_;
  const Plugins* plugins_;
  std::vector<Kept> kept_;
};

}  // namespace ddpsim
