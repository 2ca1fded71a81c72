#include "backend/gloo/plugin_comm_hook.hpp"

#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "backend/plugin/exit_guard.hpp"

namespace ddpsim {
namespace {

/// Makes `call`, which runs code of the hook of this name.
template <typename Call>
void guarded(const std::string& name, Call call) {
  const ExitGuard guard("the plugin's comm hook", name);
  try {
    call();
  } catch (const std::exception& problem) {
    throw DeviceError(fmt::format("the plugin's comm hook \"{}\" threw: {}", name,
                                  std::string(problem.what()).substr(0, 400)));
  } catch (...) {
    throw DeviceError(fmt::format("the plugin's comm hook \"{}\" threw an exception", name));
  }
}

}  // namespace

HookData::Plugin plugin_comm_hook(const Plugins* plugins, const std::string& name,
                                  DType payload_type, int ranks) {
  (plugins != nullptr ? *plugins : Plugins()).check_comm_hook(name, payload_type);
  const Plugins::CommHook code = *plugins->comm_hook(name);
  HookData::Plugin calls;
  calls.before = [name, code, ranks](const float* bucket, std::int64_t count,
                                     std::span<std::byte> payload) {
    guarded(name, [&] { code.calls.before(code.state, bucket, count, ranks, payload.data()); });
  };
  calls.after = [name, code, ranks](float* bucket, std::int64_t count,
                                    std::span<const std::byte> payload) {
    guarded(name, [&] { code.calls.after(code.state, payload.data(), count, ranks, bucket); });
  };
  return calls;
}

}  // namespace ddpsim
