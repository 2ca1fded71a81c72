#include <algorithm>
#include <cctype>

#include "tools/import/nccl_log.hpp"

namespace ddpsim {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Where "host:pid:tid" breaks into the process and the thread; none for another word.
std::optional<std::size_t> end_of_process(std::string_view word) {
  const std::size_t thread = word.rfind(':');
  if (thread == std::string_view::npos || thread == 0) return std::nullopt;
  const std::size_t process = word.rfind(':', thread - 1);
  if (process == std::string_view::npos || process == 0) return std::nullopt;
  if (!all_digits(word.substr(thread + 1)) ||
      !all_digits(word.substr(process + 1, thread - process - 1)))
    return std::nullopt;
  return thread;
}

}  // namespace

std::optional<NcclLine> nccl_line(std::string_view line) {
  constexpr std::string_view mark = "NCCL INFO ";
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  NcclLine found{{}, {}, line.substr(at + mark.size())};
  std::string_view before = line.substr(0, at);
  while (!before.empty()) {  // from the last word on: "[0]<stdout>:node-1:4978:4990 [0] "
    const std::size_t end = before.find_last_not_of(' ');
    if (end == std::string_view::npos) break;
    const std::size_t blank = before.find_last_of(' ', end);
    const std::size_t begin = blank == std::string_view::npos ? 0 : blank + 1;
    std::string_view word = before.substr(begin, end + 1 - begin);
    if (const auto thread = end_of_process(word)) {
      word = word.substr(0, *thread);
      const std::size_t host_end = word.rfind(':');
      std::size_t host_begin = word.substr(0, host_end).find_last_of(":>");
      host_begin = host_begin == std::string_view::npos ? 0 : host_begin + 1;
      found.process = word.substr(host_begin);
      found.host = found.process.substr(0, found.process.rfind(':'));
      break;
    }
    before = before.substr(0, begin);
  }
  return found;
}

}  // namespace ddpsim
