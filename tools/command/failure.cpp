#include "tools/command/failure.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "tools/command/command.hpp"
#include "tools/report/writers/notes.hpp"

namespace ddpsim {
namespace {

constexpr const char* no_memory =
    "there is not enough memory for this: ulimit -v may limit it; fewer --jobs, a smaller scenario "
    "or fewer strategies (--set compare=[bucketed]) need less";

[[noreturn]] void end_in_one_line() {
  int code = exit_machine;
  try {
    if (const std::exception_ptr problem = std::current_exception())
      std::rethrow_exception(problem);
    draw("ddpsim: a thread could not be ended\n");
  } catch (const std::bad_alloc&) {
    draw("ddpsim: there is not enough memory for this\n");  // none to make a text of either
  } catch (const std::exception& problem) {
    note("ddpsim: {}", failure_text(problem));
    code = failure_code_of(problem);
  } catch (...) {
    draw("ddpsim: an exception of unknown type\n");
    code = exit_failure;
  }
  std::_Exit(code);
}

}  // namespace

std::string failure_text(const std::exception& problem) {
  if (dynamic_cast<const std::bad_alloc*>(&problem) != nullptr) return no_memory;
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&problem))
    return fmt::format("{}: {}", file->path1().empty() ? "a file" : file->path1().string(),
                       file->code().message());
  if (const auto* system = dynamic_cast<const std::system_error*>(&problem)) {
    if (system->code() == std::errc::resource_unavailable_try_again)
      return "no more threads can be started: ulimit -u and ulimit -v limit them";
    return fmt::format("the operating system refuses: {}", system->what());
  }
  return problem.what();
}

int failure_code_of(const std::exception& problem) {
  const bool machine = dynamic_cast<const DeviceError*>(&problem) != nullptr ||
                       dynamic_cast<const std::bad_alloc*>(&problem) != nullptr ||
                       dynamic_cast<const std::system_error*>(&problem) != nullptr;
  return machine ? exit_machine : exit_failure;
}

void expect_failures() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(end_in_one_line);
}

}  // namespace ddpsim
