#include "tests/torch_python.hpp"

namespace ddpsim {

const char* torch_python_of_build() {
  return DDPSIM_TORCH_PYTHON;
}

}  // namespace ddpsim
