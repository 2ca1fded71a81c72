// Real files with random damage: whatever is done to them, they are read or refused with an
// InputError of one line, and what is read is predicted or refused by a law. Nothing else is
// thrown, nothing crashes, nothing hangs. The seed is fixed, so a failure repeats.

#include <array>
#include <chrono>
#include <random>

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "tests/scenarios/reader/calibrations.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

class Damage {
 public:
  explicit Damage(std::uint64_t seed) : random_(seed) {}

  std::string of(std::string text) {
    for (std::size_t times = 1 + below(3); times > 0; --times) text = once(std::move(text));
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  std::string once(std::string text) {
    const std::size_t at = below(text.size());
    switch (below(8)) {
      case 0:  // another byte
        if (!text.empty()) text[at] = static_cast<char>(random_());
        return text;
      case 1:  // a byte less
        if (!text.empty()) text.erase(at, 1 + below(4));
        return text;
      case 2:  // a scrap of syntax more
        return text.insert(at, scraps_[below(scraps_.size())]);
      case 3:  // cut off
        return text.substr(0, at);
      case 4:  // a line twice
        return text.insert(line_begin(text, at), line_at(text, at));
      case 5: {  // a line less
        const std::size_t begin = line_begin(text, at);
        return text.erase(begin, line_at(text, at).size());
      }
      case 6: {  // a line elsewhere
        const std::string line = line_at(text, at);
        text.erase(line_begin(text, at), line.size());
        return text.insert(line_begin(text, below(text.size())), line);
      }
      default: {  // a number become another
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text.replace(digit, 1, numbers_[below(numbers_.size())]);
        return text;
      }
    }
  }

  static std::size_t line_begin(const std::string& text, std::size_t at) {
    const std::size_t end = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    return end == std::string::npos ? 0 : end + 1;
  }
  static std::string line_at(const std::string& text, std::size_t at) {
    const std::size_t begin = line_begin(text, at);
    const std::size_t end = text.find('\n', begin);
    return text.substr(begin, end == std::string::npos ? end : end + 1 - begin);
  }

  std::mt19937_64 random_;
  static constexpr std::array<const char*, 16> scraps_{"[",   "]",    "{",  "}",   ": ", "- ",
                                                       "\n",  "\"",   "*a", "&a ", "#",  "!!x ",
                                                       "|\n", "<<: ", "\t", ", "};
  static constexpr std::array<const char*, 9> numbers_{
      "0", "-1", "1e99", "nan", "inf", "99999999999999999999", "0.0000001", "", "1e-300"};
};

/// The message, or "" if the file was read. What was read is predicted too, unless a law refuses
/// it.
std::string outcome(const std::filesystem::path& file) {
  Scenario scenario;
  try {
    scenario = read_scenario(file);
  } catch (const InputError& problem) {
    return problem.what();
  }
  try {
    const StepModel model = model_of(scenario);
    for (const Strategy strategy : scenario.compare) {
      Training training = scenario.training;
      training.strategy = strategy;
      const StepMetrics metrics = predict(model, training).metrics;
      CHECK(metrics.step > Duration::zero());
      CHECK(metrics.step < std::chrono::hours{24});
    }
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
  return "";
}

void check_damage(const std::filesystem::path& scenario, const std::filesystem::path& victim,
                  int rounds, std::uint64_t seed) {
  const std::string whole = content_of(victim);
  Damage damage(seed);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string damaged = damage.of(whole);
    std::ofstream(victim, std::ios::binary) << damaged;
    CAPTURE(seed, round, damaged);
    std::string message;
    REQUIRE_NOTHROW(message = outcome(scenario));
    if (message.find_first_of("\n\r") != std::string::npos || message.size() > 1000) FAIL(message);
    refused += message.empty() ? 0 : 1;
  }
  std::ofstream(victim, std::ios::binary) << whole;
  CHECK(outcome(scenario).empty());
  // Some damage is harmless (a comment, a name) and some is not; were it all one or the other,
  // nothing was tried.
  CHECK(refused > rounds / 10);
  CHECK(refused < rounds);
}

TEST_CASE("damaged scenarios are read or refused, never worse", "[scenarios][fuzz]") {
  std::uint64_t seed = 1;
  for (const char* folder : {"examples", "seeds", "measured"}) {
    const Scratch scratch;
    std::filesystem::copy(std::filesystem::path(DDPSIM_SCENARIOS) / folder, scratch.folder(),
                          std::filesystem::copy_options::recursive);
    for (const auto& entry : std::filesystem::directory_iterator(scratch.folder())) {
      if (entry.path().extension() != ".yaml") continue;
      check_damage(entry.path(), entry.path(), 20, seed++);
    }
  }
}

TEST_CASE("damaged profiles, links and tables are read or refused, never worse",
          "[scenarios][fuzz]") {
  const Scratch scratch;
  std::filesystem::copy(std::filesystem::path(DDPSIM_SCENARIOS) / "examples", scratch.folder(),
                        std::filesystem::copy_options::recursive);
  check_damage(scratch.path("own-profile.yaml"), scratch.path("profiles/profile.yaml"), 500, 1001);
  check_damage(scratch.path("own-profile.yaml"), scratch.path("profiles/link.yaml"), 500, 1002);
  check_damage(scratch.path("parameter-groups.yaml"), scratch.path("profiles/all_reduce.csv"), 500,
               1003);
}

TEST_CASE("damaged calibrations are read or refused, never worse", "[scenarios][fuzz]") {
  const Scratch scratch;
  const auto calibration = scratch.write("c.yaml", good_calibration);
  check_damage(scratch.write("s.yaml", calibrated_scenario), calibration, 1000, 3001);
}

TEST_CASE("damaged catalogue entries are read or refused, never worse", "[scenarios][fuzz]") {
  const Scratch scratch;
  const std::filesystem::path catalogue = std::filesystem::path(DDPSIM_SCENARIOS) / "catalogue";
  const auto own = [&](const char* from) {
    const std::filesystem::path file =
        scratch.path(std::filesystem::path(from).filename().string());
    std::filesystem::copy_file(catalogue / from, file);
    return file;
  };
  const std::filesystem::path device = own("devices/h100-sxm.yaml"),
                              link = own("links/nvlink4.yaml"), model = own("models/resnet18.yaml");
  const auto scenario = scratch.write(
      "s.yaml",
      "workload: {model: resnet18.yaml, batch: 2}\n"
      "cluster: {device: h100-sxm.yaml, ranks_per_node: 2, intra_node: nvlink4.yaml}\n");
  check_damage(scenario, device, 300, 2001);
  check_damage(scenario, link, 300, 2002);
  check_damage(scenario, model, 300, 2003);
}

}  // namespace
}  // namespace ddpsim
