#include "scenarios/reader/format/yaml.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <unordered_set>

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>

#include "scenarios/reader/format/elsewhere.hpp"
#include "scenarios/reader/format/file_end.hpp"
#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/misplaced.hpp"
#include "scenarios/reader/format/suits.hpp"
#include "scenarios/reader/text/catalogue_folder.hpp"
#include "scenarios/reader/text/json_escapes.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "scenarios/reader/text/seal.hpp"
#include "scenarios/reader/text/to_import.hpp"
#include "scenarios/reader/text/yaml_merge.hpp"
#include "scenarios/reader/text/yaml_syntax.hpp"
#include "scenarios/reader/text/yaml_tags.hpp"
#include "scenarios/reader/text/yaml_text.hpp"

namespace ddpsim {
namespace {

/// No file of ours is nearly as large; what is, is refused before it is read.
constexpr std::uintmax_t largest_file = std::uintmax_t{8} * 1024 * 1024;

/// A path of keys. Whoever names a wrong file by mistake must not read its secrets in an error: a
/// line such as those of /etc/shadow is a key to YAML.
std::string shown_key(const std::string& key) {
  return key.find_first_of(":$=") == std::string::npos ? shown(key) : "this line is no key";
}

/// Why `name` is no key of a mapping, and which are.
std::string unknown_key(const std::string& name, const Yaml& value,
                        const MapDescription& description) {
  const std::vector<std::string> known = description.key_names();
  std::string problem = "unknown key";
  const std::string guess = nearest(name, known);
  std::string told = told_elsewhere(name, value, description);
  if (told.empty())
    told = told_misplaced(name, value, description, guess.empty() ? Depth::any : Depth::shallow);
  if (told.empty() && guess.empty()) told = told_as_value(name, value, description);
  if (!told.empty())
    problem += "; " + told;
  else if (!guess.empty())
    problem += fmt::format("; did you mean \"{}\"?", guess);
  std::string list;
  for (const std::string& key : known) list += (list.empty() ? "" : ", ") + key;
  return problem + (list.empty() ? "; there are none here" : "; known: " + list);
}

/// Where a second document begins, if one does. Throws TagProblem at a tag that means nothing here.
/// Not YAML::LoadAll: a "," outside of brackets makes yaml-cpp 0.7 find empty documents for ever.
std::optional<YAML::Mark> second_document(const std::string& content) {
  std::istringstream stream(content);
  YAML::Parser parser(stream);
  CheckedEvents events;
  while (events.document_starts.size() < 2)
    if (!parser.HandleNextDocument(events)) return std::nullopt;
  return events.document_starts[1];
}

/// Small texts in which no second document was found: searching takes half the time of reading, and
/// a sweep or a plan reads the same files of the catalogue for each of its points.
class WholeTexts {
 public:
  bool has(const std::string& text) {
    const std::lock_guard lock(guard_);
    return texts_.contains(text);
  }
  void add(const std::string& text) {
    if (text.size() > largest) return;
    const std::lock_guard lock(guard_);
    if (texts_.size() < most) texts_.insert(text);
  }

