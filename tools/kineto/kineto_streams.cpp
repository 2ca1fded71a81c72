#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "model/timeline/busy_overlap.hpp"
#include "tools/kineto/kineto_rank.hpp"
#include "tools/kineto/kineto_words.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

/// [Stream] its number in a trace; the host has none.
constexpr std::array<int, all_streams.size()> stream_numbers{0, 7, 20, 24, 28, 32};
constexpr int number_of(Stream stream) {
  return stream_numbers[static_cast<std::size_t>(stream)];
}
constexpr int first_side_stream = 40;  ///< of collectives that are under way together

class StreamWriter {
 public:
  StreamWriter(TraceEvents& events, const TracedStep& step,
               const std::vector<TracedLaunch>& launches, std::int64_t& correlation)
      : events_(events),
        step_(step),
        launches_(launches),
        correlation_(correlation),
        spans_(spans_of(step.schedule, step.times, step.where.like)) {}

  void write() {
    name_processes();
    write_layers();
    std::vector<Instant> free;  // of communication: collectives under way together lie side by side
    for (const Span& span : spans_) {
      if (span.stream == Stream::host) continue;
      int number = number_of(span.stream);
      if (span.stream == Stream::communication) {
        const auto row = std::find_if(free.begin(), free.end(),
                                      [&](Instant until) { return until <= span.start; });
        const auto side = static_cast<int>(row - free.begin());
        if (row == free.end())
          free.push_back(span.end);
        else
          *row = span.end;
        if (side > 0) number = first_side_stream + side;
      }
      write_work(span, number);
    }
    write_filling();
  }

 private:
  const Task& task_of(const Span& span) const { return step_.schedule.tasks[span.task]; }

  /// Gives a row its name when something is first written there.
  TraceRow row(const Task& task, int number) {
    const TracedRank& where = step_.where;
    const bool host = step_.runs_on_host(task);
    const TraceRow row =
        host ? TraceRow{where.host, where.host + 1 + number} : TraceRow{where.device, number};
    if (named_.emplace(row.process, row.thread).second)
      events_.name_thread(row,
                          host ? fmt::format("thread {} (pt_gloo_runloop)", row.thread)
                               : fmt::format("stream {} ({})", number, name_of(task.stream)),
                          number);
    return row;
  }

  void name_processes() {
    const TracedRank& where = step_.where;
    events_.name_thread({where.host, where.host},
                        fmt::format("thread {} (pt_main_thread)", where.host), 0);
    events_.name_thread({where.host, where.host + 1},
                        fmt::format("thread {} (pt_autograd_0)", where.host + 1), 1);
  }

  /// The layers whose kernels run, and the optimizer, as annotations of the compute stream.
  void write_layers() {
    using Key = std::tuple<Operation, std::int32_t, std::int16_t>;
    struct Annotation {
      Key key;
      TraceRow row;
      std::string name;
      Instant start{}, end{};
    };
    std::vector<Annotation> annotations;
    for (const Span& span : spans_) {
      if (span.stream != Stream::compute) continue;
      const Task& task = task_of(span);
      const bool layer =
          task.operation == Operation::forward || task.operation == Operation::backward;
      const bool optimizer = task.operation == Operation::optimizer && task.step == nobody;
      if (!layer && !optimizer) continue;
      const Key key{task.operation, task.layer, task.micro_batch};
      if (annotations.empty() || annotations.back().key != key)
        annotations.push_back(
            {key, row(task, number_of(span.stream)), name_of_pass(task), span.start, span.end});
      annotations.back().end = span.end;
    }
    for (const Annotation& each : annotations)
      events_.span(each.row, "gpu_user_annotation", each.name, each.start, each.end);
  }
  std::string name_of_pass(const Task& task) const {
    if (task.layer == nobody) return optimizer_annotation(step_.scenario.optimizer);
    return fmt::format("{} {}", step_.scenario.workload.layers[at(task.layer)].name,
                       name_of(task.operation));
  }

  void write_work(const Span& span, int number) {
    const Task& task = task_of(span);
    const bool host = step_.runs_on_host(task);
    const TraceRow where = row(task, number);
    const TracedLaunch& launch = launches_[span.task];
    TraceArguments arguments;
    if (!host) {
      arguments.add("device", where.process).add(kineto::stream, number);
      if (launch.correlation > 0) arguments.add(kineto::correlation, launch.correlation);
    }
    describe(task, arguments);
    if (is_collective(task.operation)) {
      const CollectiveName named = step_.collective(task);
      arguments.add(step_.message(named));
      if (!host)
        events_.span(where, "gpu_user_annotation", task_label(step_.scenario, step_.schedule, task),
                     span.start, span.end);
      events_.span(where, host ? kineto::cpu_op : kineto::kernel,
                   host ? fmt::format("{}{}", kineto::gloo, named.word) : named.kernel, span.start,
                   span.end, arguments);
    } else if (host) {
      events_.span(where, kineto::cpu_op, operator_name(step_.scenario, step_.schedule, task),
                   span.start, span.end, arguments);
    } else {
      const DeviceName named = device_name(step_.scenario, step_.schedule, task);
      events_.span(where, named.category, named.name, span.start, span.end, arguments);
    }
    if (launch.correlation > 0 && !host)
      events_.flow("ac2g", "ac2g", launch.correlation, launch.row, launch.at, where, span.start);
  }

