#pragma once

namespace ddpsim {

/// Of this program, from the build; ranks of one job must run the same.
inline constexpr const char* version = DDPSIM_VERSION;

}  // namespace ddpsim
