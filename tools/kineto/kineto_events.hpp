#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// A row of a trace: a thread of the host, or a stream of a device.
struct TraceRow {
  int process = 0, thread = 0;
};

/// A member of an event's "args", written as `"key":value`.
class TraceArguments {
 public:
  TraceArguments& add(std::string_view key, std::int64_t value);
  TraceArguments& add(std::string_view key, std::string_view value);  ///< a text, quoted here
  TraceArguments& add_json(std::string_view key, std::string_view json);
  TraceArguments& add(const TraceArguments& others);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Collects the events of a trace in Chrome's JSON format, one on a line. Times are microseconds
/// with all digits down to the picosecond.
class TraceEvents {
 public:
  TraceEvents() = default;
  /// `take` gets the events in large parts as they are made, the last of them from flush(); text()
  /// is what it has not got yet.
  explicit TraceEvents(std::function<void(std::string_view)> take) : take_(std::move(take)) {}
  void flush();

  void span(TraceRow row, std::string_view category, std::string_view name, Instant start,
            Instant end, const TraceArguments& arguments = {});
  /// An arrow, from inside the span that begins at `start` to the span that begins at `end`.
  void flow(std::string_view category, std::string_view name, std::int64_t id, TraceRow from,
            Instant start, TraceRow to, Instant end);
  /// What a counter of a process shows from `at` on.
  void counter(int process, std::string_view name, std::string_view unit, Instant at, double value);
  /// A counter of several values, each with its name, which are drawn one on top of the other.
  void counter(int process, std::string_view name, Instant at,
               std::span<const std::pair<std::string_view, double>> values);
  void name_process(int process, std::string_view name, std::string_view labels, int order);
  void name_thread(TraceRow row, std::string_view name, int order);

  /// Takes over the events of another list, behind its own.
  void append(const TraceEvents& others);
  std::size_t size() const { return count_; }
  std::string_view text() const { return {out_.data(), out_.size()}; }

 private:
  template <typename... Values>
  void event(fmt::format_string<Values...> format, Values&&... values) {
    begin_event();
    out_.push_back('{');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
    out_.push_back('}');
  }
  void begin_event();

  std::function<void(std::string_view)> take_;  ///< none: all is kept
  fmt::memory_buffer out_;
  std::size_t count_ = 0;
};

/// A text as JSON; bytes that are no UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

}  // namespace ddpsim
