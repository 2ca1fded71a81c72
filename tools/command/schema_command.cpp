#include <fmt/format.h>

#include "scenarios/reader/explain/schema.hpp"
#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/nearest.hpp"
#include "tools/command/command.hpp"

namespace ddpsim {
namespace {

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : all_formats()) names.push_back(format.name);
  return names;
}

std::string listed(const std::vector<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

Usage schema_usage() {
  return {"ddpsim schema [flags] [" + listed(format_names(), "|") + "]",
          "Prints the JSON Schema (draft 2020-12) of a kind of file, by which editors check and "
          "complete YAML.\nWithout a name, that of scenarios.",
          "ddpsim schema scenario"};
}

}  // namespace

int schema_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  if (!parse(arguments, schema_usage(), 0, {}, options)) return exit_done;
  if (options.files.size() > 1)
    throw InputError("schema takes one format; see ddpsim schema --help");
  const std::string name = options.files.empty() ? "scenario" : options.files.front();
  for (const Format& format : all_formats()) {
    if (format.name != name) continue;
    fmt::print("{}", json_schema(format));
    return exit_done;
  }
  const std::string guess = nearest(name, format_names());
  throw InputError(fmt::format("unknown format \"{}\"{}; known: {}", name,
                               guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess),
                               listed(format_names(), ", ")));
}

}  // namespace ddpsim
