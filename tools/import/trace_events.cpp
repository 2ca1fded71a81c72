#include "tools/import/trace_events.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/import/json_stream.hpp"
#include "tools/import/trace_collector.hpp"
#include "tools/kineto/kineto_words.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_extents = 16;

/// An entry of "Input type" names the type of a tensor's elements, or else what kind of argument it
/// is of: "TensorList", "Scalar", "ScalarList", "" of all others and of tensors that are not there.
bool is_tensor_type(std::string_view word) {
  return !word.empty() && word != "Scalar" && !word.ends_with("List");
}

/// Keys of an event and its `args` that are read; all others are skipped.
enum class Key : std::uint8_t {
  phase,
  category,
  name,
  begin,
  duration,
  process,
  thread,
  correlation,
  bytes,
  elements,
  stream,
  type,
  collective,
  group,
  group_size,
  dims,
  input_types,
  other
};
constexpr std::array<std::pair<std::string_view, Key>, 7> event_keys{{{"ph", Key::phase},
                                                                      {"cat", Key::category},
                                                                      {"name", Key::name},
                                                                      {"ts", Key::begin},
                                                                      {"dur", Key::duration},
                                                                      {"pid", Key::process},
                                                                      {"tid", Key::thread}}};
constexpr std::array<std::pair<std::string_view, Key>, 10> argument_keys{
    {{kineto::correlation, Key::correlation},
     {kineto::bytes, Key::bytes},
     {kineto::message_elements, Key::elements},
     {kineto::stream, Key::stream},
     {kineto::dtype, Key::type},
     {kineto::collective_name, Key::collective},
     {kineto::group_name, Key::group},
     {kineto::group_size, Key::group_size},
     {kineto::input_dims, Key::dims},
     {kineto::input_type, Key::input_types}}};

template <typename Keys>
Key key_of(const Keys& keys, std::string_view text) {
  for (const auto& [name, key] : keys)
    if (name == text) return key;
  return Key::other;
}

/// Follows the nesting of the file: where events are, and in them `args`.
class TraceReader : public JsonEvents {
 public:
  explicit TraceReader(TraceCollector& collector) : collector_(collector) {}

  bool found_events() const { return event_depth_ > 0; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value), value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr number_unsigned_t most = std::numeric_limits<std::int64_t>::max();
    if (value > most) return number(static_cast<double>(value), std::nullopt);
    return number(static_cast<double>(value), static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return number(value, std::nullopt);
  }
  bool binary(binary_t&) override { return true; }

  bool string(string_t& value) override {
    if (in_event()) {
      switch (key_) {
        case Key::phase:
          event_.phase = value;
          break;
        case Key::category:
          event_.category = value;
          break;
        case Key::name:
          event_.name = value;
          break;
        case Key::process:
          event_.process = value;
          break;
        case Key::thread:
          event_.thread = value;
          break;
        case Key::begin:
        case Key::duration:
          collector_.refuse("expected a number of microseconds, got a text");
        case Key::correlation:
        case Key::bytes:
        case Key::elements:
        case Key::stream:
        case Key::type:
        case Key::collective:
        case Key::group:
        case Key::group_size:
        case Key::dims:
        case Key::input_types:
        case Key::other:
          break;
      }
    } else if (in_arguments()) {
      switch (key_) {
        case Key::type:
          event_.type = value;
          break;
        case Key::collective:
          event_.collective = value;
          break;
        case Key::group:
          event_.group = value;
          break;
        case Key::phase:
        case Key::category:
        case Key::name:
        case Key::begin:
        case Key::duration:
        case Key::process:
        case Key::thread:
        case Key::correlation:
        case Key::bytes:
        case Key::elements:
        case Key::stream:
        case Key::group_size:
        case Key::dims:
        case Key::input_types:
        case Key::other:
          break;
      }
    } else if (in_list_of(Key::input_types)) {
      if (event_.types++ == 0) event_.first_input_untyped = value.empty();
      if (event_.input_type.empty() && is_tensor_type(value)) event_.input_type = value;
    } else if (depth_ == 2 && section_ == "distributedInfo" && top_key_ == "backend") {
      collector_.trace.backend = value;
    } else if (depth_ == 3 && section_ == "deviceProperties" && top_key_ == "name") {
      if (collector_.trace.devices++ == 0) collector_.trace.device_name = value;
    }
    return true;
  }

  bool start_object(std::size_t) override {
    ++depth_;
    if (in_event()) {
      event_.clear();
      seen_ = 0;
      ++collector_.trace.events;
      key_ = Key::other;
    } else if (in_arguments()) {
      arguments_ = expecting_arguments_;
    }
    return true;
  }
  bool end_object() override {
    if (in_event())
      collector_.take(event_);
    else if (depth_ == event_depth_ + 1)
      arguments_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (depth_ == 1)
      event_depth_ = 2;  // the bare list
    else if (depth_ == 2 && section_ == "traceEvents" && root_object_ && event_depth_ == 0)
      event_depth_ = 3;
    return true;
  }
  bool end_array() override {
    if (in_list_of(Key::dims)) end_of_extents();
    if (depth_ == event_depth_ - 1) ended_ = true;
    --depth_;
    return true;
  }

