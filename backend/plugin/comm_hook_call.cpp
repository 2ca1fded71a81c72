#include "backend/plugin/comm_hook_call.hpp"

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

void call_before(const Plugins& plugins, const std::string& name, std::span<const float> bucket,
                 int ranks, std::span<std::byte> payload) {
  const Plugins::CommHook& code = *plugins.comm_hook(name);
  guarded(name, [&] {
    code.calls.before(code.state, bucket.data(), static_cast<std::int64_t>(bucket.size()), ranks,
                      payload.data());
  });
}

void call_after(const Plugins& plugins, const std::string& name, std::span<const std::byte> payload,
                int ranks, std::span<float> bucket) {
  const Plugins::CommHook& code = *plugins.comm_hook(name);
  guarded(name, [&] {
    code.calls.after(code.state, payload.data(), static_cast<std::int64_t>(bucket.size()), ranks,
                     bucket.data());
  });
}

}  // namespace ddpsim
