// Which mutant is on, which mutants a test reached, and how much processor time the test took.
// Linked into every mutated test program.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "tests/mutation/mutation.hpp"
#include "tests/torch_python.hpp"

namespace ddpsim {

// In place of the one of tests/torch_python.cpp: the tests that ask torch, for seconds each, are
// not run.
const char* torch_python_of_build() {
  return "/bin/false";
}

}  // namespace ddpsim

namespace ddpsim::mutation {
namespace {

constexpr int most = 10'000;
std::atomic<bool> reached[most];

int number_of_chosen() {
  const char* text = std::getenv("DDPSIM_MUTANT");
  return text ? std::atoi(text) : -1;
}

/// Writes a line for each test into the file named by DDPSIM_MUTATION_TRACE: seconds of processor
/// time, name, and numbers of the mutants reached, separated by tabs.
class Trace : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo&) override {
    if (!path_) return;
    if (!std::exchange(begun_, true)) write("(before the first test)", 0.0);
    for (auto& one : reached) one = false;
    start_ = std::clock();
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (!path_) return;
    write(stats.testInfo.name, static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC);
  }

 private:
  void write(const std::string& name, double seconds) {
    std::ofstream file(path_, std::ios::app);
    file << seconds << '\t' << name;
    for (int id = 0; id < most; ++id)
      if (reached[id]) file << '\t' << id;
    file << '\n';
  }

  const char* path_ = std::getenv("DDPSIM_MUTATION_TRACE");
  std::clock_t start_ = 0;
  bool begun_ = false;
};
CATCH_REGISTER_LISTENER(Trace)

}  // namespace

bool chosen(int id) {
  static const int number = number_of_chosen();
  if (!reached[id].load(std::memory_order_relaxed))
    reached[id].store(true, std::memory_order_relaxed);
  return id == number;
}

}  // namespace ddpsim::mutation
