// Which mutants a test reached, and how much processor time it took. Linked into every mutated test
// program.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>

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

}  // namespace ddpsim::mutation