 private:
  static constexpr std::size_t largest = 64 << 10, most = 256;
  std::mutex guard_;
  std::unordered_set<std::string> texts_;
};

/// Throws InputError where a second document begins, and TagProblem as second_document does.
void check_one_document(const std::string& content, const std::string& file) {
  static WholeTexts whole;
  if (whole.has(content)) return;
  if (const auto mark = second_document(content))
    throw InputError(fmt::format("{}:{}:{}: a second YAML document begins here: expected one", file,
                                 mark->line + 1, mark->column + 1));
  whole.add(content);
}

/// yaml-cpp needs 0.2 KiB for each mark between values and a node for each value: 8 MiB of "1,1,1"
/// would be 1.8 GB. A description of 8 MiB has 1.4 million marks.
constexpr std::ptrdiff_t most_marks = 1'500'000;

void check_amount(const std::string& content, const std::string& file) {
  constexpr std::string_view marks = ",[]{}\n";
  const auto count = std::count_if(content.begin(), content.end(),
                                   [&](char c) { return marks.find(c) != std::string_view::npos; });
  if (count > most_marks)
    throw InputError(fmt::format(
        "{}:1:1: {} brackets, commas and lines: at most {} are read; is this a scenario?", file,
        count, most_marks));
}

/// Throws InputError if it cannot be read.
std::string text_of(const std::filesystem::path& file) {
  if (auto text = text_in_memory(file)) return *text;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  if (!stream) throw InputError(fmt::format("{}: cannot be read", file.string()));
  return content.str();
}

/// Throws InputError where the text is what `ddpsim import` reads, as far as `what` knows.
void check_no_import(std::string (*what)(const std::string&, std::string_view),
                     const std::string& file, const std::string& content) {
  if (const std::string told = what(file, content); !told.empty())
    throw InputError(fmt::format("{}: {}", file, told));
}

/// Why a file that is too large is none of ours.
std::string too_large(const std::filesystem::path& path) {
  constexpr std::size_t looked_at = 65536;
  std::string beginning(looked_at, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(stream.gcount()));
  std::string told = json_to_import(path.string(), beginning);
  if (told.empty()) told = log_to_import(path.string(), beginning);
  return "larger than 8 MiB" + (told.empty() ? "" : ": " + told);
}

/// The key at the end of a path; null: there is none.
const KeyDescription* key_at(const MapDescription& root, const std::vector<std::string>& steps) {
  const MapDescription* map = &root;
  const KeyDescription* key = nullptr;
  for (const std::string& step : steps) {
    key = map == nullptr ? nullptr : map->find(step);
    map = key == nullptr ? nullptr : map_of(key->type);
  }
  return key;
}

bool takes_path(const Type& type) {
  return std::any_of(type.begin(), type.end(), [](const Form& form) {
    return form.kind == Form::Kind::path || form.kind == Form::Kind::entry;
  });
}

/// Is it the path of a file here, and neither the name of an entry of the catalogue nor another
/// value of the type that happens to be a file's name as well?
bool is_file_here(const std::string& text, const Type& type, const std::filesystem::path& folder) {
  const std::filesystem::path path(text);
  std::error_code error;
  if (path.is_absolute() || text_in_memory(folder / path) ||
      !std::filesystem::is_regular_file(path, error))
    return false;
  if (text.find('/') != std::string::npos) return true;
  return std::none_of(type.begin(), type.end(), [&](const Form& form) {
    using Kind = Form::Kind;
    if (form.kind == Kind::entry)
      return !form.catalogue.empty() && is_of_catalogue(text, form.catalogue);
    return form.kind != Kind::path && form.kind != Kind::text && form.kind != Kind::anything &&
           suits({form}, text);
  });
}

/// A value that was given where we are: paths in it to files of the current folder made absolute.
YAML::Node from_here(const YAML::Node& value, const KeyDescription* key,
                     const std::filesystem::path& folder) {
  if (key == nullptr) return value;
  if (value.IsScalar())
    return takes_path(key->type) && is_file_here(value.Scalar(), key->type, folder)
               ? YAML::Node(std::filesystem::absolute(value.Scalar()).string())
               : value;
  const MapDescription* keys = map_of(key->type);
  if (!value.IsMap() || keys == nullptr) return value;
  YAML::Node copy(YAML::NodeType::Map);
  for (const auto& item : value)
    copy.force_insert(
        item.first,
        from_here(item.second, item.first.IsScalar() ? keys->find(item.first.Scalar()) : nullptr,
                  folder));
  return copy;
}

}  // namespace

std::string unreadable(const std::filesystem::path& path) {
  if (const auto text = text_in_memory(path))
    return text->size() > largest_file ? "larger than 8 MiB" : "";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "no such file";
  if (!std::filesystem::is_regular_file(path, error)) return "not a file";
  return std::filesystem::file_size(path, error) > largest_file ? too_large(path) : "";
}

Yaml Yaml::load(const std::filesystem::path& file, std::string_view example) {
  const std::string name = file.string();
  std::error_code error;  // a path may be too long to be asked about
  if (const std::string reason = unreadable(file); !reason.empty())
    throw InputError(fmt::format(
        "{}{}: {}", name, std::filesystem::is_regular_file(file, error) ? ":1:1" : "", reason));
  const std::string given = text_of(file);
  check_no_import(json_to_import, name, given);
  check_amount(given, name);
  check_seal(given, name);
  const std::string content = with_joined_surrogates(given);
  try {
    check_one_document(content, name);
    Changes changes;
    YAML::Node node = YAML::Load(content);
    if (content.find("<<") != std::string::npos) node = with_merges(node, name, changes.copies);
    Yaml root(node, name, "");
    root.changes_ = std::make_shared<Changes>(std::move(changes));
    if (root.node_.IsNull())
      throw InputError(fmt::format("{}:1:1: empty file: expected a mapping such as \"{}\"", name,
                                   example.empty() ? "name: my first scenario" : example));
    if (!root.is_map()) {
      check_no_import(log_to_import, name, content);
      root.fail(fmt::format("expected a mapping of keys to values, such as \"{}\"",
                            example.empty() ? "workload: {model: resnet50}" : example));
    }
    return root;
  } catch (const TagProblem& problem) {
    throw InputError(fmt::format("{}:{}:{}: {}", name, problem.mark.line + 1,
                                 problem.mark.column + 1, problem.text));
  } catch (const YAML::DeepRecursion& problem) {
    throw InputError(fmt::format("{}:{}:{}: nested too deeply: is this a scenario?", name,
                                 problem.mark.line + 1, problem.mark.column + 1));
  } catch (const YAML::Exception& problem) {
    check_no_import(log_to_import, name, content);
    if (const std::string why = cut_off(content, problem.mark.line); !why.empty())
      throw InputError(fmt::format("{}:{}", name, why));
    const SyntaxProblem why =
        explain_syntax(content, {problem.mark.line, problem.mark.column, shown(problem.msg)});
    throw InputError(
        fmt::format("{}:{}:{}: not YAML: {}", name, why.line + 1, why.column + 1, why.text));
  }
}

Yaml Yaml::of_nothing(const std::filesystem::path& neighbour) {
  return Yaml(YAML::Node(YAML::NodeType::Map), (neighbour.parent_path() / "").string(), "");
}

Yaml Yaml::of_setting(const Setting& setting) {
  Yaml yaml(YAML::Node(setting.value), "", setting.key);
  Changes changes;
  changes.overrides.push_back(setting);
  yaml.changes_ = std::make_shared<Changes>(std::move(changes));
  return yaml;
}

YAML::Mark Yaml::mark_of(const YAML::Node& node, const Changes& changes) {
  for (const auto& [copy, mark] : changes.copies)
    if (copy.is(node)) return mark;
  return node.Mark();
}

// yaml-cpp's nodes are references, and an alias is the anchored node itself: writing into one of
// them would change the other. So nothing that was read is written to; what a change needs is
// copied.
YAML::Node Yaml::changed(const YAML::Node& map, const std::vector<std::string>& steps,
                         std::size_t at, const YAML::Node& value, Changes& changes,
                         const MapDescription* keys) const {
  const std::string& step = steps[at];
  const bool last = at + 1 == steps.size();
  const KeyDescription* key = keys == nullptr ? nullptr : keys->find(step);
  const MapDescription* inner = key == nullptr ? nullptr : map_of(key->type);
  YAML::Node copy(YAML::NodeType::Map);
  bool found = false;
  for (const auto& item : map) {
    if (found || !item.first.IsScalar() || item.first.Scalar() != step) {
      copy.force_insert(item.first, item.second);
      continue;
    }
    found = true;
    YAML::Node there = item.second;
    if (!last && !there.IsMap()) {
      const auto whole = key == nullptr ? std::nullopt : long_form(there, *key);
      if (!whole) throw InputError(fmt::format("{} is not a mapping in {}", step, file_));
      changes.copies.emplace_back(*whole, mark_of(there, changes));
      there.reset(*whole);
    }
    copy.force_insert(item.first,
                      last ? value : changed(there, steps, at + 1, value, changes, inner));
  }
  if (!found)
    copy.force_insert(step, last ? value
                                 : changed(YAML::Node(YAML::NodeType::Map), steps, at + 1, value,
                                           changes, inner));
  changes.copies.emplace_back(copy, mark_of(map, changes));
  return copy;
}

void Yaml::apply(const std::vector<Setting>& overrides, const MapDescription* keys) {
  Changes changes = *changes_;
  for (const Setting& change : overrides) {
    const auto refuse = [&](std::string_view problem) {
      throw InputError(fmt::format("{}: {}", setting_text(change), problem));
    };
    YAML::Node value;
    try {
      const std::string content = with_joined_surrogates(change.value);
      if (const auto mark = second_document(content))
        refuse(fmt::format("the value ends before \"{}\": expected one value",
                           shown(content.substr(static_cast<std::size_t>(mark->pos)))));
      value = YAML::Load(content);
    } catch (const TagProblem& problem) {
      refuse(problem.text);
    } catch (const YAML::Exception& problem) {
      refuse("the value is not YAML: " + shown(problem.msg));
    }
    std::istringstream path(change.key);
    std::vector<std::string> steps;
    for (std::string step; std::getline(path, step, '.');) steps.push_back(step);
    if (steps.empty() || change.key.back() == '.' ||
        std::find(steps.begin(), steps.end(), "") != steps.end())
      refuse("expected KEY=VALUE, such as training.bucket_cap=50MiB");
    try {
      if (keys != nullptr) value.reset(from_here(value, key_at(*keys, steps), folder()));
      node_.reset(changed(node_, steps, 0, value, changes, keys));
    } catch (const InputError& problem) {
      refuse(problem.what());
    }
    changes.overrides.push_back(change);
  }
  changes_ = std::make_shared<Changes>(std::move(changes));
}

void Yaml::put(const std::vector<std::string>& path, const Yaml& value,
               const MapDescription& keys) {
  Changes changes = *changes_;
  node_.reset(changed(node_, path, 0, value.node_, changes, &keys));
  if (!value.file_.empty() && value.file_ != file_)
    changes.origins.emplace_back(value.node_, value.file_);
  changes_ = std::make_shared<Changes>(std::move(changes));
}

void Yaml::wrap(const std::string& key, const std::string& inner) {
  std::optional<YAML::Node> value;
  for (const auto& item : node_)
    if (!value && item.first.IsScalar() && item.first.Scalar() == key) value = item.second;
  if (!value || !value->IsScalar()) return;
  Changes changes = *changes_;
  YAML::Node map(YAML::NodeType::Map);
  map.force_insert(inner, *value);
  changes.copies.emplace_back(map, mark_of(*value, changes));
  node_.reset(changed(node_, {key}, 0, map, changes, nullptr));
  changes_ = std::make_shared<Changes>(std::move(changes));
}

YAML::Node Yaml::without(const YAML::Node& map, const std::vector<std::string>& steps,
                         std::size_t at, Changes& changes) {
  YAML::Node copy(YAML::NodeType::Map);
  for (const auto& item : map) {
    const bool here = item.first.IsScalar() && item.first.Scalar() == steps[at];
    if (here && at + 1 == steps.size()) continue;
    copy.force_insert(item.first, here && item.second.IsMap()
                                      ? without(item.second, steps, at + 1, changes)
                                      : item.second);
  }
  changes.copies.emplace_back(copy, mark_of(map, changes));
  return copy;
}

void Yaml::remove(const std::vector<std::string>& path) {
  Changes changes = *changes_;
  node_.reset(without(node_, path, 0, changes));
  changes_ = std::make_shared<Changes>(std::move(changes));
}

const Setting* Yaml::setting() const {
  const std::vector<Setting>& overrides = changes_->overrides;
  // Where a key is changed several times, the last change counts.
  for (auto change = overrides.rbegin(); change != overrides.rend(); ++change)
    if (key_ == change->key || key_.rfind(change->key + ".", 0) == 0 ||
        (mark().is_null() &&
         change->key.rfind(key_ + ".", 0) == 0))  // a mapping that the change made
      return &*change;
  return nullptr;
}

void Yaml::fail(std::string_view problem) const {
  if (const Setting* change = setting())
    throw InputError(fmt::format("{}: {}", setting_text(*change), problem));
  const std::string where =
      fmt::format("{}{}{}", shown_key(key_), key_.empty() ? "" : ": ", problem);
  const bool of_file = !std::filesystem::path(file_).filename().empty();
  throw InputError(of_file || !mark().is_null() ? fmt::format("{}: {}", place(), where) : where);
}

std::string Yaml::place() const {
  const YAML::Mark start = mark();
  return fmt::format("{}:{}:{}", file_, start.line + 1, start.column + 1);
}

void Yaml::fail_unknown(const std::string& given, const std::vector<std::string>& known) const {
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  const std::string guess = nearest(given, known);
  fail(fmt::format("unknown name \"{}\"{}; known: {}", shown(given),
                   guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess), list));
}

