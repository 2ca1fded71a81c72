#include "tools/study/point_notes.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "tools/study/names.hpp"

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

bool says_size(const std::vector<Setting>& settings) {
  return std::ranges::any_of(std::array{"cluster.nodes", "cluster.ranks", "cluster.ranks_per_node"},
                             [&](const char* key) { return touches(settings, key); });
}

std::vector<std::string> ranks_notes(
    const std::vector<std::pair<std::vector<Setting>, int>>& points) {
  std::vector<std::string> each;
  std::set<int> seen;
  for (const auto& [settings, ranks] : points) {
    if (says_size(settings)) return {};
    if (seen.insert(ranks).second)
      each.push_back(fmt::format("{} has {}", short_label(settings), ranks));
  }
  if (each.size() < 2) return {};
  return {fmt::format(
      "the points differ in ranks: {}; a step, and what is done in a second, is of as many: "
      "cluster.nodes or cluster.ranks makes them alike",
      enumerated(each))};
}

}  // namespace ddpsim
