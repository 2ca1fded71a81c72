#pragma once

namespace ddpsim {

/// Runs the tests of this program that the flags choose, as Catch's own main function does.
int run_tests(int argc, char** argv);

}  // namespace ddpsim
