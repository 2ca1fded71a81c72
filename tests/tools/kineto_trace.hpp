#pragma once

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scenarios/reader/workload/workload_reader.hpp"

namespace ddpsim {

/// What a made-up trace holds. Everything else of it follows from the times below.
struct TraceOptions {
  int steps = 3;
  bool mark_steps = true;
  std::string all_reduce_kernel =
      "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
  bool message_sizes =
      true;             ///< "In msg nelems" of collectives, as PyTorch 2.1 and later write them
  bool shapes = false;  ///< record_shapes=True
  bool copies = true;   ///< out of the buckets: not with gradient_as_bucket_view
  bool correlations = true;
  bool tensor_parallel =
      false;           ///< all-reduces of another process group, in forward and in backward
  double cut = 1e300;  ///< nothing that begins later, in us
  int process = 100;
  int rank = 0;
  double all_reduce = 1000;  ///< how long each takes, in us
  double copy_in = 20;       ///< of the 300 us of a gradient, its copy's part; then nothing runs
  std::vector<double> all_reduces{}, copies_in{};         ///< if given, those of each step
  std::vector<std::vector<double>> bucket_all_reduces{};  ///< if given, [step][bucket]
  std::vector<double> stretch{};  ///< if given, how many times as long all of each step takes
  /// The host falls behind the device after the backward pass: it issues the copies out of the
  /// buckets from 79000 on, one each 100 us, which run at once; the optimizer is called
  /// 95500 - 96500, its kernel runs 96000 - 99000.
  bool host_behind = false;
};

/// The trace of a training step of ResNet-50 on one of two ranks, in the format of PyTorch's
/// profiler with Kineto. All buckets are those DistributedDataParallel makes of it, with its
/// default caps.
///
/// A step, in us from its beginning (161 gradients, five buckets):
///
///     host     forward 500 - 20000, backward: gradient i at 21000 + 100 i, its hook at 50 after
///              that; copies out 40000 + 50 i; optimizer 60000 - 61000; the step ends at 100000
///     device   a broadcast 510 - 530; forward 1100 - 30000; then, for each gradient, 280 of kernel
///              and 20 of copy into the bucket, up to 30000 + 300 * 161 = 78300; copies out when
///              the last all-reduce has ended, 79300 - 79300 + 10 * 161 = 80910; optimizer
///              80910 - 90910
///     network  each all-reduce takes 1000, from the copy of its last tensor on
///
/// So forward takes 30 ms, backward 161 * 280 = 45.08 ms without the copies, the optimizer 10 ms.
/// Gradient i is ready 280 (i + 1) after backward began. Of the collectives' 5020 us all but the
/// broadcast and the last all-reduce run beside kernels: 4000 us.
class KinetoTrace {
 public:
  static constexpr double step_length = 100'000;

  explicit KinetoTrace(const TraceOptions& options)
      : options_(options),
        model_(read_catalogue_model("resnet50")),
        arrival_(arrival_order(model_)) {}

  /// Tensors of each bucket. 1 MiB is full with the classifier's bias and weight; the others close
  /// at 25 MiB (26214400 bytes).
  static const std::vector<int>& tensors() {
    static const std::vector<int> counts{2, 15, 12, 51, 81};
    return counts;
  }
  static const std::vector<std::int64_t>& elements() {
    static const std::vector<std::int64_t> counts{2'049'000, 7'875'584, 6'563'840, 6'637'568,
                                                  2'431'040};
    return counts;
  }

