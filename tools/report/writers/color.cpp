#include "tools/report/writers/color.hpp"

#include <cstdlib>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

ColorWish& wish() {
  static ColorWish now = ColorWish::automatic;
  return now;
}

// Select Graphic Rendition, ECMA-48 section 8.3.117: colours that terminals show on any background.
constexpr std::string_view bold = "1", faint = "2", red = "31", green = "32", yellow = "33",
                           blue = "34", magenta = "35", cyan = "36";

std::string painted(std::string_view rendition, std::string_view text) {
  return text.empty() ? std::string() : fmt::format("\x1b[{}m{}\x1b[0m", rendition, text);
}

/// The rule below a table's headings.
bool is_rule(std::string_view line) {
  constexpr std::size_t shortest = 8;
  return line.size() >= shortest && line.find_first_not_of('-') == std::string_view::npos;
}

/// "" for what has no colour.
std::string_view rendition_of(char letter) {
  switch (letter) {
    case 'F':
      return green;
    case 'B':
      return blue;
    case 'O':
      return magenta;
    case '=':
      return yellow;
    case 'c':
      return cyan;
    case 'h':
      return red;
    default:
      return "";
  }
}

/// Where a line of a timeline drawn from characters has its letters; npos: it is no such line.
std::size_t timeline_begin(std::string_view line) {
  constexpr std::string_view letters = "FBO=ch. ";
  for (const std::string_view stream : {" compute       ", " communication "}) {
    const std::size_t at = line.find(stream);
    if (at == std::string_view::npos) continue;
    const std::size_t begin = at + stream.size();
    if (line.find_first_not_of(letters, begin) == std::string_view::npos) return begin;
  }
  return std::string_view::npos;
}

std::string timeline_in_color(std::string_view line, std::size_t begin) {
  std::string text(line.substr(0, begin));
  for (std::size_t at = begin; at < line.size();) {
    const std::size_t found = line.find_first_not_of(line[at], at);
    const std::size_t end = found == std::string_view::npos ? line.size() : found;
    const std::string_view run = line.substr(at, end - at), rendition = rendition_of(line[at]);
    text += rendition.empty() ? std::string(run) : painted(rendition, run);
    at = end;
  }
  return text;
}

}  // namespace

void wish_color(const std::string& word) {
  if (word == "auto")
    wish() = ColorWish::automatic;
  else if (word == "always")
    wish() = ColorWish::always;
  else if (word == "never")
    wish() = ColorWish::never;
  else
    throw InputError(fmt::format("--color {}: expected auto, always or never", word));
}

bool has_color(int descriptor) {
  if (wish() != ColorWish::automatic) return wish() == ColorWish::always;
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  // Open MPI gives its processes a terminal of its own, wherever mpirun's output goes.
  if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) return false;
  return (refused == nullptr || *refused == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb" && isatty(descriptor) == 1;
}

std::string in_color(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::size_t next = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(at, (end == std::string_view::npos ? next : end) - at));
    at = next;
  }
  std::string result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t begin = timeline_begin(lines[i]);
    if (is_rule(lines[i]))
      result += painted(faint, lines[i]);
    else if (i + 1 < lines.size() && is_rule(lines[i + 1]))
      result += painted(bold, lines[i]);
    else if (begin != std::string_view::npos)
      result += timeline_in_color(lines[i], begin);
    else
      result += lines[i];
    if (i + 1 < lines.size() || text.ends_with('\n')) result += '\n';
  }
  return result;
}

std::string note_in_color(std::string_view line) {
  for (const auto& [word, rendition] :
       {std::pair<std::string_view, std::string_view>{"ddpsim:", red}, {"note:", yellow}})
    if (line.starts_with(word))
      return painted(rendition, word) + std::string(line.substr(word.size()));
  return std::string(line);
}

}  // namespace ddpsim