std::string Yaml::flow() const {
  YAML::Emitter out;
  out.SetSeqFormat(YAML::Flow);
  out.SetMapFormat(YAML::Flow);
  const std::function<void(const YAML::Node&)> write = [&](const YAML::Node& node) {
    if (node.IsMap()) {
      out << YAML::BeginMap;
      for (const auto& entry : node) {
        out << YAML::Key << entry.first << YAML::Value;
        write(entry.second);
      }
      out << YAML::EndMap;
    } else if (node.IsSequence()) {
      out << YAML::BeginSeq;
      for (const YAML::Node& each : node) write(each);
      out << YAML::EndSeq;
    } else if (node.IsScalar() && node.Tag() == "!") {  // quoted
      write_text(out, node.Scalar());
    } else {
      out << node;
    }
  };
  write(node_);
  return out.c_str();
}

std::string Yaml::text(std::string_view expected) const {
  if (!node_.IsScalar() || node_.Scalar().empty())
    fail(fmt::format("expected {}, got {}", expected,
                     node_.IsMap()        ? "a mapping"
                     : node_.IsSequence() ? "a list"
                                          : "nothing"));
  return node_.Scalar();
}

bool Yaml::is_word(std::string_view word) const {
  return node_.IsScalar() && position_of(node_.Scalar(), {std::string(word)}).has_value();
}

