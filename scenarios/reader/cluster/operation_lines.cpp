#include "scenarios/reader/cluster/operation_lines.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "scenarios/reader/text/seal.hpp"

namespace ddpsim {
namespace {

/// A key and its value; a value that is a mapping is held with its braces.
using Pair = std::pair<std::string_view, std::string_view>;

/// Takes words off the front of a line.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  bool take(char wanted) {
    skip_blanks();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// A word, with or without quotes; "": there is none.
  std::string_view word() {
    skip_blanks();
    if (!text_.empty() && text_.front() == '"') {
      const std::size_t end = text_.find('"', 1);
      if (end == std::string_view::npos) return {};
      return taken(end + 1).substr(1, end - 1);
    }
    std::string_view found = taken(std::min(text_.find_first_of("{},:\""), text_.size()));
    while (!found.empty() && found.back() == ' ') found.remove_suffix(1);
    return found;
  }
  /// A word, or a mapping without another in it.
  std::string_view value() {
    skip_blanks();
    if (text_.empty() || text_.front() != '{') return word();
    const std::size_t end = text_.find('}');
    return end == std::string_view::npos ? std::string_view{} : taken(end + 1);
  }
  bool at_end() {
    skip_blanks();
    return text_.empty();
  }

 private:
  void skip_blanks() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  std::string_view taken(std::size_t count) {
    const std::string_view front = text_.substr(0, count);
    text_.remove_prefix(count);
    return front;
  }

  std::string_view text_;
};

/// The pairs of "{key: value, ...}"; none where it is something else, or has a key twice.
std::vector<Pair> pairs_of(std::string_view text) {
  Words words(text);
  std::vector<Pair> pairs;
  if (!words.take('{')) return {};
  do {
    const std::string_view key = words.word();
    if (key.empty() || !words.take(':')) return {};
    const std::string_view value = words.value();
    if (value.empty() || std::any_of(pairs.begin(), pairs.end(),
                                     [&](const Pair& each) { return each.first == key; }))
      return {};
    pairs.emplace_back(key, value);
  } while (words.take(','));
  if (!words.take('}') || !words.at_end()) return {};
  return pairs;
}

bool read_word(std::string_view text, bool& into) {
  into = text == "true";
  return into || text == "false";
}

template <typename Number>
bool read_number(std::string_view text, Number least, Number most, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size() && into >= least && into <= most;
}

/// Extents are checked against their own limits by the other reader; here against what all allow.
bool read_extent(std::string_view text, std::int64_t& into) {
  constexpr std::int64_t most = 1 << 20;
  return read_number<std::int64_t>(text, 1, most, into);
}

template <typename Names, typename T>
bool read_name(std::string_view text, const Names& all, T& into) {
  for (const T each : all)
    if (name_of(each) == text) {
      into = each;
      return true;
    }
  return false;
}

/// `read(key, value)` of each pair, and all of `needed` are there.
template <typename Read>
bool read_pairs(std::string_view text, std::initializer_list<std::string_view> needed, Read read) {
  const std::vector<Pair> pairs = pairs_of(text);
  for (const std::string_view key : needed)
    if (std::none_of(pairs.begin(), pairs.end(),
                     [&](const Pair& each) { return each.first == key; }))
      return false;
  return !pairs.empty() && std::all_of(pairs.begin(), pairs.end(), [&](const Pair& each) {
    return read(each.first, each.second);
  });
}

bool read_shape(std::string_view text, Product& product) {
  return read_pairs(text, {"m", "n", "k"}, [&](std::string_view key, std::string_view value) {
    Gemm& gemm = product.gemm;
    if (key == "m") return read_extent(value, gemm.m);
    if (key == "n") return read_extent(value, gemm.n);
    if (key == "k") return read_extent(value, gemm.k);
    if (key == "batch") return read_extent(value, gemm.batch);
    return key == "along_k" && read_number(value, 0, 2, product.along_k);
  });
}

bool read_shape(std::string_view text, ConvolutionShape& shape) {
  const auto read = [&](std::string_view key, std::string_view value) {
    if (key == "direction") return read_name(value, all_convolution_directions, shape.direction);
    if (key == "pictures") return read_extent(value, shape.pictures);
    if (key == "channels") return read_extent(value, shape.channels);
    if (key == "pixels") return read_extent(value, shape.pixels);
    if (key == "outputs") return read_extent(value, shape.outputs);
    if (key == "places") return read_extent(value, shape.places);
    if (key == "window") return read_extent(value, shape.window);
    if (key == "groups") return read_extent(value, shape.groups);
    return key == "channels_last" && read_word(value, shape.channels_last);
  };
  return read_pairs(text, {"direction", "pictures", "channels", "pixels", "outputs", "places"},
                    read) &&
         shape.groups <= std::min(shape.channels, shape.outputs);
}

bool read_shape(std::string_view text, AttentionOperation& operation) {
  Attention& shape = operation.shape;
  const auto read = [&](std::string_view key, std::string_view value) {
    if (key == "batch") return read_extent(value, shape.batch);
    if (key == "heads") return read_extent(value, shape.heads);
    if (key == "queries") return read_extent(value, shape.queries);
    if (key == "keys") return read_extent(value, shape.keys);
    if (key == "size") return read_extent(value, shape.size);
    if (key == "value_size") return read_extent(value, shape.value_size);
    if (key == "causal") return read_word(value, shape.causal);
    if (key == "backward") return read_word(value, shape.backward);
    if (key == "masked") return read_word(value, operation.masked);
    return key == "implementation" &&
           read_name(value, all_attention_kernels, operation.implementation);
  };
  return read_pairs(text, {"batch", "heads", "queries", "keys", "size", "implementation"}, read) &&
         operation.implementation != AttentionKernel::usual;
}

bool read_shape(std::string_view text, MemoryPattern& pattern) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  return read_pairs(text, {"of"}, [&](std::string_view key, std::string_view value) {
    if (key == "of") return read_name(value, all_pattern_kinds, pattern.of);
    if (key == "backward") return read_word(value, pattern.backward);
    if (key == "rows") return read_number<std::int64_t>(value, 1, most, pattern.rows);
    if (key == "columns") return read_number<std::int64_t>(value, 1, most, pattern.columns);
    if (key == "inner") return read_number<std::int64_t>(value, 0, most, pattern.inner);
    return key == "channels_last" && read_word(value, pattern.channels_last);
  });
}

