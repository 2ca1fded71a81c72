#include "backend/plugin/plugins.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <stdexcept>

#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/plugin/exit_guard.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t longest_name = 100, most_hooks = 1000;

/// What one library registers. Nothing may be thrown through it: the first problem is kept.
struct Registration {
  std::map<std::string, Plugins::GradientHook> gradient_hooks;
  std::map<std::string, Plugins::CommHook> comm_hooks;
  std::string problem;

  void fail(std::string text) {
    if (problem.empty()) problem = std::move(text);
  }
  /// Is `given` a name that a hook may have? If not, the first problem is kept.
  bool name(const char* given) {
    if (given == nullptr) {
      fail("it registers a hook without a name");
      return false;
    }
    const std::string_view text(given);
    const bool printable = std::all_of(text.begin(), text.end(), [](char c) {
      return std::isprint(static_cast<unsigned char>(c)) != 0;
    });
    if (text.empty() || text.size() > longest_name || !printable)
      fail(fmt::format("a hook's name is 1 to {} printable characters", longest_name));
    else if (gradient_hooks.size() + comm_hooks.size() >= most_hooks)
      fail(fmt::format("it registers more than {} hooks", most_hooks));
    return problem.empty();
  }
};

Registration& of(const ddpsim_registry* registry) {
  return *static_cast<Registration*>(registry->host);
}

void add_gradient_hook(ddpsim_registry* registry, const char* name, ddpsim_gradient_hook hook,
                       void* state) noexcept try {
  Registration& to = of(registry);
  if (!to.name(name)) return;
  if (hook == nullptr) return to.fail(fmt::format("gradient hook \"{}\" is no function", name));
  if (!to.gradient_hooks.emplace(name, Plugins::GradientHook{hook, state}).second)
    to.fail(fmt::format("it registers gradient hook \"{}\" twice", name));
} catch (...) {
}

void add_comm_hook(ddpsim_registry* registry, const char* name, const ddpsim_comm_hook* hook,
                   void* state) noexcept try {
  Registration& to = of(registry);
  if (!to.name(name)) return;
  if (hook == nullptr || hook->before == nullptr || hook->after == nullptr)
    return to.fail(fmt::format("comm hook \"{}\" lacks a function", name));
  if (hook->payload_type < DDPSIM_FLOAT32 || hook->payload_type > DDPSIM_BFLOAT16)
    return to.fail(
        fmt::format("comm hook \"{}\" has payload type {}: expected 0 (float32), 1 (float16) or 2 "
                    "(bfloat16)",
                    name, hook->payload_type));
  if (!to.comm_hooks.emplace(name, Plugins::CommHook{*hook, state}).second)
    to.fail(fmt::format("it registers comm hook \"{}\" twice", name));
} catch (...) {
}

/// One line, as the user's terminal shall see it.
std::string one_line(const char* text) {
  std::string line(text == nullptr ? "no reason given" : text);
  for (char& c : line)
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
  return line.substr(0, 400);
}

template <typename Function>
Function symbol(void* library, const char* name, const std::string& file) {
  void* found = dlsym(library, name);
  if (found == nullptr)
    throw std::invalid_argument(fmt::format(
        "--plugin {}: it has no function {}: does its source use DDPSIM_PLUGIN of ddpsim_plugin.h?",
        file, name));
  return reinterpret_cast<Function>(found);
}

template <typename Hooks>
std::string names_of(const Hooks& hooks) {
  std::string text;
  for (const auto& [name, hook] : hooks) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

void Plugins::load(const std::filesystem::path& file) {
  const std::string shown = file.string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored))
    throw std::invalid_argument(fmt::format("--plugin {}: no such file", shown));
  const ExitGuard guard("the plugin", shown);
  // An absolute path: no library of that name elsewhere is meant.
  void* handle = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw std::invalid_argument(fmt::format("--plugin {}: {}", shown, one_line(dlerror())));
  const std::shared_ptr<void> library(handle, dlclose);
  const auto version = symbol<int32_t (*)()>(handle, "ddpsim_plugin_version", shown);
  const auto enter = symbol<void (*)(ddpsim_registry*)>(handle, "ddpsim_plugin_register", shown);
  Registration registration;
  ddpsim_registry registry{add_gradient_hook, add_comm_hook, &registration};
  int32_t theirs = 0;
  try {
    theirs = version();
    if (theirs == DDPSIM_PLUGIN_VERSION) enter(&registry);
  } catch (const std::exception& problem) {
    registration.fail("registering it threw: " + one_line(problem.what()));
  } catch (...) {
    registration.fail("registering it threw an exception");
  }
  if (theirs != DDPSIM_PLUGIN_VERSION)
    registration.fail(fmt::format(
        "it is of version {} of ddpsim_plugin.h, and this ddpsim of version {}: compile "
        "it again",
        theirs, DDPSIM_PLUGIN_VERSION));
  if (registration.gradient_hooks.empty() && registration.comm_hooks.empty())
    registration.fail("it registers no hook");
  for (const auto& [name, hook] : registration.gradient_hooks)
    if (gradient_hooks_.count(name) > 0)
      registration.fail(fmt::format("gradient hook \"{}\" is in another plugin too", name));
  for (const auto& [name, hook] : registration.comm_hooks)
    if (comm_hooks_.count(name) > 0)
      registration.fail(fmt::format("comm hook \"{}\" is in another plugin too", name));
  if (!registration.problem.empty())
    throw std::invalid_argument(fmt::format("--plugin {}: {}", shown, registration.problem));
  libraries_.push_back(library);
  gradient_hooks_.merge(registration.gradient_hooks);
  comm_hooks_.merge(registration.comm_hooks);
}

const Plugins::GradientHook* Plugins::gradient_hook(const std::string& name) const {
  const auto found = gradient_hooks_.find(name);
  return found == gradient_hooks_.end() ? nullptr : &found->second;
}

const Plugins::CommHook* Plugins::comm_hook(const std::string& name) const {
  const auto found = comm_hooks_.find(name);
  return found == comm_hooks_.end() ? nullptr : &found->second;
}

void Plugins::refuse(const char* kind, const std::string& name, const std::string& known) const {
  throw std::invalid_argument(
      libraries_.empty()
          ? fmt::format("the {} hook \"{}\" is a plugin's: say --plugin LIBRARY", kind, name)
          : fmt::format("no plugin has a {} hook \"{}\"; there are: {}", kind, name, known));
}

void Plugins::check_gradient_hook(const std::string& name) const {
  if (gradient_hook(name) == nullptr) refuse("gradient", name, names_of(gradient_hooks_));
}

void Plugins::check_comm_hook(const std::string& name, DType payload) const {
  if (comm_hook(name) == nullptr) refuse("comm", name, names_of(comm_hooks_));
  constexpr std::array types{DType::fp32, DType::fp16, DType::bf16};
  const DType theirs = types[static_cast<std::size_t>(comm_hook(name)->calls.payload_type)];
  if (theirs != payload)
    throw std::invalid_argument(
        fmt::format("the plugin's comm hook \"{0}\" sends {1}, and the scenario says {2}: write "
                    "comm_hook: {{plugin: {{name: {0}, payload: {1}}}}}",
                    name, name_of(theirs), name_of(payload)));
}

}  // namespace ddpsim