bool Yaml::boolean() const {
  const std::string given = text("true or false");
  for (const char* spelling : {"true", "True", "TRUE"})
    if (given == spelling) return true;
  for (const char* spelling : {"false", "False", "FALSE"})
    if (given == spelling) return false;
  fail(fmt::format("expected true or false, got \"{}\"", shown(given)));
}

std::int64_t Yaml::integer(std::int64_t least, std::int64_t most) const {
  const std::string given = text("a whole number");
  const auto value = parse_integer(given);
  if (!value || *value < least || *value > most)
    fail(fmt::format("expected a whole number from {} to {}, got \"{}\"", least, most,
                     shown(given)));
  return *value;
}

double Yaml::number(double least, double most) const {
  const std::string given = text("a number");
  const auto value = parse_number(given);
  if (!value || *value < least || *value > most)
    fail(fmt::format("expected a number from {} to {}, got \"{}\"", least, most, shown(given)));
  return *value;
}

void Yaml::fail_quantity(std::string_view expected, const std::string& given,
                         Quantity quantity) const {
  const std::string meant = quantity_meant(given, quantity);
  fail(fmt::format("expected {}, got \"{}\"{}", expected, shown(given),
                   meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant)));
}

Duration Yaml::duration_or_zero() const {
  constexpr std::string_view expected = "a time with its unit, such as \"250 ms\" or \"5 us\"";
  const std::string given = text(expected);
  const auto value = parse_duration(given);
  if (!value || *value < Duration::zero()) fail_quantity(expected, given, Quantity::duration);
  return *value;
}

