#include "tools/import/rccl_tests_file.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "tools/import/nccl_tests_line.hpp"

namespace ddpsim {
namespace {

std::string lower(std::string_view text) {
  std::string word;
  for (const char c : text) word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

/// One name for what versions and formats name differently.
std::string key_named(std::string_view given) {
  const std::string key = lower(given);
  if (key == "collective") return "name";
  if (key == "#wrong") return "wrong";
  return key;
}

/// "AllReduce": "all_reduce".
std::string operation_of_name(std::string_view name) {
  std::string operation;
  for (const char c : name.substr(0, 40)) {
    const bool capital = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (capital && !operation.empty() && operation.back() != '_') operation += '_';
    operation += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return operation;
}

/// An entry, by key.
class RcclEntry {
 public:
  RcclEntry(std::map<std::string, std::string> fields, const std::string& place)
      : fields_(std::move(fields)), place_(place) {}

  bool has(const char* key) const { return fields_.contains(key); }
  const std::string& text(const char* key) const {
    const auto found = fields_.find(key);
    if (found == fields_.end())
      refuse(fmt::format("missing \"{}\": expected what rccl-tests writes with -x", key));
    return found->second;
  }
  std::int64_t whole(const char* key, std::int64_t least, std::int64_t most) const {
    const auto value = parse_integer(text(key));
    if (!value || *value < least || *value > most)
      refuse(fmt::format("{}: expected a whole number from {} to {}, got \"{}\"", key, least, most,
                         text(key).substr(0, 60)));
    return *value;
  }
  [[noreturn]] void refuse(std::string_view problem) const {
    throw InputError(fmt::format("{}: {}", place_, problem));
  }

 private:
  std::map<std::string, std::string> fields_;
  const std::string& place_;
};

constexpr std::int64_t most_rccl_ranks = 10'000'000;

/// 0: not said.
int ranks_of(const RcclEntry& entry) {
  if (entry.has("gpus")) return static_cast<int>(entry.whole("gpus", 1, most_rccl_ranks));
  if (!entry.has("ranks")) return 0;
  const std::int64_t processes = entry.whole("ranks", 1, most_rccl_ranks),
                     each = entry.has("gpusperrank") ? entry.whole("gpusperrank", 1, 1024) : 1;
  if (processes * each > most_rccl_ranks) entry.refuse("more than 10 million ranks");
  return static_cast<int>(processes * each);
}

NcclTestsRun& run_of(std::vector<NcclTestsRun>& runs, const RcclEntry& entry) {
  const std::string operation = operation_of_name(entry.text("name"));
  const int ranks = ranks_of(entry);
  for (NcclTestsRun& run : runs)
    if (run.operation == operation && run.ranks == ranks) return run;
  NcclTestsRun& run = runs.emplace_back();
  run.program = "rccl-tests";
  run.operation = operation;
  run.ranks = ranks;
  return run;
}

void take_entry(std::vector<NcclTestsRun>& runs, const RcclEntry& entry) {
  NcclTestsRun& run = run_of(runs, entry);
  NcclTestsRow row;
  row.size = Bytes{entry.whole("size", 0, std::int64_t{1} << 50)};
  if (row.size.count == 0) return;
  row.type = entry.text("type").substr(0, 20);
  row.reduction = entry.text("redop").substr(0, 20);
  const bool in_place = entry.whole("inplace", 0, 1) == 1;
  if (says_wrong(entry.text("wrong"))) {
    ++run.wrong;
    return;
  }
  const std::string& time = entry.text("time");
  const auto microseconds = parse_number(time);
  constexpr double longest = 1e10;
  if (!is_number(time) || microseconds.value_or(0) < 0 || microseconds.value_or(0) > longest)
    entry.refuse(
        fmt::format("time: expected a time in microseconds, got \"{}\"", time.substr(0, 60)));
  const Duration duration = from_seconds(microseconds.value_or(0) * 1e-6);
  if (duration <= Duration::zero()) {
    ++run.unread;
    return;
  }
  (in_place ? row.in_place : row.out_of_place) = duration;
  note_ratio(row, printed_number(entry.text("algbw")), printed_number(entry.text("busbw")));
  run.rows.push_back(std::move(row));
}

/// The fields of a line, without blanks and quotes around them.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t comma = std::min(line.find(',', at), line.size());
    std::string_view field = line.substr(at, comma - at);
    constexpr std::string_view around = " \t\r\"";
    field.remove_prefix(std::min(field.find_first_not_of(around), field.size()));
    field.remove_suffix(field.size() - (field.find_last_not_of(around) + 1));
    fields.emplace_back(field);
    at = comma + 1;
  }
  return fields;
}

}  // namespace

bool is_rccl_entry(const nlohmann::json& object) {
  return object.is_object() && object.contains("name") && object.contains("inPlace") &&
         !object.contains("results");
}

bool is_rccl_header(std::string_view line) {
  std::vector<std::string> columns = fields_of(line);
  std::transform(columns.begin(), columns.end(), columns.begin(), lower);
  const auto has = [&](const char* name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  return has("size") && has("time") && has("algbw") && has("busbw");
}

void RcclEntries::take(const nlohmann::json& object, const std::string& place) {
  std::map<std::string, std::string> fields;
  if (object.is_object())
    for (const auto& [key, value] : object.items())
      if (value.is_primitive())
        fields[key_named(key)] = value.is_string() ? value.get<std::string>() : value.dump();
  take_entry(runs_, RcclEntry(std::move(fields), place));
}

void RcclEntries::take(const std::vector<std::string>& columns,
                       const std::vector<std::string>& values, const std::string& place) {
  std::map<std::string, std::string> fields;
  for (std::size_t i = 0; i < columns.size() && i < values.size(); ++i)
    fields[key_named(columns[i])] = values[i];
  take_entry(runs_, RcclEntry(std::move(fields), place));
}

std::vector<NcclTestsRun> RcclEntries::finish() {
  std::erase_if(runs_, [](const NcclTestsRun& run) { return run.rows.empty() && run.wrong == 0; });
  return std::move(runs_);
}

std::vector<NcclTestsRun> read_rccl_csv(const std::filesystem::path& file) {
  std::error_code error;
  constexpr std::uintmax_t largest = 16 << 20;
  if (std::filesystem::file_size(file, error) > largest)
    throw InputError(fmt::format("{}: larger than 16 MiB", file.string()));
  std::ifstream stream(file, std::ios::binary);
  RcclEntries entries;
  std::vector<std::string> columns;
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (columns.empty() || is_rccl_header(line)) {  // files of several runs may be put together
      columns = fields;
      continue;
    }
    const std::string place = fmt::format("{}:{}:1", file.string(), number);
    if (fields.size() != columns.size())
      throw InputError(
          fmt::format("{}: expected {} fields as in the header above, got {}: is the file cut off?",
                      place, columns.size(), fields.size()));
    entries.take(columns, fields, place);
  }
  return entries.finish();
}

}  // namespace ddpsim
