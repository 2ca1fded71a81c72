#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace ddpsim {

/// How a job has failed so far, shared by its ranks.
struct FirstFailure {
  std::atomic<int> code{0};  ///< of the rank that failed first, or whose input is wrong; 0: none
  std::atomic<int> reports{0};
};
static_assert(std::atomic<int>::is_always_lock_free, "a lock would not be shared by processes");

struct UnmapFirstFailure {
  void operator()(FirstFailure* shared) const;
};
/// A FirstFailure that processes forked from now on share. Throws DeviceError if memory is lacking.
std::unique_ptr<FirstFailure, UnmapFirstFailure> shared_first_failure();

/// The code a rank ends with when it fails without one of its own.
inline constexpr int failure_code = 4;

/// Notes that a rank has ended with this code; the first code that is not 0 is kept.
void note_code(FirstFailure& first, int code);

/// Notes that the rank has failed with `code`, and prints the reason unless many ranks have printed
/// theirs before. Returns `code`.
int report_failure(int rank, FirstFailure& first, int code, const char* reason);

/// After all ranks have ended: says how many have failed whose reasons were not printed.
void say_how_many_more(const FirstFailure& first);

/// What `body` returns as that rank, or what its exception amounts to.
int code_of_rank(int rank, FirstFailure& first, const std::function<int(int rank)>& body) noexcept;

/// A line on stderr, "ddpsim: ...", in one write: those of several ranks do not mix.
void print_line(std::string line);

}  // namespace ddpsim
