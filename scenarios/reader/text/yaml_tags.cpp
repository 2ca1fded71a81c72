#include "scenarios/reader/text/yaml_tags.hpp"

#include <string_view>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

constexpr std::string_view core = "tag:yaml.org,2002:";

/// No tag, or the one that yaml-cpp gives a value in quotes.
bool is_none(const std::string& tag) {
  return tag.empty() || tag == "?" || tag == "!";
}

/// "!!int", as one writes it.
std::string written(const std::string& tag) {
  const std::string plain = tag.starts_with(core)  ? "!!" + tag.substr(core.size())
                            : tag.starts_with('!') ? tag
                                                   : "!" + tag;
  return printable(plain.substr(0, 40));
}

[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& tag, std::string_view what) {
  throw TagProblem{mark, fmt::format("the tag {} {}: leave it out", written(tag), what)};
}

bool is_boolean(std::string_view text) {
  for (const std::string_view spelling : {"true", "True", "TRUE", "false", "False", "FALSE"})
    if (text == spelling) return true;
  return false;
}

bool is_null(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

/// Does a tag of the core schema fit a scalar of this text? False for tags of other values.
bool fits_scalar(std::string_view kind, const std::string& text) {
  if (kind == "str") return true;
  if (kind == "int") return parse_integer(text).has_value();
  if (kind == "float") return parse_number(text).has_value();
  if (kind == "bool") return is_boolean(text);
  return kind == "null" && is_null(text);
}

bool is_core(const std::string& tag) {
  for (const std::string_view kind : {"str", "int", "float", "bool", "null", "seq", "map"})
    if (tag == std::string(core) + std::string(kind)) return true;
  return false;
}

void check(const YAML::Mark& mark, const std::string& tag, bool fits) {
  if (is_none(tag)) return;
  if (!is_core(tag)) refuse(mark, tag, "means nothing here");
  if (!fits) refuse(mark, tag, "does not fit the value behind it");
}

std::string kind_of(const std::string& tag) {
  return tag.starts_with(core) ? tag.substr(core.size()) : "";
}

}  // namespace

void CheckedEvents::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                             const std::string& text) {
  check(mark, tag, fits_scalar(kind_of(tag), text));
}

void CheckedEvents::OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                                    YAML::EmitterStyle::value) {
  check(mark, tag, kind_of(tag) == "seq");
}

void CheckedEvents::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                               YAML::EmitterStyle::value) {
  check(mark, tag, kind_of(tag) == "map");
}

}  // namespace ddpsim
