// What commands print of many scenarios is what it was:
//
//     test_golden                        holds cases against tests/golden/*.txt, as tests: every
//                                        third, or with DDPSIM_GOLDEN=all each
//     test_golden --print FAMILY MEMBER  the scenario of a case and what commands answer about it
//     test_golden --update               writes what commands answer now into these files
//     test_golden --draw COUNT GROUP     adds cases, until each family of a group has so many
#include <iostream>
#include <string>
#include <string_view>

#include "tests/golden/golden_test.hpp"
#include "tests/golden/keep.hpp"
#include "tests/run_tests.hpp"

int main(int argc, char** argv) {
  using namespace ddpsim::golden;
  const std::string_view flag = argc > 1 ? argv[1] : "";
  if (flag == "--print" && argc == 4) {
    print_case(std::cout, {argv[2], argv[3]});
    return 0;
  }
  if (flag == "--update" && argc == 2) {
    update_golden(std::cout);
    return 0;
  }
  if (flag == "--draw" && argc == 4) {
    draw_golden(std::cout, std::stoul(argv[2]), argv[3]);
    return 0;
  }
  register_tests();
  return ddpsim::run_tests(argc, argv);
}
