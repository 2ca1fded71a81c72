#include "tools/report/trace.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/cost/cost_model.hpp"

namespace ddpsim {
namespace {

/// Picoseconds as microseconds, all digits kept.
std::string microseconds(std::int64_t picoseconds) {
  return fmt::format("{}.{:06}", picoseconds / 1'000'000, picoseconds % 1'000'000);
}
std::string microseconds(Instant at) {
  return microseconds(at.time_since_epoch().count());
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Writer {
 public:
  /// Host, compute and communication are named always, other streams where something runs there.
  void process(int pid, const std::string& name, const Schedule& schedule) {
    event(R"("ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}})", pid,
          quoted(name));
    for (const Stream stream : all_streams) {
      const bool used = std::any_of(schedule.tasks.begin(), schedule.tasks.end(),
                                    [&](const Task& task) { return task.stream == stream; });
      if (stream >= Stream::aside && !used) continue;
      thread(pid, static_cast<int>(stream), name_of(stream));
    }
  }
  void thread(int pid, int thread, std::string_view name) {
    event(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}})", pid, thread,
          name);
  }
  /// One picosecond short: whoever adds `ts` and `dur` as floating-point numbers must not see two
  /// spans that touch overlap.
  void span(int pid, int thread, const Span& span, const std::string& name,
            const std::string& category, const std::string& arguments) {
    event(R"("ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})",
          quoted(name), category, pid, thread, microseconds(span.start),
          microseconds((span.end - span.start).count() - 1), arguments);
  }
  void instant(int pid, Instant at, const std::string& name) {
    event(R"("ph":"i","s":"t","name":{},"cat":"hook","pid":{},"tid":0,"ts":{})", quoted(name), pid,
          microseconds(at));
  }
  /// From inside the span that begins at `from` to the one that begins at `to`.
  void flow(int pid, Stream from_stream, Instant from, Stream to_stream, Instant to) {
    ++flows_;
    event(R"("ph":"s","name":"gradient","cat":"bucket","id":{},"pid":{},"tid":{},"ts":{})", flows_,
          pid, static_cast<int>(from_stream), microseconds(from));
    event(R"("ph":"f","bp":"e","name":"gradient","cat":"bucket","id":{},"pid":{},"tid":{},"ts":{})",
          flows_, pid, static_cast<int>(to_stream), microseconds(to));
  }
  std::string finish() {
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + fmt::to_string(out_) + "\n]}\n";
  }

 private:
  template <typename... Values>
  void event(fmt::format_string<Values...> format, Values&&... values) {
    if (out_.size() > 0) out_.append(std::string_view(",\n"));
    out_.push_back('{');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
    out_.push_back('}');
  }
  fmt::memory_buffer out_;
  int flows_ = 0;
};

constexpr int most_alike_ranks = 8;

std::string arguments_of(const Scenario& scenario, const Schedule& schedule, const Task& task) {
  std::string text = fmt::format("\"micro_batch\":{}", task.micro_batch);
  if (task.bucket != nobody) text += fmt::format(",\"bucket\":{}", task.bucket);
  if (task.parameter != nobody)
    text += fmt::format(
        ",\"parameter\":{}",
        quoted(scenario.workload.parameters[static_cast<std::size_t>(task.parameter)].name));
  if (task.operation == Operation::all_reduce)
    text += fmt::format(",\"bytes\":{}", schedule.work_of(task).payload.count);
  return text;
}

void write_rank(Writer& writer, int pid, const Scenario& scenario, const Schedule& schedule,
                const std::vector<TaskTimes>& times) {
  std::vector<Instant> free;  // of communication: collectives under way together lie side by side
  for (const Span& span : spans_of(schedule, times, 0)) {
    const Task& task = schedule.tasks[span.task];
    std::string name = task_label(scenario, schedule, task);
    if (span.stream == Stream::host && task.stream != Stream::host) name.insert(0, "launch ");
    int thread = static_cast<int>(span.stream);
    if (span.stream == Stream::communication) {
      const auto row = std::find_if(free.begin(), free.end(),
                                    [&](Instant until) { return until <= span.start; });
      const auto side = static_cast<int>(row - free.begin());
      if (side > 0) thread = static_cast<int>(all_streams.size()) + side;
      if (row != free.end()) {
        *row = span.end;
      } else {
        free.push_back(span.end);
        if (side > 0)
          writer.thread(pid, thread, fmt::format("communication, {} at once", side + 1));
      }
    }
    writer.span(pid, thread, span, name, std::string(name_of(task.operation)),
                arguments_of(scenario, schedule, task));
  }
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    if (task.operation == Operation::hook)
      writer.instant(pid, times[i].issued, task_label(scenario, schedule, task));
    if (task.operation != Operation::all_reduce || task.gradient == nobody) continue;
    const auto gradient = static_cast<std::size_t>(task.gradient);
    writer.flow(pid, schedule.tasks[gradient].stream, times[gradient].start, Stream::communication,
                times[i].start);
  }
}

}  // namespace

namespace {

/// Which ranks a trace shows, and which of the simulated ones each is like.
struct ShownRanks {
  int simulated, shown, all;
  bool slowest_last;  ///< the last one simulated is the slowest of all, and the others are alike

  ShownRanks(const Scenario& scenario, const Timeline& timeline)
      : simulated(static_cast<int>(timeline.ranks.size())),
        shown(std::max(simulated, std::min(scenario.cluster.ranks(), most_alike_ranks))),
        all(scenario.cluster.ranks()),
        slowest_last(simulated == 2 && all > 2 &&
                     slowest_rank(scenario.cluster, scenario.workload.step_spread) > 1) {}

  int like(int rank) const {
    if (slowest_last) return rank + 1 == shown ? 1 : 0;
    return std::min(rank, simulated - 1);
  }
  std::string name(int rank) const {
    const bool last = rank + 1 == shown;
    if (slowest_last && last) return fmt::format("rank {} (the slowest of {})", rank, all);
    const int stands_for = slowest_last ? shown - 2 : shown - 1;
    if (rank != stands_for || shown == all) return fmt::format("rank {}", rank);
    return fmt::format("rank {} (and all up to {})", rank, slowest_last ? all - 2 : all - 1);
  }
};

}  // namespace

std::string chrome_trace(const Scenario& scenario, const std::vector<NamedStep>& steps) {
  Writer writer;
  int pid = 0;
  for (const auto& [name, step] : steps) {
    const ShownRanks ranks(scenario, step->timeline);
    for (int rank = 0; rank < ranks.shown; ++rank, ++pid) {
      writer.process(pid, fmt::format("{}: {}", name, ranks.name(rank)), step->schedule);
      write_rank(writer, pid, scenario, step->schedule,
                 step->timeline.ranks[static_cast<std::size_t>(ranks.like(rank))]);
    }
  }
  return writer.finish();
}

}  // namespace ddpsim
