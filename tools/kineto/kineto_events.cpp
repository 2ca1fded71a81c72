#include "tools/kineto/kineto_events.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace ddpsim {
namespace {

/// Picoseconds as microseconds, all digits kept.
std::string microseconds(std::int64_t picoseconds) {
  return fmt::format("{}.{:06}", picoseconds / 1'000'000, picoseconds % 1'000'000);
}
std::string microseconds(Instant at) {
  return microseconds(at.time_since_epoch().count());
}

}  // namespace

std::string json_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TraceArguments& TraceArguments::add_json(std::string_view key, std::string_view json) {
  text_ += fmt::format("{}\"{}\":{}", text_.empty() ? "" : ",", key, json);
  return *this;
}

TraceArguments& TraceArguments::add(const TraceArguments& others) {
  if (!text_.empty() && !others.text_.empty()) text_ += ',';
  text_ += others.text_;
  return *this;
}

TraceArguments& TraceArguments::add(std::string_view key, std::int64_t value) {
  return add_json(key, fmt::format("{}", value));
}

TraceArguments& TraceArguments::add(std::string_view key, std::string_view value) {
  return add_json(key, json_quoted(value));
}

void TraceEvents::begin_event() {
  constexpr std::size_t part = std::size_t{1} << 20;
  if (take_ && out_.size() >= part) flush();
  if (count_ > 0) out_.append(std::string_view(",\n"));
  ++count_;
}

void TraceEvents::flush() {
  if (!take_) return;
  take_(text());
  out_.clear();
}

/// One picosecond short: whoever adds `ts` and `dur` as floating-point numbers must not see two
/// spans that touch overlap.
void TraceEvents::span(TraceRow row, std::string_view category, std::string_view name,
                       Instant start, Instant end, const TraceArguments& arguments) {
  const std::int64_t duration = std::max<std::int64_t>((end - start).count() - 1, 0);
  event(R"("ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})",
        category, json_quoted(name), row.process, row.thread, microseconds(start),
        microseconds(duration), arguments.text());
}

void TraceEvents::flow(std::string_view category, std::string_view name, std::int64_t id,
                       TraceRow from, Instant start, TraceRow to, Instant end) {
  event(R"("ph":"s","id":{},"pid":{},"tid":{},"ts":{},"cat":"{}","name":"{}")", id, from.process,
        from.thread, microseconds(start), category, name);
  event(R"("ph":"f","id":{},"pid":{},"tid":{},"ts":{},"cat":"{}","name":"{}","bp":"e")", id,
        to.process, to.thread, microseconds(end), category, name);
}

void TraceEvents::counter(int process, std::string_view name, std::string_view unit, Instant at,
                          double value) {
  event(R"("ph":"C","name":"{}","pid":{},"ts":{},"args":{{"{}":{}}})", name, process,
        microseconds(at), unit, value);
}

void TraceEvents::counter(int process, std::string_view name, Instant at,
                          std::span<const std::pair<std::string_view, double>> values) {
  std::string list;
  for (const auto& [kind, value] : values)
    list += fmt::format("{}\"{}\":{}", list.empty() ? "" : ",", kind, value);
  event(R"("ph":"C","name":"{}","pid":{},"ts":{},"args":{{{}}})", name, process, microseconds(at),
        list);
}

void TraceEvents::name_process(int process, std::string_view name, std::string_view labels,
                               int order) {
  event(R"("ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}})", process,
        json_quoted(name));
  event(R"("ph":"M","name":"process_labels","pid":{},"tid":0,"args":{{"labels":"{}"}})", process,
        labels);
  event(R"("ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}})",
        process, order);
}

void TraceEvents::name_thread(TraceRow row, std::string_view name, int order) {
  event(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", row.process,
        row.thread, json_quoted(name));
  event(R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})",
        row.process, row.thread, order);
}

void TraceEvents::append(const TraceEvents& others) {
  if (others.size() == 0) return;
  begin_event();
  out_.append(others.text());
  count_ += others.size() - 1;
}

}  // namespace ddpsim