  std::string text() {
    lines_.clear();
    for (int step = 0; step < options_.steps; ++step) add_step(step);
    std::string events;
    for (const std::string& line : lines_) {
      if (!events.empty()) events += ",\n";
      events += line;
    }
    return fmt::format(
        "{{\n \"schemaVersion\": 1,\n \"deviceProperties\": [{{\"id\": 0, \"name\": \"NVIDIA "
        "H100\"}}],\n"
        " \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": 2}},\n"
        " \"traceEvents\": [\n{}\n ],\n \"traceName\": \"made up\"\n}}\n",
        options_.rank, events);
  }

 private:
  void add(const std::string& category, const std::string& name, int process, int thread,
           double begin, double duration, const std::string& arguments) {
    if (begin > options_.cut) return;
    if (!options_.stretch.empty()) {
      const auto step =
          std::min(static_cast<std::size_t>(begin / step_length), options_.stretch.size() - 1);
      double start = 0;
      for (std::size_t i = 0; i < step; ++i) start += step_length * options_.stretch[i];
      begin = start + (begin - static_cast<double>(step) * step_length) * options_.stretch[step];
      duration *= options_.stretch[step];
    }
    lines_.push_back(fmt::format(
        R"(  {{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {}, "ts": {:.3f}, )"
        R"("dur": {:.3f}, "args": {{{}}}}})",
        category, name, process, thread, 4e12 + begin, duration, arguments));
  }
  void host(const std::string& name, int thread, double begin, double duration,
            const std::string& arguments = "") {
    add("cpu_op", name, options_.process, thread, begin, duration, arguments);
  }
  /// A launch and what it launches.
  void device(const std::string& category, const std::string& name, int thread, double launched,
              double begin, double duration, int stream, const std::string& arguments = "") {
    ++correlation_;
    const std::string id = options_.correlations ? fmt::format("\"correlation\": {}", correlation_)
                                                 : std::string("\"External id\": 1");
    add("cuda_runtime", category == "kernel" ? "cudaLaunchKernel" : "cudaMemcpyAsync",
        options_.process, thread, launched, 3, id);
    add(category, name, 0, stream, begin, duration,
        fmt::format("\"stream\": {}, {}{}{}", stream, id, arguments.empty() ? "" : ", ",
                    arguments));
  }
  std::string shape_of(std::size_t k) const {
    if (!options_.shapes) return "";
    const Parameter& parameter = model_.parameters[static_cast<std::size_t>(arrival_[k])];
    std::string shape;
    for (const std::int64_t extent : parameter.shape)
      shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent);
    return fmt::format("\"Input Dims\": [[{}]], \"Input type\": [\"float\"]", shape);
  }
  /// The three spans that issue a collective, and its kernel.
  void collective(const std::string& kind, const std::string& kernel, std::int64_t elements,
                  int thread, double called, double begin, double duration,
                  const std::string& group = "0") {
    const std::string sizes =
        options_.message_sizes
            ? fmt::format(
                  "\"Collective name\": \"{}\", \"In msg nelems\": {}, \"dtype\": \"Float\", "
                  "\"Process Group Name\": \"{}\"",
                  kind, elements, group)
            : "";
    const std::string dims = options_.shapes
                                 ? fmt::format(
                                       "\"Input Dims\": [[[{}]], [], []], \"Input type\": "
                                       "[\"TensorList\", \"\", \"\"]",
                                       elements)
                                 : "";
    host(fmt::format("c10d::{}_", kind), thread, called, 20, dims);
    host("record_param_comms", thread, called + 2, 16, sizes);
    add("user_annotation", fmt::format("nccl:{}", kind), options_.process, thread, called + 4, 12,
        "");
    device("kernel", kernel, thread, called + 8, begin, duration, 20);
    add("gpu_user_annotation", fmt::format("nccl:{}", kind), 0, 20, begin, duration, "");
  }

  void add_step(int number) {
    const double t = number * step_length;
    const auto at = static_cast<std::size_t>(number);
    const double all_reduce =
        options_.all_reduces.empty() ? options_.all_reduce : options_.all_reduces[at];
    const double copy_in = options_.copies_in.empty() ? options_.copy_in : options_.copies_in[at];
    const int main = options_.process, backward = options_.process + 1;
    if (options_.mark_steps)
      add("user_annotation", fmt::format("ProfilerStep#{}", 7 + number), options_.process, main, t,
          step_length, "");
    add("user_annotation", "DistributedDataParallel.forward", options_.process, main, t + 500,
        19'500, "");
    collective("broadcast", "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
               53'120, main, t + 500, t + 510, 20);
    host("aten::conv2d", main, t + 1000, 50);
    device("kernel", "sm90_xmma_fprop", main, t + 1010, t + 1100, 28'900, 7);
    if (options_.tensor_parallel) {
      collective("allreduce", options_.all_reduce_kernel, 1'000'000'000, main, t + 15'000,
                 t + 15'010, 50, "1");
      collective("allreduce", options_.all_reduce_kernel, 1'000'000'000, backward, t + 21'005,
                 t + 31'000, 50, "1");
    }
    std::size_t bucket = 0;
    int in_bucket = 0;
    for (std::size_t i = 0; i < arrival_.size(); ++i) {
      const double h = t + 21'000 + 100.0 * static_cast<double>(i);
      const double d = t + 30'000 + 300.0 * static_cast<double>(i);
      host("autograd::engine::evaluate_function: ConvolutionBackward0", backward, h, 45);
      device("kernel", "sm90_xmma_wgrad", backward, h + 30, d, 280, 7);
      host("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", backward, h + 50,
           45);
      host("torch::autograd::AccumulateGrad", backward, h + 51, 4, shape_of(i));
      if (options_.copies) host("torch::distributed::reducer::mul_out", backward, h + 56, 10);
      device("kernel", "at::native::vectorized_elementwise_kernel", backward, h + 60, d + 280,
             copy_in, 7);
      if (++in_bucket < tensors()[bucket]) continue;
      collective("allreduce", options_.all_reduce_kernel, elements()[bucket], backward, h + 70,
                 d + 300,
                 options_.bucket_all_reduces.empty() ? all_reduce
                                                     : options_.bucket_all_reduces[at][bucket]);
      ++bucket;
      in_bucket = 0;
    }
    for (std::size_t i = 0; i < arrival_.size() && options_.copies; ++i) {
      const bool late = options_.host_behind;
      const auto place = static_cast<double>(i);
      const double h = t + (late ? 79'000 + 100 * place : 40'000 + 50 * place);
      host("torch.distributed.ddp.reducer::copy_bucket_to_grad", backward, h, 40, shape_of(i));
      device("gpu_memcpy", "Memcpy DtoD (Device -> Device)", backward, h + 10,
             late ? h + 10 : t + 79'300 + 10 * place, 10, 7,
             fmt::format("\"bytes\": {}",
                         model_.parameters[static_cast<std::size_t>(arrival_[i])].size().count));
    }
    const double update = t + (options_.host_behind ? 95'500 : 60'000);
    add("user_annotation", "Optimizer.step#SGD.step", options_.process, main, update, 1000, "");
    if (options_.host_behind)
      device("kernel", "multi_tensor_apply_kernel", main, update + 400, update + 500, 3'000, 7);
    else
      device("kernel", "multi_tensor_apply_kernel", main, update + 500, t + 80'910, 10'000, 7);
  }

  TraceOptions options_;
  Workload model_;
  std::vector<int> arrival_;
  std::vector<std::string> lines_;
  int correlation_ = 0;
};

}  // namespace ddpsim
