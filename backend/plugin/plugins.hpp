#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/plugin/ddpsim_plugin.h"
#include "model/base/dtype.hpp"

namespace ddpsim {

/// The shared libraries a user brings (ddpsim_plugin.h), open as long as this object lives.
class Plugins {
 public:
  struct GradientHook {
    ddpsim_gradient_hook call = nullptr;
    void* state = nullptr;
  };
  struct CommHook {
    ddpsim_comm_hook calls{};
    void* state = nullptr;
  };

  /// Opens a library and lets it register its hooks. Throws std::invalid_argument: one line that
  /// names the file and what is wrong with it (cannot be opened, no such symbol, another version,
  /// no hooks, a name that is taken).
  void load(const std::filesystem::path& file);

  /// The hook of that name; null if no plugin has registered one.
  const GradientHook* gradient_hook(const std::string& name) const;
  const CommHook* comm_hook(const std::string& name) const;

  /// Throws std::invalid_argument, naming what there is instead, if no plugin has the gradient
  /// hook.
  void check_gradient_hook(const std::string& name) const;
  /// The check of a comm hook; throws too if the hook sends another type of payload.
  void check_comm_hook(const std::string& name, DType payload) const;

 private:
  [[noreturn]] void refuse(const char* kind, const std::string& name,
                           const std::string& known) const;

  std::vector<std::shared_ptr<void>> libraries_;
  std::map<std::string, GradientHook> gradient_hooks_;
  std::map<std::string, CommHook> comm_hooks_;
};

}  // namespace ddpsim
