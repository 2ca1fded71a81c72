// Prints what each kernel of a workload description costs a device by the law of its class: a line
// of CSV for each distinct kernel of each pass of each layer,
//
//     layer,pass,kernel,op,class,type,count,launches,busy_us,host_us,source
//
// busy_us and host_us for all `count` of them; source: a law or measured operations. The next lines
// are those of the described optimizer, its layer and pass both "optimizer"; the last, whose layer
// is "step", have in busy_us how long the step of one rank without communication takes, its forward
// and its backward pass. DEVICE is a name of the catalogue or the path of a file; NAME=VALUE
// changes a constant of model/kernel/step_constants.hpp. Usage:
// price_description DESCRIPTION.yaml DEVICE [COMPUTE] [NAME=VALUE...]
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "model/cost/kernel_cost.hpp"
#include "model/kernel/host_law.hpp"
#include "model/workload/optimizer.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/workload/description_reader.hpp"
#include "sim/predict/predict.hpp"
#include "tests/experiments/named_constants.hpp"

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

void print_kernels(const WorkloadDescription& description, std::optional<DType> compute,
                   const Device& device) {
  for (const DescribedLayer& layer : description.layers)
    for (const bool forward : {true, false})
      for (const KernelRun& run : forward ? layer.forward : layer.backward) {
        const DescribedKernel& kernel = description.kernels[static_cast<std::size_t>(run.kernel)];
        const auto time = class_time(kernel, compute, device, description.release);
        const double host = kernel.host ? 1e6 * in_seconds(host_in_step(*kernel.host)) : 0;
        std::printf("%s,%s,%d,%s,%s,%s,%d,%d,%.3f,%.3f,%s\n", layer.name.c_str(),
                    forward ? "forward" : "backward", run.kernel, kernel.op.c_str(),
                    class_of(kernel),
                    std::string(name_of(multiplied_as(kernel, compute, device))).c_str(), run.count,
                    time ? run.count * time->launches : 0,
                    time ? run.count * 1e6 * in_seconds(time->busy) : 0, run.count * host,
                    time ? std::string(name_of(time->source)).c_str() : "");
      }
}

void print_step(const char* file, const WorkloadDescription& description,
                std::optional<DType> compute, const char* name, const Device& device) {
  Scenario scenario = read_profile_as_scenario(
      file, {{"cluster.device", name}, {"cluster.nodes", "1"}, {"cluster.ranks_per_node", "1"}});
  const bool clips = scenario.workload.clip_gradients;
  scenario.cluster.device = device;
  scenario.workload = workload_of(description, "described", compute, device);
  scenario.workload.clip_gradients = clips;
  Training training = scenario.training;
  training.strategy = Strategy::none;
  const StepMetrics metrics = predict(model_of(scenario), training).metrics;
  for (const auto& [pass, time] :
       {std::pair{"step", metrics.step}, std::pair{"step forward", metrics.forward},
        std::pair{"step backward", metrics.backward}})
    std::printf("step,%s,0,,step,fp32,1,0,%.3f,0,step\n", pass, 1e6 * in_seconds(time));
}

/// The host's times are of calls in a loop; the law of a step multiplies them by its usual factor.
void scale_host(WorkloadDescription& description, const StepConstants& constants) {
  const double factor = constants.host_of_a_step / StepConstants{}.host_of_a_step;
  for (DescribedKernel& kernel : description.kernels)
    if (kernel.host) kernel.host = scaled(*kernel.host, factor);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: price_description DESCRIPTION.yaml DEVICE [COMPUTE] [NAME=VALUE...]\n");
    return 2;
  }
  try {
    WorkloadDescription description = read_workload_description(Yaml::load(argv[1]));
    Device device = read_device(Yaml::of_text(argv[2]));
    const bool has_compute = argc > 3 && std::strchr(argv[3], '=') == nullptr;
    const std::optional<DType> compute = has_compute ? dtype_named(argv[3]) : std::nullopt;
    StepConstants constants;
    for (int i = has_compute ? 4 : 3; i < argc; ++i) set_constant(argv[i], constants);
    device.step_constants = std::make_shared<const StepConstants>(constants);
    scale_host(description, constants);
    std::printf("layer,pass,kernel,op,class,type,count,launches,busy_us,host_us,source\n");
    print_kernels(description, compute, device);
    print_optimizer(description, compute, device);
    print_step(argv[1], description, compute, argv[2], device);
  } catch (const InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