  bool key(string_t& value) override {
    if (depth_ == 1) {
      root_object_ = true;
      section_ = value;
      if (value == "ddpsim") collector_.trace.of_ddpsim = true;
      if (value == "traceEvents" && event_depth_ > 0)
        collector_.refuse("a second list \"traceEvents\"");
    } else if (in_event()) {
      expecting_arguments_ = value == "args";
      note(key_of(event_keys, value), value);
    } else if (in_arguments() && arguments_) {
      note(key_of(argument_keys, value), value);
    } else if (depth_ <= 3 && !in_list()) {
      top_key_ = value;
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  /// Inside the list of events?
  bool in_list() const { return event_depth_ > 0 && !ended_ && depth_ >= event_depth_; }
  bool in_event() const { return in_list() && depth_ == event_depth_; }
  bool in_arguments() const { return in_list() && depth_ == event_depth_ + 1; }
  bool in_list_of(Key key) const {
    return arguments_ && key_ == key && in_list() && depth_ >= event_depth_ + 2;
  }

  void note(Key key, const string_t& text) {
    key_ = key;
    if (key == Key::other) return;
    const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(key);
    if ((seen_ & bit) != 0) collector_.refuse(fmt::format("repeated key \"{}\"", text));
    seen_ |= bit;
  }

  /// The list of a tensor's extents ends: the first with a number in it counts, or an empty one if
  /// it is the first input.
  void end_of_extents() {
    if (depth_ == event_depth_ + 2) return;
    event_.has_extents = true;
    if (!event_.extents.empty()) event_.extents_done = true;
  }

  bool number(double value, std::optional<std::int64_t> whole) {
    if (in_event()) {
      switch (key_) {
        case Key::begin:
          event_.begin = value;
          break;
        case Key::duration:
          event_.duration = value;
          break;
        case Key::process:
          event_.process = fmt::format("{}", value);
          break;
        case Key::thread:
          event_.thread = fmt::format("{}", value);
          break;
        case Key::phase:
        case Key::category:
        case Key::name:
        case Key::correlation:
        case Key::bytes:
        case Key::elements:
        case Key::stream:
        case Key::type:
        case Key::collective:
        case Key::group:
        case Key::group_size:
        case Key::dims:
        case Key::input_types:
        case Key::other:
          break;
      }
    } else if (in_arguments() && arguments_) {
      switch (key_) {
        case Key::correlation:
          event_.correlation =
              static_cast<std::uint64_t>(std::max<std::int64_t>(whole.value_or(0), 0));
          break;
        case Key::bytes:
          event_.bytes = amount(whole);
          break;
        case Key::elements:
          event_.elements = amount(whole);
          break;
        case Key::group_size:
          if (whole && *whole > 0 && *whole <= most_ranks)
            event_.group_ranks = static_cast<int>(*whole);
          break;
        case Key::stream:
          if (whole && *whole >= 0 && *whole <= std::numeric_limits<std::int32_t>::max())
            event_.stream = static_cast<std::int32_t>(*whole);
          break;
        case Key::phase:
        case Key::category:
        case Key::name:
        case Key::begin:
        case Key::duration:
        case Key::process:
        case Key::thread:
        case Key::type:
        case Key::collective:
        case Key::group:
        case Key::dims:
        case Key::input_types:
        case Key::other:
          break;
      }
    } else if (in_list_of(Key::dims)) {
      if (event_.extents_done || depth_ == event_depth_ + 2) return true;
      if (event_.extents.size() >= most_extents)
        collector_.refuse("a tensor of more than 16 dimensions");
      event_.extents.push_back(amount(whole));
      elements_fit();
    } else if (depth_ == 2 && section_ == "distributedInfo") {
      if (top_key_ == "rank") collector_.trace.rank = static_cast<int>(rank(whole));
      if (top_key_ == "world_size") collector_.trace.ranks = static_cast<int>(rank(whole));
    }
    return true;
  }

  /// More than any tensor has; sums over all events of a trace still fit.
  static constexpr std::int64_t most_elements = std::int64_t{1} << 40;
  static constexpr std::int64_t most_ranks = 10'000'000;

  std::int64_t amount(std::optional<std::int64_t> whole) const {
    if (!whole || *whole < 0 || *whole > most_elements)
      collector_.refuse("expected a whole number from 0 to 2^40 as a size");
    return *whole;
  }
  std::int64_t rank(std::optional<std::int64_t> whole) const {
    if (!whole || *whole < 0 || *whole > most_ranks)
      collector_.refuse("distributedInfo: expected a whole number of ranks");
    return *whole;
  }
  void elements_fit() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : event_.extents) {
      if (extent > most_elements / product)
        collector_.refuse("a tensor of more than 2^40 elements");
      product *= std::max<std::int64_t>(extent, 1);
    }
  }

  TraceCollector& collector_;
  TraceEvent event_;
  std::uint32_t seen_ = 0;  ///< keys of the event, a bit for each
  int depth_ = 0;
  int event_depth_ = 0;  ///< of event objects; 0: not found yet
  bool root_object_ = false, ended_ = false;
  bool expecting_arguments_ = false, arguments_ = false;
  Key key_ = Key::other;
  std::string section_, top_key_;
};

void check_launches(const std::string& file, std::vector<LaunchCall>& launches) {
  std::sort(launches.begin(), launches.end(),
            [](const LaunchCall& a, const LaunchCall& b) { return a.correlation < b.correlation; });
  for (std::size_t i = 1; i < launches.size(); ++i)
    if (launches[i].correlation == launches[i - 1].correlation)
      throw InputError(fmt::format(
          "{}: two launches share the correlation id {}: is this the trace of one process?", file,
          launches[i].correlation));
}

}  // namespace

Trace read_trace(const std::filesystem::path& file, const std::function<void(double)>& progress) {
  TraceCollector collector(file.string());
  TraceReader reader(collector);
  stream_json(file, reader, progress);
  if (!reader.found_events() || collector.trace.events == 0)
    throw InputError(
        fmt::format("{}: no list of \"traceEvents\" in it: expected a trace of PyTorch's profiler "
                    "(prof.export_chrome_trace)",
                    file.string()));
  check_launches(file.string(), collector.trace.launches);
  return std::move(collector.trace);
}

}  // namespace ddpsim
