#include "tests/fuzz/checks.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/base/printable.hpp"

namespace ddpsim::fuzz {
namespace {

constexpr std::size_t longest_refusal = 2000;  // the known keys of a mapping are listed in some

}  // namespace

void require(bool good, std::string_view what, std::string_view detail) {
  if (good) return;
  fmt::print(stderr, "not as it has to be: {}\n{}\n", what, detail);
  std::abort();
}

void check_line(std::string_view text) {
  require(!text.empty(), "an empty message");
  require(text.size() <= longest_refusal, "a message longer than a screen", text);
  require(printable(text) == text, "a message of more than one line, or not printable", text);
}

void check_refusal(std::string_view text, std::string_view file) {
  check_line(text);
  require(text.starts_with(file) || text.starts_with("--"), "a message that names no file", text);
}

std::string plain_file(std::string_view content) {
  static const int file = memfd_create("input", MFD_CLOEXEC);
  require(
      file >= 0 && ftruncate(file, 0) == 0 &&
          pwrite(file, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()),
      "no file in memory");
  return fmt::format("/proc/self/fd/{}", file);
}

}  // namespace ddpsim::fuzz
