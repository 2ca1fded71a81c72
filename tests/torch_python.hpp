#pragma once

namespace ddpsim {

/// The Python whose torch the tests ask: DDPSIM_TORCH_PYTHON of the build.
const char* torch_python_of_build();

}  // namespace ddpsim
