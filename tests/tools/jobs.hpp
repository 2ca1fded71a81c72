#pragma once

#include <chrono>
#include <fstream>
#include <thread>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "tests/tools/program.hpp"

namespace ddpsim {

/// A small scenario for real runs.
inline const char* small_mlp =
    "name: small\n"
    "workload:\n"
    "  model: {family: mlp, widths: [64, 96, 64, 32]}\n"
    "  batch: 8\n"
    "  dtype: fp32\n"
    "  optimizer: sgd\n"
    "cluster:\n"
    "  device: generic-cpu\n"
    "  launch: sync\n"
    "  ranks_per_node: 2\n"
    "  intra_node: {latency: 30 us, bandwidth: 1 GB/s}\n"
    "training: {bucket_cap: 16 KiB, first_bucket_cap: 4 KiB}\n";

/// Flags with which `validate` predicts from a calibration of `scenario` instead of measuring
/// first. It is made once, beside the scenario, and quickly: two sizes of all-reduces, no
/// interference, no hooks.
inline std::vector<std::string> quickly_calibrated(const std::filesystem::path& scenario) {
  const std::filesystem::path file = scenario.parent_path() / "quick-calibration.yaml";
  if (!std::filesystem::exists(file)) {
    const Outcome made =
        ddpsim({"calibrate", scenario.string(), "--backend", "threads", "--ranks", "2", "--repeats",
                "1", "--smallest", "128 KiB", "--largest", "256 KiB", "--set", "training.hooks=[]",
                "-o", file.string(), "--quiet"});
    if (made.code != 0) throw std::runtime_error("no calibration: " + made.err);
  }
  return {"--calibration", file.string()};
}

/// The shipped example of two ranks in a folder of its own, where quickly_calibrated() writes.
inline std::filesystem::path example_in(const Scratch& scratch) {
  const std::filesystem::path file = scratch.path("mlp-2ranks.yaml");
  std::filesystem::copy_file(shipped("examples/mlp-2ranks.yaml"), file,
                             std::filesystem::copy_options::skip_existing);
  return file;
}

/// The processes started by `parent`, and by those.
inline std::vector<pid_t> descendants(pid_t parent) {
  std::vector<pid_t> found;
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  for (pid_t child = 0; file >> child;) {
    found.push_back(child);
    for (const pid_t deeper : descendants(child)) found.push_back(deeper);
  }
  return found;
}

/// How long a process has used processors.
inline std::chrono::milliseconds processor_time(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  long user = 0, system = 0;  // the 14th and 15th field; the name was the second
  for (int field = 3; field < 14; ++field) fields >> skipped;
  fields >> user >> system;
  return std::chrono::milliseconds{1000 * (user + system) / sysconf(_SC_CLK_TCK)};
}

/// Waits until `condition` holds; false after 30 seconds.
template <typename Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return false;
}

/// What a program under way has said on stderr; nothing before it has opened that.
inline std::string said_by(const Running& running) {
  try {
    return running.err_so_far();
  } catch (const std::runtime_error&) {
    return "";
  }
}

/// A socket on a free port of the loopback address, closed with it; `listening`: it accepts, and
/// never answers.
class LocalPort {
 public:
  explicit LocalPort(bool listening) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, generic, size) != 0 || (listening && listen(socket_, 8) != 0) ||
        getsockname(socket_, generic, &size) != 0)
      throw std::runtime_error("no free port");
    number_ = ntohs(address.sin_port);
  }
  ~LocalPort() { close(socket_); }
  LocalPort(const LocalPort&) = delete;
  LocalPort& operator=(const LocalPort&) = delete;
  std::string number() const { return std::to_string(number_); }

 private:
  int socket_;
  int number_ = 0;
};

/// Programs that are never done, one for each processor, as long as this object lives.
class BusyLoops {
 public:
  BusyLoops() {
    for (long loop = 0; loop < sysconf(_SC_NPROCESSORS_ONLN); ++loop) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(180);
        for (volatile bool never = false; !never;) {
        }
      }
      loops_.push_back(child);
    }
  }
  ~BusyLoops() {
    for (const pid_t loop : loops_) {
      kill(loop, SIGKILL);
      waitpid(loop, nullptr, 0);
    }
  }
  BusyLoops(const BusyLoops&) = delete;
  BusyLoops& operator=(const BusyLoops&) = delete;

 private:
  std::vector<pid_t> loops_;
};

inline bool alive(pid_t process) {
  return kill(process, 0) == 0;
}

}  // namespace ddpsim
