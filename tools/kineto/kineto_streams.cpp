#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "model/timeline/port_bytes.hpp"
#include "model/timeline/spans.hpp"
#include "model/timeline/units.hpp"
#include "tools/kineto/kineto_rank.hpp"
#include "tools/kineto/kineto_words.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

constexpr int compute_stream = 7, communication_stream = 20;
constexpr int between_streams = 4;     ///< the numbers of those beside them
constexpr int first_side_stream = 40;  ///< of collectives that are under way together

/// [stream] Its number in a trace: that of PyTorch's compute stream, one for all that communicate,
/// or one for each of them (`apart`), and one for each other; the host has none.
std::vector<int> stream_numbers(const std::vector<StreamKind>& kinds, bool apart) {
  std::vector<int> numbers;
  int last = communication_stream;
  for (const StreamKind kind : kinds) switch (kind) {
      case StreamKind::host:
        numbers.push_back(0);
        break;
      case StreamKind::compute:
        numbers.push_back(compute_stream);
        break;
      case StreamKind::communication:
        numbers.push_back(apart ? last += between_streams : communication_stream);
        break;
      case StreamKind::copies:
      case StreamKind::side:
        numbers.push_back(last += between_streams);
        break;
    }
  return numbers;
}

class StreamWriter {
 public:
  StreamWriter(TraceEvents& events, const TracedStep& step,
               const std::vector<TracedLaunch>& launches, std::int64_t& correlation)
      : events_(events),
        step_(step),
        launches_(launches),
        correlation_(correlation),
        kinds_(stream_kinds(step.of)),
        apart_(has_units(step.of.job)),
        numbers_(stream_numbers(kinds_, apart_)),
        spans_(spans_of(step.of)) {}

