// Catch itself, compiled once for all test programs.
#define CATCH_CONFIG_RUNNER
#include "tests/run_tests.hpp"

#include <catch2/catch.hpp>

namespace ddpsim {

int run_tests(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}

}  // namespace ddpsim
