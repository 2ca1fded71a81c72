// A test for each family of scenarios: what commands answer about each case is what its golden file
// has.
#include "tests/golden/golden_test.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/golden/golden_file.hpp"

namespace ddpsim::golden {
namespace {

/// How to see both answers of a case whose line differs.
std::string difference(const GoldenLine& line, const std::string& now) {
  return fmt::format(
      "\n  was {}\n  is  {}\nThe texts: test_golden --print '{}' {}, of this program and of one "
      "before the change.\nIf the change is meant: test_golden --update",
      line.text, now, line.of.family, line.of.member);
}

/// Some cases of one family.
class Cases : public Catch::ITestInvoker {
 public:
  explicit Cases(std::vector<GoldenLine> lines) : lines_(std::move(lines)) {}
  void invoke() const override {
    for (const GoldenLine& line : lines_) {
      const std::string now = line_of(line.of, answers_to(line.of));
      INFO(difference(line, now));
      CHECK(now == line.text);
    }
  }

 private:
  std::vector<GoldenLine> lines_;
};

constexpr std::size_t most_in_a_test = 10;

/// Of the suite every third case; DDPSIM_GOLDEN=all: each.
std::vector<GoldenLine> asked(const std::string& group) {
  const char* all = std::getenv("DDPSIM_GOLDEN");
  std::vector<GoldenLine> lines = read_golden(group);
  if (all != nullptr && std::string(all) == "all") return lines;
  std::vector<GoldenLine> some;
  for (std::size_t i = 0; i < lines.size(); i += 3) some.push_back(std::move(lines[i]));
  return some;
}

}  // namespace

void register_tests() {
  for (const std::string& group : all_groups()) {
    const std::vector<GoldenLine> lines = asked(group);
    for (std::size_t begin = 0, end = 0; begin < lines.size(); begin = end) {
      const std::string& family = lines[begin].of.family;
      while (end < lines.size() && end - begin < most_in_a_test && lines[end].of.family == family)
        ++end;
      const std::string name =
          fmt::format("{}, from {} on, answers as it did", family, lines[begin].of.member);
      std::vector<GoldenLine> some(lines.begin() + static_cast<std::ptrdiff_t>(begin),
                                   lines.begin() + static_cast<std::ptrdiff_t>(end));
      const std::string tags = fmt::format("[golden][{}]", group);
      const Catch::AutoReg registered(new Cases(std::move(some)), CATCH_INTERNAL_LINEINFO,
                                      Catch::StringRef(), Catch::NameAndTags{name, tags});
    }
  }
}

}  // namespace ddpsim::golden
