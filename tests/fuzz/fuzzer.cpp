// A fuzzer of libFuzzer for the one target that DDPSIM_FUZZ_TARGET names.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  ddpsim::fuzz::DDPSIM_FUZZ_TARGET({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