Duration Yaml::duration() const {
  const Duration value = duration_or_zero();
  if (value == Duration::zero()) fail("expected a time above zero");
  return value;
}

Bytes Yaml::bytes() const {
  constexpr std::string_view expected = "a size with its unit, such as \"25 MiB\" or \"10 MB\"";
  const std::string given = text(expected);
  const auto value = parse_bytes(given);
  if (!value || value->count <= 0)
    fail_quantity(std::string(expected) + " and above zero", given, Quantity::bytes);
  return *value;
}

Bytes Yaml::bytes_or_count() const {
  const auto plain = parse_integer(is_scalar() ? text("a size") : "");
  return plain && *plain > 0 ? Bytes{*plain} : bytes();
}

Bandwidth Yaml::bandwidth() const {
  constexpr std::string_view expected =
      "a rate with its unit, such as \"450 GB/s\" or \"400 Gbit/s\"";
  const std::string given = text(expected);
  const auto value = parse_bandwidth(given);
  if (!value || value->bytes_per_second <= 0)
    fail_quantity(std::string(expected) + " and above zero", given, Quantity::bandwidth);
  return *value;
}

FlopRate Yaml::flop_rate() const {
  constexpr std::string_view expected = "a rate with its unit, such as \"989 TFLOP/s\"";
  const std::string given = text(expected);
  const auto value = parse_flop_rate(given);
  if (!value || value->flops_per_second <= 0)
    fail_quantity(std::string(expected) + " and above zero", given, Quantity::flop_rate);
  return *value;
}

