#include <fmt/format.h>

#include "scenarios/reader/input_error.hpp"
#include "scenarios/reader/reference.hpp"
#include "tools/command/command.hpp"

namespace ddpsim {
namespace {

const Usage explain_usage{
    "ddpsim explain [flags] [WORD...]",
    "Says what a key of a YAML file means: its type, unit and default, where its rule "
    "comes from, and an\nexample. WORD is the key's dotted path, or the end of one, in any case of "
    "letters. It may also be a name\nthat a key can take (H100-SXM, a strategy, a comm hook), or a "
    "word of the tables (exposed, MFU; all are\nin docs/glossary.md). Without WORD, lists the keys "
    "of all formats.",
    "ddpsim explain training.bucket_cap"};

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
  std::string text;
  for (const std::string& key : options.files) {
    text += text.empty() ? "" : "\n";
    text += explanation(key);
  }
  fmt::print("{}", text);
  return exit_done;
}

}  // namespace ddpsim
