#pragma once

namespace ddpsim {

/// The version of this program, from the build; all ranks of a job must run the same.
inline constexpr const char* version = DDPSIM_VERSION;

}  // namespace ddpsim