template <typename Shape>
bool read_shape_into(std::string_view text, DeviceKernel& kernel) {
  Shape shape;
  if (!read_shape(text, shape)) return false;
  kernel.shape = shape;
  return true;
}

/// "4.7 us", up to an hour.
bool read_us(std::string_view text, Duration& into) {
  constexpr std::string_view unit = " us";
  if (!text.ends_with(unit)) return false;
  text.remove_suffix(unit.size());
  double us = 0;
  if (!read_number(text, 1e-3, 3.6e9, us)) return false;
  into = from_seconds(us * 1e-6);
  return true;
}

bool read_operation(std::string_view line, MeasuredOperation& operation) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
  DeviceKernel& kernel = operation.kernel;
  int shapes = 0;
  std::int64_t read = 0, written = 0;
  const auto of_key = [&](std::string_view key, std::string_view value) {
    if (key == "type") return read_name(value, all_dtypes, kernel.type);
    if (key == "read") return read_number<std::int64_t>(value, 0, most_bytes, read);
    if (key == "written") return read_number<std::int64_t>(value, 0, most_bytes, written);
    if (key == "time") return read_us(value, operation.time);
    ++shapes;
    if (key == "gemm") return read_shape_into<Product>(value, kernel);
    if (key == "conv") return read_shape_into<ConvolutionShape>(value, kernel);
    if (key == "attention") return read_shape_into<AttentionOperation>(value, kernel);
    return key == "pattern" && read_shape_into<MemoryPattern>(value, kernel);
  };
  if (!read_pairs(line, {"read", "written", "time"}, of_key) || shapes != 1) return false;
  kernel.traffic = Bytes{read + written};
  return true;
}

/// A key of the file's head whose value is no concern of a run.
bool is_of_head(std::string_view line) {
  constexpr std::array<std::string_view, 8> keys{
      "written_by: ", "source: ", "device: ", "torch: ", "driver: ", "date: ", "seconds: ", "#"};
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return line.starts_with(key); });
}

}  // namespace

std::optional<std::vector<MeasuredOperation>> operations_on_lines(std::string_view content) {
  constexpr std::string_view row = "  - ";
  std::vector<MeasuredOperation> operations;
  std::set<OperationPlace> places;
  bool format = false, device = false, by_program = false, rows = false, ended = false;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (ended) return std::nullopt;
    if (rows && line.starts_with(row)) {
      MeasuredOperation operation;
      if (!read_operation(line.substr(row.size()), operation) ||
          !places.insert(place_of(operation.kernel)).second)
        return std::nullopt;
      operations.push_back(operation);
    } else if (is_end_line(line, "ddpsim.operations/1")) {
      ended = true;
    } else if (rows) {
      return std::nullopt;
    } else if (line == "format: ddpsim.operations/1") {
      format = true;
    } else if (line == "operations:") {
      rows = true;
    } else if (is_of_head(line)) {
      device = device || line.starts_with("device: ");
      by_program = by_program || line.starts_with("written_by: ");
    } else {
      return std::nullopt;
    }
  }
  if (!format || !device || operations.empty() || (by_program && !ended)) return std::nullopt;
  return operations;
}

}  // namespace ddpsim
