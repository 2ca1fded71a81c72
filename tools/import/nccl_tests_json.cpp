#include "tools/import/nccl_tests_json.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/import/rccl_tests_file.hpp"

namespace ddpsim {
namespace {

using ParsedJson = nlohmann::json;

constexpr std::string_view beginning_of_line = "{\"log\":";

class RunReader {
 public:
  explicit RunReader(std::string name) : name_(std::move(name)) {}

  NcclTestsRun read(const ParsedJson& object) const {
    if (!object.is_object() || !object.contains("results") || !object["results"].is_array())
      refuse("no list of \"results\": expected the file that nccl-tests writes with -J");
    NcclTestsRun run;
    run.version = text(object, "version");
    if (const ParsedJson& arguments = member(object, "args"); arguments.is_array())
      for (const ParsedJson& word : arguments)
        if (word.is_string() &&
            word.get_ref<const std::string&>().find("_perf") != std::string::npos)
          run.operation = operation_named(word.get_ref<const std::string&>());
    const ParsedJson& devices = member(member(object, "config"), "devices");
    if (devices.is_array()) {
      run.ranks = static_cast<int>(std::min<std::size_t>(devices.size(), 10'000'000));
      if (!devices.empty()) run.device = text(devices.front(), "device_info");
    }
    std::size_t index = 0;
    for (const ParsedJson& result : object["results"]) take(result, index++, run);
    return run;
  }

  [[noreturn]] void refuse(std::string_view problem) const {
    throw InputError(fmt::format("{}: {}", name_, problem));
  }

 private:
  static const ParsedJson& member(const ParsedJson& object, const char* key) {
    static const ParsedJson nothing;
    return object.is_object() && object.contains(key) ? object[key] : nothing;
  }
  static std::string text(const ParsedJson& object, const char* key) {
    const ParsedJson& value = member(object, key);
    return value.is_string() ? value.get<std::string>().substr(0, 100) : "";
  }
  /// Nothing where there is no number, or "nan".
  static std::optional<double> number(const ParsedJson& object, const char* key) {
    const ParsedJson& value = member(object, key);
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  }

  void take(const ParsedJson& result, std::size_t index, NcclTestsRun& run) const {
    const ParsedJson& size = member(result, "size");
    constexpr std::int64_t largest = std::int64_t{1} << 50;
    const bool whole = size.is_number_integer() &&
                       !(size.is_number_unsigned() &&
                         size.get<std::uint64_t>() > static_cast<std::uint64_t>(largest));
    if (!whole || size.get<std::int64_t>() < 0 || size.get<std::int64_t>() > largest)
      refuse(fmt::format("results[{}].size: expected a whole number of bytes", index));
    if (size.get<std::int64_t>() == 0) return;
    NcclTestsRow row;
    row.size = Bytes{size.get<std::int64_t>()};
    row.type = text(result, "type");
    row.reduction = text(result, "redop");
    if (const std::string root = text(result, "root"); !root.empty()) {
      int value = -1;
      std::istringstream(root) >> value;
      row.root = value;
    } else if (const auto rank = number(result, "root")) {
      row.root = static_cast<int>(std::clamp(*rank, -1.0, 1e6));
    }
    bool wrong = false;
    for (const auto& [key, into] :
         {std::pair{"out_of_place", &row.out_of_place}, {"in_place", &row.in_place}}) {
      const ParsedJson& placement = member(result, key);
      if (number(placement, "nwrong").value_or(0) != 0) {
        wrong = true;
        continue;
      }
      auto time = number(placement, "time");
      if (!time) time = number(placement, "cpu_time");
      constexpr double longest = 1e10;
      if (!time || *time <= 0) continue;
      if (*time > longest)
        refuse(fmt::format("results[{}].{}.time: expected microseconds", index, key));
      *into = from_seconds(*time * 1e-6);
      const double algorithm = number(placement, "alg_bw").value_or(0);
      const double bus = number(placement, "bus_bw").value_or(0);
      if (algorithm > 0 && bus > 0) row.least_ratio = row.most_ratio = bus / algorithm;
    }
    const bool kept = row.out_of_place || row.in_place;
    if (wrong) ++run.wrong;
    if (wrong && kept) ++run.wrong_half;
    if (kept) run.rows.push_back(std::move(row));
  }

