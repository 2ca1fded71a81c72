#include "scenarios/reader/measured/doubts.hpp"

#include <fmt/format.h>

#include "model/base/printable.hpp"

namespace ddpsim {

Value<std::vector<std::string>> doubts_value() {
  constexpr std::size_t most = 20, longest = 500;
  constexpr const char* expected = "a list of texts, such as [other programs were at work]";
  auto value = value::list_of(value::text("a text"), expected);
  value.read = [=](const Yaml& given) {
    const std::vector<Yaml> items = given.list(expected);
    if (items.size() > most)
      given.fail(fmt::format("expected at most {} texts, got {}", most, items.size()));
    std::vector<std::string> doubts;
    for (const Yaml& item : items) {
      const std::string text = item.text("a text");
      if (text.size() > longest)
        item.fail(fmt::format("expected a text of at most {} bytes, got {}", longest, text.size()));
      if (printable(text) != text)
        item.fail("expected a text of one line without control characters");
      doubts.push_back(text);
    }
    return doubts;
  };
  return value;
}

}  // namespace ddpsim
