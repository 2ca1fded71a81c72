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

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

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

bool names_place(std::string_view text, std::string_view file) {
  if (!text.starts_with(file) || text.substr(file.size()).substr(0, 1) != ":") return false;
  std::string_view rest = text.substr(file.size() + 1);
  const std::size_t line = rest.find(':');
  if (line == std::string_view::npos || !is_number(rest.substr(0, line))) return false;
  rest.remove_prefix(line + 1);
  return is_number(rest.substr(0, rest.find(':')));
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
