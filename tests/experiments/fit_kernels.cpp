// Fits constants of model/kernel/step_constants.hpp on measured kernels, and prints them, a line
// NAME=VALUE each, to three significant digits. A constant without rows is not printed.
//
// Each layer of the description is a measured operation: the kernels of its forward pass. Of each,
// ROWS.csv says
//
//     layer,group,us,single
//
// the constants that it decides (a name of `groups`), how long it took, and whether that is a
// single operation's time, which holds the gaps between its kernels. A group's constants are those
// of the least mean of |log(law / measured)|: they are varied one after the other, in turns, each
// among steps of a factor that becomes smaller, from one value for all of a kind. Of few rows only
// the first constants of the group are varied, fewer than there are rows. The error is printed to
// stderr. Usage: fit_kernels DESCRIPTION.yaml ROWS.csv DEVICE
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/workload/description_reader.hpp"
#include "tests/experiments/named_constants.hpp"

namespace {

using namespace ddpsim;

struct Group {
  std::string_view name;
  std::vector<std::string_view> constants;
};
const std::vector<Group> groups{
    {"warm", {"warm"}},
    {"half_warm", {"half_warm"}},
    {"layout", {"layout_rate", "layout_start_us"}},
    {"layout_narrow", {"layout_narrow_rate"}},
    {"batch_norm",
     {"batch_norm.rate", "batch_norm.block_ns", "batch_norm.start_us", "batch_norm.sharpness"}},
    {"batch_norm_once", {"batch_norm_once_rate"}},
    {"batch_norm_backward",
     {"batch_norm_backward.rate", "batch_norm_backward.block_ns", "batch_norm_backward.start_us",
      "batch_norm_backward.sharpness"}},
    {"batch_norm_backward_once", {"batch_norm_backward_once_rate"}},
    {"batch_norm_forward_own",
     {"batch_norm_statistics.rate", "batch_norm_statistics.block_ns", "batch_norm_transform_rate",
      "batch_norm_transform_small_rate", "batch_norm_statistics.start_us",
      "batch_norm_statistics.sharpness"}},
    {"batch_norm_own",
     {"batch_norm_own.rate", "batch_norm_own.block_ns", "batch_norm_own.start_us",
      "batch_norm_own.sharpness"}},
    {"batch_norm_last",
     {"statistics_last_rate", "statistics_last_few_rate", "transform_last_rate"}},
    {"batch_norm_last_backward", {"statistics_last_backward_rate", "transform_last_backward_rate"}},
    {"layer_norm_backward", {"layer_norm_backward_rate", "layer_norm_weights_rate"}},
    {"attention_backward", {"attention_backward_start_us"}},
    {"efficient_backward", {"efficient_backward_tflops"}},
    {"max_pool_backward", {"max_pool_backward"}},
    {"max_pool_backward_last", {"max_pool_backward_last"}},
    {"unaligned_picture", {"unaligned_picture"}},
};

/// Where the search begins: nothing of what it shall find.
StepConstants beginning() {
  StepConstants constants;
  for (const NamedConstant& each : step_constants) {
    double& value = each.of(constants);
    if (each.name.ends_with("start_us"))
      value = 2;
    else if (each.name.ends_with("block_ns"))
      value = 1;
    else if (each.name.ends_with("sharpness"))
      value = 3;
    else if (each.name.ends_with("rate"))
      value = 2.5;
    else if (each.name.ends_with("tflops"))
      value = 100;
    else if (each.name.starts_with("max_pool"))
      value = 50;
    else if (each.name == "unaligned_picture")
      value = 0.35;  // as of unaligned products
    else if (each.name.ends_with("warm"))
      value = 1;
  }
  return constants;
}

struct Row {
  std::vector<const DescribedKernel*> kernels;
  double us = 0;
  bool single = false;
};

struct Problem {
  const WorkloadDescription& description;
  Device device;
  std::vector<Row> rows;

  double microseconds(const Row& row) const {
    Duration time{};
    int launches = 0;
    for (const DescribedKernel* kernel : row.kernels) {
      const auto each = class_time(*kernel, std::nullopt, device, description.release);
      time += each->busy;
      launches += each->launches;
    }
    if (row.single) time += (launches - 1) * kernel_gap;
    return 1e6 * in_seconds(time);
  }
  double error(const StepConstants& constants) {
    device.step_constants = std::make_shared<const StepConstants>(constants);
    double sum = 0;
    for (const Row& row : rows) sum += std::abs(std::log(microseconds(row) / row.us));
    return sum / static_cast<double>(rows.size());
  }
};

double three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::stod(text);
}

/// Moves one constant by a factor while that lowers the error; was it moved?
bool moved(Problem& problem, StepConstants& constants, std::string_view name, double factor,
           double& least) {
  bool any = false;
  for (const double by : {factor, 1 / factor})
    for (;;) {
      StepConstants tried = constants;
      double& value = constant_named(name, tried);
      value = three_digits(value * by);
      const double error = problem.error(tried);
      if (error >= least - 1e-9) break;
      least = error;
      constants = tried;
      any = true;
    }
  return any;
}

void fit(Problem& problem, const Group& group, StepConstants& constants) {
  const std::size_t varied =
      std::min(group.constants.size(), std::max<std::size_t>(1, problem.rows.size() - 1));
  double least = problem.error(constants);
  for (const double factor : {1.6, 1.25, 1.1, 1.04, 1.015, 1.006}) {
    constexpr int most_turns = 40;
    for (int turn = 0; turn < most_turns; ++turn) {
      bool any = false;
      for (std::size_t i = 0; i < varied; ++i)
        any = moved(problem, constants, group.constants[i], factor, least) || any;
      if (!any) break;
    }
  }
  std::fprintf(stderr, "%s: %zu rows, %.1f %%\n", std::string(group.name).c_str(),
               problem.rows.size(), 100 * least);
  for (const std::string_view name : group.constants)
    std::printf("%s=%.3g\n", std::string(name).c_str(), constant_named(name, constants));
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> found;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) found.push_back(cell);
  return found;
}

std::vector<Row> rows_of(const WorkloadDescription& description, const char* file,
                         std::string_view group) {
  std::vector<Row> rows;
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  for (std::size_t layer = 0; std::getline(stream, line); ++layer) {
    const auto cell = cells(line);
    if (cell.at(1) != group) continue;
    Row row{{}, std::stod(cell.at(2)), cell.at(3) == "1"};
    for (const KernelRun& run : description.layers.at(layer).forward)
      row.kernels.insert(row.kernels.end(), static_cast<std::size_t>(run.count),
                         &description.kernels[static_cast<std::size_t>(run.kernel)]);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: fit_kernels DESCRIPTION.yaml ROWS.csv DEVICE\n");
    return 2;
  }
  try {
    const WorkloadDescription description = read_workload_description(Yaml::load(argv[1]));
    const Device device = read_device(Yaml::of_text(argv[3]));
    StepConstants constants = beginning();
    for (const Group& group : groups) {
      Problem problem{description, device, rows_of(description, argv[2], group.name)};
      if (!problem.rows.empty()) fit(problem, group, constants);
    }
  } catch (const InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