std::vector<Yaml> Yaml::list(std::string_view expected) const {
  if (!node_.IsSequence()) fail(fmt::format("expected {}", expected));
  std::vector<Yaml> items;
  for (const YAML::Node& item : node_) {
    Yaml& child = items.emplace_back(Yaml(item, file_, key_));
    child.changes_ = changes_;
  }
  return items;
}

YamlMap::YamlMap(const Yaml& node) : node_(node) {
  if (!node.is_map()) node.fail("expected a mapping of keys to values");
  std::unordered_set<std::string> seen;
  for (const auto& item : node.node_) {
    const YAML::Node& key = item.first;
    const YAML::Node& value = item.second;
    const Yaml place(key, node.file_, node.key_);
    if (!key.IsScalar()) place.fail("expected a key");
    if (!seen.insert(key.Scalar()).second)
      place.fail(fmt::format("repeated key \"{}\"", shown(key.Scalar())));
    entries_.emplace_back(key.Scalar(), child(key, value));
  }
}

Yaml YamlMap::child(const YAML::Node& key, const YAML::Node& value) const {
  const std::string& name = key.Scalar();
  Yaml yaml(value, Yaml::origin_of(value, *node_.changes_, node_.file_),
            node_.key_.empty() ? name : node_.key_ + "." + name);
  if (value.IsNull()) yaml.nothing_ = key.Mark();
  yaml.changes_ = node_.changes_;
  return yaml;
}

Yaml YamlMap::place_of_key(const std::string& key, const Yaml& value) const {
  Yaml place = value;
  for (const auto& item : node_.node_)
    if (item.first.IsScalar() && item.first.Scalar() == key && !item.first.Mark().is_null())
      place.node_.reset(item.first);
  return place;
}