  /// What we know of a task beside what the profiler would tell.
  void describe(const Task& task, TraceArguments& arguments) const {
    const Work& work = step_.schedule.work_of(task);
    if (task.bucket != nobody) arguments.add("bucket", task.bucket);
    if (task.parameter != nobody) arguments.add("parameter", step_.parameter(task.parameter).name);
    if (work.gemm)
      arguments.add("gemm", fmt::format("{} x {} x {}", work.gemm->m, work.gemm->n, work.gemm->k));
    if (work.launches > 1 && is_kernel(task.operation)) arguments.add("kernels", work.launches);
    const bool copies = (task.operation == Operation::copy_in && task.divisor == 1) ||
                        task.operation == Operation::copy_out || is_transfer(task.operation);
    if (copies)  // it reads as much as it writes
      arguments.add(kineto::bytes,
                    is_kernel(task.operation) ? work.traffic.count / 2 : work.payload.count);
    if (!is_collective(task.operation)) return;
    arguments.add(kineto::bytes, work.payload.count);
    const CollectiveChoice choice = step_.step.timeline.detail_of(task).choice;
    if (choice.algorithm) arguments.add("algorithm", name_of(*choice.algorithm));
    if (choice.protocol) arguments.add("protocol", name_of(*choice.protocol));
    if (choice.gloo) arguments.add("algorithm", name_of(*choice.gloo));
    if (choice.channels > 0) arguments.add("channels", choice.channels);
  }

  /// From the kernel that put a bucket's last gradient in place to its all-reduce.
  void write_filling() {
    for (std::size_t i = 0; i < step_.schedule.tasks.size(); ++i) {
      const Task& task = step_.schedule.tasks[i];
      if (task.operation != Operation::all_reduce || task.gradient == nobody) continue;
      const Task& gradient = step_.schedule.tasks[at(task.gradient)];
      if (step_.runs_on_host(gradient) || step_.runs_on_host(task)) continue;
      const TaskTimes& from = step_.times[at(task.gradient)];
      const TaskTimes& to = step_.times[i];
      if (from.end == from.start || to.end == to.start) continue;
      events_.flow("bucket", "gradient", ++correlation_, row(gradient, number_of(gradient.stream)),
                   from.start, row(task, number_of(task.stream)), to.start);
    }
  }

  TraceEvents& events_;
  const TracedStep& step_;
  const std::vector<TracedLaunch>& launches_;
  std::int64_t& correlation_;
  const std::vector<Span> spans_;
  std::set<std::pair<int, int>> named_;
};

}  // namespace

void write_streams(TraceEvents& events, const TracedStep& step,
                   const std::vector<TracedLaunch>& launches, std::int64_t& correlation) {
  StreamWriter(events, step, launches, correlation).write();
}

void write_counters(TraceEvents& events, const TracedStep& step) {
  struct Load {
    double rate = 0;  ///< GB/s
    std::int64_t bytes = 0;
    int collectives = 0;
  };
  std::map<Instant, Load> changes;
  for (std::size_t i = 0; i < step.schedule.tasks.size(); ++i) {
    const Task& task = step.schedule.tasks[i];
    const TaskTimes& times = step.times[i];
    if (!is_collective(task.operation) || times.end <= times.start) continue;
    const Bytes payload = step.schedule.work_of(task).payload;
    const double sent = static_cast<double>(payload.count) *
                        port_share(task.operation, step.collective(task).ranks);
    const double rate = sent / in_seconds(times.end - times.start) * 1e-9;
    Load& begun = changes[times.start];
    begun = {begun.rate + rate, begun.bytes + payload.count, begun.collectives + 1};
    Load& ended = changes[times.end];
    ended = {ended.rate - rate, ended.bytes - payload.count, ended.collectives - 1};
  }
  if (changes.empty()) return;
  const int process = step.collectives_on_hosts ? step.where.host : step.where.device;
  if (changes.begin()->first > Instant{}) changes[Instant{}];
  Load now;
  for (const auto& [at, change] : changes) {
    now = {now.rate + change.rate, now.bytes + change.bytes, now.collectives + change.collectives};
    if (now.collectives == 0) now.rate = 0;  // sums of what was added and taken away leave a rest
    events.counter(process, "link use", "GB/s", at, now.rate);
    events.counter(process, "bytes in flight", "bytes", at, static_cast<double>(now.bytes));
  }
}

}  // namespace ddpsim
