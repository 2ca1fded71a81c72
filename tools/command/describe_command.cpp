// The capture itself is Python (python/ddpsim/describe): this finds an interpreter that has PyTorch
// and becomes it.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenarios/reader/input_error.hpp"
#include "tools/command/command.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

const Usage usage{
    "ddpsim describe [flags] MODEL.py:FUNCTION",
    "Captures one training step of a PyTorch model without running it: no GPU, no weights, no "
    "data. FUNCTION returns\n"
    "(model, batch, loss) or (model, batch, loss, optimizer). What is written is a workload "
    "description, which\n"
    "`ddpsim run` prices on any device: ddpsim run model.yaml --cluster dgx-h100.\n"
    "It needs Python with PyTorch 2: the one that DDPSIM_PYTHON names, else that of the active "
    "virtual environment,\n"
    "else python3. Flags are handed on to its module ddpsim.describe: -o FILE, where to write; "
    "--batch N, handed to a\n"
    "FUNCTION that takes it; --autocast bf16|fp16; --attention flash|efficient|math; --optimizer "
    "NAME; --micro-batches N;\n"
    "--allow-unknown, which prices operations without a rule by their bytes; --fused, a bound of "
    "what a compiler saves.",
    "ddpsim describe scenarios/examples/torch_model.py:make -o model.yaml"};

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

/// Throws InputError if there is none.
fs::path interpreter() {
  if (const std::string named = environment("DDPSIM_PYTHON"); !named.empty()) {
    const auto found = named.find('/') == std::string::npos ? on_path(named) : executable(named);
    if (found) return *found;
    throw InputError(fmt::format("DDPSIM_PYTHON={}: no such program", named));
  }
  if (const std::string active = environment("VIRTUAL_ENV"); !active.empty())
    if (const auto found = executable(fs::path(active) / "bin/python3")) return *found;
  if (const auto found = on_path("python3")) return *found;
  throw InputError(
      "describe needs Python with PyTorch 2: there is no python3 on PATH; install one, or set "
      "DDPSIM_PYTHON to the path of one");
}

/// The folder that holds the Python package, as it is installed beside the program or lies in the
/// source tree; none where Python itself knows the package.
std::optional<fs::path> package_folder() {
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder :
       {program.parent_path().parent_path() / "share/ddpsim/python", fs::path(DDPSIM_PYTHON_DIR)})
    if (fs::is_directory(folder / "ddpsim/describe", error)) return folder;
  return std::nullopt;
}

void put_on_python_path(const fs::path& folder) {
  const std::string before = environment("PYTHONPATH");
  const std::string all = folder.string() + (before.empty() ? "" : ":" + before);
  ::setenv("PYTHONPATH", all.c_str(), 1);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

/// The exit code of a program that says nothing.
int silent_exit_code(const fs::path& program, std::vector<std::string> words) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int problem =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, pointers(words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0)
    throw InputError(fmt::format("{}: {}", program.string(), std::strerror(problem)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : exit_failure;
}

/// Throws InputError, in a line, where a module is missing. Looks for them without importing them.
void check_modules(const fs::path& python) {
  constexpr int no_torch = 3, no_ddpsim = 4;
  const int code = silent_exit_code(
      python, {python.string(), "-c",
               fmt::format("import importlib.util, sys\n"
                           "if importlib.util.find_spec('torch') is None: sys.exit({})\n"
                           "try: found = importlib.util.find_spec('ddpsim.describe')\n"
                           "except ModuleNotFoundError: found = None\n"
                           "sys.exit({} if found is None else 0)\n",
                           no_torch, no_ddpsim)});
  if (code == no_torch)
    throw InputError(
        fmt::format("describe needs PyTorch 2: {} has no module torch; run {} -m pip install "
                    "torch, or set DDPSIM_PYTHON to a Python that has it",
                    python.string(), python.string()));
  if (code == no_ddpsim)
    throw InputError(fmt::format(
        "describe needs the Python package ddpsim: {} does not find it; run {} -m pip install .",
        python.string(), python.string()));
  if (code != 0) throw InputError(fmt::format("{} does not run Python", python.string()));
}

}  // namespace

int describe_command(const std::vector<std::string>& arguments) {
  const bool help = std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word == "--help" || word == "-h";
  });
  if (help) {
    CommonOptions options;
    parse({"--help"}, usage, 0, {}, options);
    return exit_done;
  }
  if (arguments.empty()) throw InputError("describe needs a model: " + usage.example);
  if (const auto folder = package_folder()) put_on_python_path(*folder);
  const fs::path python = interpreter();
  check_modules(python);
  std::vector<std::string> words{python.string(), "-m", "ddpsim.describe"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ::execv(python.c_str(), pointers(words).data());
  throw std::runtime_error(fmt::format("{}: {}", python.string(), std::strerror(errno)));
}

}  // namespace ddpsim
