#include "scenarios/reader/format/suits.hpp"

#include <algorithm>

#include "scenarios/reader/text/catalogue_folder.hpp"
#include "scenarios/reader/text/names.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

bool is_truth_value(const std::string& scalar) {
  return position_of(scalar, {"true", "false"}).has_value();
}

bool is_whole_between(const std::string& scalar, std::int64_t lowest, std::int64_t highest) {
  const auto number = parse_integer(scalar);
  return number && *number >= lowest && *number <= highest;
}

bool is_number_between(const std::string& scalar, double least, double most) {
  const auto number = parse_number(scalar);
  return number && *number >= least && *number <= most;
}

bool is_time(const std::string& scalar, bool zero) {
  const auto time = parse_duration(scalar);
  return time && (zero ? *time >= Duration::zero() : *time > Duration::zero());
}

bool is_times(std::string scalar, double least, double most) {
  if (!scalar.ends_with('x')) return false;
  scalar.pop_back();
  if (scalar.ends_with(' ')) scalar.pop_back();
  return is_number_between(scalar, least, most);
}

bool is_percentage(std::string scalar) {
  if (!scalar.ends_with('%')) return false;
  scalar.pop_back();
  if (scalar.ends_with(' ')) scalar.pop_back();
  return parse_number(scalar).value_or(-1) >= 0;
}

bool is_choice(const std::string& scalar, const std::vector<NamedChoice>& choices) {
  std::vector<std::string> names;
  for (const NamedChoice& choice : choices) names.push_back(choice.name);
  return position_of(scalar, names).has_value();
}

bool names_entry(const std::string& scalar, std::string_view catalogue) {
  if (is_path_of_entry(scalar) || catalogue.empty()) return true;
  const std::vector<std::string> names = catalogue_names(catalogue);
  return position_of(scalar, names).has_value() || family_of(scalar, names).size() == 1;
}

bool suits(const Form& form, const std::string& scalar) {
  switch (form.kind) {
    case Form::Kind::text:
    case Form::Kind::path:
    case Form::Kind::anything:
      return !scalar.empty();
    case Form::Kind::boolean:
      return is_truth_value(scalar);
    case Form::Kind::integer:
      return is_whole_between(scalar, form.lowest, form.highest);
    case Form::Kind::number:
      return is_number_between(scalar, form.least, form.most);
    case Form::Kind::time:
      return is_time(scalar, form.zero);
    case Form::Kind::size:
      return parse_bytes(scalar).value_or(Bytes{}).count > 0;
    case Form::Kind::bandwidth:
      return parse_bandwidth(scalar).value_or(Bandwidth{}).bytes_per_second > 0;
    case Form::Kind::flop_rate:
      return parse_flop_rate(scalar).value_or(FlopRate{}).flops_per_second > 0;
    case Form::Kind::percent:
      return is_percentage(scalar);
    case Form::Kind::times:
      return is_times(scalar, form.least, form.most);
    case Form::Kind::price:
      return parse_price(scalar).value_or(Price{}).per_hour > 0;
    case Form::Kind::choice:
    case Form::Kind::constant:
      return is_choice(scalar, form.choices);
    case Form::Kind::entry:
      return names_entry(scalar, form.catalogue);
    case Form::Kind::list:
    case Form::Kind::map:
    case Form::Kind::free_map:
      return false;
  }
  return false;
}

}  // namespace

bool suits(const Type& type, const std::string& scalar) {
  return std::any_of(type.begin(), type.end(),
                     [&](const Form& form) { return suits(form, scalar); });
}

std::string example_value(const KeyDescription& key) {
  const About& about = key.about;
  const bool truth = std::any_of(key.type.begin(), key.type.end(),
                                 [](const Form& form) { return form.kind == Form::Kind::boolean; });
  if (truth) return "true";
  const std::string example(about.example);
  return example.empty() ? std::string(about.unset) : example;
}

}  // namespace ddpsim
