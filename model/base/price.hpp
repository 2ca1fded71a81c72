#pragma once

#include <string>

namespace ddpsim {

/// What an hour of one rank's device costs.
struct Price {
  double per_hour = 0;
  std::string currency;  ///< its code by ISO 4217: "USD"
};

}  // namespace ddpsim
