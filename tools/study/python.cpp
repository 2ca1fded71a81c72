#include "tools/study/python.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/thread_limits.hpp"
#include "model/base/printable.hpp"
#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::optional<fs::path> executable(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error) || ::access(path.c_str(), X_OK) != 0) return std::nullopt;
  return path;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<fs::path> on_path(const std::string& program) {
  std::istringstream folders(environment("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (auto found = executable(fs::path(folder.empty() ? "." : folder) / program)) return found;
  return std::nullopt;
}

fs::path own_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

/// The Python of the virtual environment that this program is installed in.
std::optional<fs::path> beside_program() {
  const fs::path folder = own_program().parent_path();
  std::error_code error;
  if (!fs::exists(folder.parent_path() / "pyvenv.cfg", error)) return std::nullopt;
  return executable(folder / "python3");
}

/// Three lines: Python's version; torch's, or nothing; whether the package is found.
constexpr const char* question =
    "import importlib.util, importlib.metadata, sys\n"
    "def has(name):\n"
    "    try: return importlib.util.find_spec(name) is not None\n"
    "    except ModuleNotFoundError: return False\n"
    "torch = ''\n"
    "if has('torch'):\n"
    "    try: torch = importlib.metadata.version('torch')\n"
    "    except importlib.metadata.PackageNotFoundError: torch = 'of unknown version'\n"
    "print('.'.join(map(str, sys.version_info[:3])))\n"
    "print(torch)\n"
    "print('yes' if has('ddpsim.describe') else 'no')\n";

/// A program's process; killed if it has not ended with this object.
class Child {
 public:
  /// Its stdout goes to `out`, the rest to nowhere. Throws InputError if it cannot be started.
  Child(const fs::path& program, std::vector<std::string> words, int out) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int problem =
        ::posix_spawn(&id_, program.c_str(), &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (problem == EAGAIN || problem == ENOMEM)
      throw DeviceError(fmt::format("{} cannot be started: {} ({})", program.string(),
                                    std::strerror(problem), what_limits_threads));
    if (problem != 0)
      throw InputError(fmt::format("{}: {}", program.string(), std::strerror(problem)));
  }
  ~Child() {
    if (ended_) return;
    ::kill(id_, SIGKILL);
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The exit code, or 128 and more if a signal ended it; none if it has not ended by then.
  std::optional<int> wait_until(Clock::time_point end) {
    for (;;) {
      int status = 0;
      const pid_t found = ::waitpid(id_, &status, WNOHANG);
      if (found == id_) {
        ended_ = true;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      if ((found < 0 && errno != EINTR) || Clock::now() >= end) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
  }

 private:
  pid_t id_ = 0;
  bool ended_ = false;
};

/// An open file of the system.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

/// What `program` prints, at most a few lines of it; none if it has not closed its stdout in time.
std::optional<std::string> read_until(int from, Clock::time_point end) {
  constexpr std::size_t most = 4096;
  std::string text;
  std::array<char, 512> bytes{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd ready{from, POLLIN, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(std::max<long>(0, left.count())));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    const ssize_t got = ::read(from, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(got));
    if (text.size() > most) return text;
  }
}

}  // namespace

fs::path python_program() {
  if (const std::string named = environment("DDPSIM_PYTHON"); !named.empty()) {
    const auto found = named.find('/') == std::string::npos ? on_path(named) : executable(named);
    if (found) return *found;
    throw InputError(fmt::format("DDPSIM_PYTHON={}: no such program", named));
  }
  if (const std::string active = environment("VIRTUAL_ENV"); !active.empty())
    if (const auto found = executable(fs::path(active) / "bin/python3")) return *found;
  if (const auto found = beside_program()) return *found;
  if (const auto found = on_path("python3")) return *found;
  throw InputError(
      "Python with PyTorch 2 is needed: there is no python3 on PATH; install one, or set "
      "DDPSIM_PYTHON to the path of one");
}

void let_python_find_package() {
  std::error_code error;
  const fs::path program = own_program();
  for (const fs::path& folder :
       {program.parent_path().parent_path() / "share/ddpsim/python", fs::path(DDPSIM_PYTHON_DIR)}) {
    if (!fs::is_directory(folder / "ddpsim/describe", error)) continue;
    const std::string before = environment("PYTHONPATH");
    const std::string all = folder.string() + (before.empty() ? "" : ":" + before);
    ::setenv("PYTHONPATH", all.c_str(), 1);
    return;
  }
}

Python look_at_python(const fs::path& program, std::chrono::milliseconds timeout) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw InputError(fmt::format("{}: {}", program.string(), std::strerror(errno)));
  Descriptor from(ends[0]), to(ends[1]);
  Child child(program, {program.string(), "-c", question}, to.number());
  to.close();
  const Clock::time_point end = Clock::now() + timeout;
  const std::optional<std::string> answer = read_until(from.number(), end);
  from.close();
  const std::optional<int> code = answer ? child.wait_until(end) : std::nullopt;
  if (!code)
    throw InputError(fmt::format("{} does not answer within {:.0f} s", program.string(),
                                 std::chrono::duration<double>(timeout).count()));
  std::istringstream lines(*answer);
  Python python{program, {}, {}, false};
  std::string package;
  const bool whole = std::getline(lines, python.version) && std::getline(lines, python.torch) &&
                     std::getline(lines, package);
  if (!whole || *code != 0 || python.version.empty() || (package != "yes" && package != "no"))
    throw InputError(
        fmt::format("{} is no Python: it does not answer as one does", program.string()));
  for (std::string* text : {&python.version, &python.torch}) *text = printable(*text);
  python.has_package = package == "yes";
  return python;
}

}  // namespace ddpsim