std::optional<Yaml> YamlMap::find(std::string_view key) const {
  for (const auto& [name, value] : entries_)
    if (name == key) return value;
  return std::nullopt;
}

Yaml YamlMap::at(std::string_view key) const {
  auto value = find(key);
  if (!value) check_there({*this}, key, {.name = "", .meaning = ""});
  return *value;
}

void YamlMap::check_together(const MapDescription& description) const {
  for (const Exclusion& exclusion : description.exclusions) {
    const auto value = find(exclusion.key);
    for (const std::string& other : exclusion.others)
      if (value && has(other)) value->fail(exclusion.problem);
  }
  if (description.single.empty()) return;
  if (entries_.size() != 1) node_.fail(description.single);
  const auto& [name, value] = entries_.front();
  if (description.find(name) != nullptr) return;
  if (const std::string told = told_elsewhere(name, value, description); !told.empty())
    place_of_key(name, value).fail(told);
  node_.fail_unknown(name, description.key_names());
}

void YamlMap::check_there(const std::vector<YamlMap>& layers, std::string_view key,
                          const MapDescription& description) {
  for (const YamlMap& layer : layers)
    if (layer.has(key)) return;
  const YamlMap& entry = layers.back();
  entry.refuse_slip(key, description);
  // What another program calls the missing one is told by its own name.
  const KeyDescription* wanted = description.find(key);
  for (const auto& [name, value] : entry.entries_)
    if (wanted != nullptr && description.find(name) == nullptr && spelt_elsewhere(*wanted, name))
      entry.place_of_key(name, value).fail(unknown_key(name, value, description));
  entry.node_.fail(fmt::format("missing key \"{}\"", key));
}

void YamlMap::refuse_joined(const MapDescription& description) const {
  for (const auto& [name, value] : entries_) {
    const std::size_t colon = name.find(':');
    if (colon == std::string::npos || colon + 1 == name.size() || !value.node_.IsNull() ||
        description.find(name.substr(0, colon)) == nullptr)
      continue;
    Yaml place = place_of_key(name, value);
    place.key_ = node_.key_;
    place.fail(fmt::format("expected a blank after \"{}\"", name.substr(0, colon + 1)));
  }
}

void YamlMap::refuse_slip(std::string_view key, const MapDescription& description) const {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : entries_)
    if (description.find(name) == nullptr) unknown.push_back(name);
  const std::string slip = nearest(key, unknown);
  const bool described = !description.keys.empty();
  if (slip.empty() || (described && nearest(slip, description.key_names()) != key)) return;
  // A reader without a description says nothing of other keys.
  if (!described)
    node_.fail(fmt::format("missing key \"{}\"; is \"{}\" meant to be it?", key, shown(slip)));
  place_of_key(slip, at(slip))
      .fail(fmt::format("unknown key; did you mean \"{}\", which is missing?", key));
}

void YamlMap::check_needs(const std::vector<YamlMap>& layers, const MapDescription& description) {
  for (const Need& need : description.needs) {
    if (need.told_only) continue;
    const bool met =
        std::any_of(need.any_of.begin(), need.any_of.end(), [&](const Presence& presence) {
          return std::any_of(layers.begin(), layers.end(),
                             [&](const YamlMap& layer) { return layer.has(presence.key); });
        });
    if (met) continue;
    if (!need.problem.empty()) layers.back().node_.fail(need.problem);
    check_there(layers, need.any_of.front().key, description);
  }
}

void YamlMap::refuse_unknown(const MapDescription& description) const {
  for (const auto& [name, value] : entries_)
    if (description.find(name) == nullptr)
      place_of_key(name, value).fail(unknown_key(name, value, description));
}

void YamlMap::refuse_misplaced(const MapDescription& description) const {
  for (const auto& [name, value] : entries_)
    if (description.find(name) == nullptr && belongs_below(name, description))
      place_of_key(name, value).fail(unknown_key(name, value, description));
}

}  // namespace ddpsim
