#include "tests/run_tests.hpp"

int main(int argc, char** argv) {
  return ddpsim::run_tests(argc, argv);
}
