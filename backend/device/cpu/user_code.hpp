#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "backend/execute/device.hpp"
#include "backend/plugin/plugins.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// Calls the user's own code on memory of a rank: what jobs have as Plugin.
class UserCode {
 public:
  /// `plugins` may be null, and must outlive this object.
  explicit UserCode(const Plugins* plugins) : plugins_(plugins) {}

  /// Whose parameters hooks are told the names and shapes of. `workload` must outlive its use.
  void load(const Workload& workload);

  /// Why the action cannot be done: nobody has brought the code, or its operands are not what such
  /// code works on. Empty: it can.
  std::string refusal(const program::Job& job, const program::Actions& actions,
                      const program::Plugin& plugin) const;
  /// Throws DeviceError for code that failed, threw, or asked for a gradient that it may not read.
  void run(const execute::Doing& doing, const program::Plugin& plugin) const;

 private:
  void call_hook(const execute::Doing& doing, const program::Plugin& plugin) const;
  void call_comm_hook(const execute::Doing& doing, const program::Plugin& plugin) const;

  const Plugins* plugins_;
  const Workload* workload_ = nullptr;
  std::unordered_map<std::string, std::int32_t> parameters_;  ///< by their names
};

}  // namespace ddpsim
