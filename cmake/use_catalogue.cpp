// Compiled into every program that links ddpsim::scenarios: tells the reader where the package's
// catalogue is.
#include "scenarios/reader/catalogue/catalogue.hpp"

namespace {
[[maybe_unused]] const bool told = (ddpsim::use_catalogue(DDPSIM_PACKAGE_CATALOGUE), true);
}
