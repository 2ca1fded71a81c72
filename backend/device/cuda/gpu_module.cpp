#include "backend/device/cuda/gpu_module.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

const GpuModule& module() {
  static const auto* loaded = reinterpret_cast<const GpuModule*>(load_module("gpu"));
  return *loaded;
}

}  // namespace

int gpu_count() {
  return module().count();
}

std::unique_ptr<Gpu> make_gpu(int device, std::chrono::milliseconds timeout) {
  return module().make(device, timeout);
}

GpuLook look_for_gpus() {
  GpuLook look;
  look.problem = "looking for GPUs failed";
  int answer[2];
  if (pipe(answer) != 0) return look;
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = fmt::format("{}", gpu_count());
    } catch (const std::exception& problem) {
      text = problem.what();
    }
    const bool told =
        write(answer[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(told ? 0 : 1);
  }
  close(answer[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got; (got = ::read(answer[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(answer[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (child < 0 || status != 0 || text.empty()) return look;
  look.problem.clear();
  if (text.find_first_not_of("0123456789") != std::string::npos)
    look.problem = text;
  else
    look.count = std::stoi(text);
  if (look.problem.empty() && look.count == 0)
    look.problem = "there is no NVIDIA GPU on this machine";
  return look;
}

}  // namespace ddpsim
