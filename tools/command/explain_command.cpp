#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/reader/explain/reference.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/command/command.hpp"
#include "tools/report/records/all_fields.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_words = 8;  ///< of what has a name of several words

const Usage explain_usage{
    "ddpsim explain [flags] [WORD...]",
    "Says what a key of a YAML file means: its type, unit and default, where its rule "
    "comes from, and an\nexample. WORD is the key's dotted path, or the end of one, in any case of "
    "letters. It may also be a name\nthat a key can take (H100-SXM, a strategy, a comm hook), a "
    "word of the tables (exposed, step low ms; all are\nin docs/glossary.md), or a key of the JSON "
    "and CSV that commands write (step_low_ms). Several words are one if such a\nname has them "
    "all. Without WORD, lists the keys of all formats.",
    "ddpsim explain training.bucket_cap"};

/// The keys of results, once for each meaning, with the groups of `ddpsim list results` that have
/// them.
std::vector<GlossaryEntry> result_keys() {
  std::vector<std::pair<const Field*, std::string>> keys;
  for (const FieldGroup& group : all_fields())
    for (const Field* field : group.fields) {
      if (field->audience == Audience::people) continue;
      const auto same = std::ranges::find_if(keys, [&](const auto& key) {
        return key.first->name == field->name && key.first->hint == field->hint;
      });
      if (same == keys.end())
        keys.emplace_back(field, group.name);
      else
        same->second += fmt::format(", {}", group.name);
    }
  std::vector<GlossaryEntry> entries;
  for (const auto& [field, groups] : keys) {
    const std::string unit = field->unit.empty() ? "" : fmt::format(" In {}.", field->unit);
    entries.push_back({{std::string(field->name)},
                       fmt::format("{}, in JSON or CSV ({})", field->name, groups),
                       std::string(field->hint) + unit});
  }
  return entries;
}

}  // namespace

int explain_command(const std::vector<std::string>& arguments) {
  boost::program_options::options_description own;
  own.add_options()("markdown", "print the reference page of all keys, docs/scenario.md");
  CommonOptions options;
  if (!parse(arguments, explain_usage, 0, own, options)) return exit_done;
  if (options.values.count("markdown") > 0) {
    if (!options.files.empty()) throw InputError("--markdown prints all keys: take WORD out");
    fmt::print("{}", reference_page());
    return exit_done;
  }
  if (options.files.empty()) fmt::print("{}", key_tree());
  const std::vector<GlossaryEntry> results = result_keys();
  // "ddpsim explain bucket cap" is of two words that are one.
  std::string text;
  if (options.files.size() > 1 && options.files.size() <= most_words)
    text = known_explanation(fmt::format("{}", fmt::join(options.files, " ")), results);
  if (text.empty())
    for (const std::string& key : options.files) {
      text += text.empty() ? "" : "\n";
      text += explanation(key, results);
    }
  fmt::print("{}", text);
  return exit_done;
}

}  // namespace ddpsim
