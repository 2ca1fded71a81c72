#include "tools/study/point_notes.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ddpsim {

void PointNotes::add(const std::vector<Setting>& settings, const std::vector<std::string>& notes) {
  ++added_;
  for (const std::string& text : notes) {
    const auto known = std::find_if(notes_.begin(), notes_.end(),
                                    [&](const Noted& noted) { return noted.text == text; });
    if (known == notes_.end())
      notes_.push_back(Noted{text, settings, 1});
    else
      ++known->points;
  }
}

std::vector<std::string> PointNotes::lines(std::size_t points) const {
  std::vector<std::string> lines;
  for (const Noted& noted : notes_) {
    std::string first;
    for (const auto& [key, value, written] : noted.first)
      first += fmt::format("{}{}={}", first.empty() ? "" : ", ", key, value);
    const std::string looked_at =
        added_ < points ? fmt::format("the first {}", added_) : fmt::format("{}", points);
    lines.push_back(points == 1 ? noted.text
                                : fmt::format("{} (at {} of {} points, the first {})", noted.text,
                                              noted.points, looked_at, first));
  }
  return lines;
}

}  // namespace ddpsim
