#pragma once

#include <exception>
#include <string>

namespace ddpsim {

/// What an exception says to people. What the standard library throws has no words of use
/// ("std::bad_alloc", "filesystem error: ..."): it is said what is lacking, and what limits it.
std::string failure_text(const std::exception& problem);

/// The exit code of an exception that is no InputError: 4 for what the machine failed at, 1 for all
/// else.
int failure_code_of(const std::exception& problem);

/// Call first of all. Where a write exceeds the limit of a file's size it fails like any other,
/// instead of ending the program (SIGXFSZ); an exception that nobody catches ends it with one line
/// and its exit code.
void expect_failures();

}  // namespace ddpsim
