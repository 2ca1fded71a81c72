// Prints what each kernel of a workload description costs a device by the law of its class: a line
// of CSV for each distinct kernel of each pass of each layer,
//
//     layer,pass,kernel,op,class,type,count,launches,busy_us,host_us,source
//
// busy_us and host_us for all `count` of them; source: a law or measured operations. The last lines
// are those of the described optimizer, its layer and pass both "optimizer". DEVICE is a name of
// the catalogue or the path of a file. Usage:
// price_description DESCRIPTION.yaml DEVICE [COMPUTE]
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "model/cost/kernel_cost.hpp"
#include "model/kernel/host_law.hpp"
#include "model/workload/optimizer.hpp"
#include "scenarios/reader/description_reader.hpp"
#include "scenarios/reader/device_reader.hpp"
#include "scenarios/reader/input_error.hpp"

namespace {

using namespace ddpsim;

const char* class_of(const DescribedKernel& kernel) {
  if (kernel.attention) return "attention";
  if (kernel.conv) return "conv";
  if (kernel.gemm) return "gemm";
  return kernel.pattern ? name_of(kernel.pattern->of).data() : "elementwise";
}

std::optional<DType> dtype_named(const char* name) {
  for (const DType type : all_dtypes)
    if (name_of(type) == name) return type;
  std::fprintf(stderr, "no number format %s\n", name);
  std::exit(2);
}

/// On a host where a launch takes 6 us.
void print_optimizer(const WorkloadDescription& description, std::optional<DType> compute,
                     const Device& device) {
  const Optimizer optimizer = description.optimizer.value_or(Optimizer::none);
  const Workload workload = workload_of(description, "described", compute, device);
  for (const Kernel& kernel : optimizer_kernels(optimizer, workload)) {
    const KernelCost cost =
        kernel_cost(kernel, device, std::chrono::microseconds{6}, optimizer_caller(optimizer));
    std::printf("optimizer,optimizer,0,%s,optimizer,fp32,1,%d,%.3f,%.3f,law\n", kernel.name.c_str(),
                kernel.launches, 1e6 * in_seconds(cost.work), 1e6 * in_seconds(cost.host));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: price_description DESCRIPTION.yaml DEVICE [COMPUTE]\n");
    return 2;
  }
  try {
    const WorkloadDescription description = read_workload_description(Yaml::load(argv[1]));
    const Device device = read_device(Yaml::of_text(argv[2]));
    const std::optional<DType> compute = argc > 3 ? dtype_named(argv[3]) : std::nullopt;
    std::printf("layer,pass,kernel,op,class,type,count,launches,busy_us,host_us,source\n");
    for (const DescribedLayer& layer : description.layers)
      for (const bool forward : {true, false})
        for (const KernelRun& run : forward ? layer.forward : layer.backward) {
          const DescribedKernel& kernel = description.kernels[static_cast<std::size_t>(run.kernel)];
          const auto time = class_time(kernel, compute, device, description.release);
          const double host = kernel.host ? 1e6 * in_seconds(host_in_step(*kernel.host)) : 0;
          std::printf("%s,%s,%d,%s,%s,%s,%d,%d,%.3f,%.3f,%s\n", layer.name.c_str(),
                      forward ? "forward" : "backward", run.kernel, kernel.op.c_str(),
                      class_of(kernel),
                      std::string(name_of(multiplied_as(kernel, compute, device))).c_str(),
                      run.count, time ? run.count * time->launches : 0,
                      time ? run.count * 1e6 * in_seconds(time->busy) : 0, run.count * host,
                      time ? std::string(name_of(time->source)).c_str() : "");
        }
    print_optimizer(description, compute, device);
  } catch (const InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
