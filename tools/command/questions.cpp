#include "tools/command/questions.hpp"

#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/writers/notes.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t longest_answer = 4096;

/// A line of stdin without its end; nothing where input has ended. What is beyond the longest
/// answer is left out.
std::optional<std::string> read_line() {
  std::string line;
  for (int c = std::getchar(); c != '\n'; c = std::getchar()) {
    if (c == EOF) return std::nullopt;
    if (line.size() < longest_answer) line += static_cast<char>(c);
  }
  return line;
}

std::string without_blanks(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

bool can_ask() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

std::string ask(const std::string& question, const std::string& usual,
                const std::function<void(const std::string& answer)>& check) {
  while (true) {
    draw(fmt::format("{} [{}]: ", question, usual));
    const std::optional<std::string> line = read_line();
    if (!line) {
      draw("\n");
      throw InputError("the questions were not answered: nothing is written");
    }
    const std::string given = without_blanks(*line);
    const std::string& answer = given.empty() ? usual : given;
    try {
      check(answer);
      return answer;
    } catch (const InputError& problem) {
      note("  {}", problem.what());
    }
  }
}

}  // namespace ddpsim
