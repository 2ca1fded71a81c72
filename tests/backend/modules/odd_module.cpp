// GPU modules as they should not be, and one whose GPU is a fake: which one, ODD says.
#include "backend/device/cuda/gpu_module.hpp"
#include "backend/device_error.hpp"
#include "tests/backend/modules/process_gpu.hpp"

#define FAKE 0
#define ANOTHER_BUILD 1
#define EMPTY 2
#define NO_TABLE 3
#define UNRESOLVED 4
#define NO_DRIVER 5

#if ODD == UNRESOLVED
extern "C" void ddpsim_test_of_a_library_that_is_not_there();
#endif

namespace ddpsim {
namespace {

int count_gpus() {
#if ODD == NO_DRIVER
  throw DeviceError("there is no driver\x1b here");
#elif ODD == UNRESOLVED
  ddpsim_test_of_a_library_that_is_not_there();
#endif
  return 1;
}

std::unique_ptr<Gpu> make_fake_gpu(int, std::chrono::milliseconds) {
  return make_process_gpu();
}

}  // namespace
}  // namespace ddpsim

#if ODD != EMPTY
extern "C" __attribute__((visibility("default"))) const ddpsim::ModuleHeader* ddpsim_gpu_module() {
  static const ddpsim::GpuModule module{
      {ODD == ANOTHER_BUILD ? "0.0.9-old\x1b" : DDPSIM_MODULE_BUILD},
      ddpsim::count_gpus,
      ddpsim::make_fake_gpu};
  return ODD == NO_TABLE ? nullptr : &module.header;
}
#endif
