#include "tests/golden/keep.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/golden/golden_file.hpp"

namespace ddpsim::golden {
namespace {

/// A refusal without its numbers: what it is about.
std::string reason_of(const std::string& line) {
  std::string reason;
  for (const char c : line.substr(line.find("\trefused: ")))
    if (c < '0' || c > '9') reason += c;
  return reason;
}

bool is_refused(const GoldenLine& line) {
  return line.text.find("\trefused: ") != std::string::npos &&
         line.text.find("\trun ") == std::string::npos;
}

/// So many cases of a family, of which at most a tenth, or one, are refused, for reasons that are
/// not among `reasons`.
void draw_family(const Family& family, std::size_t count, std::vector<GoldenLine>& lines,
                 std::set<std::string>& reasons) {
  constexpr std::uint64_t most_tried = 400;
  std::size_t have = 0, refused = 0;
  std::uint64_t seed = 0;
  for (const GoldenLine& line : lines) {
    if (line.of.family != family.name) continue;
    ++have;
    seed = std::max<std::uint64_t>(seed, std::stoull(line.of.member));
    if (!is_refused(line)) continue;
    ++refused;
    reasons.insert(reason_of(line.text));
  }
  for (const std::uint64_t last = seed + most_tried; have < count && ++seed <= last;) {
    const Case one{family.name, std::to_string(seed)};
    const GoldenLine line{one, line_of(one, answers_to(one))};
    if (is_refused(line)) {
      if (refused >= std::max<std::size_t>(count / 10, 1)) continue;
      if (!reasons.insert(reason_of(line.text)).second) continue;
      ++refused;
    }
    lines.push_back(line);
    ++have;
  }
}

void draw_shipped(std::vector<GoldenLine>& lines) {
  for (const std::string folder : {"examples", "seeds", "measured"}) {
    std::set<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(DDPSIM_SCENARIOS) / folder))
      if (entry.path().extension() == ".yaml") names.insert(entry.path().filename().string());
    for (const std::string& name : names) {
      const Case one{"shipped/" + folder, name};
      const auto is_it = [&](const GoldenLine& line) {
        return line.of.family == one.family && line.of.member == one.member;
      };
      if (std::none_of(lines.begin(), lines.end(), is_it))
        lines.push_back({one, line_of(one, answers_to(one))});
    }
  }
}

}  // namespace

void print_case(std::ostream& out, const Case& one) {
  const DrawnScenario scenario = scenario_of(one);
  out << scenario.text;
  for (const auto& [name, content] : scenario.files) out << "--- " << name << "\n" << content;
  for (const auto& [command, answer] : answers_to(one)) {
    out << "=== " << command << "\n";
    if (answer.starts_with("refused: ")) {
      out << answer << "\n";
      continue;
    }
    auto json = nlohmann::ordered_json::parse(answer);
    out << json.at("text").get<std::string>();
    json.erase("text");
    json.erase("summary");
    out << json.dump(1) << "\n";
  }
}

void update_golden(std::ostream& out) {
  std::size_t changed = 0, all = 0;
  for (const std::string& group : all_groups()) {
    std::vector<GoldenLine> lines = read_golden(group);
    for (GoldenLine& line : lines) {
      const std::string now = line_of(line.of, answers_to(line.of));
      ++all;
      if (now == line.text) continue;
      out << "- " << line.text << "\n+ " << now << "\n";
      line.text = now;
      ++changed;
    }
    write_golden(group, lines);
  }
  out << fmt::format("{} of {} lines changed\n", changed, all);
}

void draw_golden(std::ostream& out, std::size_t count, const std::string& group) {
  const std::vector<GoldenLine> before = read_golden(group);
  const bool twice = group == "models" || group == "networks" || group == "files";
  std::vector<GoldenLine> lines;
  std::set<std::string> reasons;
  for (const Family& family : all_families()) {
    if (!family.name.starts_with(group + "/")) continue;
    for (const GoldenLine& line : before)
      if (line.of.family == family.name) lines.push_back(line);
    draw_family(family, twice ? 2 * count : count, lines, reasons);
  }
  if (group == "shipped") {
    lines = before;
    draw_shipped(lines);
  }
  write_golden(group, lines);
  out << fmt::format("{}: {} lines, {} before\n", group, lines.size(), before.size());
}

}  // namespace ddpsim::golden