  std::string name_;
};

/// `lines_before`: of the file, before the text.
ParsedJson parsed(const RunReader& reader, const std::string& name, std::string_view text,
                  std::ptrdiff_t lines_before) {
  try {
    constexpr int deepest = 16;
    return ParsedJson::parse(text, [&](int depth, ParsedJson::parse_event_t, ParsedJson&) {
      if (depth > deepest) reader.refuse("nested too deeply: is this nccl-tests' output?");
      return true;
    });
  } catch (const ParsedJson::parse_error& problem) {
    const std::size_t at = std::min(problem.byte, text.size());
    const auto begin = text.begin(), end = begin + static_cast<std::ptrdiff_t>(at);
    const std::size_t line_begin = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    throw InputError(fmt::format(
        "{}:{}:{}: {}", name, lines_before + 1 + std::count(begin, end, '\n'),
        line_begin == std::string::npos ? std::max<std::size_t>(at, 1)
                                        : std::max<std::size_t>(at - line_begin - 1, 1),
        at >= text.size() ? "the JSON ends too early: the file is cut off" : "not JSON"));
  } catch (const ParsedJson::exception&) {
    reader.refuse("a number that is too large");
  }
}

/// Entries of rccl-tests, each a line of its own, as its first versions wrote them, with or without
/// commas in between. False: the first line is none, and the text something else.
bool read_rccl_lines(const std::string& name, std::string_view text,
                     std::vector<NcclTestsRun>& runs) {
  const RunReader reader(name);
  RcclEntries entries;
  bool first = true;
  std::ptrdiff_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    line.remove_suffix(line.size() - (line.find_last_not_of(" \t\r,") + 1));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) continue;
    constexpr std::size_t longest = 4096;
    if (first && !(line.size() <= longest && line.starts_with('{') && line.ends_with('}') &&
                   ParsedJson::accept(line) && is_rccl_entry(ParsedJson::parse(line))))
      return false;
    first = false;
    entries.take(parsed(reader, name, line, number), fmt::format("{}:{}:1", name, number + 1));
  }
  runs = entries.finish();
  return !first;
}

}  // namespace

std::optional<std::string> line_in_json(std::string_view line) {
  if (!line.starts_with(beginning_of_line)) return std::nullopt;
  const ParsedJson object = ParsedJson::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("log") || !object["log"].is_string())
    return std::nullopt;
  return object["log"].get<std::string>();
}

bool is_nccl_tests_json(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string beginning(beginning_of_line.size(), ' ');
  stream.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  if (beginning == beginning_of_line) return false;
  stream.clear();
  stream.seekg(0);
  char first = 0, second = 0;
  stream >> first;
  if (first == '{') return true;
  stream >> second;
  return first == '[' && (second == '{' || second == ']');
}

std::vector<NcclTestsRun> read_nccl_tests_json(const std::filesystem::path& file) {
  const RunReader reader(file.string());
  std::error_code error;
  constexpr std::uintmax_t largest = 16 << 20;
  if (std::filesystem::file_size(file, error) > largest) reader.refuse("larger than 16 MiB");
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  const std::string text = content.str();
  if (std::vector<NcclTestsRun> runs; read_rccl_lines(file.string(), text, runs)) return runs;
  const ParsedJson root = parsed(reader, file.string(), text, 0);
  std::vector<NcclTestsRun> runs;
  if (root.is_array() && !root.empty() && is_rccl_entry(root.front())) {
    RcclEntries entries;
    for (std::size_t i = 0; i < root.size(); ++i)
      entries.take(root[i], fmt::format("{}: entry {}", file.string(), i));
    return entries.finish();
  }
  if (root.is_array())
    for (const ParsedJson& object : root) runs.push_back(reader.read(object));
  else
    runs.push_back(reader.read(root));
  std::erase_if(runs, [](const NcclTestsRun& run) { return run.rows.empty() && run.wrong == 0; });
  return runs;
}

}  // namespace ddpsim
