#include "backend/job/rank_failure.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/thread_limits.hpp"
#include "model/base/printable.hpp"

namespace ddpsim {
namespace {

constexpr int invalid_code = 2;
constexpr int most_reports = 8;  // one of them tells what is wrong; a thousand bury it

}  // namespace

void print_line(std::string line) {
  line = "ddpsim: " + printable(line) + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

void note_code(FirstFailure& first, int code) {
  int none = 0;
  if (code != 0) first.code.compare_exchange_strong(none, code);
}

int report_failure(int rank, FirstFailure& first, int code, const char* reason) {
  note_code(first, code);  // before the line, which may take its time to be written
  if (first.reports++ < most_reports) print_line(fmt::format("rank {}: {}", rank, reason));
  return code;
}

void say_how_many_more(const FirstFailure& first) {
  if (const int more = first.reports - most_reports; more > 0)
    print_line(fmt::format("{} more rank{} failed", more, more == 1 ? "" : "s"));
}

int code_of_rank(int rank, FirstFailure& first, const std::function<int(int rank)>& body) noexcept {
  try {
    const int returned = body(rank);
    const int code = returned >= 0 && returned <= 255 ? returned : failure_code;
    note_code(first, code);
    return code;
  } catch (const std::invalid_argument& problem) {
    // All ranks were given the same input. Its connections are closed by now, so that a peer may
    // have failed before.
    first.code = invalid_code;
    return report_failure(rank, first, invalid_code, problem.what());
  } catch (const std::bad_alloc&) {
    return report_failure(rank, first, failure_code,
                          "there is not enough memory for this (ulimit -v may limit it)");
  } catch (const std::system_error& problem) {
    const bool thread = problem.code() == std::errc::resource_unavailable_try_again;
    return report_failure(rank, first, failure_code,
                          (thread ? fmt::format("no thread could be started ({}): {}",
                                                problem.code().message(), what_limits_threads)
                                  : fmt::format("the operating system refuses: {}", problem.what()))
                              .c_str());
  } catch (const std::exception& problem) {
    return report_failure(rank, first, failure_code, problem.what());
  } catch (...) {
    return report_failure(rank, first, failure_code, "an exception of unknown type");
  }
}

void UnmapFirstFailure::operator()(FirstFailure* shared) const {
  munmap(shared, sizeof *shared);
}

std::unique_ptr<FirstFailure, UnmapFirstFailure> shared_first_failure() {
  void* memory = mmap(nullptr, sizeof(FirstFailure), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw DeviceError(fmt::format("no memory for the ranks to share: {}", std::strerror(errno)));
  return std::unique_ptr<FirstFailure, UnmapFirstFailure>(new (memory) FirstFailure);
}

}  // namespace ddpsim