  void write() {
    name_processes();
    write_layers();
    std::vector<Instant> free;  // of communication: collectives under way together lie side by side
    for (const Span& span : spans_) {
      if (span.stream == 0) continue;
      int number = numbers_[span.stream];
      if (kinds_[span.stream] == StreamKind::communication && !apart_) {
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
  /// Gives a row its name when something is first written there.
  TraceRow row(std::size_t task, int number) {
    const TracedRank& where = step_.where;
    const bool host = step_.runs_on_host(task);
    const program::Stream& stream = step_.of.job.streams[step_.task(task).stream];
    const TraceRow row =
        host ? TraceRow{where.host, where.host + 1 + number} : TraceRow{where.device, number};
    if (named_.emplace(row.process, row.thread).second)
      events_.name_thread(row,
                          host ? fmt::format("thread {} (pt_gloo_runloop)", row.thread)
                               : fmt::format("stream {} ({})", number, stream.name),
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
      if (kinds_[span.stream] != StreamKind::compute) continue;
      const Operation operation = step_.operation(span.task);
      const program::Origin& origin = step_.origin(span.task);
      const bool layer = operation == Operation::forward || operation == Operation::backward;
      const bool optimizer = operation == Operation::optimizer && origin.label == 0;
      if (!layer && !optimizer) continue;
      const Key key{operation, origin.layer, step_.task(span.task).micro_batch};
      if (annotations.empty() || annotations.back().key != key)
        annotations.push_back({key, row(span.task, numbers_[span.stream]),
                               name_of_pass(operation, origin.layer), span.start, span.end});
      annotations.back().end = span.end;
    }
    for (const Annotation& each : annotations)
      events_.span(each.row, "gpu_user_annotation", each.name, each.start, each.end);
  }
  std::string name_of_pass(Operation operation, std::int32_t layer) const {
    if (layer == nobody) return optimizer_annotation(step_.scenario.optimizer);
    return fmt::format("{} {}", step_.scenario.workload.layers[at(layer)].name, name_of(operation));
  }

  void write_work(const Span& span, int number) {
    const bool host = step_.runs_on_host(span.task);
    const TraceRow where = row(span.task, number);
    const program::Task& task = step_.task(span.task);
    const TracedLaunch& launch = launches_[span.task];
    TraceArguments arguments;
    if (!host) {
      arguments.add("device", where.process).add(kineto::stream, number);
      if (launch.correlation > 0) arguments.add(kineto::correlation, launch.correlation);
    }
    describe(span.task, arguments);
    if (step_.is_collective(span.task)) {
      const CollectiveName named = step_.collective(span.task);
      arguments.add(step_.message(named));
      if (!host)
        events_.span(where, "gpu_user_annotation", annotation_of(span.task), span.start, span.end);
      events_.span(where, host ? kineto::cpu_op : kineto::kernel,
                   host ? fmt::format("{}{}", kineto::gloo, named.word) : named.kernel, span.start,
                   span.end, arguments);
    } else if (host) {
      events_.span(where, kineto::cpu_op,
                   operator_name(step_.scenario, step_.step.training, step_.of.job, task),
                   span.start, span.end, arguments);
    } else {
      const DeviceName named = device_name(step_.scenario, step_.step.training, step_.of.job, task);
      events_.span(where, named.category, named.name, span.start, span.end, arguments);
    }
    if (launch.correlation > 0 && !host)
      events_.flow("ac2g", "ac2g", launch.correlation, launch.row, launch.at, where, span.start);
  }

  std::string annotation_of(std::size_t task) const {
    const std::string range = unit_range(step_.step.training, step_.of.job, step_.task(task));
    return range.empty() ? step_.label(task) : range;
  }

  /// What we know of a task beside what the profiler would tell.
  void describe(std::size_t index, TraceArguments& arguments) const {
    const Work& work = step_.work(index);
    const Operation operation = step_.operation(index);
    const program::Origin& origin = step_.origin(index);
    if (origin.group != nobody && apart_)
      arguments.add("unit", name_of_group(step_.of.job, at(origin.group)));
    else if (origin.group != nobody)
      arguments.add("bucket", origin.group);
    if (origin.parameter != nobody && origin.label == 0)
      arguments.add("parameter", step_.parameter(origin.parameter).name);
    if (work.gemm)
      arguments.add("gemm", fmt::format("{} x {} x {}", work.gemm->m, work.gemm->n, work.gemm->k));
    if (work.launches > 1 && is_kernel(operation)) arguments.add("kernels", work.launches);
    if (is_plain_copy(step_.of.job, step_.task(index)) || is_transfer(operation))
      arguments.add(kineto::bytes,  // it reads as much as it writes
                    is_kernel(operation) ? work.traffic.count / 2 : work.payload.count);
    if (!step_.is_collective(index)) return;
    arguments.add(kineto::bytes, work.payload.count);
    const CollectiveChoice choice = step_.of.detail_of(step_.task(index)).choice;
    if (choice.algorithm) arguments.add("algorithm", name_of(*choice.algorithm));
    if (choice.protocol) arguments.add("protocol", name_of(*choice.protocol));
    if (choice.gloo) arguments.add("algorithm", name_of(*choice.gloo));
    if (choice.channels > 0) arguments.add("channels", choice.channels);
  }

  /// From the kernel that put a bucket's last gradient in place to its all-reduce.
  void write_filling() {
    for (const program::Mark& mark : step_.of.program.marks) {
      if (mark.kind != program::Mark::Kind::ready) continue;
      if (step_.operation(mark.task) != Operation::all_reduce) continue;
      if (step_.runs_on_host(mark.of) || step_.runs_on_host(mark.task)) continue;
      const TaskTimes& from = step_.times(mark.of);
      const TaskTimes& to = step_.times(mark.task);
      if (from.end == from.start || to.end == to.start) continue;
      events_.flow(apart_ ? "unit" : "bucket", "gradient", ++correlation_, row_of(mark.of),
                   from.start, row_of(mark.task), to.start);
    }
  }
  TraceRow row_of(std::size_t task) { return row(task, numbers_[step_.task(task).stream]); }

  TraceEvents& events_;
  const TracedStep& step_;
  const std::vector<TracedLaunch>& launches_;
  std::int64_t& correlation_;
  const std::vector<StreamKind> kinds_;  ///< [stream]
  const bool apart_;                     ///< a row for each stream that communicates
  const std::vector<int> numbers_;       ///< [stream] in the trace
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
  for (std::size_t i = 0; i < step.of.program.tasks.size(); ++i) {
    const TaskTimes& times = step.times(i);
    if (!step.is_collective(i) || times.end <= times.start) continue;
    const Bytes payload = step.work(i).payload;
    const double sent = static_cast<double>(payload.count) *
                        port_share(step.work(i).operation, step.collective(i).ranks);
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
