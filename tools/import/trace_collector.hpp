#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/import/trace_events.hpp"
#include "tools/import/trace_names.hpp"

namespace ddpsim {

/// One event of the file, as far as it was read.
struct TraceEvent {
  std::string phase, category, name, process, thread, type, collective, group, input_type;
  std::optional<double> begin, duration;
  std::uint64_t correlation = 0;
  std::int64_t bytes = -1, elements = -1;
  std::int32_t stream = -1;
  int group_ranks = 0;                ///< 0: not said
  std::vector<std::int64_t> extents;  ///< of the first tensor among the inputs
  bool has_extents = false, extents_done = false;
  int types = 0;                     ///< of the inputs, so far
  bool first_input_untyped = false;  ///< the first of these is ""

  /// Is the shape of a tensor said? A tensor that is not there has neither extents nor a type: the
  /// gradient of a parameter that took no part in the loss.
  bool has_shape() const { return has_extents && !(extents.empty() && first_input_untyped); }

  void clear() {
    for (std::string* text :
         {&phase, &category, &name, &process, &thread, &type, &collective, &group, &input_type})
      text->clear();
    begin.reset();
    duration.reset();
    correlation = 0;
    bytes = elements = -1;
    stream = -1;
    group_ranks = 0;
    extents.clear();
    has_extents = extents_done = false;
    types = 0;
    first_input_untyped = false;
  }
};

/// Puts events into a Trace, those that matter, as small as they can be.
class TraceCollector {
 public:
  explicit TraceCollector(std::string file) : file_(std::move(file)) {}

  Trace trace;

  /// Throws InputError that names the file and the event under way.
  [[noreturn]] void refuse(std::string_view problem) const;
  /// Throws InputError as read_trace does.
  void take(const TraceEvent& event);

 private:
  void take_host(const TraceEvent& event, const NameMeaning& meaning, Duration begin, Duration end);
  bool covered(const HostSpan& span) const;
  Duration from_origin(double microseconds);
  std::int32_t name_index(const std::string& name);
  std::int32_t shape(const TraceEvent& event);
  std::int32_t message(const TraceEvent& event, CollectiveKind by_name);
  std::uint32_t thread(const TraceEvent& event);

  std::string file_;
  std::optional<double> origin_;
  std::size_t kept_ = 0;
  std::unordered_map<std::uint32_t, std::pair<Duration, Duration>> outermost_;
  std::unordered_map<std::string, std::int32_t> names_;
  std::unordered_map<std::string, std::uint32_t> threads_;
  std::map<Shape, std::int32_t> shapes_;
};

}  // namespace ddpsim
