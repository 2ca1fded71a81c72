#include "tools/report/choice_record.hpp"

#include <fmt/format.h>

#include "tools/report/step_fields.hpp"

namespace ddpsim {

void add_choice(Record& record, const CollectiveChoice& choice) {
  if (choice.algorithm) record.add(fields::algorithm, name_of(*choice.algorithm));
  if (choice.gloo) record.add(fields::algorithm, name_of(*choice.gloo));
  if (choice.protocol) record.add(fields::protocol, name_of(*choice.protocol));
  if (choice.channels > 0) record.add(fields::channels, choice.channels);
  if (choice.nics > 0) record.add(fields::nics, choice.nics);
  if (choice.bound != CollectiveBound::unknown)
    record.add(fields::collective_bound, name_of(choice.bound));
}

std::string choice_text(const CollectiveChoice& choice) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (choice.algorithm) add(std::string(name_of(*choice.algorithm)));
  if (choice.gloo) add(std::string(name_of(*choice.gloo)));
  if (choice.protocol) text += fmt::format(" {}", name_of(*choice.protocol));
  if (choice.channels > 0)
    add(fmt::format("{} channel{}", choice.channels, choice.channels > 1 ? "s" : ""));
  if (choice.nics > 0) add(fmt::format("{} NIC{}", choice.nics, choice.nics > 1 ? "s" : ""));
  if (choice.bound != CollectiveBound::unknown) add(fmt::format("by {}", name_of(choice.bound)));
  return text;
}

}  // namespace ddpsim
